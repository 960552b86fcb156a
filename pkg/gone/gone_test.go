package gone_test

import (
	"net/netip"
	"testing"
	"time"

	"github.com/bcsnet/bcsnet/pkg/gone"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

const manifest = "0123456789abcdef0123456789abcdef"

var (
	now  = time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)
	a, b = netip.MustParseAddr("10.0.0.10"), netip.MustParseAddr("10.0.0.11")
)

// leased is one that web has since an hour.
func leased(changes ...func(*lease.Lease)) lease.Lease {
	l := lease.Lease{Addr: a, State: lease.Active, Updated: now.Add(-time.Hour), Holder: lease.Holder{
		Host: netip.MustParseAddr("192.168.0.1"), ContainerID: "c1", IfName: "eth0", Namespace: "shop", PodName: "web",
		PodUID: "u1",
	}}
	for _, change := range changes {
		change(&l)
	}
	return l
}

func pod(uid string, changes ...func(*workload.Pod)) *workload.Pod {
	p := &workload.Pod{Namespace: "shop", Name: "web", UID: uid, Created: now.Add(-2 * time.Hour)}
	for _, change := range changes {
		change(p)
	}
	return p
}

func reports(addrs ...netip.Addr) func(*workload.Pod) {
	return func(p *workload.Pod) { p.Addrs = addrs }
}

func made(at time.Time) func(*workload.Pod) { return func(p *workload.Pod) { p.Created = at } }

func ended(p *workload.Pod) { p.Ended = true }

func over(p *workload.Pod) { p.Ended, p.Over = true, true }

func deleting(p *workload.Pod) { p.Deleting = true }

func named(l *lease.Lease) { l.UIDNamed = true }

func second(l *lease.Lease) { l.IfName = "net1" }

func lately(l *lease.Lease) { l.Updated = now.Add(-time.Minute) }

func none(lease.Lease, string) []lease.Lease { return nil }

// TestRecord: what the API server's word on the pod of a lease's name makes of it.
func TestRecord(t *testing.T) {
	later := leased(func(l *lease.Lease) { l.Addr, l.ContainerID, l.StartedAt = b, "c2", now })
	for name, tc := range map[string]struct {
		lease  lease.Lease
		pod    *workload.Pod
		others []lease.Lease
		want   gone.Check
	}{
		"the pod has it":                               {lease: leased(), pod: pod("u1", reports(a))},
		"the pod tells of no address yet":              {lease: leased(), pod: pod("u1")},
		"the pod has another":                          {lease: leased(), pod: pod("u1", reports(b)), want: gone.PodOtherAddress},
		"the pod is being deleted":                     {lease: leased(), pod: pod("u1", reports(b), func(p *workload.Pod) { p.Deleting = true })},
		"the pod has ended":                            {lease: leased(), pod: pod("u1", ended), want: gone.PodEnded},
		"no pod":                                       {lease: leased(), want: gone.PodGone},
		"free":                                         {lease: leased(func(l *lease.Lease) { l.State = lease.Available })},
		"set aside":                                    {lease: leased(func(l *lease.Lease) { l.State = lease.Reserved })},
		"an owner's":                                   {lease: leased(func(l *lease.Lease) { l.Owner = "vm-1" })},
		"a container's of an unknown pod":              {lease: leased(func(l *lease.Lease) { l.PodName = "" })},
		"second interface, told of the first":          {lease: leased(second), pod: pod("u1", reports(b))},
		"second interface, told of all":                {lease: leased(second), pod: pod("u1", reports(b), func(p *workload.Pod) { p.Networks = true }), want: gone.PodOtherAddress},
		"UID not known":                                {lease: leased(func(l *lease.Lease) { l.PodUID = "" }), pod: pod("u2")},
		"another UID":                                  {lease: leased(), pod: pod("u2")},
		"another UID, of a pod made later":             {lease: leased(), pod: pod("u2", made(now.Add(-time.Minute))), want: gone.PodReplaced},
		"another UID, of one made with the lease":      {lease: leased(), pod: pod("u2", made(now.Add(-time.Hour).Add(gone.Skew)))},
		"another UID, and it has the address":          {lease: leased(named), pod: pod("u2", reports(a), made(now.Add(-time.Minute)))},
		"another UID, and it has another address":      {lease: leased(), pod: pod("u2", reports(b)), want: gone.PodReplaced},
		"another UID, and it told of another lately":   {lease: leased(lately), pod: pod("u2", reports(b))},
		"another UID, and a later container":           {lease: leased(), pod: pod("u2"), others: []lease.Lease{later}, want: gone.PodReplaced},
		"another UID than the request named":           {lease: leased(named), pod: pod("u2"), want: gone.PodReplaced},
		"another UID than named, on net1":              {lease: leased(named, second, lately), pod: pod("u2"), want: gone.PodReplaced},
		"another UID than named, and ended":            {lease: leased(named), pod: pod("u2", ended), want: gone.PodReplaced},
		"another UID, and ended":                       {lease: leased(), pod: pod("u2", ended), want: gone.PodEnded},
		"a static pod's, and its mirror was made anew": {lease: leased(func(l *lease.Lease) { l.PodUID = manifest }), pod: pod(manifest, made(now))},
	} {
		t.Run(name, func(t *testing.T) {
			check, cause := gone.Record(tc.lease, tc.pod, func(lease.Lease, string) []lease.Lease { return tc.others }, now)
			if check != tc.want || (cause == "") != (check == "") {
				t.Errorf("%q: %s, want %q", check, cause, tc.want)
			}
		})
	}
}

// TestDecide: each piece of evidence that is missing is enough to leave the address alone.
func TestDecide(t *testing.T) {
	rule := gone.Default()
	const long = lease.UsualTermination + gone.Margin // as long as the containers of most pods may run
	sure := func(changes ...func(*gone.Evidence)) gone.Evidence {
		e := gone.Evidence{
			Lease: leased(), Live: true, Others: none, Now: now, Since: now.Add(-long), For: long,
			Host: gone.Host{Ready: true, Renewal: gone.Since},
		}
		for _, change := range changes {
			change(&e)
		}
		return e
	}
	renewal := func(r gone.Renewal, since time.Duration) func(*gone.Evidence) {
		return func(e *gone.Evidence) { e.Host.Renewal, e.For = r, since }
	}
	away := func(since time.Time) func(*gone.Evidence) {
		return func(e *gone.Evidence) { e.Host = gone.Host{Away: since} }
	}
	static := func(e *gone.Evidence) { e.Lease.PodUID = manifest }
	of := func(p *workload.Pod) func(*gone.Evidence) { return func(e *gone.Evidence) { e.Pod = p } }
	looked := func(since time.Duration) func(*gone.Evidence) { return func(e *gone.Evidence) { e.For = since } }
	cached := func(e *gone.Evidence) { e.Live = false }
	// off is a host whose machine is off, by an operator's word, since half an hour after the lease.
	off := func(e *gone.Evidence) { e.Host = gone.Host{OutOfService: true, Away: now.Add(-30 * time.Minute)} }
	also := func(others ...gone.Host) func(*gone.Evidence) {
		return func(e *gone.Evidence) { e.Host.Also = append(e.Host.Also, others...) }
	}
	sureHost, awayHost := gone.Host{Ready: true, Renewal: gone.Since}, gone.Host{Away: now.Add(-time.Hour)}
	offHost := gone.Host{OutOfService: true, Away: now.Add(-30 * time.Minute)}
	for name, tc := range map[string]struct {
		evidence gone.Evidence
		forever  bool
		want     gone.Verdict
	}{
		"gone":                        {evidence: sure(), want: gone.Gone},
		"ended":                       {evidence: sure(func(e *gone.Evidence) { e.Pod = pod("u1", ended) }), want: gone.Gone},
		"the pod is there":            {evidence: sure(func(e *gone.Evidence) { e.Pod = pod("u1") })},
		"the pod has another address": {evidence: sure(func(e *gone.Evidence) { e.Pod = pod("u1", reports(b)) })},
		"at the first look":           {evidence: sure(func(e *gone.Evidence) { e.For = 0 }), want: gone.MayRun},
		"too soon after it":           {evidence: sure(func(e *gone.Evidence) { e.For = long - time.Second }), want: gone.MayRun},
		"replaced, and too soon after it": {evidence: sure(func(e *gone.Evidence) {
			e.Pod, e.Lease.UIDNamed, e.For = pod("u2"), true, long-time.Second
		}), want: gone.MayRun},
		"its pod takes an hour to end": {evidence: sure(func(e *gone.Evidence) {
			e.Lease.Termination, e.For = time.Hour, time.Hour+gone.Margin-time.Second
		}), want: gone.MayRun},
		"its pod took an hour to end": {evidence: sure(func(e *gone.Evidence) {
			e.Lease.Termination, e.For = time.Hour, time.Hour+gone.Margin
		}), want: gone.Gone},
		"ended, of a pod that takes an hour": {evidence: sure(func(e *gone.Evidence) {
			e.Pod, e.Lease.Termination, e.For = pod("u1", ended), time.Hour, gone.Apart
		}), want: gone.Gone},
		"ended, too soon after it": {evidence: sure(func(e *gone.Evidence) {
			e.Pod, e.For = pod("u1", ended), gone.Apart-time.Second
		}), want: gone.MayRun},
		"by the word of a cache":          {evidence: sure(func(e *gone.Evidence) { e.Live = false }), want: gone.MayRun},
		"the host says nothing":           {evidence: sure(renewal(gone.Before, time.Hour)), want: gone.MayRun},
		"the host renewed once":           {evidence: sure(renewal(gone.Once, time.Hour)), want: gone.MayRun},
		"the host's Lease cannot be read": {evidence: sure(renewal(gone.Unread, time.Hour)), want: gone.MayRun},
		"the host was cut off, back for long": {evidence: sure(func(e *gone.Evidence) {
			e.For, e.Host.Missed = time.Hour, time.Hour-long
		}), want: gone.Gone},
		"the host was cut off, back lately": {evidence: sure(func(e *gone.Evidence) {
			e.For, e.Host.Missed = time.Hour, time.Hour-long+time.Second
		}), want: gone.MayRun},
		"no Lease, back lately": {evidence: sure(renewal(gone.NoLease, time.Hour), func(e *gone.Evidence) {
			e.Host.Missed = time.Hour - time.Second
		}), want: gone.MayRun},
		"no Lease, ready for long":          {evidence: sure(renewal(gone.NoLease, gone.Silence)), want: gone.Gone},
		"no Lease, ready lately":            {evidence: sure(renewal(gone.NoLease, gone.Silence-time.Second)), want: gone.MayRun},
		"the host is away":                  {evidence: sure(away(now.Add(-time.Hour))), want: gone.MayRun},
		"the host is away for a day":        {evidence: sure(away(now.Add(-gone.Grace))), want: gone.Gone},
		"away for a day, at the first look": {evidence: sure(away(now.Add(-gone.Grace)), func(e *gone.Evidence) { e.For = 0 }), want: gone.MayRun},
		"away for a day, for ever":          {evidence: sure(away(now.Add(-gone.Grace))), forever: true, want: gone.MayRun},
		"away since nobody knows":           {evidence: sure(away(time.Time{})), want: gone.MayRun},
		"a static pod, without a mirror":    {evidence: sure(static), want: gone.MayRun},
		"a static pod, for a day":           {evidence: sure(static, func(e *gone.Evidence) { e.Since = now.Add(-gone.Grace) }), want: gone.Gone},
		"a static pod, with another mirror": {evidence: sure(static, func(e *gone.Evidence) { e.Pod = pod(manifest) })},
		"a static pod, with a new manifest": {evidence: sure(static, func(e *gone.Evidence) { e.Pod = pod("f"+manifest[1:], made(now)) }), want: gone.Gone},

		// What the kubelet said of the containers counts on any host.
		"over, host away":                     {evidence: sure(of(pod("u1", over)), away(now), looked(gone.Apart)), want: gone.Gone},
		"over, no Node":                       {evidence: sure(of(pod("u1", over)), away(time.Time{}), looked(gone.Apart)), want: gone.Gone},
		"over, host says nothing":             {evidence: sure(of(pod("u1", over)), renewal(gone.Unread, gone.Apart)), want: gone.Gone},
		"over, the host was cut off":          {evidence: sure(of(pod("u1", over)), looked(gone.Apart), func(e *gone.Evidence) { e.Host.Missed = gone.Apart }), want: gone.Gone},
		"over, one of two Nodes is away":      {evidence: sure(of(pod("u1", over)), also(awayHost)), want: gone.Gone},
		"over, too soon":                      {evidence: sure(of(pod("u1", over)), away(now), looked(gone.Apart-time.Second)), want: gone.MayRun},
		"over, by the word of a cache":        {evidence: sure(of(pod("u1", over)), away(now), cached), want: gone.MayRun},
		"ended by its phase alone, host away": {evidence: sure(of(pod("u1", ended)), away(now)), want: gone.MayRun},
		"over, but of another UID":            {evidence: sure(of(pod("u2", over)), away(now)), want: gone.MayRun},
		"over, but the lease has no UID":      {evidence: sure(of(pod("u1", over)), away(now), func(e *gone.Evidence) { e.Lease.PodUID = "" }), want: gone.MayRun},
		"over, but it is static":              {evidence: sure(of(pod(manifest, over)), away(now), static), want: gone.MayRun},

		// An operator's word that the machine is off.
		"off":                                 {evidence: sure(off, looked(gone.Apart)), want: gone.Gone},
		"off, and its pod takes an hour":      {evidence: sure(off, looked(gone.Apart), func(e *gone.Evidence) { e.Lease.Termination = time.Hour }), want: gone.Gone},
		"off, and replaced":                   {evidence: sure(off, of(pod("u2")), func(e *gone.Evidence) { e.Lease.UIDNamed = true }), want: gone.Gone},
		"off, and ended by its phase":         {evidence: sure(off, of(pod("u1", ended))), want: gone.Gone},
		"off, and being deleted":              {evidence: sure(off, of(pod("u1", deleting))), want: gone.Gone},
		"off, another of the name is deleted": {evidence: sure(off, of(pod("u2", deleting)))},
		"off, and the pod is there":           {evidence: sure(off, of(pod("u1")))},
		"off, too soon":                       {evidence: sure(off, looked(gone.Apart-time.Second)), want: gone.MayRun},
		"off, by the word of a cache":         {evidence: sure(off, cached), want: gone.MayRun},
		"off, and ready all the same":         {evidence: sure(off, renewal(gone.Before, time.Hour), func(e *gone.Evidence) { e.Host.Ready = true }), want: gone.MayRun},
		"off, since nobody knows":             {evidence: sure(off, func(e *gone.Evidence) { e.Host.Away = time.Time{} }), want: gone.MayRun},
		"off, and it asked after that":        {evidence: sure(off, func(e *gone.Evidence) { e.Lease.Updated = now.Add(-20 * time.Minute) }), want: gone.MayRun},
		"off, and it is static":               {evidence: sure(off, static), want: gone.MayRun},
		"being deleted, host away":            {evidence: sure(away(now.Add(-time.Hour)), of(pod("u1", deleting)))},
		"being deleted, host away for a day":  {evidence: sure(away(now.Add(-gone.Grace)), of(pod("u1", deleting)))},
		"being deleted, host ready":           {evidence: sure(of(pod("u1", deleting)))},

		// Several Nodes claim the host: each of them has to say so.
		"two in touch":                     {evidence: sure(also(sureHost)), want: gone.Gone},
		"one in touch, one away":           {evidence: sure(also(awayHost)), want: gone.MayRun},
		"one away, one in touch":           {evidence: sure(away(now.Add(-time.Hour)), also(sureHost)), want: gone.MayRun},
		"one in touch, one away for a day": {evidence: sure(also(gone.Host{Away: now.Add(-gone.Grace)})), want: gone.Gone},
		"one in touch, one off":            {evidence: sure(also(offHost)), want: gone.Gone},
		"one off, one away":                {evidence: sure(off, also(awayHost)), want: gone.MayRun},
		"two off":                          {evidence: sure(off, also(offHost)), want: gone.Gone},
		"being deleted, two off":           {evidence: sure(off, also(offHost), of(pod("u1", deleting))), want: gone.Gone},
		"being deleted, one of two off":    {evidence: sure(off, also(sureHost), of(pod("u1", deleting)))},
		"three, the last of them cut off":  {evidence: sure(also(sureHost, gone.Host{Ready: true, Renewal: gone.Once})), want: gone.MayRun},

		"another UID that may be its own":    {evidence: sure(func(e *gone.Evidence) { e.Pod = pod("u2") })},
		"another UID than the request named": {evidence: sure(func(e *gone.Evidence) { e.Pod, e.Lease.UIDNamed = pod("u2"), true }), want: gone.Gone},
	} {
		t.Run(name, func(t *testing.T) {
			r := rule
			if tc.forever {
				r.Grace = 0
			}
			d := r.Decide(tc.evidence)
			if d.Verdict != tc.want || (d.Doubt != "") != (tc.want == gone.MayRun) || (d.Check == "") && tc.want != gone.Held {
				t.Errorf("%+v, want %v", d, tc.want)
			}
		})
	}
}

// TestMisnamed: only a pod of the lease's name that reports the address is the one that has it.
func TestMisnamed(t *testing.T) {
	for name, tc := range map[string]struct {
		lease lease.Lease
		pod   *workload.Pod
		want  bool
	}{
		"it reports the address":    {leased(), pod("u2", reports(a)), true},
		"it has its UID":            {leased(), pod("u1", reports(a)), false},
		"it reports another":        {leased(), pod("u2", reports(b)), false},
		"it reports none":           {leased(), pod("u2"), false},
		"it has ended":              {leased(), pod("u2", reports(a), ended), false},
		"it is on its host's":       {leased(), pod("u2", reports(a), func(p *workload.Pod) { p.HostNetwork = true }), false},
		"it has another name":       {leased(), pod("u2", reports(a), func(p *workload.Pod) { p.Name = "db" }), false},
		"the lease names no UID":    {leased(func(l *lease.Lease) { l.PodUID = "" }), pod("u2", reports(a)), false},
		"the address is an owner's": {leased(func(l *lease.Lease) { l.Owner = "vm" }), pod("u2", reports(a)), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := gone.Misnamed(tc.lease, *tc.pod); got != tc.want {
				t.Errorf("misnamed = %v", got)
			}
		})
	}
}
