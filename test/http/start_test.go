package http_test

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/bcsnet/bcsnet/test/controlplane"
	"github.com/bcsnet/bcsnet/test/inprocess"
)

// waits checks that a controller is up and not ready, and says so everywhere.
func waits(t *testing.T, i *instance) {
	t.Helper()
	var text string
	controlplane.Eventually(t, func() error {
		status, got, err := getText(t.Context(), i.URL+"/readyz")
		if err == nil && status != http.StatusServiceUnavailable {
			err = fmt.Errorf("/readyz: %d %s", status, got)
		}
		text = got
		return err
	})
	if !strings.HasPrefix(text, "not ready: the list of BCSNetIPClaims, BCSNetIPs, BCSNetPools") {
		t.Errorf("/readyz says %q", text)
	}
	if status, text, err := getText(t.Context(), i.URL+"/healthz"); err != nil || status != http.StatusOK {
		t.Errorf("/healthz: %d %s %v", status, text, err)
	}
	for _, c := range []struct {
		method, path string
		body         any
	}{
		{"POST", prefix, object{"host": "10.0.0.11", "containerID": "c", "podName": "p", "podNamespace": "n"}},
		{"DELETE", prefix, object{"host": "10.0.0.11", "containerID": "c", "podName": "p", "podNamespace": "n"}},
		{"DELETE", prefix + "/host/10.0.0.11", nil},
		{"DELETE", prefix + "/ip/10.0.0.20", object{"owner": "vm"}},
		{"GET", prefix, nil},
		{"GET", prefix + "/ip/10.0.0.20", nil},
	} {
		a := i.caller().do(t, c.method, c.path, c.body)
		unavailable(t, a, "Unavailable")
		if !strings.HasPrefix(a.Message, "not ready: the list of ") {
			t.Errorf("%s %s: %s", c.method, c.path, a.Raw)
		}
	}
	// What is no request is refused as ever.
	if a := i.caller().do(t, "POST", prefix, "no JSON"); a.Status != http.StatusBadRequest {
		t.Errorf("%d %s", a.Status, a.Raw)
	}
	controlplane.Eventually(t, func() error {
		if i.Log.Line("level=WARN", "not ready: is the API server up, are the CRDs installed",
			"has not come from the API server yet") == "" {
			return fmt.Errorf("the log does not say what it waits for:\n%s", i.Log)
		}
		return nil
	})
}

// serves checks that the sample pool can be drawn from.
func serves(t *testing.T, cp *controlplane.ControlPlane, i *instance) {
	t.Helper()
	if err := i.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	if out, err := cp.Kubectl(t.Context(), "apply", "-f", samplePool(t)).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	controlplane.Eventually(t, func() error {
		if a := i.caller().do(t, "POST", prefix, object{"host": "10.0.0.11", "owner": "vm"}); a.Code != 0 {
			return fmt.Errorf("%s", a.Raw)
		}
		return nil
	})
	if i.Log.Line("level=INFO", "msg=ready", "after=") == "" {
		t.Errorf("the log does not tell that it is ready:\n%s", i.Log)
	}
}

// A controller that starts before the API server waits for it.
func TestStartWithoutAPIServer(t *testing.T) {
	t.Parallel()
	cp := controlplane.ForTest(t)
	if err := cp.InstallManifests(t.Context()); err != nil {
		t.Fatal(err)
	}
	cfg := account(t, cp)
	if err := cp.StopAPIServer(); err != nil {
		t.Fatal(err)
	}
	i := &instance{inprocess.Unready(t, cfg, nil)}
	waits(t, i)
	// One that is asked to end meanwhile does.
	other, err := inprocess.Start(cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	waits(t, &instance{other})
	began := time.Now()
	if err := other.Stop(); err != nil || time.Since(began) > 30*time.Second {
		t.Errorf("the end took %s: %v", time.Since(began), err)
	}
	if err := cp.StartAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	serves(t, cp, i)
}

// A controller that starts before the CRDs are installed waits for them.
func TestStartWithoutCRDs(t *testing.T) {
	t.Parallel()
	cp := controlplane.ForTest(t)
	if err := cp.InstallRights(t.Context()); err != nil {
		t.Fatal(err)
	}
	i := &instance{inprocess.Unready(t, account(t, cp), nil)}
	waits(t, i)
	if err := cp.InstallManifests(t.Context()); err != nil {
		t.Fatal(err)
	}
	serves(t, cp, i)
}

// The program as users run it, started before the API server: it waits, and its log says for what.
func TestProgramStartsWithoutAPIServer(t *testing.T) {
	controlplane.TakesLong(t)
	t.Parallel()
	cp := controlplane.ForTest(t)
	if err := cp.InstallManifests(t.Context()); err != nil {
		t.Fatal(err)
	}
	c, err := cp.StartController(t.Context(),
		controlplane.ControllerOptions{Binary: program(t), Env: []string{"BCSNET_LOG_FORMAT=json"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := cp.StopAPIServer(); err != nil {
		t.Fatal(err)
	}
	started := make(chan error, 1)
	go func() { started <- c.Start(t.Context()) }() // returns when it is ready
	controlplane.Eventually(t, func() error {
		status, text, err := getText(t.Context(), c.HealthURL+"/readyz")
		if err == nil && status == http.StatusOK {
			err = fmt.Errorf("ready: %s", text)
		}
		return err
	})
	controlplane.Eventually(t, func() error {
		log, err := os.ReadFile(c.LogFile)
		if err == nil && !strings.Contains(string(log),
			`"level":"WARN","msg":"not ready: is the API server up, are the CRDs installed`) {
			err = fmt.Errorf("the log does not say what it waits for:\n%s", log)
		}
		return err
	})
	if err := cp.StartAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-started; err != nil {
		t.Fatal(err)
	}
}
