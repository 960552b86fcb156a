package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/containernetworking/plugins/pkg/ns"
	"github.com/vishvananda/netlink"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/bcsnet/bcsnet/api/v1"
)

// neighboursPart is the part that has a control plane in a network namespace of its own, as the main plugin bridge
// makes links in it.
const neighboursPart = "neighbours"

// insideVariable is set in the environment of the process in that namespace.
const insideVariable = "BENCH_NEIGHBOURS"

const (
	// crowd is the number of containers that are attached at the same time.
	crowd = 100
	// aloneTurns and crowdTurns are the numbers of turns that one round has: of one container, and of a crowd.
	aloneTurns, crowdTurns = 15, 2
)

// turnTimes are the wall time of all ADDs and then all DELs of a turn, and the processor time of their processes.
type turnTimes struct {
	Wall time.Duration `json:"wall"`
	CPU  time.Duration `json:"cpu"`
}

// match has the turns of each plugin, in one way to call them.
type match struct {
	// Below is the main plugin that calls the IPAM plugins; empty if they are called directly.
	Below string `json:"below"`
	// AtOnce is the number of containers of a turn.
	AtOnce int                    `json:"atOnce"`
	Turns  map[string][]turnTimes `json:"turns"`
}

// neighbours measures IPAM plugins beside each other: this program a second time, in a network namespace.
func neighbours(ctx context.Context, r *report) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(self, os.Args[1:]...)
	cmd.Env = append(os.Environ(), insideVariable+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET}
	var all []match
	err = again(ctx, cmd, &all)
	if errors.Is(err, unix.EPERM) {
		say("the part %s is skipped: this process may make no network namespace: %v", neighboursPart, err)
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s: %w", neighboursPart, err)
	}
	for _, m := range all {
		r.match(m)
	}
	return nil
}

// measureNeighbours measures, and prints the matches.
func measureNeighbours(ctx context.Context, o settings) error {
	lo, err := netlink.LinkByName("lo")
	if err == nil {
		err = netlink.LinkSetUp(lo)
	}
	if err != nil {
		return err
	}
	b, err := setUp(ctx, o, &report{})
	if err != nil {
		return err
	}
	defer b.close()
	street, end, err := b.newStreet(ctx)
	if err != nil {
		return err
	}
	defer end()
	var all []match
	for _, below := range []string{"", bridge} {
		for _, atOnce := range []int{1, crowd} {
			m := match{Below: below, AtOnce: atOnce, Turns: map[string][]turnTimes{}}
			turns := o.rounds * aloneTurns
			if atOnce == crowd {
				turns = o.rounds * crowdTurns
			}
			if err := street.take(ctx, turns, &m); err != nil {
				return err
			}
			all = append(all, m)
		}
	}
	return json.NewEncoder(os.Stdout).Encode(all)
}

// street has IPAM plugins, and the containers that they are called for.
type street struct {
	rivals     []rival
	containers []container
	// path has the directories of all plugins.
	path, configDir string
}

// container is a container of a pod of its own, on the first node.
type container struct {
	netns ns.NetNS
	pod   *corev1.Pod
}

func (b *bench) newStreet(ctx context.Context) (s *street, end func(), err error) {
	p, endPlugin, err := b.newPlugin(ctx)
	if err != nil {
		return nil, nil, err
	}
	s = &street{configDir: p.secure}
	end = func() {
		for _, c := range s.containers {
			_ = c.netns.Close()
		}
		endPlugin()
	}
	if err = s.furnish(ctx, b, p); err != nil {
		end()
		return nil, nil, err
	}
	return s, end, nil
}

func (s *street) furnish(ctx context.Context, b *bench, p *plugin) (err error) {
	if s.rivals, s.path, err = p.rivals(ctx); err != nil {
		return err
	}
	pool, err := b.pool(ctx, "bench-neighbours", "10.97.0.0/22", v1.MaterializeAlways)
	if err == nil {
		err = b.waitNormal(ctx, pool)
	}
	for i := range crowd {
		if err != nil {
			return err
		}
		c := container{pod: &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("neighbour-%d", i)},
			Spec:       corev1.PodSpec{NodeName: nodeName(0), Containers: []corev1.Container{{Name: "c", Image: "c"}}},
		}}
		if c.netns, err = ns.TempNetNS(); err != nil {
			return err
		}
		s.containers = append(s.containers, c)
		err = b.admin.Create(ctx, c.pod)
	}
	return err
}

// take has all plugins take turns, in an order that changes. The first turn does not count.
func (s *street) take(ctx context.Context, turns int, m *match) error {
	for turn := range 1 + turns {
		say("%s, %d at once: turn %d of %d", m.way(), m.AtOnce, turn, turns)
		for i := range s.rivals {
			r := s.rivals[(turn+i)%len(s.rivals)]
			if r.name == whereabouts && m.AtOnce > 1 && turn != 1 {
				continue // a crowd waits for its lock, for up to a minute
			}
			took, err := s.turn(ctx, r, m, turn)
			if err != nil {
				return fmt.Errorf("%s: %w", r.name, err)
			}
			if turn > 0 {
				m.Turns[r.name] = append(m.Turns[r.name], took)
			}
		}
	}
	return nil
}

// turn attaches the containers of a turn at once, and then detaches them at once.
func (s *street) turn(ctx context.Context, r rival, m *match, turn int) (took turnTimes, err error) {
	began := time.Now()
	for _, verb := range []string{"ADD", "DEL"} {
		times := make([]time.Duration, m.AtOnce)
		group, ctx := errgroup.WithContext(ctx)
		for i := range m.AtOnce {
			cmd := s.invocation(r, m, turn, i).command(ctx, verb)
			group.Go(func() error {
				out, err := cmd.CombinedOutput()
				if err != nil {
					return fmt.Errorf("%s: %w: %s", verb, err, out)
				}
				times[i] = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime() // those of its children, too
				return nil
			})
		}
		if err := group.Wait(); err != nil {
			return took, err
		}
		for _, t := range times {
			took.CPU += t
		}
	}
	took.Wall = time.Since(began)
	return took, nil
}

func (s *street) invocation(r rival, m *match, turn, i int) invocation {
	program := r.program
	if m.Below != "" {
		program = r.main
	}
	at := s.containers[i]
	return invocation{
		program: program, ipam: r.ipam, configDir: s.configDir, path: s.path,
		container: containerID(neighboursPart+m.way(), i, m.AtOnce*1000+turn),
		netns:     fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), at.netns.Fd()), pod: at.pod.Name,
		podUID: string(at.pod.UID),
	}
}
