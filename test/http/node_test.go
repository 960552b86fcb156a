package http_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/httpapi/wire"
	"github.com/bcsnet/bcsnet/test/controlplane"
	objects "github.com/bcsnet/bcsnet/test/site"
)

// stamp is a time as plugins send it, so many seconds from now.
func stamp(seconds int) string {
	return time.Now().Add(time.Duration(seconds) * time.Second).Format(time.RFC3339Nano)
}

// attachment is an entry of a network's list.
func attachment(container string) object { return object{"containerID": container, "ifName": "eth0"} }

// gc collects a network of the site's host; the list has these containers.
func (s *site) gc(call caller, network, began string, containers ...any) answer {
	s.t.Helper()
	list := []object{}
	for _, c := range containers {
		list = append(list, attachment(c.(string)))
	}
	return call.do(s.t, "POST", prefix+"/gc", object{
		"host": s.Host, "cniNetwork": network, "startedAt": began, "attachments": list,
	})
}

// conflict reports that somebody else answers for an address.
func (s *site) conflict(call caller, address string, body object, mac string) answer {
	s.t.Helper()
	return call.do(s.t, "POST", prefix+"/ip/"+address+"/conflict", object{"containerID": body["containerID"], "mac": mac})
}

// attached makes a pod that a network attaches, asks for it, and returns the request and the address.
func (s *site) attached(name, network string) (body object, address string) {
	s.t.Helper()
	s.pod(name)
	body = with(s.request(newID(), name), "cniNetwork", network, "startedAt", stamp(-10))
	return body, s.add(body).done(s.t)["ipAddr"].(string)
}

// Two networks on one host, the list of one of them: what it lacks is freed, whichever replica is asked, and the
// leader answers for a follower.
func TestNetworkGC(t *testing.T) {
	t.Parallel()
	leader, follower := newGroup(t).led()
	s := newSite(t)
	s.pool(6, nil)
	s.knownTo(leader.caller(), follower.caller())
	s.call = leader.caller()
	listed, kept := s.attached("listed", "pods")
	_, first := s.attached("forgotten", "pods")
	running, stays := s.attached("running", "pods")
	_, other := s.attached("other", "storage")
	none, plain := s.given("none")
	_ = none
	var got wire.GCResult
	// all have been there for a minute by the host's clock, and not by the API server's
	if s.gc(leader.caller(), "pods", stamp(0), listed["containerID"]).doneInto(t, &got); len(got.IPs) != 0 {
		t.Errorf("%v was freed while its pod may be set up still", got.IPs)
	}
	// listed is the latest one: the list is of the runtime that attaches by this network
	(&objects.Site{T: t, Admin: shared.admin}).Aged(other, plain, first, stays)
	s.remove("forgotten")
	s.remove("other")
	controlplane.Until(t, "what was forgotten is freed", func() bool {
		a := s.gc(follower.caller(), "pods", stamp(0), listed["containerID"]).answeredBy(t, idOf(t, leader.caller()))
		a.doneInto(t, &got)
		return len(got.IPs) > 0
	})
	if !slices.Equal(got.IPs, []string{first}) || got.Host != s.Host || got.CNINetwork != "pods" ||
		!slices.Equal(got.Kept, []wire.Attachment{{ContainerID: running["containerID"].(string), IfName: "eth0"}}) {
		t.Errorf("%+v, want %s freed and the running one kept", got, first)
	}
	leader.caller().waitMetric(t, `bcsnet_gc_unlisted_total{outcome="Released"}`, "1")
	var again wire.GCResult
	if s.gc(leader.caller(), "pods", stamp(0), listed["containerID"]).doneInto(t, &again); again.IPs == nil || len(again.IPs) != 0 {
		t.Errorf("a second time: %+v", again)
	}
	// an empty list, as a runtime sends it for a network by which Multus attaches
	s.gc(leader.caller(), "pods", stamp(0)).doneInto(t, &again)
	if s.gc(leader.caller(), "storage", stamp(0)).doneInto(t, &got); len(again.IPs)+len(got.IPs) != 0 {
		t.Errorf("empty lists: %+v, %+v", again, got)
	}
	for address, want := range map[string]v1.IPPhase{
		kept: v1.IPActive, first: v1.IPAvailable, stays: v1.IPActive, other: v1.IPActive, plain: v1.IPActive,
	} {
		if o := stored(t, address); o.Status.Status != want {
			t.Errorf("%s is %s, want %s", address, o.Status.Status, want)
		}
	}
	var shown wire.Lease
	s.call.do(t, "GET", prefix+"/ip/"+kept, nil).doneInto(t, &shown)
	if shown.CNINetwork != "pods" {
		t.Errorf("shown is %+v", shown)
	}
	s.add(with(listed, "cniNetwork", nil)).done(t) // the same ADD again, by a plugin that names none
	if o := stored(t, kept); o.Status.CNINetwork != "pods" {
		t.Errorf("a repeated ADD leaves %+v", o.Status)
	}
	s.remove("running")
	// the call began before the lease, or its clock says so
	for _, began := range []string{stamp(-60), stamp(-120)} {
		if s.gc(leader.caller(), "pods", began, listed["containerID"]).doneInto(t, &again); len(again.IPs) != 0 {
			t.Errorf("of %s: %+v", began, again)
		}
	}
	// clocks that are hours off count by their arrival
	controlplane.Until(t, "clocks far off", func() bool {
		s.gc(leader.caller(), "pods", stamp(5*3600), listed["containerID"]).doneInto(t, &got)
		return slices.Equal(got.IPs, []string{stays})
	})
}

// remove deletes a pod by force.
func (s *site) remove(name string) {
	s.t.Helper()
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: name}}
	if err := shared.admin.Delete(s.t.Context(), p, client.GracePeriodSeconds(0)); err != nil {
		s.t.Fatal(err)
	}
}

// What is wrong with any part of a list refuses all of it, and nothing is freed.
func TestBadNetworkGC(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.pool(2, nil)
	_, address := s.attached("stays", "pods")
	good := object{"host": s.Host, "cniNetwork": "pods", "startedAt": stamp(0), "attachments": []object{}}
	many := func(n int) []object { return slices.Repeat([]object{attachment("c")}, n) }
	for name, c := range map[string]struct {
		body            object
		reason, message string
	}{
		"no host":                 {with(good, "host", nil), "MissingField", "host is missing"},
		"host is a name":          {with(good, "host", "node-1"), "BadRequest", `host "node-1" is not an IP address`},
		"no network":              {with(good, "cniNetwork", nil), "MissingField", "cniNetwork is missing"},
		"long network":            {with(good, "cniNetwork", strings.Repeat("n", 254)), "BadRequest", "cniNetwork is longer than 253 bytes"},
		"network of a line feed":  {with(good, "cniNetwork", "a\n"), "BadRequest", "cniNetwork has characters that are not printable"},
		"no start":                {with(good, "startedAt", nil), "MissingField", "startedAt is missing"},
		"start is a date":         {with(good, "startedAt", "2026-01-02"), "BadRequest", `startedAt "2026-01-02" is not a time in RFC 3339, such as 2026-01-02T15:04:05.123456789Z`},
		"no list":                 {with(good, "attachments", nil), "MissingField", "attachments is missing"},
		"a list of another name":  {with(good, "attachments", nil, "attachment", many(1)), "MissingField", "attachments is missing"},
		"null":                    {func() object { o := with(good); o["attachments"] = nil; return o }(), "MissingField", "attachments is missing"},
		"an object":               {with(good, "attachments", object{}), "BadRequest", "field attachments must be an array, not a JSON object"},
		"names alone":             {with(good, "attachments", []string{"c"}), "BadRequest", "field attachments must be an object, not a JSON string"},
		"too many":                {with(good, "attachments", many(wire.MaxAttachments+1)), "BadRequest", "attachments has 12289 entries, more than 12288"},
		"no container":            {with(good, "attachments", []object{attachment("c"), {"ifName": "eth0"}}), "MissingField", "attachments[1].containerID is missing"},
		"long container":          {with(good, "attachments", []object{attachment(strings.Repeat("c", 257))}), "BadRequest", "attachments[0].containerID is longer than 256 bytes"},
		"interface of the folder": {with(good, "attachments", []object{{"containerID": "c", "ifName": ".."}}), "BadRequest", `ifName ".." cannot be the name of an interface`},
		"long interface":          {with(good, "attachments", []object{{"containerID": "c", "ifName": strings.Repeat("e", 16)}}), "BadRequest", "attachments[0].ifName is longer than 15 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			s.call.do(t, "POST", prefix+"/gc", c.body).refused(t, refusal{200, 1, c.reason, c.message, ""})
		})
	}
	s.call.do(t, "POST", prefix+"/gc", `{"host":`+strings.Repeat(" ", 4<<20)+`"x"}`).refused(t,
		refusal{413, 1, "BadRequest", "the body is larger than 4194304 bytes", ""})
	if o := stored(t, address); o.Status.Status != v1.IPActive {
		t.Errorf("%s is %s", address, o.Status.Status)
	}
	// as many as may be, each as long as may be
	long := []any{}
	for i := range wire.MaxAttachments {
		long = append(long, fmt.Sprintf("%0256d", i))
	}
	if a := s.gc(s.call, "pods", stamp(-60), long...); a.Status != http.StatusOK || a.Code != 0 {
		t.Errorf("%d attachments: %d %.300s", len(long), a.Status, a.Raw)
	}
}

// A conflict that is reported to a follower, and to both again: nobody gets the address, the same ADD gets another,
// the DEL frees that one, and everybody sees why. When its time is over the address is free.
func TestAddressConflict(t *testing.T) {
	t.Parallel()
	leader, follower := newGroup(t).led()
	s := newSite(t)
	s.pool(3, nil)
	s.knownTo(leader.caller(), follower.caller())
	s.call = leader.caller()
	body, address := s.attached("web", "pods")
	mac := fmt.Sprintf("02:60:00:00:00:%02x", sites.Load())
	upper := strings.ToUpper(strings.ReplaceAll(mac, ":", "-"))
	var first, again wire.ConflictResult
	s.conflict(follower.caller(), address, body, upper).answeredBy(t, idOf(t, leader.caller())).doneInto(t, &first)
	if !first.Quarantined || first.IPAddr != address || first.MAC != mac || first.Pool != s.Namespace {
		t.Errorf("%+v", first)
	}
	until, err := time.Parse(time.RFC3339, first.Until)
	if left := time.Until(until); err != nil || left < 50*time.Minute || left > 70*time.Minute {
		t.Errorf("until %q: %v", first.Until, err)
	}
	for _, c := range []caller{follower.caller(), leader.caller()} {
		if s.conflict(c, address, body, mac).doneInto(t, &again); again != first {
			t.Errorf("again: %+v, first %+v", again, first)
		}
	}
	leader.caller().waitMetric(t, `bcsnet_address_conflicts_total{outcome="Quarantined"}`, "1")
	leader.caller().waitMetric(t, fmt.Sprintf("bcsnet_pool_quarantined_addresses{pool=%q}", s.Namespace), "1")
	next := s.add(body).done(t)["ipAddr"].(string)
	if next == address {
		t.Error("the same ADD got the address again")
	}
	if freed := ips(s.del(body).done(t)); !slices.Equal(freed, []string{next}) {
		t.Errorf("the DEL freed %v, want %s", freed, next)
	}
	s.add(object{"host": s.Host, "owner": s.owner("asks"), "ipAddr": address}).refusedWith(t, "AddressInUse", "quarantined", mac)
	s.call.do(t, "DELETE", prefix+"/ip/"+address, object{"containerID": body["containerID"]}).
		refusedWith(t, "AddressNotHeld", "quarantined")
	var shown wire.Lease
	s.call.do(t, "GET", prefix+"/ip/"+address, nil).doneInto(t, &shown)
	if shown.Status != "Reserved" || shown.Conflict == nil || shown.Conflict.MAC != mac || shown.Conflict.Outcome != "Quarantined" {
		t.Errorf("shown is %+v, %+v", shown, shown.Conflict)
	}
	s.event("AddressConflict", mac, address)

	o := stored(t, address)
	past := func(text string) string {
		at, err := time.Parse(time.RFC3339Nano, text)
		if err != nil {
			t.Fatal(err)
		}
		return at.Add(-time.Hour).Format(time.RFC3339Nano)
	}
	c := o.Status.Conflict
	c.ReportedAt, c.Until = past(c.ReportedAt), past(c.Until)
	o.Status.UpdateTime = c.ReportedAt
	if err := shared.admin.Update(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	controlplane.Eventually(t, func() error {
		if o := stored(t, address); o.Status.Status != v1.IPAvailable || o.Status.Conflict == nil {
			return fmt.Errorf("%s, %+v", o.Status.Status, o.Status.Conflict)
		}
		return nil
	})
	s.event("QuarantineEnded", mac, address)
	if got := s.add(object{"host": s.Host, "owner": s.owner("asks"), "ipAddr": address}).done(t)["ipAddr"]; got != address {
		t.Errorf("got %v, want %s", got, address)
	}
}

// event waits for an event of the site's pool with these words in it.
func (s *site) event(reason string, words ...string) {
	s.t.Helper()
	controlplane.Eventually(s.t, func() error {
		var all eventsv1.EventList
		if err := shared.admin.List(s.t.Context(), &all); err != nil {
			return err
		}
		for _, e := range all.Items {
			missing := slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(e.Note, w) })
			if e.Regarding.Name == s.Namespace && e.Reason == reason && !missing {
				return nil
			}
		}
		return fmt.Errorf("no event %s of %s with %v", reason, s.Namespace, words)
	})
}

// An address that was asked for by name stays with who asked, whoever else answers for it.
func TestConflictOfANamedAddress(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.pool(2, nil)
	s.pod("named")
	body := with(s.request(newID(), "named"), "ipAddr", s.ip(21))
	s.add(body).done(t)
	mac := fmt.Sprintf("02:60:00:00:01:%02x", sites.Load())
	s.conflict(s.call, s.ip(21), body, mac).refusedWith(t, "AddressConflict", mac, "asked for by name")
	s.event("AddressConflict", mac, "it stays with its holder")
	if o := stored(t, s.ip(21)); o.Status.Status != v1.IPActive || o.Status.Conflict.Outcome != v1.ConflictKept {
		t.Errorf("%+v", o.Status)
	}
	if freed := ips(s.del(body).done(t)); !slices.Equal(freed, []string{s.ip(21)}) {
		t.Errorf("the DEL freed %v", freed)
	}
}

// Two replicas that both answer by themselves count the same reports: after five of a host no more are heard, and
// nothing but the objects says so.
func TestConflictsAreCountedByAnyReplica(t *testing.T) {
	t.Parallel()
	other := startFor(t, account(t, shared.cluster), nil).caller()
	s := newSite(t)
	s.pool(20, nil)
	s.knownTo(s.call, other)
	quarantined := 0
	for i := range 6 {
		body, address := s.attached(fmt.Sprintf("web-%d", i), "pods")
		mac := fmt.Sprintf("02:60:00:%02x:02:%02x", i, sites.Load())
		controlplane.Eventually(t, func() error { // what one wrote, the other's watch shows within milliseconds
			var all wire.LeaseList
			other.do(t, "GET", prefix+"/pool/"+s.Namespace, nil).doneInto(t, &all)
			n := 0
			for _, l := range all.Items {
				if l.Conflict != nil {
					n++
				}
			}
			if n != i {
				return fmt.Errorf("%d reports, want %d", n, i)
			}
			return nil
		})
		a := s.conflict([]caller{s.call, other}[i%2], address, body, mac)
		if i == 5 {
			a.refusedWith(t, "TooManyConflicts", s.Host, "5 addresses")
			continue
		}
		var got wire.ConflictResult
		if a.doneInto(t, &got); got.Quarantined {
			quarantined++
		} else { // somebody else takes it, so that the next pod does not
			s.add(object{"host": s.Host, "owner": s.owner(address), "ipAddr": address}).done(t)
		}
	}
	if quarantined != 3 {
		t.Errorf("%d of a pool of 20 are quarantined, want 3", quarantined)
	}
}

// What is wrong with a report is said, and changes nothing.
func TestBadConflict(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.pool(2, nil)
	body, address := s.attached("holder", "pods")
	container := body["containerID"]
	const good = "02:00:5e:10:00:01"
	noMAC := `mac "%s" is not the MAC of an interface, such as 02:00:5e:10:00:01`
	for name, c := range map[string]struct {
		address string
		body    object
		want    refusal
	}{
		"no address":           {"10.0.0", object{"containerID": container, "mac": good}, refusal{200, 1, "BadAddress", `"10.0.0" is not an IP address`, ""}},
		"address of no pool":   {"192.0.2.7", object{"containerID": container, "mac": good}, refusal{200, 2, "AddressNotInPool", "", ""}},
		"another container":    {address, object{"containerID": "c", "mac": good}, refusal{200, 2, "AddressNotHeld", fmt.Sprintf("address %s is held by %s/holder (container %s)", address, s.Namespace, container), ""}},
		"another interface":    {address, object{"containerID": container, "ifName": "net1", "mac": good}, refusal{200, 2, "AddressNotHeld", "", ""}},
		"a free address":       {s.unused(2, address), object{"containerID": container, "mac": good}, refusal{200, 2, "AddressNotHeld", "", ""}},
		"no container":         {address, object{"mac": good}, refusal{200, 1, "MissingField", "containerID is missing", ""}},
		"container is a list":  {address, object{"containerID": []string{"c"}, "mac": good}, refusal{200, 1, "BadRequest", "field containerID must be a string, not a JSON array", ""}},
		"no interface that is": {address, object{"containerID": container, "ifName": "a/b", "mac": good}, refusal{200, 1, "BadRequest", `ifName "a/b" cannot be the name of an interface`, ""}},
		"no MAC":               {address, object{"containerID": container}, refusal{200, 1, "MissingField", "mac is missing: who answered for the address", ""}},
		"MAC of words":         {address, object{"containerID": container, "mac": "router"}, refusal{200, 1, "BadRequest", fmt.Sprintf(noMAC, "router"), ""}},
		"MAC of eight octets":  {address, object{"containerID": container, "mac": "02:00:5e:10:00:01:02:03"}, refusal{200, 1, "BadRequest", fmt.Sprintf(noMAC, "02:00:5e:10:00:01:02:03"), ""}},
		"MAC of zeros":         {address, object{"containerID": container, "mac": "00:00:00:00:00:00"}, refusal{200, 1, "BadRequest", fmt.Sprintf(noMAC, "00:00:00:00:00:00"), ""}},
		"long MAC":             {address, object{"containerID": container, "mac": strings.Repeat("02:", 9)}, refusal{200, 1, "BadRequest", "mac is longer than 23 bytes", ""}},
	} {
		t.Run(name, func(t *testing.T) {
			a := s.call.do(t, "POST", prefix+"/ip/"+c.address+"/conflict", c.body)
			if c.want.Message == "" {
				a.refusedWith(t, c.want.Reason)
				return
			}
			a.refused(t, c.want)
		})
	}
	if o := stored(t, address); o.Status.Status != v1.IPActive || o.Status.Conflict != nil {
		t.Errorf("%+v", o.Status)
	}
}
