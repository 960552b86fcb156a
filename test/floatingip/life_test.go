package floatingip_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/test/controlplane"
)

// checks are what is wanted of the pools, by name.
type checks = map[string]func(*v1.BCSNetPool) error

const (
	rackA = `{"nodeSubnets":["10.2.0.0/24"],"ips":["10.3.0.10~10.3.0.19"],"subnet":"10.3.0.0/24","gateway":"10.3.0.1","vlan":3}`
	rackB = `{"nodeSubnets":["10.2.1.0/24"],"ips":["10.3.0.20~10.3.0.29"],"subnet":"10.3.0.0/24","gateway":"10.3.0.1"}`
	poolA = "floatingip-10.3.0.0-24"
	poolB = "floatingip-10.3.0.0-24-2"
)

func list(entries ...string) string { return "[" + strings.Join(entries, ",") + "]" }

// TestLife: the pools follow the document, and no address that is in use goes.
func TestLife(t *testing.T) {
	prepare(t)
	isA, isB := is("10.3.0.1 vlan 3, 10.3.0.10~10.3.0.19, for 10.2.0.0/24"),
		is("10.3.0.1 vlan 0, 10.3.0.20~10.3.0.29, for 10.2.1.0/24")
	document(t, list(rackA, rackB))
	pools(t, checks{poolA: isA, poolB: isB})
	newPod(t, "on-a")
	newPod(t, "on-b")
	a, b := ask(t, http.MethodPost, "10.2.0.11", "on-a"), ask(t, http.MethodPost, "10.2.1.11", "on-b")
	if a.Address.Pool != poolA || a.Address.VLAN != 3 || b.Address.Pool != poolB {
		t.Fatalf("%+v, %+v", a, b)
	}

	// In another order, with other node subnets, another gateway and VLAN: the same pools.
	moved := strings.NewReplacer(`"10.2.0.0/24"`, `"10.2.0.0/25","10.2.9.0/24"`, "10.3.0.1\"", "10.3.0.254\"", `"vlan":3`,
		`"vlan":4`).Replace(rackA)
	document(t, list(rackB, moved))
	pools(t, checks{poolA: is("10.3.0.254 vlan 4, 10.3.0.10~10.3.0.19, for 10.2.0.0/25 10.2.9.0/24"), poolB: isB})
	told(t, v1.ReasonFloatingIPConfigApplied, "updated "+poolA)

	// What somebody changes by hand is put back, where the document says something of it.
	change(
		t, poolB, `{"metadata":{"labels":null},"spec":{"gateway":"10.3.0.2","availableIPs":["10.3.0.99"],"hostSubnets":null,"vlan":9,"priority":5,"hosts":["10.9.9.9"]}}`)
	pools(t, checks{poolA: nil, poolB: func(o *v1.BCSNetPool) error {
		if o.Labels[v1.SourceLabel] == "" || o.Spec.Priority != 5 || len(o.Spec.Hosts) != 1 {
			return fmt.Errorf("labels %v, priority %d, hosts %v", o.Labels, o.Spec.Priority, o.Spec.Hosts)
		}
		return isB(o)
	}})

	// A wrong document changes nothing, and the last good one holds against changes by hand.
	document(t, list(rackB, strings.Replace(moved, "10.3.0.254", "10.3.0.0", 1)))
	told(t, v1.ReasonFloatingIPConfigRefused,
		"floatingips[1]: gateway 10.3.0.0 cannot be a default route; the pools stay as they are")
	wantMetric(t, "bcsnet_floatingip_config_applied 0")
	change(t, poolB, `{"spec":{"vlan":9}}`)
	pools(t, checks{poolA: is("10.3.0.254 vlan 4, 10.3.0.10~10.3.0.19, for 10.2.0.0/25 10.2.9.0/24"), poolB: isB})
	kubectl(t, "delete", "configmap", "floatingip-config", "-n", "kube-system")
	told(t, v1.ReasonFloatingIPConfigRefused,
		"there is no ConfigMap kube-system/floatingip-config; the pools stay as they are")
	pools(t, checks{poolA: nil, poolB: isB})

	// Addresses that the document no longer has drain; the pod keeps its own.
	short := strings.Replace(rackB, "10.3.0.20~10.3.0.29", free(b.Address.IPAddr), 1)
	document(t, list(rackA, short))
	pools(t, checks{poolA: isA, poolB: func(o *v1.BCSNetPool) error {
		for _, c := range o.Status.Conditions {
			if c.Type == v1.ConditionDraining && c.Status == metav1.ConditionTrue &&
				strings.Contains(c.Message, "1 on 10.2.1.11") {
				return nil
			}
		}
		return fmt.Errorf("pool %s does not drain: %+v", o.Name, o.Status.Conditions)
	}})
	wantMetric(t, "bcsnet_floatingip_config_applied 1")
	if again := ask(t, http.MethodPost, "10.2.1.11", "on-b"); again.Address.IPAddr != b.Address.IPAddr {
		t.Errorf("the pod had %s and got %+v", b.Address.IPAddr, again)
	}

	// An entry that goes leaves its pool cordoned while an address of it is in use. It may come back.
	gone := is("10.3.0.1 vlan 3, 10.3.0.10~10.3.0.19, for 10.2.0.0/24, cordoned")
	document(t, list(rackB))
	pools(t, checks{poolA: gone, poolB: isB})
	told(t, v1.ReasonFloatingIPConfigApplied, "cordoned "+poolA+" until 1 address in use or reserved is released")
	if again := ask(t, http.MethodPost, "10.2.0.11", "on-a"); again.Address.IPAddr != a.Address.IPAddr {
		t.Errorf("the pod had %s and got %+v", a.Address.IPAddr, again)
	}
	newPod(t, "late")
	if late := ask(t, http.MethodPost, "10.2.0.11", "late"); late.Reason != "PoolCordoned" {
		t.Errorf("a pool to go gave %+v", late)
	}
	document(t, list(rackA, rackB))
	pools(t, checks{poolA: isA, poolB: isB})

	// An entry with another subnet has another pool, which has its free addresses at once.
	wide := strings.Replace(rackA, "10.3.0.0/24", "10.3.0.0/16", 1)
	document(t, list(wide, rackB))
	const poolW = "floatingip-10.3.0.0-16"
	isW := is("10.3.0.1 vlan 3, 10.3.0.10~10.3.0.19, for 10.2.0.0/24")
	pools(t, checks{poolA: is("10.3.0.1 vlan 3, , for 10.2.0.0/24, cordoned"), poolB: isB, poolW: isW})
	if late := ask(t, http.MethodPost, "10.2.0.11", "late"); late.Address.Pool != poolW ||
		late.Address.IPAddr == a.Address.IPAddr {
		t.Errorf("another pod gets %+v, the first has %s", late, a.Address.IPAddr)
	}
	ask(t, http.MethodDelete, "10.2.0.11", "on-a")
	pools(t, checks{poolB: isB, poolW: isW}) // now it goes

	ask(t, http.MethodDelete, "10.2.0.11", "late")
	ask(t, http.MethodDelete, "10.2.1.11", "on-b")
	document(t, "[]")
	pools(t, nil)
}

// TestGroupOfPool: a group that somebody has carved from a pool of the document keeps the pool, cordoned, when its
// entry goes, and serves again when the entry is back. The pool goes after the group.
func TestGroupOfPool(t *testing.T) {
	controlplane.TakesLong(t)
	prepare(t)
	document(t, list(rackA))
	isA, gone := is("10.3.0.1 vlan 3, 10.3.0.10~10.3.0.19, for 10.2.0.0/24"),
		is("10.3.0.1 vlan 3, 10.3.0.10~10.3.0.19, for 10.2.0.0/24, cordoned")
	pools(t, checks{poolA: isA})
	const name = "tenant"
	group := &v1.BCSNetPool{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1.BCSNetPoolSpec{
		Net: "10.3.0.0", Mask: 24, Gateway: "10.3.0.1", AvailableIPs: []string{"10.3.0.15-10.3.0.17"}, Parent: poolA,
	}}
	if err := admin.Create(t.Context(), group); err != nil {
		t.Fatal(err)
	}
	controlplane.Eventually(t, func() error { // until the controller knows of it
		err := admin.Get(t.Context(), client.ObjectKeyFromObject(group), group)
		if err == nil && group.Status.ObservedGeneration == 0 {
			err = errors.New("nobody has looked at the group")
		}
		return err
	})
	newPod(t, "of-group")
	gets := func(reason string) {
		t.Helper()
		controlplane.Eventually(t, func() error {
			if a := ask(t, http.MethodPost, "10.2.0.11", "of-group"); string(a.Reason) != reason {
				return fmt.Errorf("%+v", a)
			}
			return nil
		})
	}
	document(t, "[]")
	pools(t, checks{poolA: gone, name: nil})
	told(t, v1.ReasonFloatingIPConfigApplied, "cordoned "+poolA+" until its group is deleted: "+name)
	gets("PoolCordoned")
	document(t, list(rackA))
	pools(t, checks{poolA: isA, name: nil})
	gets("")
	ask(t, http.MethodDelete, "10.2.0.11", "of-group")
	document(t, "[]")
	pools(t, checks{poolA: gone, name: nil})
	if err := admin.Delete(t.Context(), group); err != nil {
		t.Fatal(err)
	}
	pools(t, nil)
}

// TestForeignPool: a pool of that name that somebody has made is not touched.
func TestForeignPool(t *testing.T) {
	controlplane.TakesLong(t)
	prepare(t)
	mine := &v1.BCSNetPool{ObjectMeta: metav1.ObjectMeta{Name: poolA}, Spec: v1.BCSNetPoolSpec{
		Net: "10.4.0.0", Mask: 24, Gateway: "10.4.0.1", AvailableIPs: []string{"10.4.0.9"},
	}}
	if err := admin.Create(t.Context(), mine); err != nil {
		t.Fatal(err)
	}
	document(t, list(rackA))
	pools(t, checks{
		poolA: is("10.4.0.1 vlan 0, 10.4.0.9, for "), poolB: is("10.3.0.1 vlan 3, 10.3.0.10~10.3.0.19, for 10.2.0.0/24"),
	})
	document(t, "[]")
	pools(t, checks{poolA: nil})
	if err := admin.Delete(t.Context(), mine); err != nil {
		t.Fatal(err)
	}
	pools(t, nil)
}

// TestOneConfigMapIsRead: the controller has no right to any other.
func TestOneConfigMapIsRead(t *testing.T) {
	prepare(t)
	for name, want := range map[string]string{"": "no", "floatingip-config": "yes", "other": "no"} {
		what := strings.TrimSuffix("configmaps/"+name, "/")
		// the exit code says the same
		out, _ := cluster.Kubectl(t.Context(), "auth", "can-i", "list", what, "-n", "kube-system",
			"--as", "system:serviceaccount:"+controlplane.SystemNamespace+":"+controlplane.ControllerName).Output()
		if got := strings.TrimSpace(string(out)); got != want {
			t.Errorf("may the controller list %s? %s, want %s", what, got, want)
		}
	}
}

// change changes a pool by hand.
func change(t *testing.T, pool, patch string) {
	t.Helper()
	kubectl(t, "patch", "bcsnetpool", pool, "--type=merge", "-p", patch)
}

// free is an address of rack B that is not the given one.
func free(other string) string {
	if other == "10.3.0.20" {
		return "10.3.0.21"
	}
	return "10.3.0.20"
}

// wantMetric waits for a line of the controller's metrics.
func wantMetric(t *testing.T, line string) {
	t.Helper()
	controlplane.Eventually(t, func() error {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, controller.MetricsURL+"/metrics", nil)
		if err != nil {
			return err
		}
		resp, err := caller.Do(r)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err == nil && !strings.Contains(string(text), "\n"+line+"\n") {
			err = fmt.Errorf("the metrics lack %s", line)
		}
		return err
	})
}
