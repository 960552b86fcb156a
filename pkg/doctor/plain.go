package doctor

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
)

// PlainCallersName is the ConfigMap in the controller's namespace in which replicas with --plain-http record the
// callers that they answered over plain HTTP.
const PlainCallersName = ControllerName + "-plain-callers"

const (
	// PlainCallersFor bounds the time for which a host stays there after its last call. If there was no call for that
	// time,
	// --plain-http can be removed.
	PlainCallersFor = 24 * time.Hour
	// MaxPlainCallers bounds the number of hosts there. The most recent callers stay.
	MaxPlainCallers = 1024
	// plainCallersStale bounds the age of the last write. If it is older, no controller answers over plain HTTP any
	// more.
	plainCallersStale = 3 * time.Hour
)

// Keys of the ConfigMap. All other keys are hosts, by their addresses' object names.
const keySince, keyKept = "since", "kept"

// PlainCallers are the hosts that were recently answered over plain HTTP.
type PlainCallers struct {
	// Since is the time from which on hosts are recorded without a gap, and Kept the time of the last write; zero if
	// there was none.
	Since, Kept time.Time
	// Hosts maps each host to the time of its last call.
	Hosts map[netip.Addr]time.Time
}

// ParsePlainCallers parses the data of the ConfigMap. The error names the entries that cannot be parsed; the rest is
// returned.
func ParsePlainCallers(data map[string]string) (p PlainCallers, err error) {
	p.Hosts = map[netip.Addr]time.Time{}
	for _, key := range slices.Sorted(maps.Keys(data)) {
		at, wrong := time.Parse(time.RFC3339, data[key])
		if wrong != nil {
			err = cmp.Or(err, fmt.Errorf("key %q is not a time in RFC 3339", key))
			continue
		}
		switch key {
		case keySince:
			p.Since = at
		case keyKept:
			p.Kept = at
		default:
			host, wrong := ipaddr.ParseObjectName(key)
			if wrong != nil {
				err = cmp.Or(err, fmt.Errorf("key %q is not the name of an address", key))
				continue
			}
			p.Hosts[host] = at
		}
	}
	return p, err
}

// Data returns the data in the form of ParsePlainCallers.
func (p PlainCallers) Data() map[string]string {
	data := map[string]string{keySince: p.Since.UTC().Format(time.RFC3339), keyKept: p.Kept.UTC().Format(time.RFC3339)}
	for host, at := range p.Hosts {
		data[ipaddr.ObjectName(host)] = at.UTC().Format(time.RFC3339)
	}
	return data
}

// Add returns the record to write at a time, with further hosts; changed is false if nothing has to be written. Hosts
// that have not called for a day are removed. If nothing was written for hours, the record begins anew.
func (p PlainCallers) Add(more map[netip.Addr]time.Time, now time.Time) (next PlainCallers, changed bool) {
	next = PlainCallers{Since: p.Since, Kept: now, Hosts: map[netip.Addr]time.Time{}}
	if !p.fresh(now) {
		next.Since = now
	}
	for _, from := range []map[netip.Addr]time.Time{p.Hosts, more} {
		for host, at := range from {
			if at = at.Truncate(time.Second); at.After(next.Hosts[host]) && recent(at, now, PlainCallersFor) {
				next.Hosts[host] = at
			}
		}
	}
	latest := slices.SortedFunc(maps.Keys(next.Hosts), func(a, b netip.Addr) int {
		return cmp.Or(next.Hosts[b].Compare(next.Hosts[a]), a.Compare(b))
	})
	for _, host := range latest[min(len(latest), MaxPlainCallers):] {
		delete(next.Hosts, host)
	}
	same := maps.EqualFunc(next.Hosts, p.Hosts, time.Time.Equal)
	return next, !same || !next.Since.Equal(p.Since) || now.Sub(p.Kept) >= plainCallersStale/3
}

// fresh reports whether calls are currently recorded.
func (p PlainCallers) fresh(now time.Time) bool { return recent(p.Kept, now, plainCallersStale) }

// recent reports whether a time is within a duration before now. It may be in the future by at most the difference of
// two replicas' clocks.
func recent(at, now time.Time, within time.Duration) bool {
	ago := now.Sub(at)
	return ago < within && ago > -time.Minute
}

// plainCallers finds the hosts that still call over plain HTTP.
func plainCallers(f *facts) (out []Finding) {
	if !f.PlainCallers.fresh(f.Now) {
		return nil
	}
	for _, h := range inOrder(f.PlainCallers.Hosts) {
		if at := f.PlainCallers.Hosts[h]; recent(at, f.Now, PlainCallersFor) {
			out = append(out, Finding{
				Object: host(h), Cause: "it called by plain HTTP " + ago(at, f.Now) + " ago",
				Fix: "bcsnetctl host describe " + h.String(),
			})
		}
	}
	return out
}

// plainUnused finds that nobody calls over plain HTTP, although it is answered.
func plainUnused(f *facts) []Finding {
	if p := f.PlainCallers; !p.fresh(f.Now) || f.Now.Sub(p.Since) < PlainCallersFor || len(plainCallers(f)) > 0 {
		return nil
	}
	return []Finding{{
		Object: Object{"deployment", ControllerNamespace + "/" + ControllerName},
		Cause:  "no other machine has called by plain HTTP for 24 hours",
		Fix: "bcsnetctl upgrade --plain-http=false; what Helm installed: helm upgrade … --reset-then-reuse-values " +
			"--set plainHTTP=false",
	}}
}
