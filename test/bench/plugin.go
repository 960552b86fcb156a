package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/containernetworking/plugins/pkg/ns"
	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/cni/netconf"
	"github.com/bcsnet/bcsnet/pkg/httpapi/wire"
	"github.com/bcsnet/bcsnet/test/controlplane"
)

// Goals of bcsnet-ipam.
const (
	addGoal    = 8 * time.Millisecond
	secureGoal = 12 * time.Millisecond
	statusGoal = 5 * time.Millisecond
	sizeGoal   = 12 << 20
	memoryGoal = 24 << 20
)

const (
	// pluginTurns is the number of turns that one round has.
	pluginTurns = 60
	// memoryRuns is the number of calls that are watched for their memory: the largest counts.
	memoryRuns = 30
	network    = "bench"
)

// plugin is bcsnet-ipam as a container runtime runs it: a process for each call.
type plugin struct {
	service
	program, netns, podUID string
	// dir is on the disk, as /var/lib is on a node, and run in memory, as /run is: there, a rename costs nothing.
	dir, run string
	// plain and secure are directories with a config.json: by the latter the plugin calls over TLS with a token.
	plain, secure string
}

// cni measures the calls of bcsnet-ipam beside the same requests over a connection that is kept.
func (b *bench) cni(ctx context.Context) error {
	p, end, err := b.newPlugin(ctx)
	if err != nil {
		say("the part cni is skipped: %v", err)
		return nil
	}
	defer end()
	pod := &corev1.Pod{}
	if err := b.admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: podName(0)}, pod); err != nil {
		return err
	}
	p.podUID = string(pod.UID)
	pool, err := b.pool(ctx, "bench-cni", "10.97.0.0/22", v1.MaterializeAlways)
	if err != nil {
		return err
	}
	if err := b.waitNormal(ctx, pool); err != nil {
		return err
	}
	say("bcsnet-ipam beside a raw call: %d turns", b.rounds*pluginTurns)
	t, err := p.turns(ctx, b.rounds*pluginTurns)
	if err != nil {
		return err
	}
	if t.inside, err = p.inside(); err != nil {
		return err
	}
	say("memory of bcsnet-ipam: %d calls", memoryRuns)
	memory, err := p.memory(ctx)
	if err != nil {
		return err
	}
	info, err := os.Stat(p.program)
	if err != nil {
		return err
	}
	b.report.plugin(t, info.Size(), memory)
	return b.drop(ctx, pool)
}

// newPlugin returns the plugin of bin/, with directories and a network namespace of its own. Its error says why there
// is none.
func (b *bench) newPlugin(ctx context.Context) (p *plugin, end func(), err error) {
	root, err := controlplane.ModuleRoot()
	if err != nil {
		return nil, nil, err
	}
	p = &plugin{service: service{b: b, kind: "cni"}, program: filepath.Join(root, "bin", "bcsnet-ipam")}
	if _, err := os.Stat(p.program); err != nil {
		return nil, nil, fmt.Errorf("%w; hint: run `make build`", err)
	}
	netns, err := ns.TempNetNS()
	if err != nil {
		return nil, nil, fmt.Errorf("this process may make no network namespace, and each call has one: %w", err)
	}
	end = func() { _ = errors.Join(netns.Close(), os.RemoveAll(p.dir), os.RemoveAll(p.run)) }
	if p.dir, err = os.MkdirTemp("", "bcsnet-bench-"); err != nil {
		return nil, nil, errors.Join(err, netns.Close())
	}
	if p.run, err = inMemory(); err != nil {
		end()
		return nil, nil, err
	}
	p.netns = fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), netns.Fd())
	p.plain, err = p.configuration("plain", b.controller.URL)
	if err == nil { // calls.log of the ones is not that of the others
		p.secure, err = p.configuration("tls", b.overTLS())
	}
	if err == nil {
		err = b.credentials(ctx, p.secure)
	}
	if err != nil {
		end()
	}
	return p, end, err
}

// configuration makes a directory with a config.json of the plugin.
func (p *plugin) configuration(name, url string) (dir string, err error) {
	dir = filepath.Join(p.dir, name)
	text, err := json.Marshal(map[string]any{
		"cluster": "bench", "host": host(0), "replicas": []string{url},
		"serverName": "bcsnet-controller.bcsnet-system.svc",
		"dataDir":    p.dir, "runDir": filepath.Join(p.run, name),
	})
	return dir, errors.Join(err, os.Mkdir(dir, 0o700), os.WriteFile(filepath.Join(dir, "config.json"), text, 0o600))
}

// inMemory makes a directory in a file system that is in memory.
func inMemory() (string, error) {
	const shared = "/dev/shm"
	var system unix.Statfs_t
	if err := unix.Statfs(shared, &system); err != nil {
		return "", fmt.Errorf("%s: %w", shared, err)
	}
	if system.Type != unix.TMPFS_MAGIC {
		return "", fmt.Errorf("%s is not in memory, as /run of a node is", shared)
	}
	return os.MkdirTemp(shared, "bcsnet-bench-")
}

// command prepares a call of a container.
func (p *plugin) command(ctx context.Context, verb string, n int, dir string) *exec.Cmd {
	return invocation{
		program: p.program, ipam: `{"type":"bcsnet-ipam"}`, configDir: dir, path: filepath.Dir(p.program),
		container: p.container(n), netns: p.netns, pod: podName(0), podUID: p.podUID,
	}.command(ctx, verb)
}

// invocation is how a container runtime calls a plugin for a container.
type invocation struct {
	program string
	// ipam is the section of that name in the configuration of the main plugin bridge.
	ipam string
	// configDir is the directory with config.json, and path has the directories of further plugins.
	configDir, path  string
	container, netns string
	pod, podUID      string
}

// command prepares the process of a call.
func (i invocation) command(ctx context.Context, verb string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, i.program)
	cmd.Stdin = strings.NewReader(`{"cniVersion":"1.1.0","name":"` + network +
		`","type":"bridge","bridge":"cni0","ipam":` + i.ipam + `}`)
	cmd.Env = []string{
		netconf.ConfigDirVariable + "=" + i.configDir,
		"CNI_COMMAND=" + verb, "CNI_CONTAINERID=" + i.container, "CNI_NETNS=" + i.netns, "CNI_IFNAME=eth0",
		"CNI_PATH=" + i.path, "PATH=/usr/sbin:/usr/bin:/sbin:/bin",
		fmt.Sprintf("CNI_ARGS=IgnoreUnknown=1;K8S_POD_NAMESPACE=%s;K8S_POD_NAME=%s;K8S_POD_INFRA_CONTAINER_ID=%s;"+
			"K8S_POD_UID=%s", namespace, i.pod, i.container, i.podUID),
	}
	return cmd
}

func (p *plugin) container(n int) string { return containerID(p.kind, 0, n) }

// process makes a call as a process, by the configuration of a directory.
func (p *plugin) process(verb, dir string) operation {
	return func(ctx context.Context, _, n int) error {
		out, err := p.command(ctx, verb, n, dir).CombinedOutput()
		if err != nil {
			return fmt.Errorf("%s: %w: %s", verb, err, out)
		}
		return nil
	}
}

// raw sends what a call of the plugin sends, over a connection that is kept.
func (p *plugin) raw(method string) operation {
	return func(ctx context.Context, _, n int) error {
		return p.send(ctx, method, wire.AllocateRequest{
			Host: host(0), ContainerID: p.container(n), IfName: "eth0", PodName: podName(0), PodNamespace: namespace,
			PodUID: p.podUID, StartedAt: time.Now().Format(time.RFC3339Nano), CNINetwork: network,
		})
	}
}
