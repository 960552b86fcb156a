package doctor

import (
	"fmt"
	"time"

	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
)

const (
	fixInstall    = "bcsnetctl install --crds-only"
	fixController = "kubectl -n " + ControllerNamespace + " get pods"
	fixLeader     = "kubectl -n " + ControllerNamespace + " logs -l app.kubernetes.io/name=" + ControllerName
)

func crdsMissing(f *facts) (out []Finding) {
	for _, c := range f.CRDs {
		if c.Missing {
			out = append(out, Finding{Object: Object{"crd", c.Name}, Cause: "the cluster does not have it",
				Fix: fixInstall})
		}
	}
	return out
}

func crdsNotServed(f *facts) (out []Finding) {
	for _, c := range f.CRDs {
		if c.NotServed != "" {
			out = append(out, Finding{
				Object: Object{"crd", c.Name}, Cause: c.NotServed,
				Fix: "kubectl get crd " + c.Name + ".networkextension.bkbcs.tencent.com -o yaml",
			})
		}
	}
	return out
}

func crdsOutdated(f *facts) (out []Finding) {
	for _, c := range f.CRDs {
		if c.Difference != "" {
			out = append(out, Finding{
				Object: Object{"crd", c.Name}, Fix: fixInstall,
				Cause: fmt.Sprintf("it is not of this release: %s", c.Difference),
			})
		}
	}
	return out
}

func onController(cause, fix string) []Finding {
	return []Finding{{Object: Object{"lease", ControllerNamespace + "/" + ControllerName}, Cause: cause, Fix: fix}}
}

// Leads reports whether some replica leads: a leader renews its Lease several times in its term.
func (c Controller) Leads(now time.Time) bool {
	return c.Leader != "" && now.Sub(c.Renewed) <= 2*c.Term
}

func noController(f *facts) []Finding {
	c := f.Controller
	switch {
	case c.Ready > 0 || c.Leads(f.Now):
		return nil
	case c.Pods > 0:
		return onController(fmt.Sprintf("%s of the controller in namespace %s, none ready", humanize.Plural(c.Pods,
			"pod"),
			ControllerNamespace), fixController)
	case c.Leader != "":
		return onController(fmt.Sprintf("no pod of the controller in namespace %s, and %s, the last leader, was last "+
			"heard of %s ago", ControllerNamespace, c.Leader, ago(c.Renewed, f.Now)), fixController)
	default:
		return onController("no pod of the controller in namespace "+ControllerNamespace+", and nobody leads",
			fixController)
	}
}

func noLeader(f *facts) []Finding {
	if c := f.Controller; c.Ready > 0 && c.Leader == "" {
		return onController(fmt.Sprintf("%s %s ready, but nobody leads", humanize.Plural(c.Ready, "controller"),
			humanize.OneOr(c.Ready, "is", "are")), fixLeader)
	}
	return nil
}

func leaderStale(f *facts) []Finding {
	if c := f.Controller; c.Ready > 0 && c.Leader != "" && !c.Leads(f.Now) {
		return onController(fmt.Sprintf("%s leads by the Lease, but was last heard of %s ago", c.Leader,
			ago(c.Renewed, f.Now)), fixLeader)
	}
	return nil
}
