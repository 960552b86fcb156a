package wait

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/follow"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
)

type waiting struct {
	*app.App
	until   string
	timeout time.Duration
	// left returns the remaining time.
	left  func() time.Duration
	goal  goal
	pools []string
	addrs []netip.Addr
	// typed are all arguments.
	typed []string
	// claims are names of the form NAMESPACE/NAME.
	claims []string
}

// New returns the command wait.
func New(s *app.App) *cobra.Command {
	v := &waiting{App: s}
	cmd := &cobra.Command{
		Use: "wait POOL|ADDRESS|NAMESPACE/CLAIM...", GroupID: "objects", Args: app.Takes(1, 0), RunE: app.Runs(v),
		Short: "Wait until pools or claims are ready, or addresses are free",
		Long: `Wait until pools, claims or addresses are as --for says, for use in scripts. The
command watches the objects; what it waits for goes to standard error. The exit
code is 124 when the time is over, with the reason. A claim is written
NAMESPACE/NAME.

--for:
  ready            hosts can draw addresses from the pool; pods from the claim
  exhausted=false  addresses of the pool are free; also exhausted
  draining=false   no address in use is outside the pool; also draining
  overlap=false    the pool shares no address with another; also overlap
  preallocated     the claim has all addresses that it takes before pods ask
  conflict=false   nothing is in the way of the claim; also conflict
  overlimit=false  the claim has no more addresses than it may; also overlimit
  released         no address of the pool or claim is in use; an ADDRESS is
                   free, that is, neither in use nor reserved
  deleted          the pool or claim is gone, or never was`,
		Example: `  bcsnetctl wait blue --for=ready
  bcsnetctl wait blue green --for=exhausted=false --timeout=1h
  bcsnetctl wait shop/partners --for=preallocated
  bcsnetctl wait 10.1.0.20 --for=released --timeout=30s`,
		ValidArgsFunction: resource.CompletePools(s),
	}
	cmd.Flags().StringVar(&v.until, "for", "", "wait for this `STATE`")
	cmd.Flags().DurationVar(&v.timeout, "timeout", 5*time.Minute, "how long to wait; 0 is for ever")
	app.Complete(cmd, "for", goals()...)
	return cmd
}

func (v *waiting) Complete(args []string) error {
	v.typed = args
	for _, arg := range args {
		if a, err := ipaddr.ParseAddr(resource.AddressWord(arg)); err == nil {
			v.addrs = append(v.addrs, a)
			continue
		}
		if strings.Contains(arg, "/") {
			v.claims = append(v.claims, arg)
			continue
		}
		v.pools = append(v.pools, arg)
	}
	return nil
}

func (v *waiting) Validate() (err error) {
	if v.goal, err = parseGoal(v.until); err != nil {
		return err
	}
	if len(v.addrs) > 0 && v.goal.word != goalReleased {
		return app.Usagef("%s is an address: only --for=released can wait for it", v.addrs[0])
	}
	if len(v.pools) > 0 {
		if err := v.goal.applies("pool "+v.pools[0], poolConditions()); err != nil {
			return err
		}
	}
	if len(v.claims) > 0 {
		if err := v.goal.applies("claim "+v.claims[0], claimConditions()); err != nil {
			return err
		}
	}
	if v.timeout < 0 {
		return app.Usagef("--timeout %s is negative", v.timeout)
	}
	return nil
}

func (v *waiting) Run(ctx context.Context) error {
	if err := resource.FitLengths(ctx, v.App, v.typed); err != nil {
		return err
	}
	api, err := resource.NewPools(v.App)
	if err != nil {
		return err
	}
	v.left = follow.Remaining(v.App, v.timeout)
	var failed app.Several
	for _, name := range v.pools {
		if err := v.forPool(ctx, api, name); err != nil {
			failed = append(failed, err)
		}
	}
	for _, name := range v.claims {
		if err := v.forClaim(ctx, name); err != nil {
			failed = append(failed, err)
		}
	}
	for _, a := range v.addrs {
		if err := v.forAddress(ctx, a); err != nil {
			failed = append(failed, err)
		}
	}
	return failed.OrNil()
}

func (v *waiting) forPool(ctx context.Context, api *resource.Pools, name string) error {
	p, err := api.Get(ctx, name)
	f, _ := errors.AsType[*app.Failure](err)
	switch {
	case v.goal.word == goalDeleted && f != nil && f.Reason == app.ReasonPoolNotFound:
		v.Say.Done("there is no pool %s", name)
		return nil
	case err != nil:
		return err
	case v.goal.word == goalDeleted:
		what, err := follow.UntilPoolGone(ctx, api, p, v.left())
		return v.end(err, outcome{
			done: "pool " + name + " is deleted", late: "pool " + name + " is not deleted", what: what,
			hint: describing(name),
		})
	case v.goal.word == goalReleased:
		return v.forRelease(ctx, "pool "+p.Name, resource.LeaseQuery{Pool: p.Name},
			"bcsnetctl lease list --pool "+p.Name)
	default:
		return forCondition(ctx, v, conditioned[resource.Pool]{
			what: "pool " + p.Name, api: api.API, name: p.Name, key: p.Name, uid: p.UID, read: resource.ReadPool,
			state:  stateOfPool,
			object: func(p resource.Pool) metav1.Object { return p.BCSNetPool }, gone: app.ReasonPoolNotFound,
			deleting: app.ReasonPoolTerminating, hint: describing(p.Name),
		})
	}
}
