package sticky_test

import (
	"fmt"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// refusedParts are the cells of the table that are refused: nothing could free such an address, or get it back.
func (w *world) refusedParts() []part {
	const noReplicas, unstable = "has no replicas that could be scaled down, which is what would free an immutable address", "are not stable, so nothing could get the address back"
	job := func(a *app) client.Object {
		template := a.template()
		template.Spec.RestartPolicy = corev1.RestartPolicyNever
		return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: a.name}, Spec: batchv1.JobSpec{Template: template}}
	}
	bare := func(a *app) client.Object {
		template := a.template()
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: a.name, Labels: template.Labels, Annotations: template.Annotations}, Spec: template.Spec}
	}
	generated := func(a *app) client.Object {
		p := bare(a).(*corev1.Pod)
		p.Name, p.GenerateName = "", a.name+"-"
		return p
	}
	var parts []part
	for _, c := range []struct {
		name, policy string
		make         func(a *app) client.Object
		says         string
	}{
		{"job-immutable", immutable, job, "Job %s/app " + noReplicas},
		{"job-never", never, job, "the names of the pods of Job %s/app " + unstable},
		{"ds-immutable", immutable, nil, "DaemonSet %s/app " + noReplicas},
		{"ds-never", never, nil, "the names of the pods of DaemonSet %s/app " + unstable},
		{"pod-immutable", immutable, bare, "Pod %s/app " + noReplicas},
		{"pod-generated-never", never, generated, ": the name of Pod %s/app-"},
	} {
		parts = append(parts, part{"refused-" + c.name, func(t *testing.T) {
			s := w.newSite(t, "refused-"+c.name, 8, sharedNodes)
			a := s.newApp(daemonSet, asks(c.policy, daemonSet, s.namespace), 1)
			if c.make == nil {
				a.apply(t)
			} else {
				w.create(t, c.make(a))
			}
			eventually(t, "the refusal", func() error { return a.isRefused(t, c.policy, fmt.Sprintf(c.says, s.namespace)) })
		}})
	}
	return parts
}

// isRefused says whether the pods of the app were refused in these words, and have nothing.
func (a *app) isRefused(t *testing.T, policy, says string) error {
	t.Helper()
	pods, err := a.pods(t.Context())
	switch {
	case err != nil:
		return err
	case len(pods) == 0:
		return fmt.Errorf("there is no pod")
	}
	why, ok := a.kubelet.lastRefusal(pods[0].Namespace, pods[0].Name)
	if !ok || why.reason != string(ipam.ReasonInvalidAnnotation) || !strings.Contains(why.message, says) ||
		!strings.Contains(why.message, fmt.Sprintf("annotation %s=%q of Pod", galaxyPolicy, policy)) {
		return fmt.Errorf("pod %s was refused with %q: %q", pods[0].Name, why.reason, why.message)
	}
	p, err := a.look(t, len(pods))
	if len(p.held) > 0 {
		t.Errorf("held: %s", list(p.held))
	}
	if err == nil {
		return fmt.Errorf("the pods run")
	}
	return nil
}

// otherParts are the cases that stand beside the table.
func (w *world) otherParts() []part {
	return []part{
		{"blue-green-deploy", func(t *testing.T) { w.blueGreen(t, deployment) }},
		{"blue-green-sts", func(t *testing.T) { w.blueGreen(t, statefulSet) }},
		{"expiry-deploy", func(t *testing.T) { w.expiry(t, deployment) }},
		{"expiry-fleet", func(t *testing.T) { w.expiry(t, fleet) }},
		{"most-recent-first", w.mostRecentFirst},
		{"slow-end", w.slowEnd},
		{"own-addresses", w.ownAddresses},
		{"named-claim", w.namedClaim},
	}
}

// blueGreen: two apps of two namespaces share a pool. What one gives up the other gets, but the numbered pods of the one are not those of
// the other.
func (w *world) blueGreen(t *testing.T, k kind) {
	s := w.newSite(t, "blue-"+string(k), 8*replicas, sharedNodes, "-green")
	blue := s.newApp(k, asks(shared, k, s.pool), replicas)
	had := blue.start(t)
	blue.replicas = 0
	blue.apply(t)
	blue.expect(t, "blue to go down", want{same: had.held})
	beside := *s
	beside.namespace += "-green"
	green := beside.newApp(k, asks(shared, k, s.pool), replicas)
	green.apply(t)
	if k == deployment {
		green.expect(t, "green to take what blue gave up", want{pods: replicas, same: had.held})
	} else {
		green.expect(t, "green to run beside what is kept for blue", want{pods: replicas, more: had.held})
	}
	blue.beside, blue.replicas = replicas, replicas
	blue.apply(t)
	w2 := want{pods: replicas}
	if k == statefulSet {
		w2.names = had.pods
	}
	both := blue.expect(t, "blue to run again", w2)
	blue.delete(t, metav1.DeletePropagationBackground)
	blue.keeps(t, "blue's end", want{same: both.held})
}

// expiry: what is kept for a while is free after that, and the same before.
func (w *world) expiry(t *testing.T, k kind) {
	s := w.newSite(t, "expiry-"+string(k), 8*replicas, sharedNodes)
	a := s.newApp(k, terms{timed, map[string]string{ownKeep: "30s"}}, replicas)
	had := a.start(t)
	a.replicas = 0
	a.apply(t)
	a.expect(t, "all to be kept", want{same: had.held})
	a.replicas = replicas
	a.apply(t)
	a.expect(t, "all to come again", a.scaledBack(had, 0))
	a.replicas = 0
	a.apply(t)
	a.expect(t, "all to be kept again", want{same: had.held})
	a.expect(t, "all to be given back", want{})
}

// mostRecentFirst: the next pod of an app takes the address that was given up last.
func (w *world) mostRecentFirst(t *testing.T) {
	s := w.newSite(t, "recent", 8*replicas, sharedNodes)
	a := s.newApp(deployment, asks(never, deployment, s.namespace), replicas)
	all := a.start(t).held
	var last picture
	for a.replicas > 0 {
		last, _ = a.look(t, int(a.replicas))
		a.replicas--
		a.apply(t)
		a.expect(t, "one pod to go", want{pods: int(a.replicas), same: all})
	}
	a.replicas = 1
	a.apply(t)
	now := a.expect(t, "a pod to come", want{pods: 1, same: all})
	for _, address := range now.pods {
		for _, given := range last.pods {
			if address != given {
				t.Errorf("it has %s, and %s was given up last", address, given)
			}
		}
	}
}

// slowEnd: the annotation is on the Deployment itself, and that is gone long before its pods have ended.
func (w *world) slowEnd(t *testing.T) {
	s := w.newSite(t, "slow", 8*replicas, sharedNodes)
	a := s.newApp(deployment, asks(never, deployment, s.namespace), replicas)
	a.onObject, a.podAnnotations = true, map[string]string{slowly: "25s"}
	had := a.start(t)
	a.delete(t, metav1.DeletePropagationBackground)
	a.expect(t, "all to be kept", want{same: had.held})
	a.apply(t)
	a.expect(t, "all to come again", a.scaledBack(had, 0))
}

// ownAddresses: a Deployment that names its addresses has those and no others, also while it is updated and after it
// was deleted.
func (w *world) ownAddresses(t *testing.T) {
	s := w.newSite(t, "own", 8*replicas, sharedNodes)
	named := map[string]string{s.address(7): "named", s.address(9): "named"}
	a := s.newApp(deployment, terms{never, map[string]string{
		"networkextension.bkbcs.tencent.com/ip": s.address(7) + "," + s.address(9), ownPolicy: never,
	}}, 2)
	a.onObject = true
	a.apply(t)
	now := a.expect(t, "the app to have its addresses", want{pods: 2, same: named})
	for _, op := range []operation{podDelete, rollInPlace, foreground} {
		now = a.do(t, op, now)
	}
	a.expect(t, "no others", want{pods: 2, same: named})
}

// namedClaim: pods of a claim that somebody made have as many addresses as that says. It grows at once and shrinks as
// pods go, and when it is deleted it stays until the last has gone.
func (w *world) namedClaim(t *testing.T) {
	s := w.newSite(t, "claim", 8*replicas, sharedNodes)
	c := &v1.BCSNetIPClaim{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "partners"}}
	c.Spec.Replicas, c.Spec.Pool, c.Spec.ReleasePolicy = new(int32(replicas)), s.pool, v1.ReleaseNever
	w.create(t, c)
	a := s.newApp(deployment, terms{never, map[string]string{"networkextension.bkbcs.tencent.com/claim": c.Name}}, replicas)
	a.claim = c.Name
	a.start(t)
	a.replicas++
	a.apply(t)
	eventually(t, "the pod too many to be refused", func() error { return a.someRefused(t, ipam.ReasonClaimFull) })
	w.resize(t, c, replicas+1)
	had := a.expect(t, "all to run", want{pods: replicas + 1})
	a.replicas = 2
	a.apply(t)
	a.expect(t, "all to be kept", want{pods: 2, same: had.held})
	w.resize(t, c, 2)
	a.expect(t, "the claim to shrink", want{pods: 2})
	if err := w.admin.Delete(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	a.replicas = 1
	a.apply(t)
	a.expect(t, "nothing more to be kept", want{pods: 1})
	a.delete(t, metav1.DeletePropagationBackground)
	a.expect(t, "all to be given back", want{})
	eventually(t, "the claim to go", func() error {
		if err := w.admin.Get(t.Context(), client.ObjectKeyFromObject(c), c); !apierrors.IsNotFound(err) {
			return fmt.Errorf("it is there: %v", err)
		}
		return nil
	})
}

func (w *world) resize(t *testing.T, c *v1.BCSNetIPClaim, n int32) {
	t.Helper()
	err := w.admin.Patch(t.Context(), c, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, n)))
	if err != nil {
		t.Fatal(err)
	}
}

// someRefused says whether a pod of the app was refused for a reason.
func (a *app) someRefused(t *testing.T, reason ipam.Reason) error {
	t.Helper()
	pods, err := a.pods(t.Context())
	for _, p := range pods {
		if why, ok := a.kubelet.lastRefusal(p.Namespace, p.Name); ok && why.reason == string(reason) {
			return nil
		}
	}
	return fmt.Errorf("none of %d pods was refused with %s: %v", len(pods), reason, err)
}
