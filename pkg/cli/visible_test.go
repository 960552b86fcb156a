package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/terminal"
	"github.com/bcsnet/bcsnet/test/controlplane"
)

// hostile has what moves a cursor, turns the direction of writing, has no width, and makes a line.
const hostile = "a\x1b[2J\x1b[31mb\u202ec\u200bd\u009be\nFAKE"

// TestWhatIsPrintedIsSeen: whatever the strings of objects are, nothing that any command prints has characters that
// cannot be seen, and no string makes a line of its own.
func TestWhatIsPrintedIsSeen(t *testing.T) {
	t.Parallel()
	own := controlplane.ForTest(t)
	if err := own.InstallManifests(t.Context()); err != nil {
		t.Fatal(err)
	}
	f := newFixtureOn(t, own)
	f.takeAnyString(t)
	f.haveHostileObjects(t)
	for _, cmd := range leaves(Reference()) {
		words := strings.Fields(cmd.CommandPath())[1:]
		t.Run(strings.Join(words, " "), func(t *testing.T) {
			for _, args := range [][]string{
				nil, {"hostile"}, {"good"}, {"10.0.0.9"}, {"10.9.0.9"}, {"10.0.0.11"}, {"10.0.0.9", "good"}, {"good", "10.0.0.9"},
				{hostile}, {"default/good"},
			} {
				for _, format := range []string{"", "wide", "json"} {
					if format != "" && (cmd.Flag("output") == nil || !strings.Contains(cmd.Flag("output").Usage, format)) {
						continue
					}
					line := slices.Concat(words, args)
					if format != "" {
						line = append(line, "-o", format)
					}
					if cmd.Flag("dry-run") != nil {
						line = append(line, "--dry-run=client")
					}
					f.isSeen(t, format, append(line, "--kubeconfig", f.kubeconfigs["ADMIN"]))
				}
			}
		})
	}
}

// leaves returns the commands that do something with objects.
func leaves(cmd *cobra.Command) (all []*cobra.Command) {
	switch cmd.Name() {
	case "completion", "install", "upgrade", "uninstall", "check", "report", "backup", "help":
		return nil // of these no object is read, or a file is made
	}
	if cmd.Runnable() && cmd.HasParent() {
		all = append(all, cmd)
	}
	for _, c := range cmd.Commands() {
		all = append(all, leaves(c)...)
	}
	return all
}

// isSeen runs a command and looks at what it prints.
func (f *fixture) isSeen(t *testing.T, format string, line []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	var stdout, stderr bytes.Buffer
	s := app.New(app.ProgramName, "v0.0.0-test", genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: &stdout, ErrOut: &stderr})
	root := newRoot(s)
	root.SetArgs(line)
	err := root.ExecuteContext(ctx)
	s.Report(ctx, err)
	for _, text := range []string{stdout.String(), stderr.String()} {
		hidden := func(c rune) bool { return c != '\n' && c != '\t' && !unicode.IsPrint(c) }
		if i := strings.IndexFunc(text, hidden); i >= 0 {
			t.Errorf("%q prints %q", line, text[max(0, i-80):min(len(text), i+40)])
		}
		if i := strings.Index(text, "\nFAKE"); i >= 0 {
			t.Errorf("%q prints a line of a string: %q", line, text[max(0, i-80):min(len(text), i+40)])
		}
	}
	if format == "json" && stdout.Len() > 0 && err == nil {
		d := json.NewDecoder(&stdout)
		for {
			var o any
			if err := d.Decode(&o); err == io.EOF {
				return
			} else if err != nil {
				t.Fatalf("%q: %v", line, err)
			}
		}
	}
}

// takeAnyString has the API server take any string in the objects.
func (f *fixture) takeAnyString(t *testing.T) {
	t.Helper()
	for _, plural := range []string{"bcsnetpools", "bcsnetips", "bcsnetipclaims", "bcsnethistories"} {
		controlplane.Eventually(t, func() error {
			o := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
			}}
			key := client.ObjectKey{Name: plural + "." + v1.GroupVersion.Group}
			if err := f.client.Get(t.Context(), key, o); err != nil {
				return err
			}
			withoutRules(o.Object["spec"])
			return f.client.Update(t.Context(), o)
		})
	}
}

// withoutRules takes the rules for strings out of a schema.
func withoutRules(schema any) {
	switch s := schema.(type) {
	case map[string]any:
		maps.DeleteFunc(s, func(key string, _ any) bool {
			return slices.Contains([]string{"pattern", "enum", "format", "maxLength", "x-kubernetes-validations", "minimum", "maximum", "minItems", "maxItems"}, key)
		})
		for _, under := range s {
			withoutRules(under)
		}
	case []any:
		for _, under := range s {
			withoutRules(under)
		}
	}
}

// fill makes each string of a value hostile.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(hostile)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Slice:
		if v.Type().Elem().Kind() != reflect.Uint8 {
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
			fill(v.Index(0))
		}
	case reflect.Map:
		of := reflect.New(v.Type().Elem()).Elem()
		fill(of)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf(hostile).Convert(v.Type().Key()), of)
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[metav1.Time]() {
			v.Set(reflect.ValueOf(metav1.Now()))
			return
		}
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(v.Field(i))
			}
		}
	}
}

// haveHostileObjects makes objects in which all strings are hostile, and others that are of use beside those.
func (f *fixture) haveHostileObjects(t *testing.T) {
	t.Helper()
	annotations := map[string]string{
		"networkextension.bkbcs.tencent.com/pool": hostile, "networkextension.bkbcs.tencent.com/poool": hostile,
	}
	pool := &v1.BCSNetPool{ObjectMeta: metav1.ObjectMeta{Name: "hostile", Annotations: annotations}}
	ip := &v1.BCSNetIP{ObjectMeta: metav1.ObjectMeta{Name: "10.0.0.9", Annotations: annotations}}
	claim := &v1.BCSNetIPClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "hostile", Annotations: annotations}}
	fill(reflect.ValueOf(pool).Elem().FieldByName("Spec"))
	fill(reflect.ValueOf(pool).Elem().FieldByName("Status"))
	fill(reflect.ValueOf(ip).Elem().FieldByName("Spec"))
	fill(reflect.ValueOf(ip).Elem().FieldByName("Status"))
	fill(reflect.ValueOf(claim).Elem().FieldByName("Spec"))
	fill(reflect.ValueOf(claim).Elem().FieldByName("Status"))

	good := &v1.BCSNetPool{ObjectMeta: metav1.ObjectMeta{Name: "good", Annotations: annotations}, Spec: v1.BCSNetPoolSpec{
		Net: "10.9.0.0", Mask: 24, Gateway: "10.9.0.1", Hosts: []string{"10.0.0.11"}, AvailableIPs: []string{"10.9.0.2-10.9.0.99"},
	}, Status: pool.Status}
	lease := ip.DeepCopy()
	lease.Name, lease.Spec = "10.9.0.9", v1.BCSNetIPSpec{Pool: "good", Mask: 24, Gateway: "10.9.0.1"}
	lease.Status.Status, lease.Status.Host = v1.IPActive, "10.0.0.11"
	shared := claim.DeepCopy()
	shared.Name, shared.Spec = "good", v1.BCSNetIPClaimSpec{SharedName: hostile, Pool: "good", ReleasePolicy: v1.ReleaseNever}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "good", Annotations: map[string]string{
		"networkextension.bkbcs.tencent.com/host-addresses": hostile,
	}}}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "good", Annotations: annotations},
		Spec:       corev1.PodSpec{NodeName: "good", Containers: []corev1.Container{{Name: "main", Image: "main"}}},
	}
	kept := map[client.Object]client.Object{}
	for _, o := range []client.Object{pool, claim, good, shared} {
		kept[o] = o.DeepCopyObject().(client.Object) // Create returns the object without its status
	}
	for _, o := range []client.Object{pool, ip, claim, good, lease, shared, node, pod} {
		controlplane.Eventually(t, func() error { // the API server has taken the schema
			o.SetResourceVersion("")
			return client.IgnoreAlreadyExists(f.client.Create(t.Context(), o))
		})
		if with := kept[o]; with != nil {
			with.SetResourceVersion(o.GetResourceVersion())
			if err := f.client.Status().Update(t.Context(), with); err != nil {
				t.Fatal(err)
			}
		}
	}
	regarding := corev1.ObjectReference{APIVersion: v1.GroupVersion.String(), Kind: "BCSNetPool", Name: "good", UID: good.UID}
	if _, err := f.kubernetes.EventsV1().Events("default").Create(t.Context(), &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "hostile"}, Regarding: regarding, Note: hostile,
		Reason: "Hostile", Action: "Test", Type: "Warning", EventTime: metav1.NowMicro(), ReportingController: "test",
		ReportingInstance: "test",
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// A terminal with colours gets those of this program, and nothing else that it obeys.
func TestColoursAreLeft(t *testing.T) {
	var b bytes.Buffer
	red := terminal.Terminal{Color: true}.Paint(terminal.Red, "x")
	w := terminal.NewWriter(&b, terminal.Terminal{Color: true})
	if _, err := io.WriteString(w, red+hostile+"\n"); err != nil || !strings.HasPrefix(b.String(), red) ||
		strings.Contains(b.String(), "\x1b[2J") {
		t.Errorf("%q, %v", b.String(), err)
	}
}
