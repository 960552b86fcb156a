package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
)

// listed are n addresses one by one, beginning with first.
func listed(first string, n int) []string {
	out := make([]string, 0, n)
	for a := netip.MustParseAddr(first); len(out) < n; a = a.Next() {
		out = append(out, a.String())
	}
	return out
}

// The largest pool that the contract names: 16,384 addresses one by one, 4,096 hosts. Writing it and its
// status must not weigh on the API server.
func TestLargestPool(t *testing.T) {
	c := connect(t)
	// the first write waits for the server's caches
	if err := c.Create(t.Context(), pool(), client.DryRunAll); err != nil {
		t.Fatal(err)
	}
	tests := map[string]*v1.BCSNetPool{
		"IPv4": pool(subnet("10.0.0.0", 8, "10.0.0.1"), available(listed("10.1.0.0", 16384)...), hosts(listed("192.168.0.0", 4096)...)),
		"IPv6": pool(v6, available(listed("2001:db8::1:0:0:1000", 16384)...), hosts(listed("2001:db8:1::", 4096)...)),
	}
	for name, p := range tests {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			create(t, c, p)
			created := time.Since(began)

			p.Status.Status, p.Status.Capacity = v1.PoolNormal, 16384
			began = time.Now()
			if err := c.Status().Update(t.Context(), p); err != nil {
				t.Fatal(err)
			}
			reported := time.Since(began)

			t.Logf("create %v, status %v", created.Round(time.Millisecond), reported.Round(time.Millisecond))
			// The measured times are a tenth of this; what is meant is an order of magnitude.
			if limit := 5 * time.Second; created > limit || reported > limit {
				t.Errorf("create took %v, status %v; want less than %v", created, reported, limit)
			}
		})
	}
}

// kubectl apply keeps a copy of the manifest in an annotation, which may have 256 KiB; so a pool of
// that size needs --server-side.
func TestLargestPoolThroughKubectl(t *testing.T) {
	c := connect(t)
	p := pool(subnet("10.0.0.0", 8, "10.0.0.1"), available(listed("10.101.0.0", 16384)...),
		hosts(listed("192.168.0.0", 4096)...))
	p.APIVersion, p.Kind = v1.GroupVersion.String(), "BCSNetPool"
	manifest, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	out, err := kubectlInput(t, string(manifest), "apply", "-f", "-")
	if err == nil || !strings.Contains(out, "metadata.annotations: Too long") {
		t.Errorf("kubectl apply: %v: %.200s", err, out)
	}
	t.Cleanup(func() {
		if err := c.Delete(context.Background(), p); client.IgnoreNotFound(err) != nil {
			t.Error(err)
		}
	})
	out, err = kubectlInput(t, string(manifest), "apply", "--server-side", "-f", "-")
	if err != nil || out != "bcsnetpool.networkextension.bkbcs.tencent.com/10.0.0.0 serverside-applied\n" {
		t.Errorf("kubectl apply --server-side: %v: %.200s", err, out)
	}
}

func TestTooLongLists(t *testing.T) {
	ten := subnet("10.0.0.0", 8, "10.0.0.1")
	judge(t, map[string]poolCase{
		"100,000 addresses": {edits: edits{ten, available(listed("10.1.0.0", 100000)...)}, want: []string{
			"spec.availableIPs: Too many: 100000: must have at most 16384 items", unchecked,
		}},
		"16,385 addresses": {edits: edits{ten, available(listed("10.1.0.0", 16385)...)}, want: []string{
			"spec.availableIPs: Too many: 16385: must have at most 16384 items", unchecked,
		}},
		"4,097 exclusions": {edits: edits{ten, excluded(listed("10.1.0.0", 4097)...)}, want: []string{
			"spec.excludeIPs: Too many: 4097: must have at most 4096 items", unchecked,
		}},
		"4,097 hosts": {edits: edits{hosts(listed("10.1.0.0", 4097)...)}, want: []string{
			"spec.hosts: Too many: 4097: must have at most 4096 items", unchecked,
		}},
		"1,024 host subnets": {edits: edits{hostSubnets(networks(1024)...)}},
		"1,025 host subnets": {edits: edits{hostSubnets(networks(1025)...)}, want: []string{
			"spec.hostSubnets: Too many: 1025: must have at most 1024 items", unchecked,
		}},
		"257 namespaces": {edits: edits{namespaces(numbered("n", 257)...)}, want: []string{
			"spec.namespaces: Too many: 257: must have at most 256 items", unchecked,
		}},
		"entry beyond 79 characters": {edits: edits{available("10.0.0.20" + fmt.Sprintf("%71s", "-10.0.0.21"))}, want: []string{
			"spec.availableIPs[0]: Too long: may not be more than 79 bytes", unchecked,
		}},
	})
}

// networks are so many CIDRs.
func networks(n int) (out []string) {
	for i := range n {
		out = append(out, fmt.Sprintf("10.%d.%d.0/24", i/256, i%256))
	}
	return out
}

// Entries far into a long list are judged one by one; whether they lie in the subnet is judged up to
// 4,096 entries, and beyond that the controller says it.
func TestLongLists(t *testing.T) {
	ten := subnet("10.0.0.0", 8, "10.0.0.1")
	long := func(last string, n int) func(*v1.BCSNetPoolSpec) {
		return available(append(listed("10.1.0.0", n-1), last)...)
	}
	judge(t, map[string]poolCase{
		"last of 16,384 is no address": {edits: edits{ten, long("ten", 16384)}, want: []string{
			`spec.availableIPs[16383]: Invalid value: "ten": ` + notEntry,
		}},
		"last of 16,384 is reversed": {edits: edits{ten, long("10.9.0.2-10.9.0.1", 16384)}, want: []string{
			`spec.availableIPs[16383]: Invalid value: "10.9.0.2-10.9.0.1": is reversed: write 10.9.0.1-10.9.0.2`,
		}},
		"last of 4,096 outside": {edits: edits{ten, long("11.0.0.1", 4096)}, want: []string{
			"spec.availableIPs: Invalid value: 11.0.0.1 does not lie in the subnet 10.0.0.0/8: list only addresses of the subnet",
		}},
		"all of 4,096 outside": {edits: edits{ten, available(listed("11.0.0.0", 4096)...)}, want: []string{
			"spec.availableIPs: Invalid value: 11.0.0.0 does not lie in the subnet 10.0.0.0/8: list only addresses of the subnet",
		}},
		"last exclusion outside": {edits: edits{ten, excluded(append(listed("10.1.0.0", 4095), "11.0.0.1")...)}, want: []string{
			"spec.excludeIPs: Invalid value: 11.0.0.1 does not lie in the subnet 10.0.0.0/8: list only addresses of the subnet",
		}},
		"left to the controller: last of 4,097 outside": {edits: edits{ten, long("11.0.0.1", 4097)}},
		"left to the controller: reversed IPv6 range":   {edits: edits{v6, available("2001:db8::30-2001:db8::20")}},
		"left to the controller: two /64":               {edits: edits{subnet("2001:db8::", 48, "2001:db8::1"), available("2001:db8::/64", "2001:db8:0:1::/64")}},
	})
}

// Lists of the dearest entries stay within the run-time budget of one object.
func TestDearestLists(t *testing.T) {
	c := connect(t)
	ranges := func(n int) []string {
		out := make([]string, n)
		for i := range out {
			a := fmt.Sprintf("2001:0db8:aaaa:bbbb:cccc:dddd:1eee:%04x", i)
			out[i] = a + "~" + a
		}
		return out
	}
	wide := subnet("2001:0db8:aaaa:bbbb:cccc:dddd:1eee:0000", 112, "2001:0db8:aaaa:bbbb:cccc:dddd:1eee:ffff")
	for name, p := range map[string]*v1.BCSNetPool{
		"4,096 and 4,096":  pool(wide, available(ranges(4096)...), excluded(ranges(4096)...)),
		"16,384 and 4,096": pool(wide, available(ranges(16384)...), excluded(ranges(4096)...)),
	} {
		t.Run(name, func(t *testing.T) {
			if diff := compare(t, nil, c.Create(t.Context(), p, client.DryRunAll)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func numbered(prefix string, n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprint(prefix, i)
	}
	return out
}
