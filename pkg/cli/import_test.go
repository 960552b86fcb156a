package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/test/controlplane"
)

const released = `
{apiVersion: netservice.bkbcs.tencent.com/v1, kind: BCSNetPool, metadata: {name: old}, spec: {net: 10.1.0.0, mask: 24, gateway: 10.1.0.1, hosts: [10.0.0.11], availableIPs: [10.1.0.20, 10.1.0.21, 10.1.0.22, 10.1.0.23]}}
---
{apiVersion: netservice.bkbcs.tencent.com/v1, kind: BCSNetIP, metadata: {name: 10.1.0.20}, status: {phase: Active, host: 10.0.0.11, containerID: c-web, podName: web, podNamespace: default, ipClaimKey: default/web, updateTime: "2026-01-02T00:00:00Z"}}
---
{apiVersion: netservice.bkbcs.tencent.com/v1, kind: BCSNetIP, metadata: {name: 10.1.0.21}, status: {phase: Reserved, ipClaimKey: default/db, updateTime: "2026-01-02T00:00:00Z"}}
---
{apiVersion: netservice.bkbcs.tencent.com/v1, kind: BCSNetIP, metadata: {name: 10.1.0.22}, status: {phase: Active, host: 10.0.0.11, containerID: c-plain, podName: plain, podNamespace: default, updateTime: "2026-01-02T00:00:00Z"}}
---
{apiVersion: netservice.bkbcs.tencent.com/v1, kind: BCSNetIPClaim, metadata: {name: web, namespace: default}, spec: {expiredDuration: 10h}, status: {boundedIP: 10.1.0.20, phase: Bound}}
---
{apiVersion: netservice.bkbcs.tencent.com/v1, kind: BCSNetIPClaim, metadata: {name: db, namespace: default}, spec: {bcsNetIPName: 10.1.0.21, expiredDuration: 1h}, status: {boundedIP: 10.1.0.21, phase: Bound}}
`

// haveReleased makes the kinds of the released program, and objects of them, until the test ends.
func (f *fixture) haveReleased(t *testing.T, objects string) {
	t.Helper()
	script, err := os.ReadFile(filepath.Join("testdata", "script", "import_netservice.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	_, crds, _ := strings.Cut(string(script), "-- crds.yaml --\n")
	crds, _, _ = strings.Cut(crds, "-- old.yaml --\n")
	f.haveObjects(t, crds, objects)
}

func (f *fixture) havePodOf(t *testing.T, name, claim, address string) *corev1.Pod {
	t.Helper()
	if address != "" {
		f.haveRunningPod(t, name, address)
	}
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name}}
	if address == "" {
		p.Spec = corev1.PodSpec{NodeName: "node-1", Containers: []corev1.Container{{Name: "c", Image: "i"}}}
		if err := f.client.Create(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	if claim != "" {
		patch := fmt.Sprintf(`{"metadata":{"annotations":{"netservicecontroller.bkbcs.tencent.com/ipclaim":%q}}}`, claim)
		if err := f.client.Patch(t.Context(), p, client.RawPatch("application/merge-patch+json", []byte(patch))); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// plugin calls the allocator as the plugin of the released program does, and returns the address and the reason.
func plugin(t *testing.T, method, url, pod, container string) (address, reason string) {
	t.Helper()
	body, err := json.Marshal(map[string]string{
		"host": "10.0.0.11", "containerID": container, "podName": pod, "podNamespace": "default",
	})
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), method, url+"/netservicecontroller/v1/allocator",
		bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var envelope struct {
		Reason string `json:"reason"`
		Data   struct {
			IPAddr string `json:"ipAddr"`
		} `json:"data"`
	}
	if err := json.NewDecoder(answer.Body).Decode(&envelope); err != nil {
		t.Fatal(err)
	}
	return envelope.Data.IPAddr, envelope.Reason
}

// TestImportedAddressesStay: what the released program gave to pods and claims is theirs after the import, by the calls
// of its own plugin, and goes to nobody else.
func TestImportedAddressesStay(t *testing.T) {
	f := newFixture(t)
	if err := f.wipe(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.haveReleased(t, released)
	f.havePodOf(t, "web", "web", "10.1.0.20")
	f.havePodOf(t, "plain", "", "10.1.0.22")
	f.havePodOf(t, "db", "db", "")
	f.havePodOf(t, "other", "", "")
	f.havePodOf(t, "another", "", "")
	c, err := cluster.StartController(t.Context(), controlplane.ControllerOptions{Name: "importing"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	}()
	f.call(t, "import", "netservice", "--yes")
	f.call(t, "pool", "uncordon", "old")
	controlplane.Until(t, "the replica hands out", func() bool {
		address, _ := plugin(t, http.MethodPost, c.URL, "other", "c-other")
		return address == "10.1.0.23"
	})
	for pod, want := range map[string][2]string{
		"web": {"c-web", "10.1.0.20"}, "plain": {"c-plain", "10.1.0.22"}, "db": {"c-db", "10.1.0.21"}, "another": {"c-another", ""},
	} {
		if got, reason := plugin(t, http.MethodPost, c.URL, pod, want[0]); got != want[1] {
			t.Errorf("pod %s is given %q (%s), want %q", pod, got, reason, want[1])
		}
	}
	plugin(t, http.MethodDelete, c.URL, "web", "c-web")
	plugin(t, http.MethodDelete, c.URL, "plain", "c-plain")
	var kept v1.BCSNetIP
	controlplane.Until(t, "the claim keeps its address for a time", func() bool {
		err := f.client.Get(t.Context(), client.ObjectKey{Name: "10.1.0.20"}, &kept)
		return err == nil && kept.Status.Status == v1.IPReserved && kept.Status.FixedIPExpiredTime != ""
	})
	if ends, err := time.Parse(time.RFC3339Nano, kept.Status.FixedIPExpiredTime); err != nil ||
		time.Until(ends) < 9*time.Hour {
		t.Errorf("it is kept until %s", kept.Status.FixedIPExpiredTime)
	}
	if got, _ := plugin(t, http.MethodPost, c.URL, "another", "c-another"); got != "10.1.0.22" {
		t.Errorf("another pod is given %q, want the address that a container of before the import gave up", got)
	}
}

// TestImportKilled: an import that was killed in the middle does the rest when it runs again.
func TestImportKilled(t *testing.T) {
	f := newFixture(t)
	if err := f.wipe(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.haveReleased(t, released)
	var creates atomic.Int32
	stuck := make(chan struct{})
	url := proxy(t, func(rw http.ResponseWriter, r *http.Request, next http.Handler) {
		// The pool and one claim were made, the other claim is not.
		if r.Method == http.MethodPost && strings.Contains(r.URL.Path, v1.GroupVersion.Group) && creates.Add(1) == 3 {
			close(stuck)
			_, _ = io.Copy(io.Discard, r.Body) // only then is it noticed that a client has gone
			<-r.Context().Done()
			return
		}
		next.ServeHTTP(rw, r)
	})
	cmd := f.command(t, "--server", url, "import", "netservice", "--yes")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	<-stuck
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	_, stderr := f.call(t, "import", "netservice", "--yes")
	contains(t, stderr, "to take over: 0 pools, 1 claim, 3 addresses", "3 addresses taken over: 10.1.0.20-10.1.0.22")
	if strings.Contains(stderr, "[exit") {
		t.Errorf("%s", stderr)
	}
	_, stderr = f.call(t, "import", "netservice")
	contains(t, stderr, "nothing to take over", "3 addresses are here already")
}

// TestImportTwiceAtOnce: of two imports at the same time both end well, and each address is taken over once.
func TestImportTwiceAtOnce(t *testing.T) {
	f := newFixture(t)
	if err := f.wipe(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.haveReleased(t, released)
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() {
			if out, err := f.command(t, "import", "netservice", "--yes").CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
	both.Wait()
	_, stderr := f.call(t, "import", "netservice")
	contains(t, stderr, "nothing to take over", "3 addresses are here already")
}

// TestRevertKilled: a reversal that was killed in the middle does the rest when it runs again, and no address is free
// in between.
func TestRevertKilled(t *testing.T) {
	f := newFixture(t)
	if err := f.wipe(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.haveReleased(t, released)
	f.call(t, "import", "netservice", "--yes")
	f.call(t, "pool", "uncordon", "old")
	var writes atomic.Int32
	stored, stuck := make(chan struct{}), make(chan struct{})
	url := proxy(t, func(rw http.ResponseWriter, r *http.Request, next http.Handler) {
		if r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/bcsnetips/") {
			switch n := writes.Add(1); {
			case n == 1:
				defer close(stored)
			case n == 2:
				<-stored
				close(stuck)
				fallthrough
			case n > 2:
				_, _ = io.Copy(io.Discard, r.Body) // only then is it noticed that a client has gone
				<-r.Context().Done()
				return
			}
		}
		next.ServeHTTP(rw, r)
	})
	cmd := f.command(t, "--server", url, "import", "revert", "netservice", "--yes")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	<-stuck
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	_, stderr := f.call(t, "import", "revert", "netservice", "--yes")
	contains(t, stderr, "to take back: 1 pool, 2 claims, 2 addresses", "2 addresses returned",
		"deletion of claim default/db requested", "deletion of pool old requested")
	var all v1.BCSNetIPList
	if err := f.client.List(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	for _, ip := range all.Items {
		if ip.Status.Status != v1.IPReserved {
			t.Errorf("%s is %s", ip.Name, ip.Status.Status)
		}
	}
	_, stderr = f.call(t, "import", "revert", "netservice", "--yes")
	contains(t, stderr, "nothing to take back")
}
