package allocator

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// staysTest is a case of TestWhoStays: leases in use of one attachment in the notation
// ADDRESS@BOUND[<VERSION] NETWORK SETSIZE CONTAINER [MORE...], such as "4a@1 blue 1 c". The address begins with its
// family. One whose version is lower than the one it was bound with was written again after the store had been put
// back. A container "-" is none, "vm:c" one of an owner, who asked without any for "vm". Of the letters the later one
// asked later, by a second each. MORE is a slot, the pod's name "p=q" or UID "u=v", "named" for a request that named
// the UID, or "after=b" for a container whose place the lease's container took.
type staysTest struct {
	of string
	// asks is the ADD for pod p and UID u, if there is one; del is a DEL that came before.
	asks, del asked
	// live is the pod's UID at the API server, if it is not u.
	live string
	// new is what the ADD got, and of are leases of its key then.
	new string
	// want are the addresses that are answered, those that are released, and those that are left alone; or why the ADD
	// is refused.
	want string
}

// asked is a request of a container at a second of its node's clock; no container is no request.
type asked struct {
	container string
	at        int
	// node is the last byte of its address; a DEL of node 0 is from a caller for all nodes.
	node byte
	// owner instead of the pod. named means that the request names the UID.
	owner string
	named bool
}

// Who stays of two: by container, age, node, pod, network and family, by what was answered, after a restore of the
// store, and beside the tombstone of a DEL. Every order of the leases has the same result.
func TestWhoStays(t *testing.T) {
	c, d := asked{container: "c"}, asked{container: "d", at: 1}
	for what, test := range map[string]staysTest{
		"one":    {of: "4a@1 blue 1 c", want: "4a"},
		"a pair": {of: "4a@1 blue 2 c, 6a@2 blue 2 c", want: "4a 6a"},
		"a pair, one pool of it is in another network now": {of: "4a@1 blue 2 c, 6a@2 green 2 c", want: "4a 6a"},
		"half a pair":                            {of: "4a@1 blue 2 c", want: "4a"},
		"a pair that moves to a newer container": {of: "4a@9 blue 2 d, 6a@2 blue 2 c", want: "4a 6a"},
		"two of one family":                      {of: "4a@1 blue 1 c, 4b@2 blue 1 c", want: "4a | 4b"},
		"two of one family, the newer container": {of: "4a@1 blue 1 c, 4b@2 blue 1 d", want: "4b | 4a"},
		"two networks, IPv6 first":               {of: "6a@1 green 1 c, 4a@2 blue 1 c", want: "6a | 4a"},
		"two networks, IPv4 first":               {of: "4a@1 blue 1 c, 6a@2 green 1 c", want: "4a | 6a"},
		"two networks, the newer container":      {of: "4a@1 blue 1 c, 6a@2 green 1 d", want: "6a | 4a"},
		"one and a pair":                         {of: "4a@2 blue 1 c, 4b@1 green 2 c, 6b@3 green 2 c", want: "4a | 4b 6b"},
		"a pair and one":                         {of: "4a@3 blue 1 c, 4b@1 green 2 c, 6b@2 green 2 c", want: "4b 6b | 4a"},
		"one and half a pair":                    {of: "6a@2 blue 1 c, 4b@1 green 2 c", want: "6a | 4b"},
		"two pairs":                              {of: "4a@1 blue 2 c, 4b@2 green 2 c, 6b@3 green 2 c, 6a@4 blue 2 c", want: "4b 6b | 4a 6a"},
		"two pairs, crossed":                     {of: "4a@1 blue 2 c, 6b@2 green 2 c, 6a@3 blue 2 c, 4b@4 green 2 c", want: "4a 6a | 4b 6b"},
		"a pair and half":                        {of: "4a@1 blue 2 c, 4b@2 green 2 c, 6b@3 green 2 c", want: "4b 6b | 4a"},
		"two halves of a pair":                   {of: "4a@1 blue 2 c, 4b@2 green 2 c", want: "4a |  | 4b"},
		"two pairs of one network":               {of: "4a@1 blue 2 c, 4b@2 blue 2 c, 6b@3 blue 2 c, 6a@4 blue 2 c", want: "4a 6b | 4b 6a"},
		"ranges of two networks":                 {of: "4a@1 blue 2 c, 4b@2 green 2 c 1, 4c@3 blue 2 c, 4d@4 blue 2 c 1", want: "4a 4b | 4c 4d"},
		"ranges, half of the first":              {of: "4a@1 blue 2 c, 4c@3 blue 2 c, 4d@4 green 2 c 1", want: "4a 4d | 4c"},
		"put back":                               {of: "4a@9<3 blue 1 c, 4b@2 blue 1 c", want: "4a | 4b"},
		"both put back":                          {of: "4a@9<3 blue 1 c, 4b@8<4 blue 1 c", want: "4b | 4a"},
		"put back, the newer container":          {of: "4a@9<3 blue 1 c, 4b@2 blue 1 d", want: "4b | 4a"},
		"a pair put back":                        {of: "4a@8<2 blue 2 c, 6a@9<3 blue 2 c, 4b@4 green 2 c, 6b@5 green 2 c", want: "4a 6a | 4b 6b"},
		"put back, and made again":               {of: "4a@9<3 blue 1 c, 4b@2 blue 1 -", want: "4a | 4b"},
		"made again from the pod's report":       {of: "4a@1 blue 1 c, 6a@2 green 1 -", want: "4a 6a"},
		"made again, both":                       {of: "4a@1 blue 1 -, 6a@2 green 1 -", want: "4a 6a"},
		"made again beside a container's":        {of: "4a@1 blue 1 c, 4b@2 blue 1 -", want: "4a | 4b"},
		"made again before a container's":        {of: "4a@2 blue 1 c, 4b@1 blue 1 -", want: "4b | 4a"},
		"made again by an earlier release":       {of: "4a@1 blue 2 c, 6a@2 blue 0 c", want: "4a 6a"},
		"made again by it, and moved":            {of: "4a@3 blue 2 d, 6a@2 blue 0 c", want: "4a 6a"},
		"made again by it, both":                 {of: "4a@1 blue 0 c, 6a@2 blue 0 c", want: "4a 6a"},
		"made again by it, beside another":       {of: "4a@1 blue 2 c, 6a@2 blue 0 c, 4b@3 green 1 c", want: "4a 6a | 4b"},
		"made again by it, beside an earlier":    {of: "4a@2 blue 2 c, 6a@3 blue 0 c, 4b@1 green 1 c", want: "4b | 4a 6a"},
		"one and a pair of one network":          {of: "4a@1 blue 1 c, 4b@2 blue 2 c, 6b@3 blue 2 c", want: "4a | 4b 6b"},
		"two of no network":                      {of: "4a@1 - 1 c, 6a@2 - 1 c", want: "4a | 6a"},
		"made again, and a pair and one":         {of: "4a@1 blue 1 c, 6a@2 green 1 -, 4b@3 blue 1 c", want: "4a 6a | 4b"},
		"of an owner, and a container of his":    {of: "4a@1 blue 1 vm, 4b@2 blue 1 vm:c", want: "4a | 4b"},
		"of an owner, a container of his first":  {of: "4a@2 blue 1 vm, 4b@1 blue 1 vm:c", want: "4b | 4a"},
		"of an owner, and two containers of his": {of: "4a@1 blue 1 vm:c, 4b@2 blue 1 vm, 4c@3 blue 1 vm:d", want: "4b | 4a 4c"},
		"of an owner, after two containers":      {of: "4a@1 blue 1 vm:c, 4b@3 blue 1 vm, 4c@2 blue 1 vm:d", want: "4c | 4a 4b"},
		"two containers of an owner":             {of: "4a@1 blue 1 vm:c, 4b@2 blue 1 vm:d", want: "4b | 4a"},
		"two networks of an owner":               {of: "6a@1 green 1 vm:c, 4a@2 blue 1 vm", want: "6a | 4a"},
		"a pair of an owner, and one":            {of: "4a@3 blue 1 vm:c, 4b@1 green 2 vm, 6b@2 green 2 vm", want: "4b 6b | 4a"},

		"the same container again":                 {of: "4a@1 blue 1 c", asks: c, want: "4a"},
		"the next container":                       {of: "4a@1 blue 1 c", asks: d, want: "4a"},
		"an earlier container":                     {of: "4a@1 blue 1 d", asks: c, want: "superseded"},
		"an earlier container by a clock ahead":    {of: "4a@1 blue 1 d after=c", asks: asked{container: "c", at: 9}, want: "superseded"},
		"an earlier container, which has another":  {of: "4a@1 blue 1 c, 4b@2 blue 1 d", asks: c, want: "superseded"},
		"an owner without its container":           {of: "4a@1 blue 1 vm:c", asks: asked{owner: "vm", at: 9}, want: "4a"},
		"a container of another pod":               {of: "4a@1 blue 1 c p=q", asks: c, want: "refused"},
		"a container of another pod, of no name":   {of: "4a@1 blue 1 c p=", asks: c, want: "4a"},
		"a container of an owner":                  {of: "4a@1 blue 1 vm:c", asks: c, want: "refused"},
		"another container of another pod":         {of: "4a@1 blue 1 d p=q", asks: asked{container: "e", at: 2}, want: "4a"},
		"a container by an older UID":              {of: "4a@1 blue 1 c u=old", asks: c, want: "4a"},
		"served by its UID, and the cache's":       {of: "4a@1 blue 1 c u=new, 4b@2 blue 1 d", asks: c, live: "new", want: "4a |  | 4b"},
		"served by an older UID, and its next one": {of: "4a@1 blue 1 c u=old, 4b@2 blue 1 d", asks: c, want: "superseded"},
		"an earlier pod's container runs on":       {of: "4a@1 blue 1 c u=old, 4b@2 blue 1 d", want: "4b |  | 4a"},
		"an earlier pod's, and the UID was named":  {of: "4a@1 blue 1 c u=old, 4b@2 blue 1 d named", want: "4b | 4a"},
		"two containers, and the pod is gone":      {of: "4a@1 blue 1 c, 4b@2 blue 1 d", live: "-", want: "4b |  | 4a"},

		"a report, and the container that asks":      {of: "4a@1 blue 1 c, 6a@2 green 1 -", asks: c, want: "4a |  | 6a"},
		"a report, and another container that asks":  {of: "4a@1 blue 1 c, 6a@2 green 1 -", asks: asked{container: "d", at: 61}, want: "4a 6a"},
		"a report of the other family, and the pair": {of: "4a@1 blue 2 c, 6a@2 blue 0 -", asks: asked{container: "c", at: 61}, want: "4a 6a"},
		"a report that came later":                   {of: "4a@1 blue 2 c, 6a@2 blue 0 -", asks: c, want: "superseded"},
		"a report alone":                             {of: "4a@1 blue 1 -", asks: asked{container: "c", at: 61}, want: "4a"},

		"a DEL that came first":               {of: "", asks: d, del: asked{container: "d"}, want: ""},
		"a DEL that began at once":            {of: "4a@1 blue 1 c", asks: c, del: c, want: "deleted 4a"},
		"a DEL that began later":              {of: "4a@1 blue 1 c", asks: c, del: asked{container: "c", at: 1}, want: "deleted 4a"},
		"a DEL that began later, held before": {of: "4a@1 blue 1 c", asks: asked{container: "c", at: 1}, del: asked{container: "c", at: 2}, want: "deleted"},
		"a DEL of another container":          {of: "4a@1 blue 1 c", asks: c, del: asked{container: "d", at: 1}, want: "4a"},
		"a DEL of its own node":               {of: "4a@1 blue 1 c", asks: c, del: asked{container: "c", at: 1, node: 1}, want: "deleted 4a"},
		"a DEL of another node":               {of: "4a@1 blue 1 c", asks: c, del: asked{container: "c", at: 1, node: 2}, want: "4a"},
		"a DEL of the owner":                  {of: "4a@1 blue 1 vm:c", asks: asked{container: "c", owner: "vm"}, del: asked{owner: "vm", at: 1}, want: "deleted 4a"},

		"a new pod of a key, first":             {of: "4a@2 blue 1 d p=q u=v", asks: c, new: "4b@1 blue 1 c", want: "4b"},
		"a new pod of a key, second":            {of: "4a@1 blue 1 d p=q u=v", asks: c, new: "4b@2 blue 1 c", want: "yields 4b"},
		"a new pod of a key, of another family": {of: "6a@1 blue 1 d p=q u=v", asks: c, new: "4b@2 blue 1 c", want: "4b"},
		"a new pod of a key, of another range":  {of: "4a@1 blue 1 d 1 p=q u=v", asks: c, new: "4b@2 blue 1 c", want: "4b"},
		"a new pod of a key, before a restore":  {of: "4a@1 blue 1 d p=q u=v", asks: c, new: "4b@9<3 blue 1 c", want: "4b"},
		"its own lease of a key":                {of: "4a@1 blue 1 c", asks: c, new: "4b@2 blue 1 c", want: "4b"},
	} {
		t.Run(what, func(t *testing.T) {
			networks, all := map[string]string{}, []lease.Lease{}
			for text := range strings.SplitSeq(test.of, ", ") {
				if text != "" {
					all = append(all, leaseFrom(t, text, networks))
				}
			}
			for range max(len(all), 1) { // whatever comes first
				if len(all) > 0 {
					all = append(all[1:], all[0])
				}
				if got := test.outcome(t, all, networks); got != test.want {
					t.Errorf("%q, want %q", got, test.want)
				}
			}
		})
	}
}

// outcome asks the rules in the order in which an ADD does.
func (c staysTest) outcome(t *testing.T, all []lease.Lease, networks map[string]string) string {
	t.Helper()
	network := func(pool string) string { return networks[pool] }
	r, h := c.asks.request(), lease.Holder{}
	if c.asks != (asked{}) {
		h = lease.Holder{
			Host: r.Host, ContainerID: r.ContainerID, IfName: r.IfName, Owner: r.Owner, StartedAt: r.StartedAt,
			UIDNamed: c.asks.named,
		}
		if r.Owner == "" {
			h.Namespace, h.PodName, h.PodUID = r.Namespace, r.PodName, "u"
		}
	}
	if c.del != (asked{}) && c.overtakes(h) {
		took := slices.DeleteFunc(slices.Clone(all), func(l lease.Lease) bool { return !r.tookItself(l) })
		return strings.TrimSpace("deleted " + shortNames(took))
	}
	if c.new != "" {
		mine := leaseFrom(t, c.new, networks)
		if slices.ContainsFunc(all, func(o lease.Lease) bool { return ofAnotherPod(h, o) && cameFirst(o, mine) }) {
			return "yields " + mine.Pool
		}
		return mine.Pool
	}
	for _, l := range all {
		if h.ContainerID != "" && l.ContainerID == h.ContainerID && !sameRequester(l.Holder, h) {
			return "refused"
		}
	}
	keep, surplus, err := rivalry{
		holder: h, network: network, caughtUp: func([]lease.Lease) error { return nil },
		liveUID: func(string, string) (string, error) { return strings.Trim(cmp.Or(c.live, "u"), "-"), nil },
	}.decide(all)
	if err != nil {
		t.Fatal(err)
	}
	keep = withoutReported(h, keep, network)
	if c.asks != (asked{}) && slices.ContainsFunc(keep, func(l lease.Lease) bool { return !r.isOf(l) && r.olderThan(l) }) {
		return "superseded"
	}
	alone := slices.DeleteFunc(slices.Clone(all), func(l lease.Lease) bool {
		return slices.ContainsFunc(slices.Concat(keep, surplus), func(o lease.Lease) bool { return o.Addr == l.Addr })
	})
	return strings.TrimRight(shortNames(keep)+" | "+shortNames(surplus)+" | "+shortNames(alone), "| ")
}

// request makes the ADD.
func (a asked) request() Request {
	r := Request{
		Host: netip.AddrFrom4([4]byte{10, 1, 0, 1}), ContainerID: a.container, IfName: "eth0", Owner: a.owner,
		StartedAt: epoch.Add(time.Duration(a.at) * time.Second),
	}
	if a.owner == "" {
		r.Namespace, r.PodName = "default", "p"
	}
	return r
}

// overtakes reports whether the DEL leaves a tombstone that bars the ADD.
func (c staysTest) overtakes(h lease.Holder) bool {
	host := netip.AddrFrom4([4]byte{10, 1, 0, max(c.del.node, 1)})
	r := ReleaseRequest{Host: host, ContainerID: c.del.container, Owner: c.del.owner}
	if c.del.node != 0 {
		r.OnHosts = []netip.Addr{host}
	}
	stones, at := newTombstones(func() time.Time { return epoch }), epoch.Add(time.Duration(c.del.at)*time.Second)
	stones.put(r, moment{clock: host, told: at, arrived: at})
	return stones.overtook(h, "", moment{clock: h.Host, told: h.StartedAt, arrived: h.StartedAt})
}

// epoch is when container c asked.
var epoch = time.Unix(1_700_000_000, 0)

// leaseFrom reads the notation of staysTest.
func leaseFrom(t *testing.T, text string, networks map[string]string) (l lease.Lease) {
	t.Helper()
	fields := strings.Fields(text)
	name, version, _ := strings.Cut(fields[0], "@")
	l.State, l.IfName, l.Namespace, l.PodName, l.PodUID, l.Pool = lease.Active, "eth0", "default", "p", "u", name
	networks[name] = strings.Trim(fields[1], "-")
	letter := name[1] - 'a' + 10
	if l.Addr = netip.AddrFrom4([4]byte{10, 0, 0, letter}); name[0] == '6' {
		l.Addr = netip.AddrFrom16([16]byte{0xfd, 15: letter})
	}
	l.Version, l.SetSize = uint64(version[0]-'0'), int(fields[2][0]-'0')
	if bound, again, ok := strings.Cut(version, "<"); ok {
		l.BoundVersion, l.Version = uint64(bound[0]-'0'), uint64(again[0]-'0')
	}
	if strings.HasPrefix(fields[3], "vm") { // an owner; without a container it asked last
		l.Owner, l.Namespace, l.PodName, l.PodUID = "vm", "", "", ""
		if fields[3] = strings.TrimPrefix(strings.TrimPrefix(fields[3], "vm"), ":"); fields[3] == "" {
			fields[3] = "-"
		}
	}
	l.ContainerID = strings.Trim(fields[3], "-")
	l.StartedAt = epoch.Add(time.Minute)
	if l.ContainerID != "" {
		l.StartedAt = epoch.Add(time.Duration(l.ContainerID[0]-'c') * time.Second)
	}
	for _, more := range fields[4:] {
		switch key, value, _ := strings.Cut(more, "="); key {
		case "p":
			l.PodName = value
		case "u":
			l.PodUID = value
		case "after":
			l.Superseded = []string{value}
		case "named":
			l.UIDNamed = true
		default:
			l.Slot = int(key[0] - '0')
		}
	}
	return l
}

func shortNames(ls []lease.Lease) string {
	var out []string
	for _, l := range byAddr(ls) {
		out = append(out, l.Pool)
	}
	return strings.Join(out, " ")
}
