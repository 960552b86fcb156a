package pool

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/cli/terminal"
	"github.com/bcsnet/bcsnet/pkg/importer/backup"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// moveStep is a part of a move: its reason and its commands.
type moveStep struct {
	why      string
	commands []string
}

// script formats steps as a shell script that ends at the first failing command.
func script(steps []moveStep) string {
	var b strings.Builder
	b.WriteString("set -e\n")
	for _, s := range steps {
		b.WriteString("\n")
		for line := range strings.SplitSeq(s.why, "\n") {
			b.WriteString("# " + line + "\n")
		}
		for _, c := range s.commands {
			b.WriteString(c + "\n")
		}
	}
	return b.String()
}

// steps returns the steps of a move. to has no object if it must be created.
func (v *poolMove) steps(from, to resource.Pool, reserved []lease.Lease, claims []string) ([]moveStep, error) {
	moving, err := v.moving(from)
	if err != nil {
		return nil, err
	}
	if len(moving) == 0 {
		return nil, app.Refuse(app.ReasonPoolInvalid, "pool %s has no addresses to move", from.Name)
	}
	give := v.create
	if v.into {
		give = v.extend
	}
	steps, err := give(from, to, moving)
	if err != nil {
		return nil, err
	}
	steps = append(steps, moveStep{
		fmt.Sprintf("From here on, the addresses belong to pool %s.", v.to),
		[]string{fmt.Sprintf("bcsnetctl pool remove-ip %s %s", v.from, strings.Join(moving, " "))},
	})
	if len(claims) > 0 && len(v.part) == 0 {
		s := moveStep{why: "Claims name pool " + v.from + "."}
		for _, name := range claims {
			ns, name, _ := strings.Cut(name, "/")
			s.commands = append(s.commands, fmt.Sprintf("kubectl patch bnc -n %s %s --type=merge -p %s", ns, name,
				quoted(`{"spec":{"pool":"`+v.to+`"}}`)))
		}
		steps = append(steps, s)
	}
	if len(v.part) > 0 {
		return steps, nil
	}
	if len(reserved) > 0 {
		steps = append(steps, reservedAgain(reserved))
	}
	return append(steps, moveStep{
		fmt.Sprintf("Pool %s stops allocating. It is deleted when its pods and claims have returned their addresses.\n"+
			"Change annotations of pods and workloads that name it.", v.from),
		[]string{fmt.Sprintf("bcsnetctl pool delete %s --yes --wait=false", v.from)},
	}), nil
}

// create creates a pool like from, with the moving addresses.
func (v *poolMove) create(from, _ resource.Pool, moving []string) ([]moveStep, error) {
	o := backup.Kept(from.Stored.DeepCopy())
	o.SetName(v.to)
	if err := unstructured.SetNestedSlice(o.Object, resource.Values(moving), "spec", "availableIPs"); err != nil {
		return nil, err
	}
	text, err := yaml.Marshal(o.Object)
	if err != nil {
		return nil, err
	}
	return []moveStep{{
		fmt.Sprintf("Pool %s is like pool %s. While both have the addresses, pool %s allocates them.", v.to, v.from,
			v.from),
		[]string{"kubectl create -f - <<'EOF'\n" + string(text) + "EOF"},
	}}, nil
}

// extend adds the addresses to an existing pool.
func (v *poolMove) extend(from, to resource.Pool, moving []string) ([]moveStep, error) {
	if of, is := resource.CidrOf(from.BCSNetPool), resource.CidrOf(to.BCSNetPool); of != is {
		return nil, app.Refuse(app.ReasonAddressNotInSubnet,
			"pool %s is in the subnet %s, and pool %s in %s: a pool has one", v.from, of, v.to, is).
			WithHint("pools of several subnets are one network if they name it: bcsnetctl pool tree shows networks")
	}
	set := ipaddr.Subtract(resource.SetOfEntries(moving), resource.SetOfEntries(from.Spec.ExcludeIPs))
	if lost := ipaddr.Intersect(set, resource.SetOfEntries(to.Spec.ExcludeIPs)); len(lost.Ranges()) > 0 {
		return nil, app.Refuse(app.ReasonAddressNotUsable, "pool %s excludes %s (excludeIPs)", v.to,
			resource.Spell(lost)).
			WithHint("change excludeIPs first: bcsnetctl pool edit %s", v.to)
	}
	type operation struct {
		Op    string `json:"op"`
		Path  string `json:"path"`
		Value any    `json:"value"`
	}
	const path = "/spec/availableIPs"
	var patch []operation
	if len(to.Spec.AvailableIPs) == 0 {
		patch = append(patch, operation{"add", path, []string{}})
	}
	for _, r := range set.Ranges() {
		patch = append(patch, operation{"add", path + "/-", ipaddr.FormatRange(r)})
	}
	text, err := json.Marshal(patch)
	if err != nil {
		return nil, err
	}
	var steps []moveStep
	differ := resource.DiffersIn(from, to)
	fields := slices.DeleteFunc(strings.Fields(comparedFields), func(f string) bool { return !differ(f) })
	if len(fields) > 0 {
		why := fmt.Sprintf("The pools differ in %s. Before you go on, see whether pool %s serves the pods of pool %s.",
			humanize.List(fields), v.to, v.from)
		steps = append(steps, moveStep{why: why})
	}
	return append(steps, moveStep{
		"While both pools have the addresses, the one with the leases allocates them.",
		[]string{fmt.Sprintf("kubectl patch bnp %s --type=json -p %s", v.to, quoted(string(text)))},
	}), nil
}

// comparedFields are the fields of a pool that decide who gets its addresses and with which settings.
const comparedFields = "gateway hosts hostSubnets hostSelector namespaces namespaceSelector default network priority " +
	"maxPerHost maxPerNamespace quotas vlan mtu routes dns cooldown cordoned"

// reservedAgain returns the step that repeats reservations in the pool that keeps the addresses, because a pool's
// reservations end when it is deleted.
func reservedAgain(reserved []lease.Lease) moveStep {
	addrs := map[string][]netip.Addr{}
	var reasons []string
	for _, l := range reserved {
		reason := l.Reservation().Reason
		if addrs[reason] == nil {
			reasons = append(reasons, reason)
		}
		addrs[reason] = append(addrs[reason], l.Addr)
	}
	s := moveStep{why: "What is set aside stays so: the reservations of a pool end with it."}
	for _, reason := range reasons {
		list := strings.ReplaceAll(ipaddr.FormatSet(ipaddr.SetOfAddrs(addrs[reason]...)), ", ", " ")
		again := "bcsnetctl ip reserve " + list
		if reason != "" {
			again += " --reason " + quoted(terminal.Visible(reason))
		}
		s.commands = append(s.commands, "bcsnetctl ip unreserve "+list, again)
	}
	return s
}

// quoted returns a text as one word of a shell.
func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
