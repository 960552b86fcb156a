package pools_test

import (
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/store"
	"github.com/bcsnet/bcsnet/test/controlplane"
)

// TestDoctorMetrics: the leader publishes what the checks find as soon as it leads.
func TestDoctorMetrics(t *testing.T) {
	newPool(t, "doctor-idle", func(s *v1.BCSNetPoolSpec) { s.Hosts = nil }, "10.20.0.1")
	newPool(t, "doctor-full", nil, "10.20.1.1")
	leaked := &v1.BCSNetIP{
		ObjectMeta: metav1.ObjectMeta{Name: "10.20.1.1"},
		Spec:       v1.BCSNetIPSpec{Pool: "doctor-full", Mask: 8, Gateway: "10.255.255.254"},
		Status: v1.BCSNetIPStatus{
			Status: v1.IPActive, Host: host, ContainerID: "sandbox-doctor-gone", IfName: "eth0", PodNamespace: "default",
			PodName:    "doctor-gone",
			UpdateTime: store.FormatTime(time.Now().Add(-time.Hour)),
		},
	}
	controlplane.EventuallyWithin(t, patience, func() error {
		_ = admin.Delete(t.Context(), leaked) // the free one that the controller makes
		leaked.ResourceVersion = ""
		return admin.Create(t.Context(), leaked)
	})
	if err := controller.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := controller.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	wanted := []string{
		`{check="pool-not-ready",severity="warning"} [1-9]`,
		`{check="pool-exhausted",severity="error"} [1-9]`,
		`{check="leak-pod-gone",severity="error"} [1-9]`,
		`{check="leak-pod-replaced",severity="error"} 0`,
	}
	controlplane.EventuallyWithin(t, patience, func() error {
		text, err := scrape(t)
		for _, line := range wanted {
			if err == nil && !regexp.MustCompile(line).MatchString(text) {
				err = fmt.Errorf("the metrics lack %s:\n%s", line, text)
			}
		}
		if strings.Contains(text, "crds-missing") {
			t.Fatal("the controller does not read CRDs")
		}
		return err
	})
	if a := ask(t, http.MethodDelete, "doctor-gone", ""); a.Code != 0 {
		t.Error(a.Message)
	}
}

// scrape reads the controller's metrics of the checks.
func scrape(t *testing.T) (string, error) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, controller.MetricsURL+"/metrics", http.NoBody)
	if err != nil {
		return "", err
	}
	resp, err := caller.Do(r)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	all, err := io.ReadAll(resp.Body)
	var lines []string
	for line := range strings.Lines(string(all)) {
		if strings.HasPrefix(line, "bcsnet_doctor_findings") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, ""), err
}
