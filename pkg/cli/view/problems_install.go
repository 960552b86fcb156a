package view

import (
	"context"
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/doctor"
)

func (r *snapshotReader) readCRDs(ctx context.Context) (err error) {
	r.snapshot.CRDs, err = resource.Definitions(ctx, r.api)
	return err
}

func (r *snapshotReader) readController(ctx context.Context) error {
	c := &r.snapshot.Controller
	lease, err := resource.LeaderLease(ctx, r.api)
	if err != nil {
		return err
	}
	*c = resource.LeaderOf(lease)
	core, err := resource.CoreClient(r.App)
	if err != nil {
		return err
	}
	pods, err := core.Pods(doctor.ControllerNamespace).List(ctx,
		metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=" + doctor.ControllerName, Limit: resource.PageSize})
	switch {
	case apierrors.IsForbidden(err) && c.Leads(r.Now()):
		return nil // one that leads runs
	case err != nil:
		return err
	}
	c.Pods = len(pods.Items)
	for _, p := range pods.Items {
		for _, condition := range p.Status.Conditions {
			if condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue {
				c.Ready++
			}
		}
	}
	return nil
}

// readPlainCallers reads which clients call the controller by plain HTTP. Without the ConfigMap there are none.
func (r *snapshotReader) readPlainCallers(ctx context.Context) error {
	core, err := resource.CoreClient(r.App)
	if err != nil {
		return err
	}
	o, err := core.ConfigMaps(doctor.ControllerNamespace).Get(ctx, doctor.PlainCallersName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	// A replica repairs damaged entries within a minute; until then the valid ones count.
	r.snapshot.PlainCallers, _ = doctor.ParsePlainCallers(o.Data)
	return nil
}

func (r *snapshotReader) readServices(ctx context.Context) error {
	all, err := r.api.Resource(networkingv1.SchemeGroupVersion.WithResource("servicecidrs")).
		List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, o := range all.Items {
		cidrs, _, err := unstructured.NestedStringSlice(o.Object, "spec", "cidrs")
		if err != nil {
			return err
		}
		for _, text := range cidrs {
			network, err := netip.ParsePrefix(text)
			if err != nil {
				return fmt.Errorf("ServiceCIDR %s: %w", o.GetName(), err)
			}
			r.snapshot.Services = append(r.snapshot.Services, network)
		}
	}
	return nil
}
