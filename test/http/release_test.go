package http_test

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/test/controlplane"
)

// ips is the list of addresses of an answer.
func ips(data object) []string {
	out := []string{}
	for _, a := range data["ips"].([]any) {
		switch a := a.(type) {
		case string:
			out = append(out, a)
		case object:
			out = append(out, a["ipAddr"].(string))
		}
	}
	return out
}

// A DEL gives up what its container holds, and nothing else.
func TestRelease(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.pool(6, nil)
	body, eth0 := s.given("web-0")
	net1 := s.add(with(body, "ifName", "net1")).done(t)["ipAddr"].(string)
	other, kept := s.given("web-1")

	a := s.del(s.request("nobody", "web-0"))
	if data := a.done(t); len(ips(data)) != 0 ||
		a.Message != "didn't find related BCSNetIP instance for container nobody" {
		t.Errorf("DEL of an unknown container: %s", a.Raw)
	}
	// The pod's name alone frees nothing, nor does the UID while a container holds the lease.
	if data := s.del(with(s.request("nobody", "web-0"), "podUID", stored(t, eth0).Status.PodUID)).
		done(t); len(ips(data)) != 0 {
		t.Errorf("DEL by pod freed %v", ips(data))
	}
	// One interface, then the rest; the pod's names and the host need not be right.
	if got := ips(s.del(with(body, "ifName", "net1", "podName", "gone", "host",
		"192.0.2.1")).done(t)); !slices.Equal(got,
		[]string{net1}) {
		t.Errorf("DEL of net1 freed %v, want %s", got, net1)
	}
	if got := ips(s.del(body).done(t)); !slices.Equal(got, []string{eth0}) {
		t.Errorf("DEL freed %v, want %s", got, eth0)
	}
	if got := ips(s.add(other).done(t)); !slices.Equal(got, []string{kept}) {
		t.Errorf("web-1 has %v, want %s", got, kept)
	}
	// Another one that began before the DEL is late; one that begins now is served.
	s.add(with(body, "startedAt", time.Now().Add(-time.Minute).Format(time.RFC3339Nano))).
		refusedWith(t, "ContainerDeleted", "container "+body["containerID"].(string))
	before := time.Now()
	ahead := with(body, "startedAt", time.Now().Add(time.Minute).Format(time.RFC3339Nano)) // the host's clock is
	s.add(ahead).done(t)
	// A DEL that began before that ADD changes nothing, and says so.
	s.del(with(body, "startedAt", before.Format(time.RFC3339Nano))).refusedWith(t, "ReleaseOutdated")
	// One that begins later does, even by a clock that is right: what is told of the future counts for two seconds of
	// it.
	var freed []string
	controlplane.Eventually(t, func() error {
		a := s.del(with(body, "startedAt", time.Now().Format(time.RFC3339Nano)))
		if a.Code != 0 {
			return errors.New(string(a.Raw))
		}
		freed = ips(a.done(t))
		return nil
	})
	if len(freed) != 1 {
		t.Errorf("DEL freed %v", freed)
	}
}

// A new container of a pod takes the address over; what its predecessor asks for changes nothing.
func TestNewContainerOfAPod(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.pool(3, nil)
	old, address := s.given("web-0")
	next := with(old, "containerID", newID())
	if got := s.add(next).done(t)["ipAddr"]; got != address {
		t.Fatalf("the new container has %v, want %s", got, address)
	}
	s.add(old).refusedWith(t, "ContainerSuperseded", address, old["containerID"].(string), next["containerID"].(string))
	if got := ips(s.del(old).done(t)); len(got) != 0 {
		t.Errorf("the old container freed %v", got)
	}
	if got := stored(t, address).Status; got.ContainerID != next["containerID"] ||
		!slices.Equal(got.SupersededContainerIDs, []string{old["containerID"].(string)}) {
		t.Errorf("the object is of %s, after %v", got.ContainerID, got.SupersededContainerIDs)
	}
	s.del(next).done(t)
}

// What frees a lease is the object of the address alone: the pool may be gone.
func TestReleaseWithoutThePool(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	pool := s.pool(2, nil)
	body, address := s.given("web-0")
	if err := shared.admin.Delete(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	// The finalizer keeps the pool while the lease is held; somebody takes it off by force.
	controlplane.Eventually(t, func() error {
		err := shared.admin.Patch(t.Context(), pool,
			client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`)))
		if err == nil {
			err = fmt.Errorf("the pool is still there")
		}
		return client.IgnoreNotFound(err)
	})
	controlplane.Eventually(t, func() error {
		if a := s.add(object{"host": s.Host, "owner": s.owner("vm")}); a.Reason != "HostNotInPool" {
			return fmt.Errorf("the controller still knows the pool: %s", a.Raw)
		}
		return nil
	})
	if got := ips(s.del(body).done(t)); !slices.Equal(got, []string{address}) {
		t.Errorf("DEL freed %v, want %s", got, address)
	}
	var got v1.BCSNetIP
	switch err := shared.admin.Get(t.Context(), client.ObjectKey{Name: address}, &got); {
	case apierrors.IsNotFound(err): // the controller removes what is free of a pool that is no more
	case err != nil:
		t.Error(err)
	case got.Status.Status != v1.IPAvailable || len(got.Finalizers) != 0:
		t.Errorf("%s is %s with %v", address, got.Status.Status, got.Finalizers)
	}
}

func TestReleaseHost(t *testing.T) {
	t.Parallel()
	s, other := newSite(t), newSite(t)
	s.pool(4, nil)
	host6 := s.ip6(0xabc)
	s.pool6(1, func(p *v1.BCSNetPool) { p.Spec.Hosts = []string{host6} })
	other.pool(1, nil)
	var want []string
	for i := range 3 {
		_, a := s.given(fmt.Sprintf("web-%d", i))
		want = append(want, a)
	}
	slices.SortFunc(want, func(a, b string) int { return netip.MustParseAddr(a).Compare(netip.MustParseAddr(b)) })
	_, kept := other.given("web-0")
	release := func(host string) (got []string, message string) {
		a := s.call.do(t, "DELETE", prefix+"/host/"+host, nil)
		a.doneInto(t, &got)
		return got, a.Message
	}
	if got, message := release(s.Host); !slices.Equal(got, want) || message != "" {
		t.Errorf("freed %v (%s), want %v", got, message, want)
	}
	if got, message := release(s.Host); got == nil || len(got) != 0 || message != "host "+s.Host+" holds no address" {
		t.Errorf("freed %v (%s)", got, message)
	}
	if stored(t, kept).Status.Status != v1.IPActive {
		t.Errorf("%s of another host is free", kept)
	}
	// However the address of the host is written.
	s.call.do(t, "POST", prefix, object{"host": host6, "owner": s.owner("vm6")}).done(t)
	if got, _ := release(strings.ToUpper(s.Net6) + "0:0:0:0abc"); !slices.Equal(got, []string{s.ip6(0x20)}) {
		t.Errorf("freed %v", got)
	}
	// Nothing gives the addresses back by itself, and the pods that still exist may ask again.
	for i := range 3 {
		s.add(s.request(newID(), fmt.Sprintf("web-%d", i))).done(t)
	}
}

func TestReleaseAddress(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.pool(3, nil)
	body, address := s.given("web-0")
	vm := s.add(object{"host": s.Host, "owner": s.owner("vm")}).done(t)["ipAddr"].(string)
	release := func(address string, holder object) answer {
		return s.call.do(t, "DELETE", prefix+"/ip/"+address, holder)
	}
	container := body["containerID"].(string)
	release(address, object{"containerID": "other"}).refusedWith(t, "AddressNotHeld", "address "+address, s.Namespace+
		"/web-0", container)
	release(address, object{"owner": s.owner("vm")}).refusedWith(t, "AddressNotHeld", "address "+address, s.Namespace+
		"/web-0")
	release(vm, object{"containerID": container}).refusedWith(t, "AddressNotHeld", "address "+vm, s.owner("vm"))
	release("203.0.113.9", object{"containerID": container}).refusedWith(t, "AddressNotInPool", "address 203.0.113.9")
	if left := len(active(t, shared.admin, container)); left != 1 {
		t.Errorf("%d addresses are left, want 1", left)
	}

	want := object{
		"host": s.Host, "containerID": container, "podName": "web-0", "podNamespace": s.Namespace,
		"ips": []any{address},
	}
	if diff := cmp.Diff(want, release(address, object{"containerID": container}).done(t)); diff != "" {
		t.Errorf("release by container (-want +got):\n%s", diff)
	}
	want = object{"host": s.Host, "owner": s.owner("vm"), "ips": []any{vm}}
	if diff := cmp.Diff(want, release(vm, object{"owner": s.owner("vm")}).done(t)); diff != "" {
		t.Errorf("release by owner (-want +got):\n%s", diff)
	}
	for _, free := range []string{address, vm} {
		if a := release(free, object{"containerID": container}); len(ips(a.done(t))) != 0 ||
			a.Message != "address "+free+
				" is not in use" {
			t.Errorf("release of a free address: %s", a.Raw)
		}
	}
}

// A holder that is no pod.
func TestOwners(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.pool(4, nil)
	owner := s.owner("build 7")
	body := object{"host": s.Host, "owner": owner}
	data := s.add(with(body, "ipAddr", s.ip(22))).done(t)
	want := object{"host": s.Host, "owner": owner, "containerID": "", "podName": "", "podNamespace": "",
		"ifName": "eth0"}
	for k, v := range want {
		if data[k] != v {
			t.Errorf("%s is %v, want %v", k, data[k], v)
		}
	}
	for range 2 {
		if got := s.add(body).done(t)["ipAddr"]; got != s.ip(22) {
			t.Errorf("again: %v, want %s", got, s.ip(22))
		}
	}
	second := s.add(with(body, "ifName", "eth1")).done(t)["ipAddr"]
	if second == s.ip(22) {
		t.Errorf("eth1 has the address of eth0")
	}
	s.add(with(body, "ipAddr", s.ip(23))).refusedWith(t, "ContainerHoldsOther", owner, s.ip(22), s.ip(23))
	if got := s.add(object{"host": s.Host, "owner": s.owner("build 8")}).done(t)["ipAddr"]; got == s.ip(22) ||
		got == second {
		t.Errorf("another owner has %v too", got)
	}
	if o := stored(t, s.ip(22)).Status; o.Owner != owner || o.Status != v1.IPActive {
		t.Errorf("the object is %+v", o)
	}
	if got := ips(s.del(with(body, "ifName", "eth0")).done(t)); !slices.Equal(got, []string{s.ip(22)}) {
		t.Errorf("DEL freed %v", got)
	}
	if a := s.del(with(body, "ifName", "eth0")); len(ips(a.done(t))) != 0 ||
		a.Message != "didn't find related BCSNetIP instance for owner "+owner {
		t.Errorf("DEL again: %s", a.Raw)
	}
	// Without an interface: all of the owner's.
	if got := ips(s.del(body).done(t)); !slices.Equal(got, []string{second.(string)}) {
		t.Errorf("DEL of the rest freed %v, want %v", got, second)
	}
}
