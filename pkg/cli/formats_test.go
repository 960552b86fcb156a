package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/yaml"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/claim"
	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/history"
	"github.com/bcsnet/bcsnet/pkg/importer/backup"
)

// formatCalls are calls that have something to print, by command. They change nothing, so that each can be made
// in every format. Commands under two groups are called by both names.
var formatCalls = map[string]string{
	"check nodes":       "silent --image registry.example.com/bcsnet:v1",
	"claim create":      "fresh --dry-run=client",
	"claim describe":    "sts-db",
	"claim list":        "",
	"claim release":     "sts-db --dry-run=client",
	"claim resize":      "web 2 --dry-run=client",
	"doctor":            "",
	"events":            "",
	"explain":           "web-0",
	"export":            "prefixes --pool blue",
	"explain namespace": "default",
	"host describe":     "10.0.0.11",
	"host list":         "",
	"host release":      "10.0.0.11 --dry-run=client",
	"install":           "--image registry.example.com/bcsnet:v1 --dry-run=client",
	"import netservice": "--dry-run=client",
	"inspect group":     "part",
	"inspect host":      "10.0.0.11",
	"inspect namespace": "default",
	"inspect network":   "prod",
	"inspect pool":      "blue",
	"ip allocate":       "--pool blue --for vm-9 --dry-run=client",
	"ip describe":       "10.1.0.20 10.1.0.30",
	"ip find":           "vm-1",
	"ip free":           "blue",
	"ip history":        "10.1.0.20",
	"pool history":      "blue",
	"ip list":           "--pool blue",
	"ip release":        "10.1.0.20 --force --dry-run=client",
	"ip reserve":        "10.1.0.30 --dry-run=client",
	"ip unreserve":      "10.1.0.21 --dry-run=client",
	"lease describe":    "10.1.0.20",
	"lease find":        "vm-1",
	"lease history":     "10.1.0.20",
	"lease list":        "",
	"lease release":     "10.1.0.20 --dry-run=client",
	"pool add-host":     "blue 10.0.0.12 --dry-run=client",
	"pool add-ip":       "blue 10.1.0.200 --dry-run=client",
	"pool bind":         "blue --namespace default --dry-run=client",
	"pool cordon":       "blue --dry-run=client",
	"pool create":       "green --cidr 10.2.0.0/24 --gateway 10.2.0.1 --range 10.2.0.20 --dry-run=client",
	"pool describe":     "blue",
	"pool diff":         "-f FILE",
	"pool edit":         "blue --dry-run=client",
	"pool export":       "blue",
	"pool list":         "",
	"pool remove-host":  "shut 10.0.0.12 --dry-run=client",
	"pool remove-ip":    "blue 10.1.0.30 --dry-run=client",
	"pool set":          "blue --vlan 7 --dry-run=client",
	"pool tree":         "",
	"pool unbind":       "blue --namespace shop --dry-run=client",
	"pool uncordon":     "shut --dry-run=client",
	"pool usage":        "blue",
	"rebuild":           "--dry-run=client",
	"restore":           "BACKUP --dry-run=client",
	"release-host":      "10.0.0.11 --dry-run=client",
	"top":               "",
	"top host":          "",
	"top namespace":     "",
	"top pool":          "",
	"trace":             "web-0",
	"upgrade":           "--force --dry-run=client",
	"usage":             "blue",
	"version":           "--client",
}

// haveController makes a Deployment of the controller as manifests have it, of which nobody makes pods.
func (f *fixture) haveController(t *testing.T) {
	t.Helper()
	all, err := resource.Render("default")
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range all {
		if o.GetKind() == resource.KindDeployment {
			if err := f.client.Create(t.Context(), &o); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := f.client.Delete(context.Background(), &o); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// TestFormats: every command that takes -o prints every format that its help names, and scripts show how.
func TestFormats(t *testing.T) {
	f := newFixture(t)
	blue := f.havePool(t)
	blue.Spec.Network = "prod"
	if err := f.client.Update(t.Context(), blue); err != nil {
		t.Fatal(err)
	}
	f.haveGroup(t, blue)
	f.haveLease(t, "10.1.0.20", "10.0.0.11", "vm-1")
	f.haveLease(t, "10.1.0.21", "10.0.0.11", "reserved")
	f.haveRunningPod(t, "web-0", "10.1.0.40")
	f.haveClaims(t)
	f.haveController(t)
	// A node without a kubelet gets no pod of check nodes: that is what it finds.
	if err := f.client.Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "silent"}}); err != nil {
		t.Fatal(err)
	}
	f.haveEvent(t, f.haveClosedPool(t))
	if err := f.haveHistory(t.Context(), history.Record{What: "created", Time: time.Now(), Pool: "blue", By: "ann"}); err != nil {
		t.Fatal(err)
	}
	f.haveReleased(t, released)
	t.Setenv("EDITOR", "sed -i -e s/10.1.0.99/10.1.0.98/")
	t.Setenv("KUBECONFIG", f.kubeconfigs["ADMIN"])
	t.Cleanup(func() { signal.Reset(syscall.SIGPIPE) }) // changes of addresses ignore it from then on
	dir := t.TempDir()
	for name, text := range map[string]string{
		"jsonpath": "{.kind}\n", "template": "{{.kind}}\n", "columns": "KIND\nkind\n", "pool": newPoolFile,
		"backup": newBackup(t),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	values := map[string]string{
		"jsonpath=": "{.kind}", "jsonpath-file=": filepath.Join(dir, "jsonpath"), "go-template=": "{{.kind}}\n",
		"go-template-file=": filepath.Join(dir, "template"), "custom-columns=": "KIND:.kind", "custom-columns-file=": filepath.Join(dir, "columns"),
	}
	for _, cmd := range withOutput(Reference()) {
		_, path, _ := strings.Cut(cmd.CommandPath(), " ")
		args, known := formatCalls[path]
		if !known && cmd.Parent().Name() == "import" {
			continue // one command for all systems
		}
		if !known {
			t.Errorf("%s is not called in any format", path)
			continue
		}
		for _, format := range formatsOf(cmd) {
			t.Run(path+"/"+format, func(t *testing.T) {
				args := slices.Concat([]string{app.ProgramName}, strings.Fields(path),
					strings.Fields(strings.NewReplacer("FILE", filepath.Join(dir, "pool"), "BACKUP", filepath.Join(dir, "backup")).Replace(args)),
					[]string{"-o", format + values[format]})
				var out, errOut bytes.Buffer
				code := Main(args, "v0.0.0-test", genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: &out, ErrOut: &errOut})
				if code != app.ExitDone && code != app.ExitFindings {
					t.Fatalf("%v: exit code %d: %s", args, code, errOut.String())
				}
				checkFormat(t, format, out.Bytes())
			})
		}
	}
}

// newPoolFile is a pool that does not exist yet.
const newPoolFile = `{apiVersion: networkextension.bkbcs.tencent.com/v1, kind: BCSNetPool, metadata: {name: fresh},
spec: {net: 10.9.0.0, mask: 24, gateway: 10.9.0.1, hosts: [10.0.0.12], availableIPs: [10.9.0.20]}}`

// newBackup has that pool, and an address of it that is set aside.
func newBackup(t *testing.T) string {
	t.Helper()
	var text strings.Builder
	w, err := backup.NewWriter(&text)
	if err != nil {
		t.Fatal(err)
	}
	const address = `{apiVersion: networkextension.bkbcs.tencent.com/v1, kind: BCSNetIP, metadata: {name: 10.9.0.20},
spec: {pool: fresh, mask: 24}, status: {status: Reserved}}`
	for _, one := range []string{newPoolFile, address} {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(one), &o.Object); err != nil {
			t.Fatal(err)
		}
		if err := w.Add(o); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.End(); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

// haveClaims makes a claim that keeps an address, as annotations make one, and one made by hand.
func (f *fixture) haveClaims(t *testing.T) {
	t.Helper()
	managed, byHand := &v1.BCSNetIPClaim{}, &v1.BCSNetIPClaim{}
	managed.Name, managed.Labels = "sts-db", map[string]string{claim.Managed: "true"}
	managed.Spec.Owner = &v1.ClaimOwner{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "db"}
	byHand.Name = "web"
	for _, c := range []*v1.BCSNetIPClaim{managed, byHand} {
		c.Namespace = metav1.NamespaceDefault
		if err := f.client.Create(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.kept(t.Context(), nil, []string{
		"10.1.0.50", "blue", "10.0.0.11", "default/db-0", "default/sts-db", "db-0",
	}); err != nil {
		t.Fatal(err)
	}
}

// haveGroup makes a group of a pool, in which somebody has an address.
func (f *fixture) haveGroup(t *testing.T, parent *v1.BCSNetPool) {
	t.Helper()
	p := &v1.BCSNetPool{Spec: v1.BCSNetPoolSpec{
		Net: parent.Spec.Net, Mask: parent.Spec.Mask, Gateway: parent.Spec.Gateway, Parent: parent.Name,
		AvailableIPs: []string{"10.1.0.60"}, Namespaces: []string{"part"},
	}}
	p.Name = "part"
	if err := f.client.Create(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if err := f.lease(t.Context(), nil, []string{"10.1.0.60", p.Name, "10.0.0.11", "vm-6"}); err != nil {
		t.Fatal(err)
	}
}

// haveClosedPool makes a second pool, which is cordoned.
func (f *fixture) haveClosedPool(t *testing.T) *v1.BCSNetPool {
	t.Helper()
	p := &v1.BCSNetPool{Spec: v1.BCSNetPoolSpec{
		Net: "10.5.0.0", Mask: 24, Gateway: "10.5.0.1", Hosts: []string{"10.0.0.12"}, AvailableIPs: []string{"10.5.0.20"},
		Cordoned: true,
	}}
	p.Name = "shut"
	if err := f.client.Create(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	return p
}

// haveEvent makes an event of a pool as the controller does.
func (f *fixture) haveEvent(t *testing.T, p *v1.BCSNetPool) {
	t.Helper()
	e := &eventsv1.Event{
		EventTime: metav1.NowMicro(), Type: "Normal", Reason: "Ready", Action: "Reconcile", Note: "it is ready",
		ReportingController: "bcsnet-controller", ReportingInstance: "bcsnet-controller-0",
		Regarding: corev1.ObjectReference{APIVersion: v1.GroupVersion.String(), Kind: "BCSNetPool", Name: p.Name, UID: p.UID},
	}
	e.Namespace, e.GenerateName = metav1.NamespaceDefault, "e-"
	if _, err := f.kubernetes.EventsV1().Events(e.Namespace).Create(t.Context(), e, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// withOutput are the commands that take -o.
func withOutput(root *cobra.Command) (all []*cobra.Command) {
	for _, cmd := range root.Commands() {
		if cmd.Hidden {
			continue // another spelling of one that is not
		}
		if cmd.Flags().Lookup("output") != nil {
			all = append(all, cmd)
		}
		all = append(all, withOutput(cmd)...)
	}
	return all
}

// formatsOf are the formats that the help of a command names.
func formatsOf(cmd *cobra.Command) []string {
	_, list, _ := strings.Cut(cmd.Flags().Lookup("output").Usage, ": ")
	return regexp.MustCompile(`[^\s,|]+`).FindAllString(list, -1)
}

// checkFormat judges what a command printed.
func checkFormat(t *testing.T, format string, out []byte) {
	t.Helper()
	var parsed map[string]any
	var err error
	switch format {
	case "json":
		err = json.Unmarshal(out, &parsed)
	case "yaml":
		err = yaml.Unmarshal(out, &parsed)
	}
	if err != nil || len(bytes.TrimSpace(out)) == 0 || bytes.Contains(out, []byte("<unknown>")) ||
		bytes.Contains(out, []byte("<no value>")) {
		t.Errorf("%v in %q", err, out)
	}
}

// TestFormatGoldens: every format that has a form of our own, and JSON, is in a script for every command. One
// that has two names is the same by its short help.
func TestFormatGoldens(t *testing.T) {
	scripts, err := filepath.Glob(filepath.Join("testdata", "*", "*.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, name := range scripts {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	names := map[string][]string{}
	commands := withOutput(Reference())
	for _, cmd := range commands {
		_, path, _ := strings.Cut(cmd.CommandPath(), " ")
		names[cmd.Short] = append(names[cmd.Short], regexp.QuoteMeta(path))
	}
	for _, cmd := range commands {
		for _, format := range formatsOf(cmd) {
			if !slices.Contains([]string{"wide", "json"}, format) ||
				slices.Contains([]string{"install", "upgrade"}, cmd.Name()) {
				continue // what these print are files of this repository
			}
			if cmd.Parent().Name() == "import" && cmd.Name() != "netservice" && cmd.Parent().HasParent() &&
				!cmd.Parent().Parent().HasParent() {
				continue // one command for all systems
			}
			path := "(" + strings.Join(names[cmd.Short], "|") + ")"
			run := regexp.MustCompile(`(?m)^(! )?exec (bcsnetctl|kubectl-bcsnet) (.*\b)?` + path + `\b.* (-o|--output)[ =]` +
				format + `\b.*\n(\w.*\n)*?cmp stdout`)
			if !run.MatchString(all.String()) {
				t.Errorf("no script shows what %s prints with -o %s", cmd.CommandPath(), format)
			}
		}
	}
}
