package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/store"
	"github.com/bcsnet/bcsnet/test/controlplane"
)

const (
	cliPool = "bench-cli"
	// quickRuns is the number of measurements of what takes milliseconds.
	quickRuns = 15
	// exitFindings is how doctor says that it has found something.
	exitFindings = 3
	// longestLine bounds a line of output: inspect prints all ranges of a pool in one.
	longestLine = 64 << 20
)

// cli measures bcsnetctl over a large pool, half of it in use, beside kubectl's list of the same objects. No controller
// runs meanwhile. Every command is a process of an operator.
func (b *bench) cli(ctx context.Context) error {
	if err := b.controller.Stop(); err != nil {
		return err
	}
	operator, err := b.operator(ctx)
	if err != nil {
		return err
	}
	subnet := netip.PrefixFrom(netip.MustParseAddr("10.112.0.0"), prefixBits(b.large))
	pods := b.large * 20_000 / 65_536
	p, err := b.pool(ctx, cliPool, subnet.String(), v1.MaterializeOnDemand)
	if err != nil {
		return err
	}
	say("writing %d addresses and %d pods", b.large, pods)
	if err := b.cliAddresses(ctx, p.Name, subnet); err != nil {
		return err
	}
	if err := b.cliPods(ctx, pods); err != nil {
		return err
	}
	b.report.scale = fmt.Sprintf("%d addresses, half of them in use, and %d pods", b.large, pods)
	kubectl := []string{"kubectl", "get", "bcsnetips", "--no-headers"}
	lists := [][]string{
		kubectl,
		{"bcsnetctl", "ip", "list", "--no-headers"},
		{"bcsnetctl", "ip", "list", "--no-headers", "--pool", cliPool},
		{"bcsnetctl", "lease", "list", "--no-headers"},
		{"bcsnetctl", "ip", "list", "-o", "name"},
		{"bcsnetctl", "ip", "list", "--no-headers", "--sort-by", ".status.podName"},
		{"bcsnetctl", "ip", "list", "-o", "json"},
		{"bcsnetctl", "doctor", "--skip", "install", "-o", "name"},
		{"bcsnetctl", "inspect", "pool", cliPool},
		{"bcsnetctl", "inspect", "pool", cliPool, "-o", "json"},
	}
	runs := make([][]call, len(lists))
	for range b.rounds { // in turn, so that whatever else the machine does meets all alike
		for i, args := range lists {
			say("%s", strings.Join(args, " "))
			m, err := b.process(ctx, operator, args)
			if err != nil {
				return err
			}
			runs[i] = append(runs[i], m)
		}
	}
	theirs := middle(runs[0])
	for i, args := range lists {
		ours := middle(runs[i])
		if i == 1 && ours.lines != theirs.lines {
			return fmt.Errorf("%s printed %d lines, kubectl %d", strings.Join(args, " "), ours.lines, theirs.lines)
		}
		b.report.list(strings.Join(args, " "), ours, theirs)
	}
	for _, args := range [][]string{
		{"bcsnetctl", "help"}, {"bcsnetctl", "version", "--client"}, {"bcsnetctl", "ip", "describe", "10.112.0.20"},
		{"kubectl", "get", "bcsnetips", "10.112.0.20"},
	} {
		var all []call
		for range quickRuns {
			m, err := b.process(ctx, operator, args)
			if err != nil {
				return err
			}
			all = append(all, m)
		}
		b.report.quick(strings.Join(args, " "), middle(all))
	}
	return b.pages(ctx, operator)
}

// operator returns the kubeconfig of somebody with the role that the manifests make for operators.
func (b *bench) operator(ctx context.Context) (string, error) {
	const role = "bcsnet-operator"
	cfg, err := b.cp.ServiceAccountConfig(ctx, namespace, role)
	if err != nil {
		return "", err
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "bench-operator"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: namespace, Name: role}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
	}
	if err := b.admin.Create(ctx, binding); err != nil {
		return "", err
	}
	file := filepath.Join(b.cp.Dir, "operator.kubeconfig")
	return file, controlplane.WriteKubeconfigFor(cfg, file)
}

// cliAddresses makes all addresses of a subnet, every other one in use.
func (b *bench) cliAddresses(ctx context.Context, pool string, subnet netip.Prefix) error {
	var group errgroup.Group
	group.SetLimit(store.MaxWrites)
	a := subnet.Addr()
	for i := 0; subnet.Contains(a); i, a = i+1, a.Next() {
		l := lease.Lease{Addr: a, Params: lease.Params{Pool: pool, Bits: 8, Gateway: netip.MustParseAddr("10.254.0.1")}}
		if i%2 == 0 {
			// long enough to be judged
			l.State, l.Updated, l.HeldFinalizer = lease.Active, b.filler.Now().Add(-time.Hour), true
			l.Holder = lease.Holder{
				Host: netip.MustParseAddr(host(i)), ContainerID: containerID("cli", i, 0), IfName: lease.DefaultIfName,
				Namespace: namespace, PodName: cliPod(i), PodUID: fmt.Sprintf("0b5fd196-789c-4dad-b384-%012d", i),
			}
		}
		group.Go(func() error {
			_, err := b.filler.Write(ctx, l)
			return err
		})
	}
	return group.Wait()
}

func cliPod(i int) string { return fmt.Sprintf("web-%d-7c9d", i) }

// cliPods makes pods of the names of holders.
func (b *bench) cliPods(ctx context.Context, n int) error {
	var group errgroup.Group
	group.SetLimit(maxCallers)
	for i := range n {
		group.Go(func() error {
			p := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "c"}}}}
			p.Namespace, p.Name = namespace, cliPod(2*i)
			return b.admin.Create(ctx, p)
		})
	}
	return group.Wait()
}

// call is what one run of a command took.
type call struct {
	first, total time.Duration
	lines        int
	rss          int64 // bytes
}

// middle returns the run of the median time.
func middle(all []call) call {
	slices.SortFunc(all, func(a, b call) int { return int(a.total - b.total) })
	return all[len(all)/2]
}

// process runs a command and reads what it prints.
func (b *bench) process(ctx context.Context, kubeconfig string, args []string) (m call, err error) {
	cmd := b.cp.Kubectl(ctx, args[1:]...)
	cmd.Env = append(cmd.Env, "KUBECONFIG="+kubeconfig)
	if args[0] != "kubectl" {
		root, err := controlplane.ModuleRoot()
		if err != nil {
			return m, err
		}
		cmd.Path = filepath.Join(root, "bin", args[0])
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return m, err
	}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return m, err
	}
	peak := watchMemory(cmd.Process.Pid, 2*time.Millisecond)
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, longestLine)
	for ; lines.Scan(); m.lines++ {
		if m.lines == 0 {
			m.first = time.Since(began)
		}
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); err != nil && (!errors.As(err, &exit) || exit.ExitCode() != exitFindings) {
		return m, fmt.Errorf("%s: %w", strings.Join(args, " "), err)
	}
	m.total = time.Since(began)
	m.rss = peak()
	return m, nil
}
