package cli

import (
	"context"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bcsnet/bcsnet/pkg/cli/resource"
)

// TestReportLogs: the logs of the controller's pods, of their earlier life, too.
func TestReportLogs(t *testing.T) {
	f := newFixture(t)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "bcsnet-controller-x", Namespace: resource.SystemNamespace},
		Spec: corev1.PodSpec{
			ServiceAccountName: resource.ControllerName, Containers: []corev1.Container{{Name: "controller", Image: "c"}},
		},
	}
	if err := f.client.Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.kubernetes.CoreV1().Pods(resource.SystemNamespace).
			Delete(context.Background(), pod.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64)}); err != nil {
			t.Error(err)
		}
	})
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "controller", RestartCount: 1}}
	if err := f.client.Status().Update(t.Context(), pod); err != nil {
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
	_, stderr := f.call(t, "--server", url, "report", dir+"/r.tar.gz")
	contains(t, stderr, "✔ log of bcsnet-controller-x\n", "✔ log of bcsnet-controller-x before its restart\n")
	for file, want := range map[string]string{
		"bcsnet-controller-x.log": "this life", "bcsnet-controller-x.previous.log": "the life before",
	} {
		got, err := exec.CommandContext(t.Context(), "tar", "-xzOf", dir+"/r.tar.gz", "bcsnet-report/system/logs/"+file).
			Output()
		if err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", file, got, err)
		}
	}
	if info, err := os.Stat(dir + "/r.tar.gz"); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("others may read the report: %v, %v", info.Mode(), err)
	}
}
