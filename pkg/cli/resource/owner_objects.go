package resource

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/recovery"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

// OwnerState says whether the object that owns a lease still exists.
type OwnerState struct {
	workload.OwnerObject
	// Exists: it is there, and may be being deleted. Text goes on after the object, such as "does not exist".
	Exists bool
	Text   string
	// Unread is why nothing is known of it.
	Unread error
}

// clusterAPI returns a resource of Cluster API in its versions, the preferred one first.
func clusterAPI(resource string) []schema.GroupVersionResource {
	const group = "ipam.cluster.x-k8s.io"
	return []schema.GroupVersionResource{
		{Group: group, Version: "v1beta2", Resource: resource}, {Group: group, Version: "v1beta1", Resource: resource},
	}
}

// OwnerStates reads the objects that own some leases, by the owner. Leases of pods, and of owners that are not objects,
// have none.
func OwnerStates(ctx context.Context, s *app.App, all []lease.Lease) map[string]OwnerState {
	states, addrs := map[string]OwnerState{}, map[string][]netip.Addr{}
	for _, l := range all {
		if o, ok := workload.ParseOwner(l.Owner); ok && l.State == lease.Active {
			states[l.Owner] = OwnerState{OwnerObject: o}
			addrs[l.Owner] = append(addrs[l.Owner], l.Addr)
		}
	}
	if len(states) == 0 {
		return states
	}
	c, err := s.Dynamic()
	var mu sync.Mutex
	var group errgroup.Group
	group.SetLimit(AtOnce)
	for owner, state := range states {
		group.Go(func() error {
			if state.Unread = err; err == nil {
				state.read(ctx, c)
			}
			if state.Kind == workload.OwnerService && !state.Exists && state.Unread == nil {
				state.readSharers(ctx, c, addrs[owner])
			}
			mu.Lock()
			defer mu.Unlock()
			states[owner] = state
			return nil
		})
	}
	_ = group.Wait() // the errors are in the states
	return states
}

func (o *OwnerState) read(ctx context.Context, c dynamic.Interface) {
	o.Text = "does not exist"
	versions := clusterAPI("ipaddressclaims")
	if o.Kind == workload.OwnerService {
		versions = services()
	}
	for _, r := range versions {
		u, err := c.Resource(r).Namespace(o.Namespace).Get(ctx, o.Name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err) && NoSuchResource(err):
			continue
		case apierrors.IsNotFound(err):
			return
		case err != nil:
			o.Unread = err
			return
		}
		switch o.Exists, o.Text = true, "exists"; {
		case o.Kind == workload.OwnerService && !wantsAddress(u):
			o.Exists, o.Text = false, "is not a LoadBalancer of our class"
		case u.GetDeletionTimestamp() != nil:
			o.Text = "is being deleted"
		}
		return
	}
}

// readSharers looks for another Service that shows one of some addresses, which it shares: a lease has one owner.
func (o *OwnerState) readSharers(ctx context.Context, c dynamic.Interface, addrs []netip.Addr) {
	var shown []corev1.Service
	o.Unread = eachServed(ctx, c, o.Namespace, services(), func(u *unstructured.Unstructured) {
		shown = append(shown, serviceOf(u)...)
	})
	for r := range recovery.OfServices(shown) {
		if slices.Contains(addrs, r.Addr) {
			o.Exists = true
			o.Text += fmt.Sprintf(", but %s shows %s, too", r.Owner, r.Addr)
			return
		}
	}
}

// serviceOf returns an object as a Service; nothing if it cannot be read.
func serviceOf(u *unstructured.Unstructured) []corev1.Service {
	var s corev1.Service
	if runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &s) != nil {
		return nil
	}
	return []corev1.Service{s}
}

func services() []schema.GroupVersionResource {
	return []schema.GroupVersionResource{{Version: "v1", Resource: "services"}}
}

// wantsAddress reports whether a Service may have addresses of ours, by its type and class.
func wantsAddress(u *unstructured.Unstructured) bool {
	is, _, _ := unstructured.NestedString(u.Object, "spec", "type")
	class, some, _ := unstructured.NestedString(u.Object, "spec", "loadBalancerClass")
	return is == string(corev1.ServiceTypeLoadBalancer) && (!some || class == workload.ServiceClass)
}

// ListOwners returns the owners that the leases of existing objects name, and the addresses that Services show.
func ListOwners(ctx context.Context, c dynamic.Interface) (owners []string, shown []recovery.Object, err error) {
	err = eachServed(ctx, c, metav1.NamespaceAll, clusterAPI("ipaddressclaims"), func(u *unstructured.Unstructured) {
		o := workload.OwnerObject{Kind: workload.OwnerClusterAPI, Namespace: u.GetNamespace(), Name: u.GetName()}
		owners = append(owners, o.String())
	})
	var all []corev1.Service
	err = errors.Join(err, eachServed(ctx, c, metav1.NamespaceAll, services(), func(u *unstructured.Unstructured) {
		all = append(all, serviceOf(u)...)
		if wantsAddress(u) {
			o := workload.OwnerObject{Kind: workload.OwnerService, Namespace: u.GetNamespace(), Name: u.GetName()}
			owners = append(owners, o.String())
		}
	}))
	return owners, slices.Collect(recovery.OfServices(all)), err
}

// ListReports returns the addresses that IPAddresses of our pools and the status of Services say they have.
func ListReports(ctx context.Context, s *app.App) (all []recovery.Object, err error) {
	c, err := s.Dynamic()
	if err != nil {
		return nil, err
	}
	err = eachServed(ctx, c, metav1.NamespaceAll, clusterAPI("ipaddresses"), func(u *unstructured.Unstructured) {
		if o, ok := recovery.ObjectOf(u); ok {
			all = append(all, o)
		}
	})
	var shown []corev1.Service
	err = errors.Join(err, eachServed(ctx, c, metav1.NamespaceAll, services(), func(u *unstructured.Unstructured) {
		shown = append(shown, serviceOf(u)...)
	}))
	return slices.AppendSeq(all, recovery.OfServices(shown)), err
}

// eachServed calls fn with all objects of a namespace, or of all, in the first of some versions that the API server
// serves; with none if it serves none of them.
func eachServed(
	ctx context.Context, c dynamic.Interface, namespace string, versions []schema.GroupVersionResource,
	fn func(*unstructured.Unstructured),
) error {
	for _, r := range versions {
		options := metav1.ListOptions{Limit: PageSize}
		for {
			list, err := c.Resource(r).Namespace(namespace).List(ctx, options)
			if NoSuchResource(err) {
				break
			}
			if err != nil {
				return err
			}
			for i := range list.Items {
				fn(&list.Items[i])
			}
			if options.Continue = list.GetContinue(); options.Continue == "" {
				return nil
			}
		}
	}
	return nil
}
