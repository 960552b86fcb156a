package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/claim"
	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

const claimKind = "BCSNetIPClaim"

// claims reads and writes claims.
type claims struct {
	*app.App
	api dynamic.NamespaceableResourceInterface
}

// ipClaim is a claim as this release knows it, and as it is stored.
type ipClaim struct {
	*v1.BCSNetIPClaim
	stored *unstructured.Unstructured
}

func newClaims(s *app.App) (*claims, error) {
	c, err := s.Dynamic()
	if err != nil {
		return nil, err
	}
	return &claims{App: s, api: c.Resource(resource(v1.ClaimResource))}, nil
}

func readClaim(stored *unstructured.Unstructured) (ipClaim, error) {
	c := ipClaim{BCSNetIPClaim: &v1.BCSNetIPClaim{}, stored: stored}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(stored.Object, c.BCSNetIPClaim); err != nil {
		return c, fmt.Errorf("claim %s cannot be read: %w", keyOf(stored), err)
	}
	return c, nil
}

// name is what addresses call the claim by.
func (c ipClaim) name() string { return c.Namespace + "/" + c.Name }

// get reads a claim; one that is not there is an error that knows a better name.
func (c *claims) get(ctx context.Context, key types.NamespacedName) (ipClaim, error) {
	stored, err := c.api.Namespace(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err) && !noSuchResource(err):
		return ipClaim{}, c.unknown(ctx, key)
	case err != nil:
		return ipClaim{}, explainError(c.App, err)
	}
	return readClaim(stored)
}

// few reads those of some claims that there are, named as addresses name them. Others may be among them.
func (c *claims) few(ctx context.Context, names []string) ([]ipClaim, error) {
	if len(names) > 1 {
		return c.list(ctx, "", metav1.ListOptions{})
	}
	namespace, name, _ := strings.Cut(names[0], "/")
	stored, err := c.api.Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, explainError(c.App, err)
	}
	one, err := readClaim(stored)
	return []ipClaim{one}, err
}

// claimNamed reads the claim that an argument names, NAME or NAMESPACE/NAME.
func claimNamed(ctx context.Context, s *app.App, in *inNamespace, arg string) (*claims, ipClaim, error) {
	key, err := in.key(arg)
	if err != nil {
		return nil, ipClaim{}, err
	}
	api, err := newClaims(s)
	if err != nil {
		return nil, ipClaim{}, err
	}
	c, err := api.get(ctx, key)
	return api, c, err
}

// named reads claims by name: all of them or none.
func (c *claims) named(ctx context.Context, keys []types.NamespacedName) (all []ipClaim, err error) {
	var failed app.Several
	for _, key := range keys {
		one, err := c.get(ctx, key)
		if err != nil {
			failed = append(failed, err)
			continue
		}
		all = append(all, one)
	}
	return all, failed.OrNil()
}

// list reads the claims of a namespace, or of all where it is empty, by namespace and name.
func (c *claims) list(ctx context.Context, namespace string, which metav1.ListOptions) (all []ipClaim, err error) {
	stored, err := listPages(ctx, c.api.Namespace(namespace), which)
	if err != nil {
		return nil, explainError(c.App, err)
	}
	for i := range stored {
		one, err := readClaim(&stored[i])
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	slices.SortFunc(all, byClaim)
	return all, nil
}

// madeFor names the claims that somebody made for a workload.
func (c *claims) madeFor(ctx context.Context, w workload.Workload) (names []string, err error) {
	all, err := c.list(ctx, w.Namespace, metav1.ListOptions{})
	for _, one := range all {
		if claim.IsFor(one.BCSNetIPClaim, w) {
			names = append(names, one.Name)
		}
	}
	return names, err
}

func byClaim(a, b ipClaim) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// unknown is the error for a claim that is not there.
func (c *claims) unknown(ctx context.Context, key types.NamespacedName) error {
	all, err := c.list(ctx, "", metav1.ListOptions{})
	if err != nil {
		return err
	}
	f := app.Refuse(ipam.ReasonClaimNotFound, "there is no claim %s in namespace %s", key.Name, key.Namespace)
	var here []string
	for _, o := range all {
		switch {
		case o.Namespace == key.Namespace:
			here = append(here, o.Name)
		case o.Name == key.Name:
			return f.WithHint("there is one in namespace %s: bcsnetctl claim describe %s", o.Namespace, o.name())
		}
	}
	if near := app.Nearest(key.Name, here); near != "" {
		return f.WithHint("did you mean %s? All claims: bcsnetctl claim list -A", near)
	}
	return f.WithHint("see all claims: bcsnetctl claim list -A")
}

// leasesOfClaim are the addresses of a claim, in order.
func leasesOfClaim(ctx context.Context, s *app.App, claim string) ([]ipam.Lease, error) {
	return heldLeases(ctx, s, leaseQuery{claim: claim}, func(l ipam.Lease) bool { return l.State != ipam.Available })
}
