package cli

import (
	"context"
	"errors"
	"net/netip"
	"time"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// sayEvery is how often the count of what is waited for is said, at most.
const sayEvery = 2 * time.Second

func (v *waiting) forCondition(ctx context.Context, api *pools, p pool) error {
	what, said := "", ""
	err := followed[pool]{session: v.session, api: api.api, fields: named(p.Name), read: readPool, see: func(set map[string]pool) (bool, error) {
		now, exists := set[p.Name]
		if !exists || now.UID != p.UID {
			return false, refuse(reasonPoolNotFound, "pool %s was deleted before it was %s", p.Name, v.goal.word)
		}
		if v.goal.condition == v1.ConditionReady && v.goal.want && now.DeletionTimestamp != nil {
			return false, refuse(reasonPoolTerminating, "pool %s is being deleted and will not be ready again", p.Name)
		}
		ok, how := v.goal.met(now.BCSNetPool)
		if what = how; what != said && !ok {
			v.say.wait("pool %s: waiting until it is %s: %s", p.Name, v.goal.word, v.called(what))
			said = what
		}
		return ok, nil
	}}.until(ctx, v.left())
	return v.end(err, outcome{
		done: "pool " + p.Name + " is " + v.goal.word, late: "pool " + p.Name + " is " + v.goal.unmet,
		what: what, hint: describing(p.Name),
	})
}

// forRelease follows the addresses in use themselves: no controller is needed to count them.
func (v *waiting) forRelease(ctx context.Context, p pool) error {
	query := leaseQuery{pool: p.Name, status: ipam.Active.String()}
	return v.forFree(ctx, query.selector(), "pool "+p.Name, inUse, outcome{
		done: "no address of pool " + p.Name + " is in use", late: "pool " + p.Name + " is not released",
		hint: "bcsnetctl lease list --pool " + p.Name,
	})
}

func (v *waiting) forAddress(ctx context.Context, a netip.Addr) error {
	name := ipam.ObjectName(a)
	selector := named(name) + ",status.status!=" + ipam.Available.String()
	return v.forFree(ctx, selector, "address "+a.String(), func(set map[string]ipam.Lease) string { return holding(set[name]) }, outcome{
		done: "address " + a.String() + " is free", late: "address " + a.String() + " is not free",
		hint: "bcsnetctl ip describe " + a.String(),
	})
}

// forFree waits until no address is left of those that a selector matches.
func (v *waiting) forFree(ctx context.Context, selector, who string, how func(map[string]ipam.Lease) string, o outcome) error {
	c, err := v.dynamic()
	if err != nil {
		return err
	}
	said, when := "", time.Time{}
	err = followed[ipam.Lease]{session: v.session, api: c.Resource(resource(v1.IPResource)), fields: selector, read: readLease, see: func(set map[string]ipam.Lease) (bool, error) {
		if len(set) == 0 {
			return true, nil
		}
		if o.what = how(set); o.what != said && v.now().Sub(when) >= sayEvery {
			v.say.wait("%s: waiting until it is released: %s", who, o.what)
			said, when = o.what, v.now()
		}
		return false, nil
	}}.until(ctx, v.left())
	return v.end(err, o)
}

// outcome is what to say at the end of the waiting for one thing: when it is so, and when it is not in
// time, with the state that it is in and the command that shows more.
type outcome struct{ done, late, what, hint string }

func describing(name string) string { return "bcsnetctl pool describe " + name }

// end says how the waiting for one thing ended.
func (v *waiting) end(err error, o outcome) error {
	switch {
	case err == nil:
		v.say.done("%s", o.done)
		return nil
	case !errors.Is(err, errTooLong):
		return err
	}
	f := &failure{code: exitTimeout, cause: err, message: o.late + " after " + v.timeout.String()}
	if o.what != "" {
		f.message += ": " + o.what
	}
	switch o.what {
	case waitsForFirstLook, waitsForSecondLook, waitsForController:
		return f.withHint(hintController)
	}
	return f.withHint("look closer: %s", o.hint)
}
