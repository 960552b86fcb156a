// Package monitoring_test holds the metrics of a running controller against what is written about them: the
// reference, the alert rules with their tests and runbooks, and the dashboard.
package monitoring_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/httpapi/wire"
	"github.com/bcsnet/bcsnet/test/controlplane"
	"github.com/bcsnet/bcsnet/test/generated"
)

var (
	cluster *controlplane.ControlPlane
	update  = flag.Bool("update", false, "write what is generated")
)

func TestMain(m *testing.M) { os.Exit(controlplane.Main(m, &cluster)) }

// metrics are those of a controller that has served a request of every outcome, in the text format. Where it
// shows all that start with bcsnet_ it has done all that it counts.
var metrics = sync.OnceValues(func() (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := cluster.InstallManifests(ctx); err != nil {
		return "", err
	}
	c, err := cluster.StartController(ctx, controlplane.ControllerOptions{Args: []string{
		"--floatingip-config", "kube-system/floatingip-config", "--hostnic-ipam-config", "kube-system/hostnic-ipam-config",
	}})
	if err != nil {
		return "", err
	}
	if err := serve(ctx, c.URL); err != nil {
		return "", err
	}
	for { // the leader runs the checks a moment after it leads
		text, err := get(ctx, c.MetricsURL+"/metrics")
		if err != nil || strings.Contains(text, "bcsnet_doctor_findings") {
			return text, err
		}
		select {
		case <-ctx.Done():
			return "", fmt.Errorf("the checks of doctor never ran: %w", ctx.Err())
		case <-time.After(20 * time.Millisecond):
		}
	}
})

// serve makes a pool of one address and has it given, given again, refused and released.
func serve(ctx context.Context, url string) error {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1.AddToScheme(scheme)); err != nil {
		return err
	}
	admin, err := client.New(cluster.Config, client.Options{Scheme: scheme})
	if err != nil {
		return err
	}
	const host = "192.0.2.11"
	if err := errors.Join(
		admin.Create(ctx, &v1.BCSNetPool{ObjectMeta: metav1.ObjectMeta{Name: "watched"}, Spec: v1.BCSNetPoolSpec{
			Quotas: []v1.NamespaceQuota{{Namespace: "default", Max: 9}},
			Net:    "10.1.0.0", Mask: 24, Gateway: "10.1.0.1", Hosts: []string{host}, AvailableIPs: []string{"10.1.0.10"},
		}}),
		admin.Create(ctx, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "c"}}},
		}),
	); err != nil {
		return err
	}
	call := func(method, container, reason string) error {
		body, err := json.Marshal(wire.AllocateRequest{
			Host: host, ContainerID: container, PodNamespace: "default", PodName: "web",
		})
		if err != nil {
			return err
		}
		for {
			r, err := http.NewRequestWithContext(ctx, method, url+wire.Prefix, bytes.NewReader(body))
			if err != nil {
				return err
			}
			resp, err := http.DefaultClient.Do(r)
			if err != nil {
				return err
			}
			var e wire.Envelope
			err = json.NewDecoder(resp.Body).Decode(&e)
			_ = resp.Body.Close() // it is read
			if err != nil || string(e.Reason) == reason {
				return err
			}
		}
	}
	return errors.Join(call(http.MethodPost, "c", ""), call(http.MethodPost, "c", ""), call(http.MethodDelete, "c", ""))
}

func get(ctx context.Context, url string) (string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return "", err
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return string(text), err
}

// read reads a file of this module.
func read(t *testing.T, path ...string) string {
	t.Helper()
	text, err := os.ReadFile(in(t, path...))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func in(t *testing.T, path ...string) string {
	t.Helper()
	root, err := controlplane.ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(append([]string{root}, path...)...)
}

// same compares a file with what it should be, and writes that with -update.
func same(t *testing.T, want string, path ...string) {
	t.Helper()
	generated.UpToDate(t, *update, in(t, path...), "go test ./test/monitoring -args -update",
		func(string) (string, error) { return want, nil })
}

// promtool runs the tool of the Prometheus project.
func promtool(t *testing.T, args ...string) string {
	t.Helper()
	tool := in(t, "bin", "tools", "promtool")
	if _, err := os.Stat(tool); err != nil {
		t.Fatalf("%v: run `make tools`", err)
	}
	out, err := exec.CommandContext(t.Context(), tool, args...).CombinedOutput()
	if err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// known reports whether a controller shows a metric of that name, or the reference of bcsnet-node has it, which its own
// test holds. A histogram is shown as three.
func known(t *testing.T, name string) bool {
	t.Helper()
	if strings.Contains(read(t, "docs", "reference", "bcsnet-node.md"), "| `"+name+"` |") {
		return true
	}
	text, err := metrics()
	if err != nil {
		t.Fatal(err)
	}
	return regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(name) + `[{ ]`).MatchString(text)
}

// names are the metrics of ours that a query reads.
func names(query string) []string { return regexp.MustCompile(`\bbcsnet_\w+`).FindAllString(query, -1) }
