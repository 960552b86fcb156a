package rest

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/bcsnet/bcsnet/pkg/gone"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// An address is its owner's whom a request names exactly: what it leaves out is nothing, but where there is nothing
// particular to name.
func TestOwner(t *testing.T) {
	tapp := held("10.0.0.2", "default", "web", "tapp", "web-1", "", 2)
	sts := held("10.0.0.2", "default", "web", "statefulset", "web-1", "", 2)
	app := held("10.0.0.2", "default", "web", "deployment", "web-abc-x", "", 2)
	pool := held("10.0.0.2", "", "", "", "blue-abc-x", "payments", 2)
	pool.Namespace = "shop"
	bare := held("10.0.0.2", "", "", "", "", "", 0)
	for _, r := range []*row{tapp, sts, app, pool} {
		r.kept = true
	}
	running := held("10.0.0.2", "default", "web", "deployment", "web-abc-x", "", 2)
	for name, c := range map[string]struct {
		row *row
		ask string
		is  bool
	}{
		"as the document has it":          {tapp, `{"namespace":"default","appName":"web","appType":"tapp","podName":"web-1"}`, true},
		"another pod":                     {tapp, `{"namespace":"default","appName":"web","appType":"tapp","podName":"web-0"}`, false},
		"no pod":                          {tapp, `{"namespace":"default","appName":"web","appType":"tapp"}`, false},
		"another namespace":               {tapp, `{"namespace":"shop","appName":"web","appType":"tapp","podName":"web-1"}`, false},
		"another app":                     {tapp, `{"namespace":"default","appName":"we","appType":"tapp","podName":"web-1"}`, false},
		"another kind":                    {tapp, `{"namespace":"default","appName":"web","appType":"deployment","podName":"web-1"}`, false},
		"no kind, which is a statefulset": {tapp, `{"namespace":"default","appName":"web","podName":"web-1"}`, false},
		"a statefulset":                   {sts, `{"namespace":"default","appName":"web","podName":"web-1"}`, true},
		"a statefulset in other words":    {sts, `{"namespace":"default","appName":"web","appType":"StatefulSets","podName":"web-1"}`, true},
		"a deployment":                    {app, `{"namespace":"default","appName":"web","isDeployment":true,"podName":"web-abc-x"}`, true},
		"a deployment without pod":        {app, `{"namespace":"default","appName":"web","isDeployment":true}`, true},
		"appType before isDeployment":     {app, `{"namespace":"default","appName":"web","isDeployment":true,"appType":"tapp"}`, false},
		"a deployment's other pod":        {app, `{"namespace":"default","appName":"web","isDeployment":true,"podName":"web-abc-y"}`, false},
		"a pool that is not":              {app, `{"namespace":"default","appName":"web","isDeployment":true,"poolName":"payments"}`, false},
		"a deployment's running pod":      {running, `{"namespace":"default","appName":"web","isDeployment":true}`, false},
		"a pool":                          {pool, `{"poolName":"payments"}`, true},
		"a pool's last pod":               {pool, `{"poolName":"payments","namespace":"shop","podName":"blue-abc-x"}`, true},
		"another pool":                    {pool, `{"poolName":"payment"}`, false},
		"a pool's pod without its pool":   {pool, `{"namespace":"shop","podName":"blue-abc-x"}`, false},
		"a pool's pod elsewhere":          {pool, `{"poolName":"payments","namespace":"default","podName":"blue-abc-x"}`, false},
		"nobody in particular":            {bare, `{}`, true},
	} {
		var ask OwnedIP
		if err := json.Unmarshal([]byte(c.ask), &ask); err != nil {
			t.Fatal(err)
		}
		if c.row.isOf(ask) != c.is {
			t.Errorf("%s: %s of %+v is %t", name, c.ask, c.row.FloatingIP, !c.is)
		}
	}
}

func TestReleaseRequestsThatAreWrong(t *testing.T) {
	for body, want := range map[string]string{
		`{}`:                          "ips is missing: the addresses to release, each with its owner",
		`{"ips":null}`:                "ips is missing: the addresses to release, each with its owner",
		`{"ips":[{}]}`:                `"" is not a valid ip`,
		`{"ips":[{"ip":"10.0.0"}]}`:   `"10.0.0" is not a valid ip`,
		`{"ips":[{"ip":"::ffff:x"}]}`: `"::ffff:x" is not a valid ip`,
		`{"ips":[{"ip":"10.0.0.2","podName":"a"},{"ip":"10.0.0.2","podName":"b"}]}`: "10.0.0.2 is there twice, with different owners",
	} {
		var in ReleaseIPRequest
		if err := json.Unmarshal([]byte(body), &in); err != nil {
			t.Fatal(err)
		}
		_, err := in.parse()
		refusal, ok := errors.AsType[*ipam.Refusal](err)
		if !ok || refusal.Message != want || StatusOf(refusal) != 400 {
			t.Errorf("%s: %v", body, err)
		}
	}
	many := ReleaseIPRequest{IPs: make([]OwnedIP, MaxSize+1)}
	if _, err := many.parse(); err == nil || !strings.Contains(err.Error(),
		"ips has 10000 addresses, at most 9999 at a time") {
		t.Errorf("more than a page: %v", err)
	}
	for body, want := range map[string]int{
		`{"ips":[]}`: 0,
		`{"ips":[{"ip":"10.0.0.2","podName":"a"},{"ip":"10.0.0.2","podName":"a","isDeployment":false}]}`: 1,
	} {
		var in ReleaseIPRequest
		if err := json.Unmarshal([]byte(body), &in); err != nil {
			t.Fatal(err)
		}
		if got, err := in.parse(); err != nil || len(got) != want {
			t.Errorf("%s: %v, %v", body, got, err)
		}
	}
}

// What memory says of a pod is asked once more of the API server before its address is released: the watch of this
// replica may lag.
func TestReleaseAsksForThePod(t *testing.T) {
	s := newService(t, cached{})
	taken := lease.Lease{
		Addr: netip.MustParseAddr("10.0.70.2"), Version: 1, State: lease.Active, Params: lease.Params{Pool: "p"},
		Holder: lease.Holder{Namespace: "shop", PodName: "web-0", PodUID: "u1", IfName: "eth0"},
	}
	s.Index.Feed.Wrote(taken)
	var looks []bool
	s.Gone = func(_ context.Context, _ lease.Lease, live bool) (gone.Decision, error) {
		if looks = append(looks, live); live {
			return gone.Decision{Verdict: gone.Held}, nil
		}
		return gone.Decision{Verdict: gone.Gone, Check: gone.PodGone}, nil
	}
	var in ReleaseIPRequest
	if err := json.Unmarshal([]byte(`{"ips":[{"ip":"10.0.70.2","namespace":"shop","podName":"web-0"}]}`),
		&in); err != nil {
		t.Fatal(err)
	}
	_, released, err := s.ReleaseIPs(t.Context(), in, lease.Change{})
	refusal, ok := errors.AsType[*ipam.Refusal](err)
	if !ok || refusal.Message != "10.0.70.2 is not releasable" || StatusOf(refusal) != http.StatusBadRequest ||
		len(released) > 0 {
		t.Errorf("%v, released %v", err, released)
	}
	if !slices.Equal(looks, []bool{false, true}) {
		t.Errorf("asked with live %v, want the cache and then the API server", looks)
	}
	s.Gone = func(_ context.Context, _ lease.Lease, live bool) (gone.Decision, error) {
		if live {
			return gone.Decision{}, errors.New("no answer")
		}
		return gone.Decision{Verdict: gone.Gone, Check: gone.PodGone}, nil
	}
	_, released, err = s.ReleaseIPs(t.Context(), in, lease.Change{})
	if refusal, ok := errors.AsType[*ipam.Refusal](err); !ok || refusal.Reason != ipam.ReasonUnavailable ||
		len(released) > 0 {
		t.Errorf("the API server does not answer: %v, released %v", err, released)
	}
}

func TestPoolsThatAreWrong(t *testing.T) {
	for body, want := range map[string]string{
		`{}`:                          "pool name is empty",
		`{"name":"  ","size":1}`:      "pool name is empty",
		`{"name":"a"}`:                "size of pool a is missing",
		`{"name":"a","size":-1}`:      "size -1 of pool a is not from 0 to 65536",
		`{"name":"a","size":65537}`:   "size 65537 of pool a is not from 0 to 65536",
		`{"name":"a\u0000","size":1}`: `pool name "a\x00" is not a printable text of at most 253 bytes`,
		`{"name":"` + strings.Repeat("ö", 127) + `","size":1}`: `pool name "` + strings.Repeat("ö", 100) + `" is not a printable text of at most 253 bytes`,
	} {
		var in SetPoolRequest
		if err := json.Unmarshal([]byte(body), &in); err != nil {
			t.Fatal(err)
		}
		_, err := in.parse()
		refusal, ok := errors.AsType[*ipam.Refusal](err)
		if !ok || refusal.Message != want || StatusOf(refusal) != 400 {
			t.Errorf("%s: %v", body, err)
		}
	}
	var in SetPoolRequest
	if err := json.Unmarshal([]byte(`{"name":" 蓝 / green ","size":0}`), &in); err != nil {
		t.Fatal(err)
	}
	if name, err := in.parse(); name != "蓝 / green" || err != nil {
		t.Errorf("%q, %v", name, err)
	}
}

// FuzzBodies: what can be decoded is refused as wrong, or names addresses, or a pool of a size within bounds.
func FuzzBodies(f *testing.F) {
	for _, body := range []string{
		`{"ips":[{"ip":"10.0.70.169", "namespace":"default", "appName":"nginx-deployment", "appType":"tapp", "podName": "nginx-deployment-1"}]}`,
		`{"ips":[{"ip":"::1"},{"ip":"fe80::1%eth0"}]}`, `{"name":"a","size":3,"preAllocateIP":true}`, `{"name":"\ud800","size":1e9}`, `{"ips":{}}`, `null`,
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		wrong := func(err error) bool {
			refusal, ok := errors.AsType[*ipam.Refusal](err)
			if err != nil && (!ok || StatusOf(refusal) != 400) {
				t.Errorf("%q: %v", body, err)
			}
			return err != nil
		}
		var release ReleaseIPRequest
		if json.Unmarshal(body, &release) == nil {
			asked, err := release.parse()
			if !wrong(err) && len(asked) > len(release.IPs) {
				t.Errorf("%q is read as %v", body, asked)
			}
		}
		var set SetPoolRequest
		if json.Unmarshal(body, &set) == nil {
			name, err := set.parse()
			if !wrong(err) && (name == "" || len(name) > maxPoolName || *set.Size < 0 || *set.Size > maxPoolSize) {
				t.Errorf("%q is read as %q of %d", body, name, *set.Size)
			}
		}
	})
}
