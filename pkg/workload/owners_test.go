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

// fixture has the resolver as the controller's ServiceAccount, what it sends, and an admin.
type fixture struct {
	*workload.Resolver
	tap   *intercept.Tap
	admin client.Client
	log   *controlplane.Buffer
	ns    string
	// later is by how many nanoseconds the resolver's clock is ahead.
	later atomic.Int64
}

// newFixture makes a resolver that watches when asked to.
func newFixture(t *testing.T, watches bool) *fixture {
	t.Helper()
	cfg, err := cluster.ControllerConfig(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{tap: &intercept.Tap{}, admin: cluster.AdminFor(t), log: &controlplane.Buffer{}}
	cfg.Wrap(f.tap.Wrap)
	h, err := rest.HTTPClientFor(cfg)
	if err != nil {
		t.Fatal(err)
	}
	owners, err := workload.NewOwners(cfg, h, func() time.Time { return time.Now().Add(time.Duration(f.later.Load())) },
		slog.New(slog.NewTextHandler(f.log, nil)))
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
	f.Resolver = &workload.Resolver{
		Owners: owners, Namespace: controlplane.SystemNamespace,
		ClaimsFor: func(context.Context, workload.Workload) ([]string, error) { return nil, nil },
	}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "owners-"}}
	f.create(t, ns)
	f.ns = ns.Name
	return f
}

func (f *fixture) create(t *testing.T, o client.Object) {
	t.Helper()
	if err := f.admin.Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
}

func (f *fixture) meta(name string, owners ...metav1.OwnerReference) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: f.ns, Name: name, OwnerReferences: owners}
}

// owns is the reference of a controller.
func owns(o client.Object, apiVersion, kind string) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: apiVersion, Kind: kind, Name: o.GetName(), UID: o.GetUID(), Controller: new(true),
	}
}

func (f *fixture) pod(name string, owners ...metav1.OwnerReference) workload.Pod {
	return workload.FromObject(workload.Trim(&corev1.Pod{ObjectMeta: f.meta(name, owners...)}))
}

func template() (*metav1.LabelSelector, corev1.PodTemplateSpec) {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"app": "a"}}, corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "a"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
	}
}

// reads counts what the resolver asked the API server for, watches and their lists apart.
func (f *fixture) reads() int {
	return f.tap.Count(func(r *http.Request) bool {
		q := r.URL.Query()
		return r.Method == http.MethodGet && !q.Has("watch") && !q.Has("resourceVersion") && !q.Has("limit")
	})
}

// resolve waits until the watches have told all, so that nothing is read for the answer.
func (f *fixture) resolve(t *testing.T, pod workload.Pod) (p workload.Policy) {
	t.Helper()
	controlplane.Until(t, "the watches have told all", func() bool {
		f.tap.Forget()
		var err error
		if p, err = f.Resolve(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
		return f.reads() == 0
	})
	return p
}

const never = "k8s.v1.cni.galaxy.io/release-policy"

// The chain of owners of Kubernetes' own workloads, by watches and by reads alone.
func TestOwners(t *testing.T) {
	for name, watches := range map[string]bool{"by watches": true, "by reads": false} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, watches)
			selector, tmpl := template()
			deploy := &appsv1.Deployment{
				ObjectMeta: f.meta("web"), Spec: appsv1.DeploymentSpec{Replicas: new(int32(3)), Selector: selector,
					Template: tmpl},
			}
			deploy.Annotations = map[string]string{
				"ipkeeper.generals.space/ip_pool": "10.0.0.5/24", "big": strings.Repeat("x", 1000),
			}
			f.create(t, deploy)
			rs := &appsv1.ReplicaSet{ObjectMeta: f.meta("web-1",
				metav1.OwnerReference{APIVersion: "example.org/v1", Kind: "Watcher", Name: "first", UID: "u"},
				owns(deploy, "apps/v1", "Deployment")),
				Spec: appsv1.ReplicaSetSpec{Selector: selector, Template: tmpl}}
			lone := &appsv1.ReplicaSet{
				ObjectMeta: f.meta("lone"), Spec: appsv1.ReplicaSetSpec{
					Replicas: new(int32(0)), Selector: selector, Template: tmpl,
				},
			}
			set := &appsv1.StatefulSet{
				ObjectMeta: f.meta("db"), Spec: appsv1.StatefulSetSpec{
					Replicas: new(int32(2)), Selector: selector, Template: tmpl,
					Ordinals: &appsv1.StatefulSetOrdinals{Start: 5},
				},
			}
			ds := &appsv1.DaemonSet{ObjectMeta: f.meta("agent"), Spec: appsv1.DaemonSetSpec{Selector: selector,
				Template: tmpl}}
			tmpl.Spec.RestartPolicy = corev1.RestartPolicyNever
			cron := &batchv1.CronJob{
				ObjectMeta: f.meta("nightly"), Spec: batchv1.CronJobSpec{
					Schedule: "0 0 * * *", JobTemplate: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{
						Parallelism: new(int32(4)), Template: corev1.PodTemplateSpec{Spec: tmpl.Spec},
					}},
				},
			}
			for _, o := range []client.Object{rs, lone, set, ds, cron} {
				f.create(t, o)
			}
			job := &batchv1.Job{
				ObjectMeta: f.meta("nightly-1", owns(cron, "batch/v1", "CronJob")),
				Spec: batchv1.JobSpec{Parallelism: new(int32(2)),
					Template: corev1.PodTemplateSpec{Spec: tmpl.Spec}},
			}
			once := &batchv1.Job{
				ObjectMeta: f.meta("once"), Spec: batchv1.JobSpec{
					Parallelism: new(int32(2)), Template: corev1.PodTemplateSpec{Spec: tmpl.Spec},
				},
			}
			f.create(t, job)
			f.create(t, once)
			node := metav1.OwnerReference{APIVersion: "v1", Kind: "Node", Name: "n", UID: "u", Controller: new(true)}
			foreign := metav1.OwnerReference{
				APIVersion: "nowhere.example.org/v1", Kind: "Thing", Name: "t", UID: "u", Controller: new(true),
			}
			unscaled := metav1.OwnerReference{
				APIVersion: "v1", Kind: "ConfigMap", Name: "kube-root-ca.crt", UID: "u", Controller: new(true),
			}
			notController := owns(set, "apps/v1", "StatefulSet")
			notController.Controller = nil

			for _, tc := range []struct {
				pod      workload.Pod
				want     string // kind and name
				claim    string
				replicas workload.Replicas
				err      error
			}{
				{f.pod("web-1-x", owns(rs, "apps/v1", "ReplicaSet")), "Deployment web", "deploy-web",
					workload.Replicas{Count: 3}, nil},
				{f.pod("lone-x", owns(lone, "apps/v1", "ReplicaSet")), "ReplicaSet lone", "", workload.Replicas{}, nil},
				{f.pod("db-5", notController, owns(set, "apps/v1", "StatefulSet")), "StatefulSet db", "",
					workload.Replicas{Count: 2, Start: 5}, nil},
				{f.pod("agent-x", owns(ds, "apps/v1", "DaemonSet")), "DaemonSet agent", "", workload.Replicas{}, nil},
				{f.pod("nightly-1-x", owns(job, "batch/v1", "Job")), "CronJob nightly", "", workload.Replicas{Count: 4},
					nil},
				{f.pod("once-x", owns(once, "batch/v1", "Job")), "Job once", "", workload.Replicas{Count: 2}, nil},
				{f.pod("bare", notController), "Pod bare", "", workload.Replicas{Count: 1}, workload.ErrGone},
				{f.pod("static", node), "Pod static", "", workload.Replicas{Count: 1}, workload.ErrGone},
				{f.pod("t-x", foreign), "Thing t", "", workload.Replicas{}, workload.ErrGone},
				{f.pod("cm-x", unscaled), "ConfigMap kube-root-ca.crt", "", workload.Replicas{},
					workload.ErrNoReplicas},
			} {
				var p workload.Policy
				var err error
				if watches {
					p = f.resolve(t, tc.pod)
				} else if p, err = f.Resolve(t.Context(), tc.pod); err != nil {
					t.Fatal(err)
				}
				if got := p.Workload.Kind + " " + p.Workload.Name; got != tc.want || tc.claim != "" &&
					p.Claim != f.ns+"/"+
						tc.claim {
					t.Errorf("pod %s: %s with claim %q, want %s with %q", tc.pod.Name, got, p.Claim, tc.want, tc.claim)
				}
				// From memory alone it is the same, or where nothing is watched the nearest owner.
				if got := f.Owners.Known(tc.pod); watches && got != p.Workload || !watches &&
					tc.pod.Controller.Group != "" &&
					got.Name != tc.pod.Controller.Name {
					t.Errorf("pod %s: known is %+v, want %+v", tc.pod.Name, got, p.Workload)
				}
				r, err := f.Owners.Replicas(t.Context(), p.Workload)
				if !errors.Is(err, tc.err) || err != nil && tc.err == nil || r.Count != tc.replicas.Count &&
					err == nil ||
					r.Start != tc.replicas.Start {
					t.Errorf("%s: %+v, %v; want %+v, %v", tc.want, r, err, tc.replicas, tc.err)
				}
			}

			p := &corev1.Pod{ObjectMeta: f.meta("web-1-there", owns(rs, "apps/v1", "ReplicaSet")), Spec: tmpl.Spec}
			f.create(t, p)
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
				of.Namespace = f.ns
				above, ok, err := f.Owners.Above(t.Context(), of)
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
	f := newFixture(t, true)
	selector, tmpl := template()
	set := &appsv1.StatefulSet{ObjectMeta: f.meta("db"), Spec: appsv1.StatefulSetSpec{Selector: selector,
		Template: tmpl}}
	f.create(t, set)
	old := owns(set, "apps/v1", "StatefulSet")
	pod := f.pod("db-0", old)
	was := f.resolve(t, pod).Workload
	if gone, err := f.Owners.Gone(t.Context(), was); gone || err != nil {
		t.Errorf("while it is there: %v, %v", gone, err)
	}
	if err := f.admin.Delete(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	if gone, err := f.Owners.Gone(t.Context(), was); !gone || err != nil {
		t.Errorf("deleted: %v, %v", gone, err)
	}
	again := &appsv1.StatefulSet{
		ObjectMeta: f.meta("db"), Spec: appsv1.StatefulSetSpec{Selector: selector, Template: tmpl},
	}
	again.Annotations = map[string]string{never: "never"}
	f.create(t, again)
	if gone, err := f.Owners.Gone(t.Context(), was); !gone || err != nil {
		t.Errorf("made again: %v, %v", gone, err)
	}
	if _, err := f.Owners.Replicas(t.Context(), was); !errors.Is(err, workload.ErrGone) {
		t.Errorf("replicas of the old one: %v", err)
	}
	if p, err := f.Resolve(t.Context(), pod); err != nil || p.Release != workload.ReleaseWithPod {
		t.Errorf("the old one's pod has the new one's policy: %+v, %v", p, err)
	}
	if p := f.resolve(t, f.pod("db-0", owns(again, "apps/v1", "StatefulSet"))); p.Release != workload.ReleaseNever ||
		p.Identity != "db-0" {
		t.Errorf("the new one's pod: %+v", p)
	}

	orphan := metav1.OwnerReference{
		APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "none", UID: "u", Controller: new(true),
	}
	kept := f.pod("none-x", orphan)
	kept.Annotations = map[string]string{never: "immutable"}
	if p, err := f.Resolve(t.Context(), kept); refusal(err) != ipam.ReasonWorkloadUnknown {
		t.Errorf("a pod whose ReplicaSet is gone: %+v, %v", p, err)
	}
	if p, err := f.Resolve(t.Context(), f.pod("none-x", orphan)); err != nil || p.Release != workload.ReleaseWithPod {
		t.Errorf("a plain one: %+v, %v", p, err)
	}

	var ns corev1.Namespace
	if err := f.admin.Get(t.Context(), client.ObjectKey{Name: f.ns}, &ns); err != nil {
		t.Fatal(err)
	}
	ns.Annotations = map[string]string{"networkextension.bkbcs.tencent.com/pool": "blue"}
	if err := f.admin.Update(t.Context(), &ns); err != nil {
		t.Fatal(err)
	}
	controlplane.Until(t, "the default is known", func() bool {
		p, err := f.Resolve(t.Context(), f.pod("bare"))
		return err == nil && strings.Join(p.Pools, ",") == "blue"
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
	f := newFixture(t, true)
	install(t, "apps.tkestack.io", "v7", "Game/games+")
	game := f.custom(t, "apps.tkestack.io/v7", "Game", "chess", map[string]any{never: "immutable"})
	f.tap.Forget()
	// The reference may name a version that is not served any more.
	numbered := f.pod("chess-2", owns(game, "apps.tkestack.io/v1", "Game"))
	p := f.resolve(t, numbered)
	if p.Release != workload.ReleaseImmutable || p.Identity != "chess-2" || p.Claim != f.ns+"/game-chess" ||
		p.Workload.Group != "apps.tkestack.io" {
		t.Errorf("%+v", p)
	}
	if p := f.resolve(t, f.pod("chess-x2x4z", owns(game, "apps.tkestack.io/v1", "Game"))); p.Identity != "" {
		t.Errorf("a random name: %+v", p)
	}
	selector, tmpl := template()
	rs := &appsv1.ReplicaSet{
		ObjectMeta: f.meta("chess-1", owns(game, "apps.tkestack.io/v7", "Game")),
		Spec:       appsv1.ReplicaSetSpec{Selector: selector, Template: tmpl},
	}
	f.create(t, rs)
	if p := f.resolve(t, f.pod("chess-1-x", owns(rs, "apps/v1", "ReplicaSet"))); p.Workload.Name != "chess" ||
		p.Release != workload.ReleaseImmutable {
		t.Errorf("a ReplicaSet's: %+v", p)
	}
	for _, n := range []int{4, 0} {
		if err := unstructured.SetNestedField(game.Object, int64(n), "spec", "replicas"); err != nil {
			t.Fatal(err)
		}
		if err := f.admin.Update(t.Context(), game); err != nil {
			t.Fatal(err)
		}
		if r, err := f.Owners.Replicas(t.Context(), p.Workload); err != nil || r.Count != n {
			t.Errorf("of %d: %+v, %v", n, r, err)
		}
	}

	crd := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": "games.apps.tkestack.io"},
	}}
	if err := f.admin.Delete(t.Context(), crd); err != nil {
		t.Fatal(err)
	}
	controlplane.Until(t, "the kind is forgotten",
		func() bool { return strings.Contains(f.log.String(), "a kind of owners is gone") })
	if gone, err := f.Owners.Gone(t.Context(), p.Workload); !gone || err != nil {
		t.Errorf("after its kind went: %v, %v", gone, err)
	}
	if r, err := f.Owners.Replicas(t.Context(), p.Workload); !errors.Is(err, workload.ErrKindGone) {
		t.Errorf("after its kind went: %+v, %v", r, err)
	}
	if f.Owners.Served(p.Workload) || f.Owners.APIVersion(p.Workload) != "apps.tkestack.io/unknown" {
		t.Errorf("after its kind went it is still served, as %s", f.Owners.APIVersion(p.Workload))
	}
	other := workload.Workload{Group: "apps", Kind: "Deployment", Namespace: f.ns, Name: "never-was"}
	if _, err := f.Owners.Replicas(t.Context(), other); !errors.Is(err, workload.ErrGone) ||
		errors.Is(err, workload.ErrKindGone) {
		t.Errorf("of a kind that is served: %v", err)
	}
	if missing, err := f.Owners.Missing(t.Context(), other); !missing || err != nil {
		t.Errorf("of a kind that is served: %v, %v", missing, err)
	}
	if p, err := f.Resolve(t.Context(), numbered); err != nil || p.Release != workload.ReleaseWithPod {
		t.Errorf("after its kind went: %+v, %v", p, err)
	}
}
