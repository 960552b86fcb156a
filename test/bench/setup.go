package main

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/httpapi/wire"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/store"
	"github.com/bcsnet/bcsnet/test/controlplane"
)

const (
	maxCallers = 64
	hosts      = 8
	namespace  = "bench"
)

// bench is the control plane and everything on it.
type bench struct {
	settings
	cp         *controlplane.ControlPlane
	controller *controlplane.Controller
	admin      client.Client
	filler     *store.Client // as the administrator: fills pools
	bare       *bare
	floor      floorClient
	floorCmd   *exec.Cmd
	floorLives int
	http       *http.Client
	report     *report
	// crowded is the kubeconfig of an operator once there are the objects that the command line is measured over.
	crowded string
}

func say(format string, args ...any) { fmt.Fprintf(os.Stderr, "► "+format+"\n", args...) }

func setUp(ctx context.Context, o settings, r *report) (_ *bench, err error) {
	say("starting etcd, kube-apiserver and the controller")
	b := &bench{settings: o, report: r, http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: maxCallers}}}
	defer func() {
		if err != nil {
			b.close()
		}
	}()
	if b.cp, err = controlplane.Start(ctx); err != nil {
		return nil, err
	}
	if err = b.cp.InstallManifests(ctx); err != nil {
		return nil, err
	}
	if b.controller, err = b.cp.StartController(ctx, controlplane.ControllerOptions{}); err != nil {
		return nil, err
	}
	admin := rest.CopyConfig(b.cp.Config)
	admin.QPS = -1
	if b.admin, err = b.cp.Admin(); err != nil {
		return nil, err
	}
	if b.filler, err = store.New(admin, nil, store.NewClock(nil)); err != nil {
		return nil, err
	}
	if b.bare, err = newBare(b.controller.Config, netip.MustParseAddr("10.160.0.0")); err != nil {
		return nil, err
	}
	if err = b.bare.prepare(ctx, maxCallers); err != nil {
		return nil, err
	}
	if err = b.startFloor(ctx, false); err != nil {
		return nil, err
	}
	return b, b.makePods(ctx)
}

// startFloor starts the empty handler, with an informer or without.
func (b *bench) startFloor(ctx context.Context, informer bool) error {
	kubeconfig := filepath.Join(b.cp.Dir, "floor.kubeconfig")
	if err := controlplane.WriteKubeconfigFor(b.controller.Config, kubeconfig); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	// Every life of the handler makes other objects: of 16,384 addresses each.
	next := netip.AddrFrom4([4]byte{10, byte(192 + b.floorLives/4), byte(b.floorLives % 4 * 64), 0})
	b.floorLives++
	b.floorCmd = exec.CommandContext(ctx, self, "-floor-handler", kubeconfig, "-floor-next", next.String(),
		fmt.Sprintf("-floor-informer=%t", informer))
	b.floorCmd.Stderr = os.Stderr
	b.floorCmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := b.floorCmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := b.floorCmd.Start(); err != nil {
		return err
	}
	url, err := bufio.NewReader(out).ReadString('\n')
	b.floor = floorClient{http: b.http, url: strings.TrimSpace(url)}
	return err
}

func (b *bench) close() {
	b.stopFloor()
	if b.cp != nil {
		_ = b.cp.Stop()
	}
}

// stopFloor ends the empty handler, if it runs.
func (b *bench) stopFloor() {
	if b.floorCmd != nil && b.floorCmd.Process != nil {
		_ = b.floorCmd.Process.Kill()
		_ = b.floorCmd.Wait()
	}
	b.floorCmd = nil
}

func host(caller int) string { return fmt.Sprintf("10.99.0.%d", 11+caller%hosts) }

func nodeName(caller int) string { return fmt.Sprintf("node-%d", caller%hosts) }

func podName(caller int) string { return fmt.Sprintf("bench-7d4b9c6f5d-%05d", caller) }

// makePods makes a node per host and a pod per caller, bound to its node.
func (b *bench) makePods(ctx context.Context) error {
	if err := b.admin.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
		return err
	}
	for i := range hosts {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName(i)}}
		if err := b.admin.Create(ctx, n); err != nil {
			return err
		}
		n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: host(i)}}
		if err := b.admin.Status().Update(ctx, n); err != nil {
			return err
		}
	}
	for i := range maxCallers {
		p := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: podName(i)},
			Spec:       corev1.PodSpec{NodeName: nodeName(i), Containers: []corev1.Container{{Name: "c", Image: "c"}}},
		}
		if err := b.admin.Create(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

// pool makes a pool of the addresses of a CIDR for the bench hosts, with what else its spec is to say.
func (b *bench) pool(
	ctx context.Context, name, cidr string, mode v1.Materialize, with ...func(*v1.BCSNetPoolSpec),
) (*v1.BCSNetPool, error) {
	prefix := netip.MustParsePrefix(cidr)
	p := &v1.BCSNetPool{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1.BCSNetPoolSpec{
		Net: "10.0.0.0", Mask: 8, Gateway: "10.254.0.1", AvailableIPs: []string{prefix.String()}, Materialize: mode,
	}}
	for i := range hosts {
		p.Spec.Hosts = append(p.Spec.Hosts, host(i))
	}
	for _, change := range with {
		change(&p.Spec)
	}
	return p, b.admin.Create(ctx, p)
}

func (b *bench) waitNormal(ctx context.Context, p *v1.BCSNetPool) error {
	for {
		if err := b.admin.Get(ctx, client.ObjectKeyFromObject(p), p); err != nil {
			return err
		}
		if p.Status.Status == v1.PoolNormal && p.Status.ObservedGeneration == p.Generation {
			return nil
		}
		if err := pause(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// fill takes the first n addresses of a pool as other pods would have, or other holders: change makes them of the
// pods'.
func (b *bench) fill(ctx context.Context, p *v1.BCSNetPool, n int, change func(*lease.Holder)) error {
	plan, err := ipam.NewPlan(store.PlanSpec(p))
	if err != nil {
		return err
	}
	existing := map[netip.Addr]lease.Lease{}
	if err := b.filler.Each(ctx, "", func(l lease.Lease) error { existing[l.Addr] = l; return nil }); err != nil {
		return err
	}
	var group errgroup.Group
	group.SetLimit(64)
	params := lease.Params{Pool: p.Name, Bits: plan.Subnet.Bits(), Gateway: plan.Gateway}
	for i, a := range plan.Addresses(true)[:n] {
		group.Go(func() error {
			l, ok := existing[a]
			if !ok {
				l = lease.Lease{Addr: a}
			}
			h := holder(i, i)
			h.ContainerID, h.PodName = containerID("fill"+p.Name, i, 0), fmt.Sprintf("fill-7d4b9c6f5d-%05d", i)
			h.PodUID = fmt.Sprintf("0b5fd196-789c-4dad-b384-%012d", i)
			h.Host = netip.MustParseAddr(host(i))
			if change != nil {
				change(&h)
			}
			next, ok := lease.Bind(l, params, h, lease.Retention{}, b.filler.Now())
			if !ok {
				return nil
			}
			_, err := b.filler.Write(ctx, next)
			return err
		})
	}
	return group.Wait()
}

func containerID(kind string, caller, n int) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s/%d/%d", kind, caller, n))
	return hex.EncodeToString(sum[:])
}

// service calls the allocator as a CNI plugin does.
type service struct {
	b *bench
	// kind distinguishes the containers of one measurement from those of others.
	kind string
	// pod is the name of a caller's pod; nil for those that belong to nothing.
	pod func(caller int) string
	// network that the address is asked of; empty for any.
	network string
	// over is how the controller is reached; nil for plain HTTP on connections that are kept.
	over *way
}

func (s service) add(ctx context.Context, caller, n int) error {
	return s.call(ctx, http.MethodPost, caller, n)
}

func (s service) del(ctx context.Context, caller, n int) error {
	return s.call(ctx, http.MethodDelete, caller, n)
}

func (s service) call(ctx context.Context, method string, caller, n int) error {
	pod := s.pod
	if pod == nil {
		pod = podName
	}
	return s.send(ctx, method, wire.AllocateRequest{
		Host: host(caller), ContainerID: containerID(s.kind, caller, n), PodName: pod(caller), PodNamespace: namespace,
		Network: s.network,
	})
}

// first asks for the address of an owner that had none before.
func (s service) first(ctx context.Context, caller, n int) error {
	id := containerID(s.kind, caller, n)
	return s.send(ctx, http.MethodPost, wire.AllocateRequest{Host: host(caller), ContainerID: id, Owner: "bench-" +
		id[:12], Network: s.network})
}

func (s service) send(ctx context.Context, method string, request wire.AllocateRequest) error {
	body, err := json.Marshal(request)
	if err != nil {
		return err
	}
	w := way{s.b.http, s.b.controller.URL}
	if s.over != nil {
		w = *s.over
	}
	answer, err := send(ctx, w.http, method, w.url+wire.Prefix, body)
	if err != nil {
		return err
	}
	var e wire.Envelope
	if err := json.Unmarshal(answer, &e); err != nil {
		return err
	}
	if e.Code != 0 {
		return fmt.Errorf("%s: %s", e.Reason, e.Message)
	}
	return nil
}
