package rights

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
)

// writing is a way to write the object of an address.
type writing = func(context.Context, client.Client, *v1.BCSNetIP) error

// patching returns the writing of a merge patch.
func patching(patch string) writing {
	return func(ctx context.Context, c client.Client, o *v1.BCSNetIP) error {
		return c.Patch(ctx, o, client.RawPatch(types.MergePatchType, []byte(patch)))
	}
}

// creations are of addresses that have no object yet.
func creations() map[string]writing {
	return map[string]writing{
		"create": func(ctx context.Context, c client.Client, o *v1.BCSNetIP) error {
			return c.Create(ctx, address(o.Name))
		},
		"create, dry run": func(ctx context.Context, c client.Client, o *v1.BCSNetIP) error {
			return c.Create(ctx, address(o.Name), client.DryRunAll)
		},
		"create by apply": func(ctx context.Context, c client.Client, o *v1.BCSNetIP) error { return apply(ctx, c, o.Name) },
	}
}

// changes are of an address that somebody has.
func changes() map[string]writing {
	return map[string]writing{
		"update": func(ctx context.Context, c client.Client, o *v1.BCSNetIP) error {
			o.Status.Host = "10.0.0.66"
			return c.Update(ctx, o)
		},
		"update, dry run": func(ctx context.Context, c client.Client, o *v1.BCSNetIP) error {
			o.Status.Host = "10.0.0.66"
			return c.Update(ctx, o, client.DryRunAll)
		},
		"apply":       func(ctx context.Context, c client.Client, o *v1.BCSNetIP) error { return apply(ctx, c, o.Name) },
		"merge patch": patching(`{"status":{"podName":"mine"}}`),
		"JSON patch": func(ctx context.Context, c client.Client, o *v1.BCSNetIP) error {
			return c.Patch(ctx, o, client.RawPatch(types.JSONPatchType,
				[]byte(`[{"op":"replace","path":"/status/status","value":"Available"}]`)))
		},
		"patch of the spec": patching(`{"spec":{"pool":"other"}}`),
		"no status":         patching(`{"status":null}`),
		"a label":           patching(`{"metadata":{"labels":{"a":"b"}}}`),
		"an annotation":     patching(`{"metadata":{"annotations":{"a":"b"}}}`),
		"finalizers off":    patching(`{"metadata":{"finalizers":null}}`),
		"another finalizer": patching(`{"metadata":{"finalizers":["networkextension.bkbcs.tencent.com/held","example.com/a"]}}`),
		// An object goes with its owner, and one that never was is gone.
		"an owner": patching(`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"none","uid":"none"}]}}`),
		"delete":   func(ctx context.Context, c client.Client, o *v1.BCSNetIP) error { return c.Delete(ctx, o) },
		"delete all of one": func(ctx context.Context, c client.Client, o *v1.BCSNetIP) error {
			return c.DeleteAllOf(ctx, o, client.MatchingFields{"metadata.name": o.Name})
		},
	}
}

// apply applies an address on the server's side.
func apply(ctx context.Context, c client.Client, name string) error {
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1.GroupVersion.String(), "kind": "BCSNetIP", "metadata": map[string]any{"name": name},
		"spec": map[string]any{"pool": "applied", "mask": int64(24), "gateway": "10.255.255.254"},
	}}
	return c.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner("test"), client.ForceOwnership)
}

// lastAddress numbers the addresses of the tests.
var lastAddress atomic.Uint32

func freshName() string {
	n := lastAddress.Add(1)
	return fmt.Sprintf("10.254.%d.%d", n>>8, n&255)
}

// held makes an address that somebody has.
func held(t *testing.T) *v1.BCSNetIP {
	t.Helper()
	o := address(freshName())
	o.Finalizers = []string{v1.HeldFinalizer}
	o.Status = v1.BCSNetIPStatus{Status: v1.IPActive, Host: "10.0.0.11", Owner: "vm-1"}
	if err := admin.Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	return o
}

// Whom an address was given to is written by the controller and by who has manage, in every way that RBAC leaves them;
// by nobody else in any, whatever RBAC says, and then nothing has changed.
func TestAddressesAreWrittenByWhoManages(t *testing.T) {
	ready(t)
	all := map[string]bool{"*": true}
	for user, test := range map[string]struct {
		client client.Client
		// may are the writings that go through.
		may map[string]bool
		// policy: it is the policy that refuses, as RBAC does not.
		policy bool
	}{
		"administrator": {client: admin, may: all},
		"backup":        {client: as(t, "backup"), may: all},
		"controller": {client: as(t, serviceAccount(system, "bcsnet-controller")), may: map[string]bool{
			"create": true, "create, dry run": true, "update": true, "update, dry run": true, "delete": true,
		}},
		"operator": {client: as(t, "operator"), may: map[string]bool{
			"create": true, "create, dry run": true, "update": true, "update, dry run": true,
		}},
		"writer":                  {client: as(t, "writer"), policy: true},
		"a false controller":      {client: as(t, serviceAccount("default", "bcsnet-controller"))},
		"viewer":                  {client: as(t, "viewer")},
		"view":                    {client: as(t, "see")},
		"admin of all namespaces": {client: as(t, "tenant")},
		"plugin":                  {client: as(t, "plugin")},
		"scheduler":               {client: as(t, "scheduler")},
		"node's installer":        {client: as(t, serviceAccount(system, "bcsnet-node"))},
		"kubelet":                 {client: as(t, "system:node:node-1", "system:nodes")},
		"garbage collector":       {client: as(t, serviceAccount("kube-system", "generic-garbage-collector"))},
		"namespace controller":    {client: as(t, serviceAccount("kube-system", "namespace-controller"))},
	} {
		t.Run(user, func(t *testing.T) {
			t.Parallel()
			try := func(name string, write writing, o *v1.BCSNetIP) {
				before := o.ResourceVersion
				err := write(t.Context(), test.client, o.DeepCopy())
				switch allowed := test.may[name] || test.may["*"]; {
				case allowed && err != nil:
					t.Errorf("%s: %v", name, err)
				case allowed:
				case !apierrors.IsForbidden(err), test.policy && !refusedBy(err, addresses):
					t.Errorf("%s was not refused: %v", name, err)
				default:
					now := &v1.BCSNetIP{}
					err := admin.Get(t.Context(), client.ObjectKeyFromObject(o), now)
					if client.IgnoreNotFound(err) != nil || now.ResourceVersion != before {
						t.Errorf("%s was refused, and changed %+v: %v", name, now, err)
					}
				}
			}
			for name, write := range creations() {
				try(name, write, address(freshName()))
			}
			for name, write := range changes() {
				try(name, write, held(t))
			}
		})
	}
}

// A refusal says what was refused to whom, why, and what to do.
func TestRefusalOfAddresses(t *testing.T) {
	ready(t)
	writer := as(t, "writer")
	for name, test := range map[string]struct {
		write writing
		want  string
	}{
		"create": {creations()["create"], "create of the address %s was refused to writer: "},
		"update": {changes()["update"], "update of the address %s was refused to writer: "},
		"delete": {changes()["delete all of one"], "delete of the address %s was refused to writer: "},
	} {
		o := address(freshName())
		if name != "create" {
			o = held(t)
		}
		err := test.write(t.Context(), writer, o.DeepCopy())
		for _, want := range []string{fmt.Sprintf(test.want, o.Name), "one address could come to two pods", "hint: use bcsnetctl"} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: there is no %q in %v", name, want, err)
			}
		}
	}
}
