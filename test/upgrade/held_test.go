package upgrade

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/httpapi/wire"
	"github.com/bcsnet/bcsnet/test/controlplane"
	"github.com/bcsnet/bcsnet/test/plugin"
)

// held is what has to stay as it is, whatever happens to the controllers: leases that nobody gives up, claims, and
// addresses that claims keep for pods which come and go.
type held struct {
	*site
	rng *rand.Rand
	// requests are those that got the addresses, by container.
	requests map[string]wire.AllocateRequest
	addrs    map[string]string
	// sticky are the addresses of pods that keep theirs, by name; lives counts their containers.
	sticky map[string]string
	lives  int
	claims map[types.UID]string
}

const (
	heldPods   = 6
	stickyPods = 4
)

// hold makes what has to stay: pods of one and of both families, owners, and pods with a claim.
func (s *site) hold() *held {
	s.Helper()
	h := &held{
		site: s, rng: rand.New(rand.NewPCG(3, 4)), requests: map[string]wire.AllocateRequest{}, addrs: map[string]string{},
		sticky: map[string]string{},
	}
	s.namespace("held", heldPods, subnet(2, 40))
	dual := subnet(3, 20)
	dual.Network = "dual"
	s.namespace("dual", 3, dual)
	six := v1.BCSNetPoolSpec{
		Net: "fd00:3::", Mask: 64, Gateway: "fd00:3::1", AvailableIPs: []string{"fd00:3::10-fd00:3::30"}, Network: "dual",
		Hosts: []string{host}, Namespaces: []string{"dual"},
	}
	s.create(&v1.BCSNetPool{ObjectMeta: metav1.ObjectMeta{Name: "dual-6"}, Spec: six})
	s.namespace("sticky", 0, subnet(4, 20))
	for i := range stickyPods {
		s.create(pod("sticky", i, map[string]string{v1.GroupVersion.Group + "/release-policy": "never"}))
	}
	machines := subnet(5, 20)
	machines.Hosts = []string{host} // owners have no namespace
	s.create(&v1.BCSNetPool{ObjectMeta: metav1.ObjectMeta{Name: "machines"}, Spec: machines})
	s.pools("held", "dual", "dual-6", "sticky", "machines")
	for i := range heldPods {
		h.take("held", i, "")
	}
	for i := range 3 {
		h.take("dual", i, "")
		h.take("machines", i, fmt.Sprintf("machine-%d", i))
	}
	h.comeAndGo()
	controlplane.Eventually(s, func() error {
		if h.claims = h.stored(); len(h.claims) != stickyPods {
			return fmt.Errorf("the claims of %d pods are %v", stickyPods, h.claims)
		}
		return nil
	})
	return h
}

// ask asks any replica until it is answered.
func (h *held) ask(method string, request wire.AllocateRequest) plugin.Answer {
	h.Helper()
	callers := plugin.Callers{HTTP: h.caller, URLs: h.urls(), Count: func(string) {}}
	var a plugin.Answer
	controlplane.Eventually(h, func() error {
		var ok bool
		n := 0
		a, ok = callers.Ask(h.Context(), h.rng, method, "", request, func() bool { n++; return n == 10 })
		if !ok || a.Code != 0 {
			return fmt.Errorf("%s %+v: %s: %s", method, request, a.Reason, a.Message)
		}
		return nil
	})
	return a
}

// take gets an address for a pod, or for an owner.
func (h *held) take(namespace string, i int, owner string) {
	h.Helper()
	r := wire.AllocateRequest{Host: host, ContainerID: fmt.Sprintf("container-%s-%d", namespace, i), IfName: "eth0", Owner: owner}
	if owner == "" {
		r.PodName, r.PodNamespace = fmt.Sprintf("%s-%d", namespace, i), namespace
	} else {
		r.ContainerID, r.PodNamespace, r.PodName = "", "", ""
	}
	key := r.ContainerID + owner
	h.requests[key], h.addrs[key] = r, addresses(h.ask(http.MethodPost, r))
}

func addresses(a plugin.Answer) string {
	var all []string
	for _, addr := range a.Addrs() {
		all = append(all, addr.String())
	}
	return strings.Join(all, " ")
}

// comeAndGo has each of the pods with a claim end and come again in another container, with the same address.
func (h *held) comeAndGo() {
	h.Helper()
	for i := range stickyPods {
		name := fmt.Sprintf("sticky-%d", i)
		r := wire.AllocateRequest{
			Host: host, ContainerID: fmt.Sprintf("%s-%d", name, h.lives), IfName: "eth0", PodName: name, PodNamespace: "sticky",
		}
		if h.sticky[name] != "" {
			h.ask(http.MethodDelete, r)
		}
		r.ContainerID = fmt.Sprintf("%s-%d", name, h.lives+1)
		got := addresses(h.ask(http.MethodPost, r))
		if want := h.sticky[name]; want != "" && got != want {
			h.Errorf("%s came back with %s, and had %s", name, got, want)
		}
		h.sticky[name] = got
	}
	h.lives++
}

// stored returns the claims and what they hold.
func (h *held) stored() map[types.UID]string {
	h.Helper()
	var list v1.BCSNetIPClaimList
	if err := h.admin.List(h.Context(), &list); err != nil {
		h.Fatal(err)
	}
	all := map[types.UID]string{}
	for _, c := range list.Items {
		all[c.UID] = c.Namespace + "/" + c.Name
	}
	return all
}

// leases returns those of a pool as the API server has them.
func (s *site) leases(pool string) []v1.BCSNetIP {
	s.Helper()
	var list v1.BCSNetIPList
	if err := s.admin.List(s.Context(), &list, client.MatchingFields{"spec.pool": pool}); err != nil {
		s.Fatal(err)
	}
	return list.Items
}

// check asks again for everything that is held, and looks into the objects: nothing has changed hands.
func (h *held) check(when string) {
	h.Helper()
	for key, r := range h.requests {
		if got := addresses(h.ask(http.MethodPost, r)); got != h.addrs[key] {
			h.Errorf("%s: %s holds %s and was told %s", when, key, h.addrs[key], got)
		}
	}
	active := map[string]string{}
	var list v1.BCSNetIPList
	if err := h.admin.List(h.Context(), &list); err != nil {
		h.Fatal(err)
	}
	for _, ip := range list.Items {
		if ip.Status.Status == v1.IPActive && ip.Spec.Pool != "traffic" && ip.Spec.Pool != "conflict" {
			active[ip.Name] = ip.Status.ContainerID + ip.Status.Owner
		}
	}
	want := map[string]string{}
	for key, all := range h.addrs {
		for addr := range strings.FieldsSeq(all) {
			want[objectName(addr)] = key
		}
	}
	for name, addr := range h.sticky {
		want[objectName(addr)] = fmt.Sprintf("%s-%d", name, h.lives)
	}
	if diff := cmp.Diff(want, active); diff != "" {
		h.Errorf("%s: who holds what (-want +stored):\n%s", when, diff)
	}
	h.comeAndGo()
	if diff := cmp.Diff(h.claims, h.stored()); diff != "" {
		h.Errorf("%s: claims (-before +after):\n%s", when, diff)
	}
}
