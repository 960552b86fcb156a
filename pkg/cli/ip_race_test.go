package cli

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
)

// before is a proxy that has somebody else do something right before the first request that it is about.
func before(t *testing.T, method, suffix string, other func() error) (url string) {
	t.Helper()
	var once sync.Once
	return proxy(t, func(rw http.ResponseWriter, r *http.Request, next http.Handler) {
		if r.Method == method && strings.HasSuffix(r.URL.Path, suffix) {
			once.Do(func() {
				if err := other(); err != nil {
					t.Error(err)
				}
			})
		}
		next.ServeHTTP(rw, r)
	})
}

// object reads an address.
func (f *fixture) object(t *testing.T, address string) *v1.BCSNetIP {
	t.Helper()
	var ip v1.BCSNetIP
	if err := f.client.Get(t.Context(), client.ObjectKey{Name: address}, &ip); err != nil {
		t.Fatal(err)
	}
	return &ip
}

// TestReleaseBesidesAnotherWriter: an address that changes hands between the look and the write is left to
// its new holder; one that changes otherwise is released all the same.
func TestReleaseBesidesAnotherWriter(t *testing.T) {
	f := newFixture(t)
	update := func(t *testing.T, change func(*v1.BCSNetIP)) func() error {
		t.Helper()
		return func() error {
			ip := f.object(t, "10.1.0.20")
			change(ip)
			return f.client.Update(t.Context(), ip)
		}
	}
	for name, tc := range map[string]struct {
		change func(*v1.BCSNetIP)
		wants  []string
		holder string
	}{
		"a new container of the pod": {
			change: func(ip *v1.BCSNetIP) { ip.Status.ContainerID = "another" },
			wants:  []string{"✗ 10.1.0.20 was not released: default/gone-0 on host 10.0.0.11 has asked for it again meanwhile " + "(LeaseChanged)", "hint: see what it has: bcsnetctl ip describe 10.1.0.20", "[exit 1]"},
			holder: "gone-0",
		},
		"another pod": {
			change: func(ip *v1.BCSNetIP) {
				ip.Status.PodName, ip.Status.PodUID, ip.Status.ContainerID = "new-0", "new", "another"
			},
			wants:  []string{"from default/gone-0 on host 10.0.0.11 to default/new-0 on host 10.0.0.11", "[exit 1]"},
			holder: "new-0",
		},
		"reserved": {
			change: func(ip *v1.BCSNetIP) { ip.Status = v1.BCSNetIPStatus{Status: v1.IPReserved} },
			wants: []string{"✗ 10.1.0.20 was not released: default/gone-0 gave it up meanwhile, and it is reserved now " +
				"(LeaseChanged)", "[exit 1]"},
		},
		"released by its DEL": {
			change: func(ip *v1.BCSNetIP) { ip.Status, ip.Finalizers = v1.BCSNetIPStatus{Status: v1.IPAvailable}, nil },
			wants:  []string{"✔ 1 address released"},
		},
		"a label": {
			change: func(ip *v1.BCSNetIP) { ip.Labels = map[string]string{"a": "b"} },
			wants:  []string{"✔ 1 address released"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			f.havePool(t)
			f.haveLease(t, "10.1.0.20", "10.0.0.11", "default/gone-0")
			url := before(t, http.MethodPut, "/10.1.0.20", update(t, tc.change))
			_, stderr := f.call(t, "--server", url, "ip", "release", "10.1.0.20", "--force", "--yes")
			contains(t, stderr, tc.wants...)
			if got := f.object(t, "10.1.0.20").Status.PodName; got != tc.holder {
				t.Errorf("it is held by %q, want %q", got, tc.holder)
			}
		})
	}
}

// TestReserveBesidesAnotherWriter: an address that somebody takes in between is not set aside.
func TestReserveBesidesAnotherWriter(t *testing.T) {
	f := newFixture(t)
	f.havePool(t)
	url := before(t, http.MethodPost, "/bcsnetips", func() error {
		return f.lease(t.Context(), nil, []string{"10.1.0.21", "blue", "10.0.0.11", "vm-1"})
	})
	_, stderr := f.call(t, "--server", url, "ip", "reserve", "10.1.0.21")
	contains(
		t, stderr, "✗ 10.1.0.21 was not reserved: address 10.1.0.21 of pool blue is held by vm-1 on host 10.0.0.11 "+
			"(AddressInUse)", "[exit 1]")
	if got := f.object(t, "10.1.0.21").Status; got.Status != v1.IPActive || got.Owner != "vm-1" {
		t.Errorf("it is %+v", got)
	}
}

// TestReleaseInterrupted: after Ctrl-C no further release begins, those under way end, both parts are said,
// and running it again does the rest.
func TestReleaseInterrupted(t *testing.T) {
	f := newFixture(t)
	f.havePool(t)
	var addresses []string
	for i := 20; i < 40; i++ {
		addresses = append(addresses, fmt.Sprintf("10.1.0.%d", i))
		f.haveLease(t, addresses[len(addresses)-1], "10.0.0.11", fmt.Sprint("vm-", i))
	}
	// One release conflicts; while it looks again, with the other workers held up, the user interrupts.
	looking, heldUp, noticed := make(chan struct{}), make(chan struct{}, len(addresses)), make(chan struct{})
	var conflict atomic.Bool
	url := proxy(t, func(rw http.ResponseWriter, r *http.Request, next http.Handler) {
		first := strings.HasSuffix(r.URL.Path, "/10.1.0.20")
		switch {
		case r.Method == http.MethodPut && first && conflict.CompareAndSwap(false, true):
			rw.Header().Set("Content-Type", "application/json")
			rw.WriteHeader(http.StatusConflict)
			_, _ = io.WriteString(
				rw, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Conflict","code":409,"message":"changed"}`)
		case r.Method == http.MethodGet && first && conflict.Load():
			close(looking)
			<-r.Context().Done() // the program has noticed
			close(noticed)
		case r.Method == http.MethodPut:
			heldUp <- struct{}{}
			<-noticed
			next.ServeHTTP(rw, r)
		default:
			next.ServeHTTP(rw, r)
		}
	})
	stdout, stderr := f.interrupted(t, func() {
		<-looking
		for range resource.AtOnce - 1 {
			<-heldUp
		}
	}, append([]string{"--server", url, "ip", "release", "--yes", "-o", "name"}, addresses...)...)
	contains(t, stderr, "✔ 15 addresses released\n", "✗ interrupted\n",
		"✗ 15 of 20 addresses released, not 10.1.0.20, 10.1.0.36-10.1.0.39\nhint: run it again: it does the rest\n")
	if got := strings.Count(stdout, "\n"); got != 15 {
		t.Errorf("%d addresses on standard output:\n%s", got, stdout)
	}
	_, again := f.call(t, append([]string{"ip", "release", "--yes"}, addresses...)...)
	contains(t, again, "10.1.0.21-10.1.0.35 are free already\n", "✔ 5 addresses released\n")
}

// TestAllocateAtOnce: processes that ask for one name at once get one address, those that ask for several
// names one each.
func TestAllocateAtOnce(t *testing.T) {
	f := newFixture(t)
	f.havePool(t)
	names := []string{"vip", "vip", "vip", "vm-1", "vm-2"}
	got := make([]string, len(names))
	var wg sync.WaitGroup
	for i, name := range names {
		wg.Go(func() {
			stdout, stderr := f.call(t, "ip", "allocate", "--pool", "blue", "--for", name, "-o", "name")
			if !strings.Contains(stderr, "10.1.0.") || strings.Count(stdout, "\n") != 1 {
				t.Errorf("%s: %q, %q", name, stdout, stderr)
			}
			got[i] = strings.TrimSpace(stdout)
		})
	}
	wg.Wait()
	if got[0] != got[1] || got[1] != got[2] {
		t.Errorf("one name has %v", got[:3])
	}
	slices.Sort(got)
	if got = slices.Compact(got); len(got) != 3 {
		t.Errorf("three names have %v", got)
	}
	var all v1.BCSNetIPList
	if err := f.client.List(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	active := 0
	for _, ip := range all.Items {
		if ip.Status.Status == v1.IPActive {
			active++
		}
	}
	if active != 3 {
		t.Errorf("%d addresses are held", active)
	}
}
