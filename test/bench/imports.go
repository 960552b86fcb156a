package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/store"
)

const (
	// blockLeases is the number of addresses in one of Calico's blocks, all of them in use.
	blockLeases = 64
	// importPart is the part of the largest pool that one turn beside the bare client imports.
	importPart = 16
	importPool = "bench-import"
)

// imports measures bcsnetctl import beside a bare client that creates as many of the same objects with as many
// concurrent writes, in turns without pods; then one import of many leases of as many pods, and the same again. No
// controller runs meanwhile.
func (b *bench) imports(ctx context.Context) error {
	if err := b.controller.Stop(); err != nil {
		return err
	}
	kubeconfig, err := b.operator(ctx)
	if err != nil {
		return err
	}
	if err := b.servesCalico(ctx); err != nil {
		return err
	}
	cfg, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	client, err := store.New(cfg, nil, store.NewClock(nil))
	if err != nil {
		return err
	}
	args := []string{"bcsnetctl", "import", "calico", "--yes", "--no-headers"}
	n := b.large / importPart
	var bare, ours []result
	for turn := range b.rounds {
		say("import: turn %d of %d", turn+1, b.rounds)
		// Each turn has addresses of its own. The first address of a subnet can be nobody's.
		first := netip.AddrFrom4([4]byte{10, byte(64 + 2*turn), 1, 0})
		r, err := createLeases(ctx, client, ipaddr.Advance(first, 1<<16), n)
		if err != nil {
			return err
		}
		remove, err := b.calicoHas(ctx, first, n)
		if err != nil {
			return err
		}
		m, err := b.process(ctx, kubeconfig, args)
		if err == nil && m.lines != n {
			err = fmt.Errorf("import listed %d of %d leases", m.lines, n)
		}
		if err := errors.Join(err, remove()); err != nil {
			return err
		}
		bare, ours = append(bare, r), append(ours, result{perSecond: float64(n) / m.total.Seconds()})
	}
	b.report.importTurns(n, bare, ours)
	return b.largeImport(ctx, kubeconfig, args, median(bare))
}

// largeImport measures one import of many leases of as many pods, and the same again.
func (b *bench) largeImport(ctx context.Context, kubeconfig string, args []string, bare result) error {
	say("writing %d pods", b.large)
	if err := b.cliPods(ctx, b.large); err != nil {
		return err
	}
	first := netip.AddrFrom4([4]byte{10, 128, 1, 0})
	if _, err := b.calicoHas(ctx, first, b.large); err != nil {
		return err
	}
	for _, again := range []bool{false, true} {
		say("import: %d leases, again %t", b.large, again)
		before, err := b.apiRequests(ctx)
		if err != nil {
			return err
		}
		m, err := b.process(ctx, kubeconfig, args)
		if err != nil {
			return err
		}
		after, err := b.apiRequests(ctx)
		if err != nil {
			return err
		}
		writes := 0.0
		for what, count := range after {
			if verb, of, _ := strings.Cut(what, " "); of == v1.IPResource && verb != "LIST" && verb != "GET" {
				writes += count - before[what]
			}
		}
		b.report.importOnce(b.large, m, int(writes), bare, again)
	}
	return nil
}

// createLeases creates leases as an import does, and nothing else.
func createLeases(ctx context.Context, c *store.Client, first netip.Addr, n int) (result, error) {
	params := lease.Params{Pool: importPool, Bits: 15}
	var group errgroup.Group
	group.SetLimit(resource.AtOnce)
	began := time.Now()
	for i := range n {
		group.Go(func() error {
			h := lease.Holder{
				ContainerID: containerID("calico", i, 0), IfName: lease.DefaultIfName, Namespace: namespace,
				PodName: cliPod(2 * i), StartedAt: began,
			}
			by := lease.Change{
				Verb: lease.VerbImport, By: "bench", Reason: "calico: container " + h.ContainerID[:12],
			}
			l := lease.Lease{Addr: ipaddr.Advance(first, uint64(i))}
			next, _ := lease.Import(l, params, h, lease.Retention{}, began, by)
			_, err := c.Write(ctx, next)
			return err
		})
	}
	err := group.Wait()
	return result{perSecond: float64(n) / time.Since(began).Seconds()}, err
}

// servesCalico makes the kinds of Calico that an import reads.
func (b *bench) servesCalico(ctx context.Context) error {
	var manifest strings.Builder
	for kind, plural := range map[string]string{"IPPool": "ippools", "IPAMBlock": "ipamblocks"} {
		fmt.Fprintf(&manifest, `---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[2]s.crd.projectcalico.org}
spec:
  group: crd.projectcalico.org
  names: {kind: %[1]s, listKind: %[1]sList, plural: %[2]s}
  scope: Cluster
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`, kind, plural)
	}
	cmd := b.cp.Kubectl(ctx, "create", "-f", "-")
	cmd.Stdin = strings.NewReader(manifest.String())
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	out, err := b.cp.Kubectl(ctx, "wait", "--for=condition=Established", "crd/ippools.crd.projectcalico.org",
		"crd/ipamblocks.crd.projectcalico.org").CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// calicoHas makes a pool of Calico with leases from an address on, in blocks as Calico has them. remove deletes these
// objects.
func (b *bench) calicoHas(ctx context.Context, first netip.Addr, n int) (remove func() error, err error) {
	pool, now := netip.PrefixFrom(first, 15).Masked(), time.Now().UTC().Round(0).String()
	all := []*unstructured.Unstructured{calicoObject("IPPool", pool, map[string]any{"nodeSelector": "all()"})}
	for from := 0; from < n; from += blockLeases {
		allocations, attributes := []any{}, []any{}
		for i := range min(blockLeases, n-from) {
			allocations = append(allocations, int64(i))
			attributes = append(attributes, map[string]any{
				"handle_id": "k8s-pod-network." + containerID("calico", from+i, 0),
				"secondary": map[string]any{
					"namespace": namespace, "node": nodeName(from + i), "pod": cliPod(2 * (from + i)),
					"timestamp": now,
				},
			})
		}
		subnet := netip.PrefixFrom(ipaddr.Advance(first, uint64(from)), 26)
		all = append(all, calicoObject("IPAMBlock", subnet, map[string]any{
			"affinity": "host:" + nodeName(from), "allocations": allocations, "attributes": attributes,
		}))
	}
	do := func(each func(*unstructured.Unstructured) error) error {
		var group errgroup.Group
		group.SetLimit(maxCallers)
		for _, o := range all {
			group.Go(func() error { return each(o) })
		}
		return group.Wait()
	}
	err = do(func(o *unstructured.Unstructured) error { return b.admin.Create(ctx, o) })
	return func() error {
		return do(func(o *unstructured.Unstructured) error { return b.admin.Delete(ctx, o) })
	}, err
}

// calicoObject returns an object of Calico that is named after its subnet.
func calicoObject(kind string, subnet netip.Prefix, spec map[string]any) *unstructured.Unstructured {
	spec["cidr"] = subnet.String()
	o := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	o.SetAPIVersion("crd.projectcalico.org/v1")
	o.SetKind(kind)
	o.SetName(strings.NewReplacer(".", "-", "/", "-").Replace(subnet.String()))
	return o
}
