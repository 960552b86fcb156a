package workload_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/workload"
	"github.com/bcsnet/bcsnet/test/controlplane"
	"github.com/bcsnet/bcsnet/test/intercept"
)

// world is what a test of owners has: the resolver as the controller's ServiceAccount, what it sends, and an admin.
type world struct {
	*workload.Resolver
	tap   *intercept.Tap
	admin client.Client
	log   *controlplane.Buffer
	ns    string
	// later is by how many nanoseconds the resolver's clock is ahead.
	later atomic.Int64
}

// newWorld makes a resolver that watches when asked to.
func newWorld(t *testing.T, watches bool) *world {
	t.Helper()
	cfg, err := cluster.ControllerConfig(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{tap: &intercept.Tap{}, admin: cluster.AdminFor(t), log: &controlplane.Buffer{}}
	cfg.Wrap(w.tap.Wrap)
	h, err := rest.HTTPClientFor(cfg)
	if err != nil {
		t.Fatal(err)
	}
	owners, err := workload.NewOwners(cfg, h, func() time.Time { return time.Now().Add(time.Duration(w.later.Load())) }, slog.New(slog.NewTextHandler(w.log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var parts sync.WaitGroup
	t.Cleanup(func() {
		cancel()
		parts.Wait()
		h.CloseIdleConnections()
	})
	if watches {
		parts.Go(func() { _ = owners.Run(ctx) })
	}
	w.Resolver = &workload.Resolver{Owners: owners, Namespace: controlplane.SystemNamespace, ClaimsFor: func(context.Context, workload.Workload) ([]string, error) { return nil, nil }}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "owners-"}}
	w.create(t, ns)
	w.ns = ns.Name
	return w
}

func (w *world) create(t *testing.T, o client.Object) {
	t.Helper()
	if err := w.admin.Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
}

func (w *world) meta(name string, owners ...metav1.OwnerReference) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: w.ns, Name: name, OwnerReferences: owners}
}

// owns is the reference of a controller.
func owns(o client.Object, apiVersion, kind string) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: apiVersion, Kind: kind, Name: o.GetName(), UID: o.GetUID(), Controller: new(true)}
}

func (w *world) pod(name string, owners ...metav1.OwnerReference) workload.Pod {
	return workload.FromObject(workload.Trim(&corev1.Pod{ObjectMeta: w.meta(name, owners...)}))
}

func template() (*metav1.LabelSelector, corev1.PodTemplateSpec) {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"app": "a"}}, corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "a"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
	}
}

// reads counts what the resolver asked the API server for, watches and their lists apart.
func (w *world) reads() int {
	return w.tap.Count(func(r *http.Request) bool {
		q := r.URL.Query()
		return r.Method == http.MethodGet && !q.Has("watch") && !q.Has("resourceVersion") && !q.Has("limit")
	})
}

// resolve waits until the watches have told all, so that nothing is read for the answer.
func (w *world) resolve(t *testing.T, pod workload.Pod) (p workload.Policy) {
	t.Helper()
	controlplane.Until(t, "the watches have told all", func() bool {
		w.tap.Forget()
		var err error
		if p, err = w.Resolve(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
		return w.reads() == 0
	})
	return p
}

const never = "k8s.v1.cni.galaxy.io/release-policy"

// The chain of owners of Kubernetes' own workloads, by watches and by reads alone.
func TestOwners(t *testing.T) {
	for name, watches := range map[string]bool{"by watches": true, "by reads": false} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, watches)
			selector, tmpl := template()
			deploy := &appsv1.Deployment{ObjectMeta: w.meta("web"), Spec: appsv1.DeploymentSpec{Replicas: new(int32(3)), Selector: selector, Template: tmpl}}
			deploy.Annotations = map[string]string{"ipkeeper.generals.space/ip_pool": "10.0.0.5/24", "big": strings.Repeat("x", 1000)}
			w.create(t, deploy)
			rs := &appsv1.ReplicaSet{ObjectMeta: w.meta("web-1", metav1.OwnerReference{APIVersion: "example.org/v1", Kind: "Watcher", Name: "first", UID: "u"}, owns(deploy, "apps/v1", "Deployment")),
				Spec: appsv1.ReplicaSetSpec{Selector: selector, Template: tmpl}}
			lone := &appsv1.ReplicaSet{ObjectMeta: w.meta("lone"), Spec: appsv1.ReplicaSetSpec{Replicas: new(int32(0)), Selector: selector, Template: tmpl}}
			set := &appsv1.StatefulSet{ObjectMeta: w.meta("db"), Spec: appsv1.StatefulSetSpec{Replicas: new(int32(2)), Selector: selector, Template: tmpl, Ordinals: &appsv1.StatefulSetOrdinals{Start: 5}}}
			ds := &appsv1.DaemonSet{ObjectMeta: w.meta("agent"), Spec: appsv1.DaemonSetSpec{Selector: selector, Template: tmpl}}
			tmpl.Spec.RestartPolicy = corev1.RestartPolicyNever
			cron := &batchv1.CronJob{ObjectMeta: w.meta("nightly"), Spec: batchv1.CronJobSpec{Schedule: "0 0 * * *", JobTemplate: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Parallelism: new(int32(4)), Template: corev1.PodTemplateSpec{Spec: tmpl.Spec}}}}}
			for _, o := range []client.Object{rs, lone, set, ds, cron} {
				w.create(t, o)
			}
			job := &batchv1.Job{ObjectMeta: w.meta("nightly-1", owns(cron, "batch/v1", "CronJob")), Spec: batchv1.JobSpec{Parallelism: new(int32(2)), Template: corev1.PodTemplateSpec{Spec: tmpl.Spec}}}
			once := &batchv1.Job{ObjectMeta: w.meta("once"), Spec: batchv1.JobSpec{Parallelism: new(int32(2)), Template: corev1.PodTemplateSpec{Spec: tmpl.Spec}}}
			w.create(t, job)
			w.create(t, once)
			node := metav1.OwnerReference{APIVersion: "v1", Kind: "Node", Name: "n", UID: "u", Controller: new(true)}
			foreign := metav1.OwnerReference{APIVersion: "nowhere.example.org/v1", Kind: "Thing", Name: "t", UID: "u", Controller: new(true)}
			unscaled := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "kube-root-ca.crt", UID: "u", Controller: new(true)}
			notController := owns(set, "apps/v1", "StatefulSet")
			notController.Controller = nil

			for _, tc := range []struct {
				pod      workload.Pod
				want     string // kind and name
				claim    string
				replicas workload.Replicas
				err      error
			}{
				{w.pod("web-1-x", owns(rs, "apps/v1", "ReplicaSet")), "Deployment web", "deploy-web", workload.Replicas{Count: 3}, nil},
				{w.pod("lone-x", owns(lone, "apps/v1", "ReplicaSet")), "ReplicaSet lone", "", workload.Replicas{}, nil},
				{w.pod("db-5", notController, owns(set, "apps/v1", "StatefulSet")), "StatefulSet db", "", workload.Replicas{Count: 2, Start: 5}, nil},
				{w.pod("agent-x", owns(ds, "apps/v1", "DaemonSet")), "DaemonSet agent", "", workload.Replicas{}, nil},
				{w.pod("nightly-1-x", owns(job, "batch/v1", "Job")), "CronJob nightly", "", workload.Replicas{Count: 4}, nil},
				{w.pod("once-x", owns(once, "batch/v1", "Job")), "Job once", "", workload.Replicas{Count: 2}, nil},
				{w.pod("bare", notController), "Pod bare", "", workload.Replicas{Count: 1}, workload.ErrGone},
				{w.pod("static", node), "Pod static", "", workload.Replicas{Count: 1}, workload.ErrGone},
				{w.pod("t-x", foreign), "Thing t", "", workload.Replicas{}, workload.ErrGone},
				{w.pod("cm-x", unscaled), "ConfigMap kube-root-ca.crt", "", workload.Replicas{}, workload.ErrNoReplicas},
			} {
				var p workload.Policy
				var err error
				if watches {
					p = w.resolve(t, tc.pod)
				} else if p, err = w.Resolve(t.Context(), tc.pod); err != nil {
					t.Fatal(err)
				}
				if got := p.Workload.Kind + " " + p.Workload.Name; got != tc.want || tc.claim != "" && p.Claim != w.ns+"/"+tc.claim {
					t.Errorf("pod %s: %s with claim %q, want %s with %q", tc.pod.Name, got, p.Claim, tc.want, tc.claim)
				}
				// From memory alone it is the same, or where nothing is watched the nearest owner.
				if got := w.Owners.Known(tc.pod); watches && got != p.Workload || !watches && tc.pod.Controller.Group != "" && got.Name != tc.pod.Controller.Name {
					t.Errorf("pod %s: known is %+v, want %+v", tc.pod.Name, got, p.Workload)
				}
				r, err := w.Owners.Replicas(t.Context(), p.Workload)
				if !errors.Is(err, tc.err) || err != nil && tc.err == nil || r.Count != tc.replicas.Count && err == nil || r.Start != tc.replicas.Start {
					t.Errorf("%s: %+v, %v; want %+v, %v", tc.want, r, err, tc.replicas, tc.err)
				}
			}

			p := &corev1.Pod{ObjectMeta: w.meta("web-1-there", owns(rs, "apps/v1", "ReplicaSet")), Spec: tmpl.Spec}
			w.create(t, p)
			for of, want := range map[workload.Workload]string{
				{Group: "apps", Kind: "ReplicaSet", Name: "web-1"}:       "Deployment web",
				{Group: "apps", Kind: "ReplicaSet", Name: "lone"}:        "",
				{Group: "apps", Kind: "ReplicaSet", Name: "never-was"}:   "",
				{Group: "apps", Kind: "Deployment", Name: "web"}:         "",
				{Group: "batch", Kind: "Job", Name: "nightly-1"}:         "CronJob nightly",
				{Group: "batch", Kind: "Job", Name: "once"}:              "",
				{Kind: "Pod", Name: p.Name}:                              "Deployment web",
				{Kind: "Pod", Name: "never-was"}:                         "",
				{Group: "nowhere.example.org", Kind: "Thing", Name: "t"}: "",
			} {
				of.Namespace = w.ns
				above, ok, err := w.Owners.Above(t.Context(), of)
				if err != nil {
					t.Fatal(err)
				}
				if got := above.Kind + " " + above.Name; ok != (want != "") || ok && got != want {
					t.Errorf("above %s is %q (%t), want %q", of, got, ok, want)
				}
			}
		})
	}
}

// An owner that is gone, also when another one has its name, and defaults of the namespace that change.
func TestOwnersThatGo(t *testing.T) {
	w := newWorld(t, true)
	selector, tmpl := template()
	set := &appsv1.StatefulSet{ObjectMeta: w.meta("db"), Spec: appsv1.StatefulSetSpec{Selector: selector, Template: tmpl}}
	w.create(t, set)
	old := owns(set, "apps/v1", "StatefulSet")
	pod := w.pod("db-0", old)
	was := w.resolve(t, pod).Workload
	if gone, err := w.Owners.Gone(t.Context(), was); gone || err != nil {
		t.Errorf("while it is there: %v, %v", gone, err)
	}
	if err := w.admin.Delete(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	if gone, err := w.Owners.Gone(t.Context(), was); !gone || err != nil {
		t.Errorf("deleted: %v, %v", gone, err)
	}
	again := &appsv1.StatefulSet{ObjectMeta: w.meta("db"), Spec: appsv1.StatefulSetSpec{Selector: selector, Template: tmpl}}
	again.Annotations = map[string]string{never: "never"}
	w.create(t, again)
	if gone, err := w.Owners.Gone(t.Context(), was); !gone || err != nil {
		t.Errorf("made again: %v, %v", gone, err)
	}
	if _, err := w.Owners.Replicas(t.Context(), was); !errors.Is(err, workload.ErrGone) {
		t.Errorf("replicas of the old one: %v", err)
	}
	if p, err := w.Resolve(t.Context(), pod); err != nil || p.Release != workload.ReleaseWithPod {
		t.Errorf("the old one's pod has the new one's policy: %+v, %v", p, err)
	}
	if p := w.resolve(t, w.pod("db-0", owns(again, "apps/v1", "StatefulSet"))); p.Release != workload.ReleaseNever || p.Identity != "db-0" {
		t.Errorf("the new one's pod: %+v", p)
	}

	orphan := metav1.OwnerReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "none", UID: "u", Controller: new(true)}
	kept := w.pod("none-x", orphan)
	kept.Annotations = map[string]string{never: "immutable"}
	if p, err := w.Resolve(t.Context(), kept); refusal(err) != ipam.ReasonWorkloadUnknown {
		t.Errorf("a pod whose ReplicaSet is gone: %+v, %v", p, err)
	}
	if p, err := w.Resolve(t.Context(), w.pod("none-x", orphan)); err != nil || p.Release != workload.ReleaseWithPod {
		t.Errorf("a plain one: %+v, %v", p, err)
	}

	var ns corev1.Namespace
	if err := w.admin.Get(t.Context(), client.ObjectKey{Name: w.ns}, &ns); err != nil {
		t.Fatal(err)
	}
	ns.Annotations = map[string]string{"networkextension.bkbcs.tencent.com/pool": "blue"}
	if err := w.admin.Update(t.Context(), &ns); err != nil {
		t.Fatal(err)
	}
	controlplane.Until(t, "the default is known", func() bool {
		p, err := w.Resolve(t.Context(), w.pod("bare"))
		return err == nil && p.Pool == "blue"
	})
}

func refusal(err error) ipam.Reason {
	if why, ok := errors.AsType[*ipam.Refusal](err); ok {
		return why.Reason
	}
	return ""
}

// A kind with a scale, in a version that nobody wrote down: it is found when a pod has such an owner, watched, and
// forgotten when its CRD goes.
func TestOwnersOfOtherKinds(t *testing.T) {
	w := newWorld(t, true)
	install(t, "apps.tkestack.io", "v7", "Game/games+")
	game := w.custom(t, "apps.tkestack.io/v7", "Game", "chess", map[string]any{never: "immutable"})
	w.tap.Forget()
	// The reference may name a version that is not served any more.
	numbered := w.pod("chess-2", owns(game, "apps.tkestack.io/v1", "Game"))
	p := w.resolve(t, numbered)
	if p.Release != workload.ReleaseImmutable || p.Identity != "chess-2" || p.Claim != w.ns+"/game-chess" || p.Workload.Group != "apps.tkestack.io" {
		t.Errorf("%+v", p)
	}
	if p := w.resolve(t, w.pod("chess-x2x4z", owns(game, "apps.tkestack.io/v1", "Game"))); p.Identity != "" {
		t.Errorf("a random name: %+v", p)
	}
	selector, tmpl := template()
	rs := &appsv1.ReplicaSet{ObjectMeta: w.meta("chess-1", owns(game, "apps.tkestack.io/v7", "Game")), Spec: appsv1.ReplicaSetSpec{Selector: selector, Template: tmpl}}
	w.create(t, rs)
	if p := w.resolve(t, w.pod("chess-1-x", owns(rs, "apps/v1", "ReplicaSet"))); p.Workload.Name != "chess" || p.Release != workload.ReleaseImmutable {
		t.Errorf("a ReplicaSet's: %+v", p)
	}
	for _, n := range []int{4, 0} {
		if err := unstructured.SetNestedField(game.Object, int64(n), "spec", "replicas"); err != nil {
			t.Fatal(err)
		}
		if err := w.admin.Update(t.Context(), game); err != nil {
			t.Fatal(err)
		}
		if r, err := w.Owners.Replicas(t.Context(), p.Workload); err != nil || r.Count != n {
			t.Errorf("of %d: %+v, %v", n, r, err)
		}
	}

	crd := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": "games.apps.tkestack.io"}}}
	if err := w.admin.Delete(t.Context(), crd); err != nil {
		t.Fatal(err)
	}
	controlplane.Until(t, "the kind is forgotten", func() bool { return strings.Contains(w.log.String(), "a kind of owners is gone") })
	if gone, err := w.Owners.Gone(t.Context(), p.Workload); !gone || err != nil {
		t.Errorf("after its kind went: %v, %v", gone, err)
	}
	if r, err := w.Owners.Replicas(t.Context(), p.Workload); !errors.Is(err, workload.ErrKindGone) {
		t.Errorf("after its kind went: %+v, %v", r, err)
	}
	if w.Owners.Served(p.Workload) || w.Owners.APIVersion(p.Workload) != "apps.tkestack.io/unknown" {
		t.Errorf("after its kind went it is still served, as %s", w.Owners.APIVersion(p.Workload))
	}
	other := workload.Workload{Group: "apps", Kind: "Deployment", Namespace: w.ns, Name: "never-was"}
	if _, err := w.Owners.Replicas(t.Context(), other); !errors.Is(err, workload.ErrGone) || errors.Is(err, workload.ErrKindGone) {
		t.Errorf("of a kind that is served: %v", err)
	}
	if missing, err := w.Owners.Missing(t.Context(), other); !missing || err != nil {
		t.Errorf("of a kind that is served: %v, %v", missing, err)
	}
	if p, err := w.Resolve(t.Context(), numbered); err != nil || p.Release != workload.ReleaseWithPod {
		t.Errorf("after its kind went: %+v, %v", p, err)
	}
}
