package upgrade

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/httpapi/wire"
	"github.com/bcsnet/bcsnet/test/controlplane"
	"github.com/bcsnet/bcsnet/test/plugin"
)

// novel is what the release before this one does not know: pools that are carved from others, bounds of namespaces, an
// address in quarantine, and the network by which a container is attached.
type novel struct {
	*held
	specs map[string]v1.BCSNetPoolSpec
	// quarantined is an address for which somebody else answers, free the other one of its pool.
	quarantined, free string
}

// news makes what only this release knows.
func (h *held) news() *novel {
	h.Helper()
	n := &novel{held: h}
	parent, group, blocks := subnet(11, 40), subnet(11, 5), subnet(12, 0)
	parent.Hosts, parent.Namespaces = []string{host}, []string{"nobody"}
	h.create(&v1.BCSNetPool{ObjectMeta: metav1.ObjectMeta{Name: "parent"}, Spec: parent})
	group.Parent = "parent"
	h.namespace("group", 1, group)
	blocks.AvailableIPs, blocks.BlockSize, blocks.AutoAssign = []string{"10.12.0.0/24"}, 28, true
	h.namespace("blocks", 1, blocks)
	h.namespace("conflict", 3, subnet(13, 2))
	h.pools("conflict")
	h.edit("held")
	h.take("group", 0, "") // once the parent has handed its addresses over
	h.take("blocks", 0, "")
	n.report()
	n.specs = h.stated()
	return n
}

// edit gives a pool bounds that the release before this one does not know.
func (s *site) edit(name string) {
	s.Helper()
	if err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		var p v1.BCSNetPool
		if err := s.admin.Get(s.Context(), client.ObjectKey{Name: name}, &p); err != nil {
			return err
		}
		p.Spec.MaxPerNamespace, p.Spec.Quotas = 30, []v1.NamespaceQuota{{Namespace: name, Max: 20}}
		return s.admin.Update(s.Context(), &p)
	}); err != nil {
		s.Fatal(err)
	}
}

// report has a plugin find that somebody else answers for the address that it got.
func (n *novel) report() {
	n.Helper()
	r := conflicting(0, "reports")
	r.CNINetwork = "lan"
	n.quarantined = addresses(n.ask(http.MethodPost, r))
	n.free = map[string]string{"10.13.0.1": "10.13.0.2", "10.13.0.2": "10.13.0.1"}[n.quarantined]
	controlplane.Eventually(n, func() error {
		callers := plugin.Callers{HTTP: n.caller, URLs: n.urls(), Count: func(string) {}}
		a, err := callers.Once(n.Context(), n.rng, n.urls()[0], http.MethodPost, "/ip/"+n.quarantined+"/conflict",
			wire.ConflictRequest{ContainerID: r.ContainerID, IfName: r.IfName, MAC: "02:00:00:00:00:01"})
		if err == nil && a.Code != 0 {
			err = errors.New(a.Message)
		}
		return err
	})
	if s := n.status(n.quarantined); s.Status != v1.IPReserved || s.Conflict == nil {
		n.Fatalf("%s is not in quarantine: %+v", n.quarantined, s)
	}
}

func conflicting(i int, container string) wire.AllocateRequest {
	return wire.AllocateRequest{
		Host: host, ContainerID: container, IfName: "eth0", PodName: fmt.Sprintf("conflict-%d", i), PodNamespace: "conflict",
	}
}

// status returns the lease of an address as the API server has it.
func (s *site) status(addr string) v1.BCSNetIPStatus {
	s.Helper()
	var o v1.BCSNetIP
	if err := s.admin.Get(s.Context(), client.ObjectKey{Name: objectName(addr)}, &o); err != nil {
		s.Fatal(err)
	}
	return o.Status
}

// stated returns the specs of all pools.
func (s *site) stated() map[string]v1.BCSNetPoolSpec {
	s.Helper()
	var list v1.BCSNetPoolList
	if err := s.admin.List(s.Context(), &list); err != nil {
		s.Fatal(err)
	}
	all := map[string]v1.BCSNetPoolSpec{}
	for _, p := range list.Items {
		all[p.Name] = p.Spec
	}
	return all
}

// check finds all of it as it was, whatever release runs; nobody gets the address that is in quarantine.
func (n *novel) check(when string) {
	n.Helper()
	n.held.check(when)
	if diff := cmp.Diff(n.specs, n.stated()); diff != "" {
		n.Errorf("%s: specs of pools (-before +after):\n%s", when, diff)
	}
	r := conflicting(1, "gets "+strings.ReplaceAll(when, ":", ""))
	if got := addresses(n.ask(http.MethodPost, r)); got != n.free {
		n.Errorf("%s: a pod got %s, free is %s", when, got, n.free)
	}
	callers := plugin.Callers{HTTP: n.caller, URLs: n.urls(), Count: func(string) {}}
	tries := 0
	a, _ := callers.Ask(n.Context(), n.rng, http.MethodPost, "", conflicting(2, "gets none"), func() bool {
		tries++
		return tries == 4
	})
	if a.Reason != "PoolExhausted" {
		n.Errorf("%s: a pod of a pool without a free address is told %s %s", when, a.Reason, a.Message)
	}
	n.ask(http.MethodDelete, r)
	if s := n.status(n.quarantined); s.Status != v1.IPReserved || s.Conflict == nil {
		n.Errorf("%s: %s is in quarantine no more: %+v", when, n.quarantined, s)
	}
}
