package sticky_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/claim"
	"github.com/bcsnet/bcsnet/test/controlplane"
)

// settles is enough for whatever the controller gives back by itself: when a workload changes it asks at once,
// otherwise every 20 seconds.
const settles = claim.ReclaimDelay + 12*time.Second

// terms is a policy, and the annotations that ask for it.
type terms struct {
	policy      string
	annotations map[string]string
}

const (
	plain     = "plain"
	immutable = "immutable"
	never     = "never"
	timed     = "timed"
	shared    = "shared"

	ownPolicy    = "networkextension.bkbcs.tencent.com/release-policy"
	ownKeep      = "networkextension.bkbcs.tencent.com/keep"
	galaxyPolicy = "k8s.v1.cni.galaxy.io/release-policy"
	galaxyPool   = "tke.cloud.tencent.com/eni-ip-pool"
)

// asks are the annotations of a policy, of the dialects in turn.
func asks(policy string, k kind, site string) terms {
	key := galaxyPolicy
	if k == statefulSet || k == barePod {
		key = ownPolicy
	}
	switch policy {
	case immutable, never:
		return terms{policy, map[string]string{key: policy}}
	case timed:
		return terms{policy, map[string]string{ownKeep: "1h"}}
	case shared:
		return terms{policy, map[string]string{galaxyPool: site, galaxyPolicy: immutable}} // which does not count beside it
	}
	return terms{policy: policy}
}

// rule is a cell of the table of docs/sticky-addresses.md.
type rule struct {
	// kept: an address outlives its pod. byName: for the pod of that name; else for any of the app, or of the pool.
	kept, byName bool
	// ends: scaling down and the end of the app free it.
	ends bool
}

func (a *app) rule() rule {
	numbered := a.kind == statefulSet || a.kind == fleet
	switch a.policy {
	case immutable:
		return rule{kept: true, byName: numbered, ends: true}
	case never, timed:
		return rule{kept: true, byName: numbered || a.kind == barePod}
	case shared:
		return rule{kept: true, byName: numbered}
	}
	return rule{}
}

// claimName is where the app's claim is; empty where it has none, or one for each pod.
func (a *app) claimName() (name types.NamespacedName) {
	switch {
	case a.claim != "":
		return types.NamespacedName{Namespace: a.namespace, Name: a.claim}
	case a.policy == shared && a.system:
		return types.NamespacedName{Namespace: controlplane.SystemNamespace, Name: "pool-" + a.annotations[galaxyPool]}
	case a.policy == shared:
		return types.NamespacedName{Namespace: a.namespace, Name: "pool-" + a.annotations[galaxyPool]}
	case a.policy == plain, a.kind == barePod:
		return name
	}
	return types.NamespacedName{Namespace: a.namespace, Name: string(a.kind) + "-" + a.name}
}

// picture is who has which address.
type picture struct {
	// pods are the addresses of those that run, by name; uids are their pods'.
	pods map[string]string
	uids map[types.UID]bool
	// held are all addresses of the pool that are not free, with who has them or whom they are kept for.
	held map[string]string
}

// look makes a picture of the app, or says what is not as it should be for n pods of the present revision.
func (a *app) look(t *testing.T, n int) (p picture, err error) {
	t.Helper()
	pods, err := a.pods(t.Context())
	if err != nil {
		return p, err
	}
	var leases v1.BCSNetIPList
	if err := a.seen.List(t.Context(), &leases, client.MatchingFields{poolIndex: a.pool}); err != nil {
		return p, err
	}
	p = picture{map[string]string{}, map[types.UID]bool{}, map[string]string{}}
	owner, active := map[string]string{}, 0
	for _, l := range leases.Items {
		switch s := &l.Status; s.Status {
		case v1.IPActive:
			active++
			owner[l.Name] = s.PodUID
			fallthrough
		case v1.IPReserved:
			p.held[l.Name] = fmt.Sprintf("%s %s/%s %s claim=%s key=%s", s.Status, s.PodNamespace, s.PodName, s.PodUID, s.Claim,
				s.PodPrimaryKey)
		case v1.IPAvailable:
		}
	}
	var wrong []string
	for _, pod := range pods {
		p.uids[pod.UID] = true
		p.pods[pod.Name] = pod.Status.PodIP
		switch {
		case pod.DeletionTimestamp != nil || pod.Status.Phase != corev1.PodRunning:
			why, _ := a.kubelet.lastRefusal(pod.Namespace, pod.Name)
			wrong = append(wrong, fmt.Sprintf("%s is %s on %q, deletion %v, last refused: %s %s", pod.Name, pod.Status.Phase,
				pod.Spec.NodeName, pod.DeletionTimestamp, why.reason, why.message))
		case owner[pod.Status.PodIP] != string(pod.UID):
			wrong = append(wrong, fmt.Sprintf("%s (%s) runs with %s, which is %q", pod.Name, pod.UID, pod.Status.PodIP,
				p.held[pod.Status.PodIP]))
		case pod.Labels[revision] != fmt.Sprint(a.rev):
			wrong = append(wrong, pod.Name+" is of an old revision")
		}
	}
	if len(pods) != n {
		wrong = append(wrong, fmt.Sprintf("%d pods, want %d", len(pods), n))
	}
	if active != n+a.beside {
		wrong = append(wrong, fmt.Sprintf("%d active addresses for %d pods", active, n+a.beside))
	}
	wrong = append(wrong, a.claimed(t, active, len(p.held))...)
	if len(wrong) > 0 {
		return p, fmt.Errorf("%s\nheld: %s", strings.Join(wrong, "\n"), list(p.held))
	}
	return p, nil
}

// claimed checks what the app's claim says of itself.
func (a *app) claimed(t *testing.T, used, held int) []string {
	t.Helper()
	name := a.claimName()
	if name.Name == "" {
		return nil
	}
	var c v1.BCSNetIPClaim
	err := a.seen.Get(t.Context(), name, &c)
	switch {
	case apierrors.IsNotFound(err) && held == 0:
		return nil
	case err != nil:
		return []string{err.Error()}
	case held == 0 && a.claim == "":
		return []string{"claim " + name.String() + " is there without an address"}
	case c.Status.Used != int64(used) || c.Status.Held != int64(held):
		return []string{fmt.Sprintf("claim %s says %s, want %d/%d", name, c.Status.Usage, used, held)}
	}
	return nil
}

func list(m map[string]string) string {
	var b strings.Builder
	for _, k := range slices.SortedFunc(maps.Keys(m), cmp.Compare) {
		fmt.Fprintf(&b, "\n  %s %s", k, m[k])
	}
	return b.String()
}
