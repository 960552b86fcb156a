package cli

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
)

// leaseQuery says which addresses to show.
type leaseQuery struct {
	selectors
	pool, host, status, namespace, pod, claim string
	allNamespaces                             bool
	// rests knows which of the addresses rest; nil where nobody wants to know.
	rests *rests
}

// addTo adds the flags that every list of addresses has.
func (q *leaseQuery) addTo(s *app.App, cmd *cobra.Command) {
	cmd.Flags().StringVar(&q.pool, "pool", "", "only addresses of this `POOL`")
	cmd.Flags().StringVar(&q.host, "host", "", "only addresses in use on this `HOST`, an IP")
	cmd.Flags().StringVarP(&q.namespace, "namespace", "n", "", "only addresses of pods in this `NAMESPACE`")
	cmd.Flags().BoolVarP(&q.allNamespaces, "all-namespaces", "A", false, "addresses of all namespaces, the default")
	cmd.Flags().StringVar(&q.claim, "claim", "", "only addresses of this `CLAIM`, as NAMESPACE/NAME")
	q.addFields(cmd, "addresses", "status.podName=web-0")
	q.addLabels(cmd, "addresses")
	app.CompleteWith(cmd, "pool", completePools(s))
	app.CompleteWith(cmd, "host", completeHosts(s))
	app.CompleteWith(cmd, "namespace", completeNamespaces(s))
	app.CompleteWith(cmd, "claim", completeClaimNames(s))
}

// validate checks the values and gives them the spelling of the objects.
func (q *leaseQuery) validate() error {
	if q.host != "" {
		a, err := ipaddr.ParseAddr(q.host)
		if err != nil {
			return app.Usagef("--host: %v", err)
		}
		q.host = a.String()
	}
	if q.status != "" {
		states := []ipam.State{ipam.Available, ipam.Active, ipam.Reserved}
		i := slices.IndexFunc(states, func(s ipam.State) bool { return strings.EqualFold(s.String(), q.status) })
		if i < 0 {
			return app.Usagef("--status %q is not Available, Active or Reserved", q.status)
		}
		q.status = states[i].String()
	}
	if q.allNamespaces {
		q.namespace = ""
	}
	if namespace, pod, both := strings.Cut(q.pod, "/"); both {
		if q.namespace != "" && q.namespace != namespace {
			return app.Usagef("--pod %s is not in --namespace %s", q.pod, q.namespace)
		}
		q.namespace, q.pod = namespace, pod
	}
	return q.selectors.validate()
}

// terms are the conditions in the order of the flags: the field, and how it is called in a sentence.
func (q *leaseQuery) terms() (out []struct{ field, noun, value string }) {
	for _, t := range []struct{ field, noun, value string }{
		{"spec.pool", "pool", q.pool}, {"status.host", "host", q.host}, {"status.status", "status", q.status},
		{"status.podNamespace", "namespace", q.namespace}, {"status.podName", "pod", q.pod},
		{"status.claim", "claim", q.claim},
	} {
		if t.value != "" {
			out = append(out, t)
		}
	}
	return out
}

// selector is the query for the API server.
func (q *leaseQuery) selector() string {
	var all []string
	for _, t := range q.terms() {
		all = append(all, fields.OneTermEqualSelector(t.field, t.value).String())
	}
	if q.fields != "" {
		all = append(all, q.fields)
	}
	return strings.Join(all, ",")
}

// empty says where was looked when nothing was found. A pool that does not exist is an error.
func (q *leaseQuery) empty(ctx context.Context, s *app.App, noun string) error {
	if q.pool != "" {
		api, err := newPools(s)
		if err != nil {
			return err
		}
		if _, err := api.get(ctx, q.pool); err != nil {
			return err
		}
	}
	var with []string
	for _, t := range q.terms() {
		if t.field != "status.status" || noun != "leases" {
			with = append(with, t.noun+" "+t.value)
		}
	}
	s.Say.Note("no %s in %s", withWords(noun, append(with, q.words()...)), s.Where())
	return nil
}
