package check

import (
	"context"
	"errors"
	"fmt"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedappsv1 "k8s.io/client-go/kubernetes/typed/apps/v1"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/doctor"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
	"github.com/bcsnet/bcsnet/pkg/internal/suggest"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/nodecheck"
)

// chooseNodes reads the nodes. A node that is not Ready gets a finding instead of a pod.
func (r *run) chooseNodes(ctx context.Context) error {
	all, err := resource.ListNodesWith(ctx, r.App, r.which.Labels)
	if err != nil {
		return err
	}
	byName, names := map[string]resource.Node{}, []string{}
	for _, n := range all {
		byName[n.Name], names = n, append(names, n.Name)
	}
	if len(r.names) > 0 {
		var unknown app.Several
		for _, name := range r.names {
			if _, known := byName[name]; !known {
				f := app.Refuse(app.ReasonNodeNotFound, "there is no node %s",
					name).WithHint("see them: kubectl get nodes")
				if near := suggest.Nearest(name, names); near != "" {
					f = f.WithHint("did you mean %s? All nodes: kubectl get nodes", near)
				}
				unknown = append(unknown, f)
			}
		}
		if unknown != nil {
			return unknown
		}
		names = r.names
	}
	if len(names) == 0 {
		return (&app.Failure{Message: "no " + resource.WithWords("nodes", r.which.Words()) + " in " + r.Where()}).
			WithHint("see them: kubectl get nodes --show-labels")
	}
	for _, name := range app.SortedOnce(names) {
		t := &target{Node: nodecheck.Node{Name: name}}
		if n := byName[name]; n.State != resource.HostReady {
			t.fail(nodecheck.CheckNode, "see why: kubectl describe node "+name, "the node is not Ready")
		}
		r.targets = append(r.targets, t)
	}
	return nil
}

// choosePool refuses a pool with fewer free addresses than pods, unless its status has no counts yet.
func (r *run) choosePool(ctx context.Context) error {
	if r.pool == "" {
		return nil
	}
	p, err := resource.OnePool(ctx, r.App, r.pool)
	if err != nil {
		return err
	}
	if n := len(r.running()); p.Status.ObservedGeneration > 0 && p.Status.Available < int64(n) {
		return app.Refuse(ipam.ReasonPoolExhausted, "pool %s has %s for %s", r.pool,
			humanize.Plural(p.Status.Available, "free address"), humanize.Plural(n, "pod")).
			WithHint("name some of the nodes, or see what is free: bcsnetctl usage %s", r.pool)
	}
	return nil
}

// checkRights refuses a user who lacks a needed right. It runs before the check creates objects that the user could not
// delete.
func (r *run) checkRights(ctx context.Context) error {
	verbs := []string{"create", "get", "list", "patch", "delete"}
	wanted := app.Map(verbs, func(verb string) authorizationv1.ResourceAttributes {
		return authorizationv1.ResourceAttributes{Namespace: r.in.Name, Verb: verb, Resource: "pods"}
	})
	missing, err := resource.Rights(wanted).Missing(ctx, r.App)
	if err != nil || len(missing) == 0 {
		return err
	}
	lacks := app.Map(missing, func(right authorizationv1.ResourceAttributes) string { return right.Verb })
	return app.Refuse(ipam.ReasonForbidden, "your user may not %s pods in namespace %s",
		strings.Join(lacks, ", "), r.in.Name).
		WithHint("an administrator gives the right: kubectl -n %s create role bcsnet-check --verb=%s "+
			"--resource=pods, and kubectl -n %s create rolebinding bcsnet-check --role=bcsnet-check --user=YOU",
			r.in.Name, strings.Join(verbs, ","), r.in.Name)
}

// installerName is the DaemonSet whose image has the program of the pods. Each node has that image.
const installerName = "bcsnet-node"

// chooseImage uses --image, or the image of the nodes.
func (r *run) chooseImage(ctx context.Context) error {
	if r.image = r.nodesVerb.image; r.image != "" {
		return nil
	}
	apps, err := typedappsv1.NewForConfig(r.Config)
	if err != nil {
		return err
	}
	set, err := apps.DaemonSets(doctor.ControllerNamespace).Get(ctx, installerName, metav1.GetOptions{})
	if err == nil && len(set.Spec.Template.Spec.Containers) == 0 {
		err = errors.New("it has no container")
	}
	if err != nil {
		return (&app.Failure{Cause: err,
			Message: fmt.Sprintf("the image of DaemonSet %s/%s, which has the program of the "+
				"pods, cannot be read: %v", doctor.ControllerNamespace, installerName, err)}).
			WithHint("name an image that has /bcsnet-podcheck: --image IMAGE")
	}
	r.image = set.Spec.Template.Spec.Containers[0].Image
	return nil
}

// rehearse creates a pod as a dry run, and chooses the most rights that Pod Security permits.
func (r *run) rehearse(ctx context.Context) error {
	running := r.running()
	if len(running) == 0 {
		return nil
	}
	rehearsal := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	for _, r.rights = range allRights() {
		_, err := r.core.Pods(r.in.Name).Create(ctx, r.pod(running[0]), rehearsal)
		switch {
		case err == nil:
			if r.rights != rightRaw {
				r.Say.Warn("Pod Security of namespace %s refuses NET_RAW: the pods have %s", r.in.Name, r.rights)
			}
			return nil
		case apierrors.IsNotFound(err):
			return app.Refuse(app.ReasonNamespaceNotFound, "there is no namespace %s", r.in.Name).
				WithHint("see them: kubectl get namespaces")
		case !apierrors.IsForbidden(err):
			return err
		case r.rights == rightNone || !strings.Contains(err.Error(), "PodSecurity"):
			// The user has the right to create pods; an admission controller refuses this one.
			return (&app.Failure{Cause: err, Message: err.Error()}).
				WithHint("make the pods in another namespace: -n NAMESPACE")
		}
	}
	return nil
}
