package http_test

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bcsnet/bcsnet/pkg/httpapi/wire"
	"github.com/bcsnet/bcsnet/test/controlplane"
)

// get reads a list of addresses.
func (c caller) get(t *testing.T, path string) wire.LeaseList {
	t.Helper()
	var list wire.LeaseList
	c.do(t, "GET", prefix+path, nil).doneInto(t, &list)
	return list
}

func addressesOf(list wire.LeaseList) []string {
	out := []string{}
	for _, l := range list.Items {
		out = append(out, l.IPAddr)
	}
	return out
}

func TestInspect(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.pool(5, nil)
	s.pool6(1, nil)
	body, _ := s.given("web-0")
	s.del(body).done(t)
	container := "containerd://" + newID()
	held := s.add(with(body, "containerID", container, "ipAddr", s.ip(22))).done(t)
	s.add(with(body, "containerID", container, "ipAddr", s.ip(24), "ifName", "net1")).done(t)
	s.add(object{"host": s.Host, "owner": s.owner("vm"), "ipAddr": s.ip6(0x20)}).done(t)

	want := wire.Lease{
		IPAddr: s.ip(22), Status: "Active", Pool: s.Namespace, Mask: 24, Gateway: s.ip(1), Host: s.Host,
		ContainerID: container, IfName: "eth0",
		PodName: "web-0", PodNamespace: s.Namespace, PodUID: stored(t, s.ip(22)).Status.PodUID,
		UpdateTime: stored(t, s.ip(22)).Status.UpdateTime,
	}
	var got wire.Lease
	s.call.do(t, "GET", prefix+"/ip/"+s.ip(22), nil).doneInto(t, &got)
	if diff := cmp.Diff(want, got); diff != "" || held["ipAddr"] != s.ip(22) {
		t.Errorf("by address (-want +got):\n%s", diff)
	}
	pool := []string{s.ip(20), s.ip(21), s.ip(22), s.ip(23), s.ip(24)}
	escaped, v6 := url.PathEscape(container), s.ip6(0x20)
	for path, want := range map[string][]string{
		"/container/" + escaped:                                        {s.ip(22), s.ip(24)},
		"/container/" + escaped + "?ifName=net1":                       {s.ip(24)},
		"/container/nobody":                                            {},
		"/container/..%2F..%2Fhealthz":                                 {},
		"/pod/" + s.Namespace + "/web-0":                               {s.ip(22), s.ip(24)},
		"/pod/" + s.Namespace + "/web-9":                               {},
		"/pod/elsewhere/web-0":                                         {},
		"/host/" + s.Host:                                              {s.ip(22), s.ip(24), v6},
		"/host/192.0.2.77":                                             {},
		"/pool/" + s.Namespace:                                         pool,
		"/pool/" + s.Namespace + "-6":                                  {v6},
		"?pool=" + s.Namespace:                                         pool,
		"?pool=" + s.Namespace + "&status=Available":                   {s.ip(20), s.ip(21), s.ip(23)},
		"?pool=" + s.Namespace + "&status=Reserved":                    {},
		"?host=" + s.Host + "&status=Active":                           {s.ip(22), s.ip(24), v6},
		"?owner=" + url.QueryEscape(s.owner("vm")) + "&host=" + s.Host: {v6},
		"?containerID=" + url.QueryEscape(container):                   {s.ip(22), s.ip(24)},
		"?podNamespace=" + s.Namespace + "&podName=web-0&pool=" + s.Namespace + "&limit=1": {s.ip(22)},
	} {
		if got := addressesOf(s.call.get(t, path)); !slices.Equal(got, want) {
			t.Errorf("GET %s: %v, want %v", path, got, want)
		}
	}
	// An IPv6 address in any spelling; one without an object is free.
	for _, spelling := range []string{
		v6, strings.ToUpper(v6), "fd00:0:0:" + strings.Split(v6, ":")[3] + ":0:0:0:20", url.PathEscape(v6),
	} {
		s.call.do(t, "GET", prefix+"/ip/"+spelling, nil).doneInto(t, &got)
		if got.IPAddr != v6 || got.Owner != s.owner("vm") {
			t.Errorf("GET /ip/%s: %+v", spelling, got)
		}
	}
}

// Pages follow one another without gaps or repetitions.
func TestInspectPages(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.pool(7, nil)
	path := "/pool/" + s.Namespace
	controlplane.Eventually(t, func() error {
		if n := s.call.get(t, path).Total; n != 7 {
			return fmt.Errorf("%d objects", n)
		}
		return nil
	})
	for _, limit := range []int{1, 3, 7, 5000} {
		var got []string
		next, pages := "", 0
		for pages < 8 {
			list := s.call.get(t, fmt.Sprintf("%s?limit=%d&continue=%s", path, limit, next))
			if pages++; list.Total != 7 || len(list.Items) > limit {
				t.Errorf("limit %d: %d of %d", limit, len(list.Items), list.Total)
			}
			got = append(got, addressesOf(list)...)
			if next = list.Continue; next == "" {
				break
			}
		}
		want := []string{s.ip(20), s.ip(21), s.ip(22), s.ip(23), s.ip(24), s.ip(25), s.ip(26)}
		if !slices.Equal(got, want) || pages != (7+limit-1)/limit {
			t.Errorf("limit %d: %v on %d pages", limit, got, pages)
		}
	}
	if list := s.call.get(t, path+"?continue=255.255.255.255"); len(list.Items) != 0 || list.Total != 7 {
		t.Errorf("behind the last: %+v", list)
	}
}

func TestInspectRefusals(t *testing.T) {
	t.Parallel()
	call := allocatorOf(t)
	call.do(t, "GET", prefix+"/pool/nowhere", nil).refusedWith(t, "NotFound", "there is no pool nowhere")
	call.do(t, "GET", prefix+"/ip/203.0.113.9", nil).refusedWith(t, "AddressNotInPool", "address 203.0.113.9")
	for path, want := range map[string]refusal{
		"/ip/web-0":             {200, 1, "BadAddress", `"web-0" is not an IP address`, ""},
		"/ip/10.0.0.0-10.0.0.9": {200, 1, "BadAddress", `"10.0.0.0-10.0.0.9" is not an IP address`, ""},
		"/ip/fe80::1%25eth0":    {200, 1, "BadAddress", `"fe80::1%eth0" is not an IP address`, ""},
		"/host/web-0":           {200, 1, "BadRequest", `host "web-0" is not an IP address`, ""},
		"?host=web-0":           {200, 1, "BadRequest", `host "web-0" is not an IP address`, ""},
		"?status=active":        {200, 1, "BadRequest", `status "active" is not Available, Active or Reserved`, ""},
		"?limit=0":              {200, 1, "BadRequest", `limit "0" is not a number from 1 to 5000`, ""},
		"?limit=5001":           {200, 1, "BadRequest", `limit "5001" is not a number from 1 to 5000`, ""},
		"?limit=ten":            {200, 1, "BadRequest", `limit "ten" is not a number from 1 to 5000`, ""},
		"?continue=x":           {200, 1, "BadAddress", `"x" is not an IP address`, ""},
		"?podname=web-0":        {200, 1, "BadRequest", `query parameter "podname" is not known here`, "known are: containerID, host, owner, podName, podNamespace, pool, status, continue, limit"},
		"?pool=a&pool=b":        {200, 1, "BadRequest", `query parameter "pool" is given 2 times`, ""},
		"?pool=%zz":             {200, 1, "BadRequest", `the query cannot be read: invalid URL escape "%zz"`, ""},
		"/host/10.0.0.11?x=1":   {200, 1, "BadRequest", `query parameter "x" is not known here`, "known are: continue, limit"},
		"/ip/10.0.0.11?limit=1": {200, 1, "BadRequest", `query parameter "limit" is not known here`, ""},
	} {
		call.do(t, "GET", prefix+path, nil).refused(t, want)
	}
}
