package cli

import (
	"context"
	"fmt"
	"io/fs"
	"net/netip"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/bcsnet/bcsnet/config"
	"github.com/bcsnet/bcsnet/pkg/doctor"
	"github.com/bcsnet/bcsnet/pkg/replica"
)

// crdKind is the kind of the definitions of objects.
const crdKind = "CustomResourceDefinition"

// manifestCRDs are the CRDs of this release.
func manifestCRDs() ([]unstructured.Unstructured, error) {
	files, err := fs.Glob(config.Files, "crd/*.yaml")
	if err != nil {
		return nil, err
	}
	var out []unstructured.Unstructured
	for _, file := range files {
		text, err := fs.ReadFile(config.Files, file)
		if err != nil {
			return nil, err
		}
		var o unstructured.Unstructured
		if err := yaml.Unmarshal(text, &o.Object); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		if o.GetKind() == crdKind {
			out = append(out, o)
		}
	}
	return out, nil
}

func (r *snapshotReader) readCRDs(ctx context.Context) error {
	wanted, err := manifestCRDs()
	if err != nil {
		return err
	}
	api := r.api.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	for _, want := range wanted {
		stored, err := api.Get(ctx, want.GetName(), metav1.GetOptions{})
		crd := doctor.CRD{Name: want.GetName(), Missing: apierrors.IsNotFound(err)}
		switch {
		case err == nil:
			crd.Difference = doctor.Difference(want.Object["spec"], stored.Object["spec"])
		case !crd.Missing:
			return err
		}
		r.snapshot.CRDs = append(r.snapshot.CRDs, crd)
	}
	return nil
}

func (r *snapshotReader) readController(ctx context.Context) error {
	c := &r.snapshot.Controller
	stored, err := r.api.Resource(coordinationv1.SchemeGroupVersion.WithResource("leases")).
		Namespace(doctor.ControllerNamespace).Get(ctx, doctor.ControllerName, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	if err == nil {
		var lease coordinationv1.Lease
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(stored.Object, &lease); err != nil {
			return err
		}
		if s := lease.Spec; s.HolderIdentity != nil && s.RenewTime != nil && s.LeaseDurationSeconds != nil {
			c.Leader, c.Renewed, c.Term = replica.Parse(*s.HolderIdentity).Name, s.RenewTime.Time, time.Duration(*s.LeaseDurationSeconds)*time.Second
		}
	}
	core, err := r.core()
	if err != nil {
		return err
	}
	pods, err := core.Pods(doctor.ControllerNamespace).List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=" + doctor.ControllerName})
	switch {
	case apierrors.IsForbidden(err) && c.Leads(r.now()):
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

func (r *snapshotReader) readServices(ctx context.Context) error {
	all, err := r.api.Resource(networkingv1.SchemeGroupVersion.WithResource("servicecidrs")).List(ctx, metav1.ListOptions{})
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
