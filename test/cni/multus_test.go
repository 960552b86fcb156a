package cni_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bcsnet/bcsnet/test/controlplane"
)

// network makes a NetworkAttachmentDefinition of ours, by which Multus attaches a second interface.
func (c *crio) network() string {
	c.Helper()
	name := fmt.Sprintf("second-%d", c.ten)
	config := fmt.Sprintf(`{"cniVersion":"1.0.0","name":%q,"plugins":[{"type":"bridge","bridge":"cni1","ipam":{"type":"bcsnet-ipam",
		"network":%q}},{"type":"bcsnet-announce"}]}`, name, name)
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition",
		"metadata": map[string]any{"namespace": "default", "name": name}, "spec": map[string]any{"config": config},
	}}
	if err := c.Admin.Create(c.Context(), o); err != nil {
		c.Fatal(err)
	}
	return name
}

// thin writes the configuration of Multus as a program, above a delegate.
func (c *crio) thin(name, delegate string) {
	c.Helper()
	cfg := *shared.cluster.Config
	cfg.Host = "https://" + c.tunnel(strings.TrimPrefix(cfg.Host, "https://"))
	path := filepath.Join(c.state, "multus.kubeconfig")
	if err := controlplane.WriteKubeconfigFor(&cfg, path); err != nil {
		c.Fatal(err)
	}
	c.configured(name, fmt.Sprintf(`{"cniVersion":"1.1.0","name":"multus","type":"multus","kubeconfig":%q,"cniDir":%q,"binDir":%q,
		"confDir":%q,"delegates":[%s]}`, path, filepath.Join(c.state, "multus"), c.bin, c.confs, delegate))
}

// thick starts Multus' daemon, which writes the configuration of its shim, above the first one that it finds. The
// version is the one that its own manifests have: by 1.1.0 STATUS and GC come, too, and the daemon refuses both, as
// they are about no pod.
func (c *crio) thick() {
	c.Helper()
	host, port, err := net.SplitHostPort(c.tunnel(strings.TrimPrefix(shared.cluster.Config.Host, "https://")))
	if err != nil {
		c.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(c.state, "secrets"), 0o700); err != nil {
		c.Fatal(err)
	}
	c.write("state/secrets/token", c.token("kube-system", "multus", "", ""))
	c.write("state/secrets/ca.crt", string(shared.cluster.Config.CAData))
	sockets := filepath.Join(c.state, "sockets")
	c.write("state/daemon.json", fmt.Sprintf(`{"cniVersion":"0.3.1","socketDir":%q,"daemonSocketDir":%q,"cniDir":%q,"binDir":%q,
		"confDir":%q,"cniConfigDir":%q,"multusAutoconfigDir":%q,"multusConfigFile":"auto","logToStderr":true,"logLevel":"verbose"}`,
		sockets, sockets, filepath.Join(c.state, "multus"), c.bin, c.confs, c.confs, c.confs))
	cmd := exec.Command("/bin/sh", "-c", strings.Replace(script, "eval", `mkdir -p /run/secrets/kubernetes.io
ln -s "$TEST_DIR/state/secrets" /run/secrets/kubernetes.io/serviceaccount
eval`, 1), "sh", filepath.Join(c.bin, "multus-daemon"), "-config", filepath.Join(c.state, "daemon.json"))
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "CNI_PATH=" + c.bin, "TEST_DIR=" + c.dir, "TEST_BEFORE=", "USER=root", "HOME=/", "KUBERNETES_SERVICE_HOST=" + host,
		"KUBERNETES_SERVICE_PORT=" + port,
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	var log controlplane.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	c.host.Do(c.T, cmd.Start)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait() // it is killed
	}()
	c.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
		if c.Failed() {
			c.Logf("multus-daemon:\n%s", &log)
		}
	})
	healthy := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", filepath.Join(sockets, "multus.sock"))
		},
	}}
	controlplane.Eventually(c.T, func() error {
		select {
		case <-ended:
			c.Fatalf("multus-daemon has ended: %s", &log)
		default:
		}
		r, err := http.NewRequestWithContext(c.Context(), http.MethodGet, "http://multus/healthz", nil)
		if err != nil {
			return err
		}
		resp, err := healthy.Do(r)
		if err != nil {
			return fmt.Errorf("%w\n%s", err, &log)
		}
		_, err = os.Stat(filepath.Join(c.confs, "00-multus.conf"))
		return errors.Join(err, resp.Body.Close())
	})
}

// annotate has Multus attach a pod to a network.
func (c *crio) annotate(p *container, network string) {
	c.Helper()
	o := &corev1.Pod{}
	if err := c.Admin.Get(c.Context(), client.ObjectKey{Namespace: "default", Name: p.pod}, o); err != nil {
		c.Fatal(err)
	}
	o.Annotations = map[string]string{"k8s.v1.cni.cncf.io/networks": network}
	if err := c.Admin.Update(c.Context(), o); err != nil {
		c.Fatal(err)
	}
}
