package resource

import (
	"context"
	"fmt"
	"io/fs"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/bcsnet/bcsnet/config"
	"github.com/bcsnet/bcsnet/pkg/doctor"
	"github.com/bcsnet/bcsnet/pkg/replica"
)

// Names that the manifests give.
const (
	SystemNamespace = doctor.ControllerNamespace
	ControllerName  = doctor.ControllerName // of the Deployment, its container and the leader's Lease
)

// Kinds in the manifests that need special treatment.
const (
	KindCRD        = "CustomResourceDefinition"
	KindDeployment = "Deployment"
	KindDaemonSet  = "DaemonSet"
	KindConfigMap  = "ConfigMap"
	KindNamespace  = "Namespace"
)

// Render returns the objects of a folder of package config, such as default, in an order in which they can be created.
func Render(folder string) ([]unstructured.Unstructured, error) {
	disk := filesys.MakeFsInMemory()
	err := fs.WalkDir(config.Files, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := config.Files.ReadFile(path)
		if err != nil {
			return err
		}
		return disk.WriteFile(path, content)
	})
	if err != nil {
		return nil, err
	}
	options := krusty.MakeDefaultOptions()
	options.Reorder = krusty.ReorderOptionLegacy
	rendered, err := krusty.MakeKustomizer(options).Run(disk, folder)
	if err != nil {
		return nil, fmt.Errorf("the manifests in this program cannot be rendered: %w", err)
	}
	var all []unstructured.Unstructured
	for _, r := range rendered.Resources() {
		text, err := r.MarshalJSON()
		if err != nil {
			return nil, err
		}
		var o unstructured.Unstructured
		if err := o.UnmarshalJSON(text); err != nil {
			return nil, err
		}
		all = append(all, o)
	}
	// Definitions come first, because the command waits for them, or may apply only them.
	slices.SortStableFunc(all, func(a, b unstructured.Unstructured) int { return rank(a) - rank(b) })
	return all, nil
}

func rank(o unstructured.Unstructured) int {
	if o.GetKind() == KindCRD {
		return 0
	}
	return 1
}

// Title names an object in a sentence.
func Title(o unstructured.Unstructured) string { return o.GetKind() + " " + o.GetName() }

// NodeFolder is the folder of the plugins' DaemonSet, for Render.
const NodeFolder = "node"

// Image returns the image of a Deployment or DaemonSet; empty for other objects.
func Image(o unstructured.Unstructured) string {
	c, _, _ := onlyContainer(o)
	text, _, _ := unstructured.NestedString(c, "image")
	return text
}

// SetImage sets the image of a Deployment or DaemonSet.
func SetImage(o unstructured.Unstructured, name string) error {
	c, all, err := onlyContainer(o)
	if err != nil {
		return err
	}
	c["image"] = name
	return unstructured.SetNestedSlice(o.Object, all, "spec", "template", "spec", "containers")
}

func onlyContainer(o unstructured.Unstructured) (map[string]any, []any, error) {
	all, _, err := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "containers")
	if err != nil || len(all) == 0 {
		return nil, nil, fmt.Errorf("%s has no container", Title(o))
	}
	c, ok := all[0].(map[string]any)
	if !ok {
		return nil, nil, fmt.Errorf("%s has a container that is none", Title(o))
	}
	return c, all, nil
}

// ContainerArguments returns the arguments of the first container of a Deployment or DaemonSet; nil if there is none.
func ContainerArguments(o unstructured.Unstructured) []string {
	c, _, _ := onlyContainer(o)
	args, _, _ := unstructured.NestedStringSlice(c, "args")
	return args
}

// ContainerVariable returns a variable of the first container of a Deployment or DaemonSet. Its value is empty if it
// comes from elsewhere, such as a Secret.
func ContainerVariable(o unstructured.Unstructured, name string) (value string, found bool) {
	c, _, _ := onlyContainer(o)
	env, _, _ := unstructured.NestedSlice(c, "env")
	for _, variable := range env {
		if m, ok := variable.(map[string]any); ok && m["name"] == name {
			value, _, _ = unstructured.NestedString(m, "value")
			found = true
		}
	}
	return value, found
}

// SetContainerArguments sets the arguments of the first container of a Deployment or DaemonSet.
func SetContainerArguments(o unstructured.Unstructured, args []string) error {
	c, all, err := onlyContainer(o)
	if err != nil {
		return err
	}
	if err := unstructured.SetNestedStringSlice(c, args, "args"); err != nil {
		return err
	}
	return unstructured.SetNestedSlice(o.Object, all, "spec", "template", "spec", "containers")
}

// Definitions compares the CRDs of this program with those of the cluster.
func Definitions(ctx context.Context, c dynamic.Interface) ([]doctor.CRD, error) {
	ours, err := Render("crd")
	if err != nil {
		return nil, err
	}
	var out []doctor.CRD
	for _, want := range ours {
		stored, err := c.Resource(CRDResource()).Get(ctx, want.GetName(), metav1.GetOptions{})
		crd := doctor.CRD{Name: want.GetName(), Missing: apierrors.IsNotFound(err)}
		switch {
		case err == nil:
			crd.Difference = doctor.Difference(want.Object["spec"], stored.Object["spec"])
			crd.NotServed = doctor.NotServed(want.Object, stored.Object)
		case !crd.Missing:
			return nil, err
		}
		out = append(out, crd)
	}
	return out, nil
}

// LeaderLease returns the spec of the controllers' Lease; empty if none has led yet.
func LeaderLease(ctx context.Context, c dynamic.Interface) (coordinationv1.LeaseSpec, error) {
	var lease coordinationv1.Lease
	stored, err := c.Resource(coordinationv1.SchemeGroupVersion.WithResource("leases")).
		Namespace(SystemNamespace).Get(ctx, ControllerName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return lease.Spec, nil
	}
	if err == nil {
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(stored.Object, &lease)
	}
	return lease.Spec, err
}

// LeaderOf returns the leader and its lease duration; the zero value if none has led yet.
func LeaderOf(lease coordinationv1.LeaseSpec) (c doctor.Controller) {
	if lease.HolderIdentity != nil && lease.RenewTime != nil && lease.LeaseDurationSeconds != nil {
		c.Leader, c.Renewed, c.Term = replica.Parse(*lease.HolderIdentity).Name, lease.RenewTime.Time,
			time.Duration(*lease.LeaseDurationSeconds)*time.Second
	}
	return c
}
