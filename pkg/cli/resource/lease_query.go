package resource

import (
	"context"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/printer"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// LeaseQuery selects addresses.
type LeaseQuery struct {
	Selectors
	Pool, Host, Status, Namespace, Pod, Claim string
	allNamespaces                             bool
	// OnlyOutdated selects only leases that are outdated.
	OnlyOutdated bool
	outdated     *Outdated
	// Word is a status that only lists show, not objects; empty means any.
	Word string
	// Statuses has the statuses that depend on pools; nil if they are not needed.
	Statuses *Statuses
}

// AddTo adds the flags of all lists of addresses.
func (q *LeaseQuery) AddTo(s *app.App, cmd *cobra.Command) {
	cmd.Flags().StringVar(&q.Pool, "pool", "", "only addresses of this `POOL`")
	cmd.Flags().StringVar(&q.Host, "host", "", "only addresses in use on this `HOST`, an IP")
	cmd.Flags().StringVarP(&q.Namespace, "namespace", "n", "", "only addresses of pods in this `NAMESPACE`")
	cmd.Flags().BoolVarP(&q.allNamespaces, "all-namespaces", "A", false, "addresses of all namespaces, the default")
	cmd.Flags().StringVar(&q.Claim, "claim", "", "only addresses of this `CLAIM`, as NAMESPACE/NAME")
	cmd.Flags().BoolVar(&q.OnlyOutdated, "outdated", false,
		"only addresses whose pods run with another gateway, VLAN or MTU, or other routes or DNS, than their pool "+
			"has now")
	q.AddFields(cmd, "addresses", "status.podName=web-0")
	q.AddLabels(cmd, "addresses")
	app.CompleteWith(cmd, "pool", CompletePools(s))
	app.CompleteWith(cmd, "host", CompleteHosts(s))
	app.CompleteWith(cmd, "namespace", CompleteNamespaces(s))
	app.CompleteWith(cmd, "claim", completeClaimNames(s))
}

// Validate checks the values and normalizes them to the form in objects.
func (q *LeaseQuery) Validate() error {
	if q.Host != "" {
		a, err := ipaddr.ParseAddr(q.Host)
		if err != nil {
			return app.Usagef("--host: %v", err)
		}
		q.Host = a.String()
	}
	if q.Status != "" {
		if err := q.setStatus(q.Status); err != nil {
			return err
		}
	}
	if q.allNamespaces {
		q.Namespace = ""
	}
	if namespace, pod, both := strings.Cut(q.Pod, "/"); both {
		if q.Namespace != "" && q.Namespace != namespace {
			return app.Usagef("--pod %s is not in --namespace %s", q.Pod, q.Namespace)
		}
		q.Namespace, q.Pod = namespace, pod
	}
	return q.Selectors.Validate()
}

// ReadOutdated reads the pools if the query selects outdated leases. It returns the columns of the list, and a function
// to call at the end, which prints how many leases have settings of unknown age.
func (q *LeaseQuery) ReadOutdated(ctx context.Context, s *app.App, columns []printer.Column[lease.Lease]) (
	all []printer.Column[lease.Lease], remark func(), err error,
) {
	if q.OnlyOutdated {
		if q.outdated, err = NewOutdated(ctx, s); err != nil {
			return nil, nil, err
		}
	}
	return q.outdated.in(columns), func() { q.outdated.Remark(s) }, nil
}

// leavesOut reports whether the query selects outdated leases and the lease is not outdated.
func (q *LeaseQuery) leavesOut(l lease.Lease) bool { return q.outdated != nil && !q.outdated.add(l) }

// terms lists the conditions in the order of the flags, each with its field and its noun for messages.
func (q *LeaseQuery) terms() (out []struct{ field, noun, value string }) {
	for _, t := range []struct{ field, noun, value string }{
		{"spec.pool", "pool", q.Pool}, {"status.host", "host", q.Host}, {"status.status", "status", q.Status},
		{"status.podNamespace", "namespace", q.Namespace}, {"status.podName", "pod", q.Pod},
		{"status.claim", "claim", q.Claim},
	} {
		if t.value != "" {
			out = append(out, t)
		}
	}
	return out
}

// byHolder reports whether the query must also search second attachments, because it selects holders. The API server's
// selectors match only the first attachment of an address.
func (q *LeaseQuery) byHolder() bool {
	return (q.Host != "" || q.Pod != "") && (q.Fields == "" || q.Fields == TakenOnly().Fields)
}

// finds reports whether the query selects a lease as seen from one attachment.
func (q *LeaseQuery) finds(l lease.Lease) bool {
	for _, t := range q.terms() {
		has := map[string]string{
			"spec.pool": l.Pool, "status.host": AddrText(l.Host), "status.status": l.State.String(),
			"status.podNamespace": l.Namespace, "status.podName": l.PodName, "status.claim": l.Claim,
		}
		if has[t.field] != t.value {
			return false
		}
	}
	return true
}

// Selector returns the field selector for the API server.
func (q *LeaseQuery) Selector() string {
	var all []string
	for _, t := range q.terms() {
		all = append(all, fields.OneTermEqualSelector(t.field, t.value).String())
	}
	all = append(all, q.ofWord()...)
	if q.Fields != "" {
		all = append(all, q.Fields)
	}
	return strings.Join(all, ",")
}

// Empty prints where the command looked if it found nothing. It fails if the pool does not exist.
func (q *LeaseQuery) Empty(ctx context.Context, s *app.App, noun string) error {
	if q.Pool != "" {
		if _, err := OnePool(ctx, s, q.Pool); err != nil {
			return err
		}
	}
	var with []string
	for _, t := range q.terms() {
		if t.field != "status.status" || noun != "leases" {
			with = append(with, t.noun+" "+t.value)
		}
	}
	if q.OnlyOutdated {
		with = append(with, "outdated settings")
	}
	if q.Word != "" {
		with = append(with, "status "+q.Word)
	}
	s.Say.Note("no %s in %s", WithWords(noun, append(with, q.Words()...)), s.Where())
	return nil
}
