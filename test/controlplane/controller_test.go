package controlplane_test

import (
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/bcsnet/bcsnet/test/controlplane"
)

func startStub(t *testing.T, o controlplane.ControllerOptions) (*controlplane.Controller, error) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	o.Binary = self
	o.Env = append(o.Env, roleEnv+"=controller")
	return shared.StartController(t.Context(), o)
}

func TestControllerRunsAsItsServiceAccount(t *testing.T) {
	c, err := startStub(t, controlplane.ControllerOptions{Name: "replica-1"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Stop() })

	cfg, err := clientcmd.RESTConfigFromKubeConfig([]byte(get(t, c.URL+"/kubeconfig")))
	if err != nil {
		t.Fatal(err)
	}
	review, err := clientsFor(t, cfg).AuthenticationV1().SelfSubjectReviews().
		Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := review.Status.UserInfo.Username, "system:serviceaccount:bcsnet-system:bcsnet-controller"; got != want {
		t.Errorf("the controller is %s, want %s", got, want)
	}
	if got, want := get(t, c.MetricsURL+"/metrics"), "replica-1.bcsnet-system"; got != want {
		t.Errorf("the controller thinks that it is %s, want %s", got, want)
	}
}

func TestControllerComesBackWithItsAddress(t *testing.T) {
	c, err := startStub(t, controlplane.ControllerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	earlier, err := os.ReadFile(c.LogFile) // runs of -count share it
	if err != nil {
		t.Fatal(err)
	}
	for name, end := range map[string]func() error{"stop": c.Stop, "kill": c.Kill} {
		life := c.Done()
		if err := end(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		<-life
		if _, err := http.Get(c.HealthURL + "/readyz"); err == nil {
			t.Errorf("%s: it still answers", name)
		}
		if err := c.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		get(t, c.HealthURL+"/readyz")
	}
	if err := c.Stop(); err != nil {
		t.Error(err)
	}
	log, err := os.ReadFile(c.LogFile)
	log = log[min(len(earlier), len(log)):]
	if err != nil || strings.Count(string(log), "ended in order") != 2 {
		t.Errorf("log = %q, %v; want two ends in order", log, err)
	}
}

func TestControllerThatFailsSaysWhy(t *testing.T) {
	_, err := startStub(t, controlplane.ControllerOptions{Args: []string{"--fail=no mood"}})
	if err == nil || !strings.Contains(err.Error(), "told to fail: no mood") {
		t.Errorf("StartController = %v, want the controller's own words", err)
	}
}

func get(t *testing.T, url string) string {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("GET %s: %s %q %v", url, resp.Status, body, err)
	}
	return string(body)
}
