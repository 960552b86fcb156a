package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
)

func TestStrip(t *testing.T) {
	for name, c := range map[string]struct{ in, want string }{
		"nothing to do": {`{"metadata":{"name":"a"}}`, `{"metadata":{"name":"a"}}`},
		"the annotation of kubectl apply": {
			`{"metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{}","keep":"me"},"managedFields":[{}]}}`,
			`{"metadata":{"annotations":{"keep":"me"}}}`,
		},
		"variables, however deep": {
			`{"spec":{"template":{"spec":{"containers":[{"env":[{"name":"A","value":"secret"},{"name":"B","valueFrom":{"fieldRef":{"fieldPath":"metadata.name"}}}]}],"initContainers":[{"env":[{"name":"C","value":"secret"}]}]}}}}`,
			`{"spec":{"template":{"spec":{"containers":[{"env":[{"name":"A","value":"(removed)"},{"name":"B","valueFrom":{"fieldRef":{"fieldPath":"metadata.name"}}}]}],"initContainers":[{"env":[{"name":"C","value":"(removed)"}]}]}}}}`,
		},
		"what is no list of variables": {`{"data":{"env":"prod"}}`, `{"data":{"env":"prod"}}`},
	} {
		var o, want unstructured.Unstructured
		if err := errors.Join(json.Unmarshal([]byte(c.in), &o.Object), json.Unmarshal([]byte(c.want), &want.Object)); err != nil {
			t.Fatal(err)
		}
		strip(&o)
		if diff := cmp.Diff(want.Object, o.Object); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// TestReportRunsCommands: the output of another command becomes a file of the report; findings are no error,
// and what that command has to say goes nowhere.
func TestReportRunsCommands(t *testing.T) {
	s := app.New(app.ProgramName, "v0", genericiooptions.NewTestIOStreamsDiscard())
	root := &cobra.Command{Use: app.ProgramName, Args: cobra.ArbitraryArgs}
	v := &report{App: s, cmd: &cobra.Command{Use: "report"}}
	format := ""
	doctor := &cobra.Command{Use: "doctor", RunE: func(cmd *cobra.Command, _ []string) error {
		s.Say.Warn("heard")
		_, err := io.WriteString(s.Out, "findings as "+format)
		return errors.Join(err, cmd.Context().Err(), &app.Failure{Code: app.ExitFindings, Message: "findings"})
	}}
	doctor.Flags().StringVarP(&format, "output", "o", "", "")
	root.AddCommand(v.cmd)
	if v.has("doctor") {
		t.Fatal("a command that does not exist was found")
	}
	root.AddCommand(doctor)
	if !v.has("doctor") {
		t.Fatal("doctor was not found")
	}
	var b, said bytes.Buffer
	s.Say.W = &said
	_, err := v.command("doctor.json", "", "doctor", "-o", "json").write(context.WithoutCancel(t.Context()), &b)
	if b.String() != "findings as json" || err != nil || said.Len() > 0 || s.Out != io.Discard {
		t.Errorf("%q, %v, said %q", &b, err, &said)
	}
}

// TestReportLogs: the logs of the controller's pods, of their earlier life, too.
func TestReportLogs(t *testing.T) {
	w := newWorld(t)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "bcsnet-controller-x", Namespace: resource.SystemNamespace},
		Spec:       corev1.PodSpec{ServiceAccountName: resource.ControllerName, Containers: []corev1.Container{{Name: "controller", Image: "c"}}},
	}
	if err := w.client.Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.kubernetes.CoreV1().Pods(resource.SystemNamespace).Delete(context.Background(), pod.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64)}); err != nil {
			t.Error(err)
		}
	})
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "controller", RestartCount: 1}}
	if err := w.client.Status().Update(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	url := proxy(t, func(rw http.ResponseWriter, r *http.Request, next http.Handler) {
		if !strings.HasSuffix(r.URL.Path, "/log") {
			next.ServeHTTP(rw, r)
			return
		}
		text := "this life"
		if r.URL.Query().Get("previous") == "true" {
			text = "the life before"
		}
		_, _ = io.WriteString(rw, text)
	})
	dir := t.TempDir()
	_, stderr := w.call(t, "--server", url, "report", dir+"/r.tar.gz")
	contains(t, stderr, "✔ log of bcsnet-controller-x\n", "✔ log of bcsnet-controller-x before its restart\n")
	for file, want := range map[string]string{"bcsnet-controller-x.log": "this life", "bcsnet-controller-x.previous.log": "the life before"} {
		got, err := exec.CommandContext(t.Context(), "tar", "-xzOf", dir+"/r.tar.gz", "bcsnet-report/system/logs/"+file).Output()
		if err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", file, got, err)
		}
	}
	if info, err := os.Stat(dir + "/r.tar.gz"); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("others may read the report: %v, %v", info.Mode(), err)
	}
}
