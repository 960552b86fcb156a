package controlplane

import (
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"
)

//go:embed kwok.yaml
var kwokStages []byte

// layout chooses ports and identities, and prepares the processes.
func (cp *ControlPlane) layout(o options) error {
	ports, err := freeAddresses(o.address, 4)
	if err != nil {
		return err
	}
	etcd, apiserver := ports[0], ports[1]
	if cp.Config, err = cp.identity("https://"+apiserver.String(), "kubernetes-admin", "system:masters"); err != nil {
		return err
	}
	if cp.http, err = rest.HTTPClientFor(cp.Config); err != nil {
		return err
	}
	if cp.clients, err = kubernetes.NewForConfigAndClient(cp.Config, cp.http); err != nil {
		return err
	}
	if err := cp.WriteKubeconfig(cp.adminKubeconfig()); err != nil {
		return err
	}
	if err := cp.layoutEtcd(etcd, o); err != nil {
		return err
	}
	cp.layoutAPIServer(apiserver, etcd, o)
	if o.controllerManager {
		if err := cp.layoutControllerManager(ports[2], o); err != nil {
			return err
		}
	}
	if o.scheduler {
		if err := cp.layoutScheduler(ports[3], o); err != nil {
			return err
		}
	}
	if o.kwok {
		return cp.layoutKwok(o)
	}
	return nil
}

func (cp *ControlPlane) layoutEtcd(listen netip.AddrPort, o options) error {
	// The API server presents its usual client certificate to etcd.
	pair, err := cp.pki.client("etcd-client")
	if err != nil {
		return err
	}
	for name, data := range map[string][]byte{"etcd-client.crt": pair.cert, "etcd-client.key": pair.key} {
		if err := cp.pki.write(name, data); err != nil {
			return err
		}
	}
	cp.etcd = cp.component(etcdBinary, 5*time.Second, o,
		"--data-dir="+filepath.Join(cp.Dir, "etcd"),
		"--listen-client-urls=https://"+listen.String(),
		"--advertise-client-urls=https://"+listen.String(),
		"--listen-peer-urls=http://127.0.0.1:0", // alone: any port will do
		"--cert-file="+cp.pki.path("serving.crt"),
		"--key-file="+cp.pki.path("serving.key"),
		"--trusted-ca-file="+cp.pki.path("ca.crt"),
		"--client-cert-auth",
		"--enable-grpc-gateway=false", // it calls itself without a client certificate
	)
	cp.etcd.ready = cp.answersOK("https://" + listen.String() + "/readyz")
	return nil
}

func (cp *ControlPlane) layoutAPIServer(listen, etcd netip.AddrPort, o options) {
	args := []string{
		"--bind-address=" + listen.Addr().String(),
		"--advertise-address=" + listen.Addr().String(),
		fmt.Sprintf("--secure-port=%d", listen.Port()),
		"--endpoint-reconciler-type=none", // refuses loopback addresses; our pods call no Service
		"--tls-cert-file=" + cp.pki.path("serving.crt"),
		"--tls-private-key-file=" + cp.pki.path("serving.key"),
		"--client-ca-file=" + cp.pki.path("ca.crt"),
		"--requestheader-client-ca-file=" + cp.pki.path("ca.crt"),
		"--requestheader-allowed-names=front-proxy",
		"--requestheader-username-headers=X-Remote-User",
		"--etcd-servers=https://" + etcd.String(),
		"--etcd-cafile=" + cp.pki.path("ca.crt"),
		"--etcd-certfile=" + cp.pki.path("etcd-client.crt"),
		"--etcd-keyfile=" + cp.pki.path("etcd-client.key"),
		"--authorization-mode=Node,RBAC",
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file=" + cp.pki.path("sa.key"),
		"--service-account-signing-key-file=" + cp.pki.path("sa.key"),
		"--service-cluster-ip-range=10.96.0.0/16",
		"--allow-privileged",
	}
	if !o.controllerManager {
		// Without a controller manager, the default ServiceAccounts that this plugin requires do not exist.
		args = append(args, "--disable-admission-plugins=ServiceAccount")
	}
	// Open watches would delay a graceful end for a minute. The state is in etcd, so this is not needed.
	cp.apiserver = cp.component(apiserverBinary, 2*time.Second, o, args...)
	cp.apiserver.ready = cp.answersOK(cp.Config.Host + "/readyz")
}

func (cp *ControlPlane) layoutControllerManager(listen netip.AddrPort, o options) error {
	kubeconfig, err := cp.componentKubeconfig(controllerManagerBinary, "system:kube-controller-manager")
	if err != nil {
		return err
	}
	cp.controllerManager = cp.component(controllerManagerBinary, 2*time.Second, o, append(
		cp.serving(listen, kubeconfig),
		"--kubeconfig="+kubeconfig,
		"--leader-elect=false",
		"--use-service-account-credentials",
		"--root-ca-file="+cp.pki.path("ca.crt"),
		"--service-account-private-key-file="+cp.pki.path("sa.key"),
		"--kube-api-qps=500", "--kube-api-burst=1000", // a Deployment with hundreds of pods must not take minutes
	)...)
	cp.controllerManager.ready = allOf(
		cp.answersOK("https://"+listen.String()+"/healthz"),
		cp.hasServiceAccount("default", "default"),
	)
	return nil
}

func (cp *ControlPlane) layoutScheduler(listen netip.AddrPort, o options) error {
	kubeconfig, err := cp.componentKubeconfig(schedulerBinary, SchedulerUser)
	if err != nil {
		return err
	}
	settings := map[string]any{
		"apiVersion":       "kubescheduler.config.k8s.io/v1",
		"kind":             "KubeSchedulerConfiguration",
		"clientConnection": map[string]any{"kubeconfig": kubeconfig, "qps": 500, "burst": 1000},
		"leaderElection":   map[string]any{"leaderElect": false},
	}
	if len(o.extenders) > 0 {
		if settings["extenders"], err = cp.secured(o.extenders); err != nil {
			return err
		}
	}
	config, err := yaml.Marshal(settings)
	if err != nil {
		return err
	}
	file := filepath.Join(cp.Dir, schedulerBinary+".yaml")
	if err := os.WriteFile(file, config, 0o600); err != nil {
		return err
	}
	cp.scheduler = cp.component(schedulerBinary, 2*time.Second, o,
		append(cp.serving(listen, kubeconfig), "--config="+file)...)
	cp.scheduler.ready = cp.answersOK("https://" + listen.String() + "/readyz")
	return nil
}

// secured returns the configuration of extenders. It adds certificate files for extenders with HTTPS.
func (cp *ControlPlane) secured(extenders []map[string]any) ([]map[string]any, error) {
	pair, err := cp.pki.client(SchedulerUser)
	err = errors.Join(err, cp.pki.write("scheduler.crt", pair.cert), cp.pki.write("scheduler.key", pair.key))
	if err != nil {
		return nil, err
	}
	out := make([]map[string]any, 0, len(extenders))
	for _, extender := range extenders {
		extender = maps.Clone(extender)
		if extender["enableHTTPS"] == true {
			extender["tlsConfig"] = map[string]any{
				"serverName": allocatorName, "caFile": cp.pki.path("ca.crt"),
				"certFile": cp.pki.path("scheduler.crt"), "keyFile": cp.pki.path("scheduler.key"),
			}
		}
		out = append(out, extender)
	}
	return out, nil
}

func (cp *ControlPlane) layoutKwok(o options) error {
	stages := filepath.Join(cp.Dir, kwokBinary+".yaml")
	if err := os.WriteFile(stages, kwokStages, 0o600); err != nil {
		return err
	}
	// kwok acts as many kubelets and impersonates users. A real cluster has no role for it.
	cp.kwok = cp.component(kwokBinary, 2*time.Second, o,
		"--kubeconfig="+cp.adminKubeconfig(),
		"--config="+stages,
		"--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake",
		"--node-lease-duration-seconds=40", // the kubelet's default; without it nodes become NotReady
	)
	listen, err := FreeAddress()
	if err != nil {
		return err
	}
	cp.kwok.args = append(cp.kwok.args, "--server-address="+listen.String())
	cp.kwok.ready = cp.answersOK("http://" + listen.String() + "/healthz")
	return nil
}

// component prepares a process of the named binary. It sets HOME, because some binaries look there for configuration.
func (cp *ControlPlane) component(name string, grace time.Duration, o options, args ...string) *process {
	env := []string{"HOME=" + cp.Dir}
	if testing.Testing() {
		// A test's cluster lives for a minute or two: less garbage collection shortens its start by a quarter.
		// Benchmarks keep the defaults.
		env = append(env, "GOGC=400")
	}
	return &process{
		name:  name,
		path:  filepath.Join(cp.assets, name),
		args:  append(args, o.args[name]...),
		env:   env,
		dir:   cp.Dir,
		log:   filepath.Join(cp.LogDir, name+".log"),
		grace: grace,
	}
}

// serving returns the common flags of components that serve health and metrics to authorized callers.
func (cp *ControlPlane) serving(listen netip.AddrPort, kubeconfig string) []string {
	return []string{
		"--bind-address=" + listen.Addr().String(),
		fmt.Sprintf("--secure-port=%d", listen.Port()),
		"--tls-cert-file=" + cp.pki.path("serving.crt"),
		"--tls-private-key-file=" + cp.pki.path("serving.key"),
		"--authentication-kubeconfig=" + kubeconfig,
		"--authorization-kubeconfig=" + kubeconfig,
	}
}
