package resource

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
	"github.com/bcsnet/bcsnet/pkg/internal/suggest"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

// ClaimKind is the kind of claims in objects and messages.
const ClaimKind = "BCSNetIPClaim"

// Claims reads and writes claims.
type Claims struct {
	*app.App
	API dynamic.NamespaceableResourceInterface
}

// Claim is a claim, decoded and as stored.
type Claim struct {
	*v1.BCSNetIPClaim
	Stored *unstructured.Unstructured
}

// NewClaims returns a client for the claims of the cluster.
func NewClaims(s *app.App) (*Claims, error) {
	c, err := s.Dynamic()
	if err != nil {
		return nil, err
	}
	return &Claims{App: s, API: c.Resource(Of(v1.ClaimResource))}, nil
}

// ReadClaim decodes a claim.
func ReadClaim(stored *unstructured.Unstructured) (Claim, error) {
	c := Claim{BCSNetIPClaim: &v1.BCSNetIPClaim{}, Stored: stored}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(stored.Object, c.BCSNetIPClaim); err != nil {
		return c, fmt.Errorf("claim %s cannot be read: %w", KeyOf(stored), err)
	}
	return c, nil
}

// Object returns the claim as stored.
func (c Claim) Object() unstructured.Unstructured { return *c.Stored }

// FullName returns the name by which addresses refer to the claim.
func (c Claim) FullName() string { return c.Namespace + "/" + c.Name }

// Get reads a claim. The error for a missing one suggests a similar name.
func (c *Claims) Get(ctx context.Context, key types.NamespacedName) (Claim, error) {
	stored, err := c.API.Namespace(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err) && !NoSuchResource(err):
		return Claim{}, c.unknown(ctx, key)
	case err != nil:
		return Claim{}, Explain(c.App, err)
	}
	return ReadClaim(stored)
}

// Few reads the named claims that exist. The result may contain other claims.
func (c *Claims) Few(ctx context.Context, names []string) ([]Claim, error) {
	if len(names) > 1 {
		return c.List(ctx, "", metav1.ListOptions{})
	}
	namespace, name, _ := strings.Cut(names[0], "/")
	stored, err := c.API.Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, Explain(c.App, err)
	}
	one, err := ReadClaim(stored)
	return []Claim{one}, err
}

// ClaimNamed reads the claim of an argument NAME or NAMESPACE/NAME.
func ClaimNamed(ctx context.Context, s *app.App, in *InNamespace, arg string) (*Claims, Claim, error) {
	key, err := in.Key(arg)
	if err != nil {
		return nil, Claim{}, err
	}
	api, err := NewClaims(s)
	if err != nil {
		return nil, Claim{}, err
	}
	c, err := api.Get(ctx, key)
	return api, c, err
}

// Named reads claims by name. It fails if one is missing.
func (c *Claims) Named(ctx context.Context, keys []types.NamespacedName) ([]Claim, error) {
	return readNamed(ctx, keys, c.Get)
}

// List reads the claims of a namespace, or of all if it is empty, sorted by namespace and name.
func (c *Claims) List(ctx context.Context, namespace string, which metav1.ListOptions) (all []Claim, err error) {
	all, err = readAll(ctx, c.App, c.API.Namespace(namespace), which, ReadClaim)
	slices.SortFunc(all, ByClaim)
	return all, err
}

// AllClaims reads the claims of a namespace, or of all if it is empty, sorted by namespace and name.
func AllClaims(ctx context.Context, s *app.App, namespace string, which metav1.ListOptions) ([]Claim, error) {
	api, err := NewClaims(s)
	if err != nil {
		return nil, err
	}
	return api.List(ctx, namespace, which)
}

// servesShared reports whether the controller's namespace has a claim of this name that serves the pods of another
// namespace.
func (c *Claims) servesShared(ctx context.Context, name, namespace string) (bool, error) {
	stored, err := c.API.Namespace(SystemNamespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	o, err := ReadClaim(stored)
	if err != nil {
		return false, err
	}
	return claim.ServesElsewhere(o.BCSNetIPClaim, namespace), nil
}

// MadeFor names the claims that users made for a workload.
func (c *Claims) MadeFor(ctx context.Context, w workload.Workload) (names []string, err error) {
	all, err := c.List(ctx, w.Namespace, metav1.ListOptions{})
	for _, one := range all {
		if claim.IsFor(one.BCSNetIPClaim, w) {
			names = append(names, one.Name)
		}
	}
	return names, err
}

// ByClaim compares claims by namespace, then by name.
func ByClaim(a, b Claim) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// unknown returns the error for a claim that does not exist.
func (c *Claims) unknown(ctx context.Context, key types.NamespacedName) error {
	all, err := c.List(ctx, "", metav1.ListOptions{})
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
			return f.WithHint("there is one in namespace %s: bcsnetctl claim describe %s", o.Namespace, o.FullName())
		}
	}
	if near := suggest.Nearest(key.Name, here); near != "" {
		return f.WithHint("did you mean %s? All claims: bcsnetctl claim list -A", near)
	}
	return f.WithHint("see all claims: bcsnetctl claim list -A")
}

// LeasesOfClaim lists the addresses of a claim, in order.
func LeasesOfClaim(ctx context.Context, s *app.App, claim string) ([]lease.Lease, error) {
	return HeldLeases(ctx, s, LeaseQuery{Claim: claim}, func(l lease.Lease) bool { return l.State != lease.Available })
}

// ClaimsOfLeases reads the claims that leases name, by namespace/name. It omits claims that are missing or unreadable;
// the leases still name them.
func ClaimsOfLeases(ctx context.Context, s *app.App, leases []lease.Lease) map[string]*v1.BCSNetIPClaim {
	found := map[string]*v1.BCSNetIPClaim{}
	var api *Claims
	for _, l := range leases {
		if _, known := found[l.Claim]; known || l.Claim == "" {
			continue
		}
		found[l.Claim] = nil
		if api == nil {
			var err error
			if api, err = NewClaims(s); err != nil {
				return found
			}
		}
		c, err := findClaims(ctx, api, l.Claim)
		switch {
		case err == nil:
			found[l.Claim] = c.BCSNetIPClaim
		case !apierrors.IsNotFound(err):
			s.Say.Warn("claim %s cannot be read: %v", l.Claim, Explain(s, err))
		}
	}
	return found
}

// findClaims reads the claim that an address names. It returns the API server's error unchanged.
func findClaims(ctx context.Context, c *Claims, name string) (Claim, error) {
	namespace, name, _ := strings.Cut(name, "/")
	stored, err := c.API.Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return Claim{}, err
	}
	return ReadClaim(stored)
}
