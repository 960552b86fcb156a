package rights

import (
	"context"
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/test/controlplane"
)

// A pool names who changed its spec last, whatever the client writes in that place: nobody can name somebody else, or
// nobody.
func TestPoolsNameWhoChangedThem(t *testing.T) {
	ready(t)
	ann, eve := as(t, "operator"), as(t, "writer")
	forged := map[string]string{v1.ChangedByAnnotation: "someone"}
	patch := func(text string) func(client.Client, *v1.BCSNetPool) error {
		return func(c client.Client, p *v1.BCSNetPool) error {
			return c.Patch(t.Context(), p, client.RawPatch(types.MergePatchType, []byte(text)))
		}
	}
	for name, tc := range map[string]struct {
		change func(client.Client, *v1.BCSNetPool) error
		want   string
	}{
		"the spec": {patch(`{"spec":{"cordoned":true}}`), "writer"},
		"the spec, with another name": {
			patch(`{"metadata":{"annotations":{"` + v1.ChangedByAnnotation + `":"someone"}},"spec":{"cordoned":true}}`), "writer",
		},
		"the spec, without annotations": {patch(`{"metadata":{"annotations":null},"spec":{"cordoned":true}}`), "writer"},
		"the name alone":                {patch(`{"metadata":{"annotations":{"` + v1.ChangedByAnnotation + `":"someone"}}}`), "operator"},
		"no name":                       {patch(`{"metadata":{"annotations":null}}`), "operator"},
		"a label":                       {patch(`{"metadata":{"labels":{"a":"b"}}}`), "operator"},
		"an update": {func(c client.Client, p *v1.BCSNetPool) error {
			p.Annotations, p.Spec.Cordoned = forged, true
			return c.Update(t.Context(), p)
		}, "writer"},
	} {
		t.Run(name, func(t *testing.T) {
			p := &v1.BCSNetPool{}
			p.Name, p.Annotations = fmt.Sprint("authors-", freshName()), forged
			p.Spec = v1.BCSNetPoolSpec{Net: "10.9.0.0", Mask: 24, Gateway: "10.9.0.1", AvailableIPs: []string{"10.9.0.20"}}
			if err := ann.Create(t.Context(), p); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := admin.Delete(context.Background(), p); client.IgnoreNotFound(err) != nil {
					t.Error(err)
				}
			})
			if got := p.Annotations[v1.ChangedByAnnotation]; got != "operator" {
				t.Errorf("the pool was made by %q, want operator", got)
			}
			if err := tc.change(eve, p); err != nil {
				t.Fatal(err)
			}
			if got := p.Annotations[v1.ChangedByAnnotation]; got != tc.want {
				t.Errorf("the pool names %q, want %q", got, tc.want)
			}
		})
	}
}

// The history of an address names who changed it, or nobody; an entry that was there stays as it is.
func TestHistoryOfAnAddressNamesWhoChangesIt(t *testing.T) {
	ready(t)
	operator := as(t, "operator")
	longName := "system:serviceaccount:a-namespace-with-a-long-name:an-account-with-a-very-long-name-indeed"
	if err := bindTo(t, longName); err != nil {
		t.Fatal(err)
	}
	before := v1.HistoryEntry{Holder: "vm-0", Until: "2026-05-04T03:02:01Z", Verb: "release", By: "somebody else"}
	for name, tc := range map[string]struct {
		client client.Client
		by     string
		denied bool
	}{
		"itself":              {operator, "operator", false},
		"nobody":              {operator, "", false},
		"somebody else":       {operator, "admin", true},
		"a part of its name":  {operator, "oper", true},
		"its long name, cut":  {as(t, longName), longName[:61] + "…", false},
		"another name, cut":   {as(t, longName), "system:serviceaccount:b…", true},
		"the controller does": {as(t, serviceAccount(system, "bcsnet-controller")), "ann", false},
	} {
		t.Run(name, func(t *testing.T) {
			o := held(t)
			o.Status.History = []v1.HistoryEntry{before}
			if err := as(t, serviceAccount(system, "bcsnet-controller")).Update(t.Context(), o); err != nil {
				t.Fatal(err)
			}
			o.Status.Host = "10.0.0.66"
			o.Status.History = []v1.HistoryEntry{{Holder: "vm-1", Until: "2026-05-04T03:02:02Z", Verb: "release", By: tc.by}, before}
			err := tc.client.Update(t.Context(), o)
			if denied := refusedBy(err, addresses); denied != tc.denied || err != nil && !denied {
				t.Errorf("%v, refused %v, want %v", err, denied, tc.denied)
			}
		})
	}
}

// bindTo binds bcsnet-operator to a user of one test.
func bindTo(t *testing.T, user string) error {
	t.Helper()
	b := bindingOf(user, "bcsnet-operator")
	b.SetName("authors-long-name")
	created(t, b)
	return controlplane.WaitFor(t.Context(), time.Minute, func() error {
		return as(t, user).Create(t.Context(), address(freshName()), client.DryRunAll)
	})
}
