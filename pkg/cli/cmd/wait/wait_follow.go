package wait

import (
	"context"
	"errors"
	"net/netip"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/follow"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// sayEvery is the minimum interval between messages about the remaining count.
const sayEvery = 2 * time.Second

// conditioned is an object whose condition is waited for.
type conditioned[T any] struct {
	what      string // in words
	api       dynamic.ResourceInterface
	name, key string
	uid       types.UID
	read      func(*unstructured.Unstructured) (T, error)
	state     func(T) state
	object    func(T) metav1.Object
	// gone and deleting are the error reasons for an object that cannot get the condition any more.
	gone, deleting ipam.Reason
	hint           string
}

func forCondition[T any](ctx context.Context, v *waiting, c conditioned[T]) error {
	what, said := "", ""
	err := follow.WaitSet[T]{App: v.App, API: c.api, Fields: follow.Named(c.name), Read: c.read,
		See: func(set map[string]T) (bool, error) {
			now, exists := set[c.key]
			if !exists || c.object(now).GetUID() != c.uid {
				return false, app.Refuse(c.gone, "%s was deleted before it was %s", c.what, v.goal.word)
			}
			if v.goal.condition == v1.ConditionReady && v.goal.want && c.object(now).GetDeletionTimestamp() != nil {
				return false, app.Refuse(c.deleting, "%s is being deleted and will not be ready again", c.what)
			}
			ok, how := v.goal.met(c.state(now))
			if what = how; what != said && !ok {
				v.Say.Wait("%s: waiting until it is %s: %s", c.what, v.goal.word, v.Called(what))
				said = what
			}
			return ok, nil
		}}.Until(ctx, v.left())
	return v.end(err, outcome{
		done: c.what + " is " + v.goal.word, late: c.what + " is " + v.goal.unmet, what: what, hint: c.hint,
	})
}

// forRelease watches the addresses in use, so it needs no controller to count them.
func (v *waiting) forRelease(ctx context.Context, what string, query resource.LeaseQuery, hint string) error {
	query.Status = lease.Active.String()
	return v.forFree(ctx, query.Selector(), what, inUse, outcome{
		done: "no address of " + what + " is in use", late: what + " is not released", hint: hint,
	})
}

func (v *waiting) forAddress(ctx context.Context, a netip.Addr) error {
	name := ipaddr.ObjectName(a)
	selector := follow.Named(name) + ",status.status!=" + lease.Available.String()
	return v.forFree(ctx, selector, "address "+a.String(),
		func(set map[string]lease.Lease) string { return holding(set[name]) }, outcome{
			done: "address " + a.String() + " is free", late: "address " + a.String() + " is not free",
			hint: "bcsnetctl ip describe " + a.String(),
		})
}

// forFree waits until no address matches a selector.
func (v *waiting) forFree(
	ctx context.Context, selector, who string, how func(map[string]lease.Lease) string, o outcome,
) error {
	c, err := v.Dynamic()
	if err != nil {
		return err
	}
	said, when := "", time.Time{}
	err = follow.WaitSet[lease.Lease]{App: v.App, API: c.Resource(resource.Of(v1.IPResource)), Fields: selector,
		Read: resource.ReadLease, See: func(set map[string]lease.Lease) (bool, error) {
			if len(set) == 0 {
				return true, nil
			}
			if o.what = how(set); o.what != said && v.Now().Sub(when) >= sayEvery {
				v.Say.Wait("%s: waiting until it is released: %s", who, o.what)
				said, when = o.what, v.Now()
			}
			return false, nil
		}}.Until(ctx, v.left())
	return v.end(err, o)
}

// outcome has the message for success, and for a timeout: a message, the last state and a command that shows more.
type outcome struct{ done, late, what, hint string }

func describing(name string) string { return "bcsnetctl pool describe " + name }

// end prints the success of a wait, or returns its error.
func (v *waiting) end(err error, o outcome) error {
	switch {
	case err == nil:
		v.Say.Done("%s", o.done)
		return nil
	case !errors.Is(err, follow.ErrTooLong):
		return err
	}
	f := &app.Failure{Code: app.ExitTimeout, Cause: err, Message: o.late + " after " + v.timeout.String()}
	if o.what != "" {
		f.Message += ": " + o.what
	}
	switch o.what {
	case waitsForFirstLook, waitsForSecondLook, follow.WaitsForController:
		return f.WithHint(resource.HintController)
	}
	return f.WithHint("look closer: %s", o.hint)
}

// forClaim waits for the claim NAMESPACE/NAME.
func (v *waiting) forClaim(ctx context.Context, arg string) error {
	key, err := (&resource.InNamespace{}).Key(arg)
	if err != nil {
		return err
	}
	api, err := resource.NewClaims(v.App)
	if err != nil {
		return err
	}
	c, err := api.Get(ctx, key)
	f, _ := errors.AsType[*app.Failure](err)
	what := "claim " + key.String()
	hint := "bcsnetctl claim describe " + key.String()
	switch {
	case v.goal.word == goalDeleted && f != nil && f.Reason == ipam.ReasonClaimNotFound:
		v.Say.Done("there is no %s", what)
		return nil
	case err != nil:
		return err
	case v.goal.word == goalDeleted:
		how, err := follow.UntilClaimGone(ctx, api, c, v.left())
		return v.end(err, outcome{done: what + " is deleted", late: what + " is not deleted", what: how, hint: hint})
	case v.goal.word == goalReleased:
		return v.forRelease(ctx, what, resource.LeaseQuery{Claim: c.FullName()},
			"bcsnetctl lease list --claim "+c.FullName())
	}
	return forCondition(ctx, v, conditioned[resource.Claim]{
		what: what, api: api.API.Namespace(c.Namespace), name: c.Name, key: c.FullName(), uid: c.UID,
		read: resource.ReadClaim, state: stateOfClaim,
		object: func(c resource.Claim) metav1.Object { return c.BCSNetIPClaim }, gone: ipam.ReasonClaimNotFound,
		deleting: ipam.ReasonClaimConflict, hint: hint,
	})
}
