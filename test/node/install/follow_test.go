//go:build linux

package install

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bcsnet/bcsnet/pkg/cni/netconf"
	"github.com/bcsnet/bcsnet/pkg/cni/runstate"
	"github.com/bcsnet/bcsnet/pkg/cni/undelivered"
	"github.com/bcsnet/bcsnet/pkg/hosts"
	"github.com/bcsnet/bcsnet/pkg/node"
	"github.com/bcsnet/bcsnet/test/controlplane"
	"github.com/bcsnet/bcsnet/test/node/bed"
)

// gate stands before the controller with a certificate and a token of a test's own, and shuts when a test says so.
type gate struct {
	*httptest.Server
	shut  atomic.Bool
	token atomic.Pointer[string]
}

func newGate(t *testing.T, b *bed.Bed) *gate {
	t.Helper()
	target := &url.URL{Scheme: "https", Host: netip.AddrPortFrom(b.Gateway4(), bed.AllocatorPort).String()}
	g := &gate{}
	g.token.Store(new("a token"))
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM([]byte(must(b.CA(t.Context())))) {
		t.Fatal("no certificate is published")
	}
	token := must(b.Token(t.Context(), "")) // of no node: the one of the test is none of the cluster's
	pass := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Header.Set("Authorization", "Bearer "+token)
		},
		Transport: &http.Transport{
			DisableKeepAlives: true,
			TLSClientConfig:   &tls.Config{RootCAs: pool, ServerName: bed.ServerName, MinVersion: tls.VersionTLS13},
		},
	}
	g.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case g.shut.Load():
			panic(http.ErrAbortHandler)
		case r.Header.Get("Authorization") != "Bearer "+*g.token.Load():
			w.WriteHeader(http.StatusUnauthorized)
		default:
			pass.ServeHTTP(w, r)
		}
	}))
	// The API server takes no EndpointSlice with an address of the loopback.
	listener, err := net.Listen("tcp", netip.AddrPortFrom(b.Gateway4(), 0).String())
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Listener.Close(); err != nil {
		t.Fatal(err)
	}
	g.Listener = listener
	g.StartTLS()
	t.Cleanup(g.Close)
	return g
}

// certificate returns the certificate of the gate in PEM.
func (g *gate) certificate() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: g.Certificate().Raw}))
}

// newOptions returns the options of a node in a directory of a test's own, with what is mounted into the pod.
func newOptions(t *testing.T) node.Options {
	t.Helper()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	o := node.Options{
		Node: "node-1", Host: "10.0.0.11", Kubeconfig: at("kubeconfig"), ProgramsDir: at("programs"), BinDir: at("bin"),
		NetDir: at("net.d"), ConfigDir: at("config"), DataDir: at("data"), RunDir: at("run"),
		ConflistFile: at("mounted-conflist"),
		ConflistName: conflist, CAFile: at("mounted-ca"), TokenFile: at("mounted-token"), Service: "bcsnet-system/gate",
		ServicePort: "allocator", ServerName: "example.com", // that of the certificate
		HTTPBindAddress: must(controlplane.FreeAddress()).String(), LogLevel: "info", Now: time.Now,
		Every: node.Intervals{
			Compare: 20 * time.Millisecond, Repair: 200 * time.Millisecond, Check: 100 * time.Millisecond,
			Grace: 500 * time.Millisecond,
		},
	}
	for _, made := range []string{o.ProgramsDir, o.BinDir, o.NetDir} {
		if err := os.Mkdir(made, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	put(t, filepath.Join(o.ProgramsDir, "bcsnet-ipam"), "a program")
	put(t, o.TokenFile, "a token")
	put(t, o.ConflistFile, `{"cniVersion": "1.1.0", "name": "lan", "plugins": [{"type": "bridge", "ipam":
		{"type": "bcsnet-ipam"}}]}`)
	return o
}

// allow gives a node the rights of the manifests, by a token that is bound to its Node as that of a pod there is.
func allow(t *testing.T, s *suite, o node.Options) {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: controlplane.SystemNamespace,
		Name: "bcsnet-node"}}
	cfg, err := s.Cluster.ServiceAccountConfig(t.Context(), account.Namespace, account.Name)
	if err != nil {
		t.Fatal(err)
	}
	bound := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		BoundObjectRef: &authenticationv1.BoundObjectReference{Kind: "Node", APIVersion: "v1", Name: o.Node},
	}}
	if err := s.Client.SubResource("token").Create(t.Context(), account, bound); err != nil {
		t.Fatal(err)
	}
	cfg.BearerToken = bound.Status.Token
	if err := controlplane.WriteKubeconfigFor(cfg, o.Kubeconfig); err != nil {
		t.Fatal(err)
	}
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// readConfig returns the config.json of a node.
func readConfig(o node.Options) (netconf.Node, error) {
	text, err := os.ReadFile(filepath.Join(o.ConfigDir, "config.json"))
	if err != nil {
		return netconf.Node{}, err
	}
	return netconf.ParseNode(text)
}

// inodes returns the numbers of all installed files.
func inodes(t *testing.T, o node.Options) map[string]uint64 {
	t.Helper()
	all := map[string]uint64{}
	for _, dir := range []string{o.BinDir, o.ConfigDir, o.NetDir} {
		for _, e := range must(os.ReadDir(dir)) {
			var stat unix.Stat_t
			if err := unix.Stat(filepath.Join(dir, e.Name()), &stat); err != nil {
				t.Fatal(err)
			}
			all[e.Name()] = stat.Ino
		}
	}
	return all
}

// TestRun follows a node through its life, with the rights of the manifests and no more: it waits for the cluster, is
// installed, follows replicas, token and conflist, says what goes wrong, and ends without a trace of its end.
func TestRun(t *testing.T) {
	t.Parallel()
	s := newSuite(t)
	o := newOptions(t)
	var log controlplane.Buffer
	o.LogOutput = &log
	admin := s.Client
	object := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: o.Node}} // none that the DaemonSet has pods for
	if err := admin.Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := admin.Delete(context.WithoutCancel(t.Context()), object); err != nil {
			t.Error(err)
		}
	})
	allow(t, s, o)
	g := newGate(t, s.Bed)
	put(t, o.CAFile, g.certificate())

	life := start(t, o)
	defer func() {
		if t.Failed() {
			t.Logf("the log:\n%s", &log)
		}
	}()
	wantCondition(t, admin, o, corev1.ConditionFalse, node.ReasonNotInstalled)
	wantEvent(t, admin, o, node.ReasonNotInstalled)
	slice := bed.Endpoints("gate", must(netip.ParseAddrPort(g.Listener.Addr().String())))
	if err := admin.Create(t.Context(), slice); err != nil {
		t.Fatal(err)
	}
	wantCondition(t, admin, o, corev1.ConditionTrue, node.ReasonReady)
	wantEvent(t, admin, o, node.ReasonReady)
	if text, status := get(t, o, "/readyz"); status != http.StatusOK {
		t.Errorf("readyz: %d, %s", status, text)
	}
	wantFile(t, filepath.Join(o.NetDir, o.ConflistName), string(must(os.ReadFile(o.ConflistFile))))
	has := must(readConfig(o))
	system := &corev1.Namespace{}
	if err := admin.Get(t.Context(), types.NamespacedName{Name: metav1.NamespaceSystem}, system); err != nil {
		t.Fatal(err)
	}
	if has.Cluster != string(system.UID) || len(has.Replicas) != 1 || has.Replicas[0].String() != g.URL {
		t.Errorf("config.json is %+v", has)
	}

	t.Run("a replica more", func(t *testing.T) {
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{Addresses: []string{"192.168.77.2"}})
		if err := admin.Update(t.Context(), slice); err != nil {
			t.Fatal(err)
		}
		wantReplicas(t, o, 2)
		slice.Endpoints = slice.Endpoints[:1]
		if err := admin.Update(t.Context(), slice); err != nil {
			t.Fatal(err)
		}
		wantReplicas(t, o, 1)
	})
	t.Run("a token that is renewed", func(t *testing.T) {
		put(t, o.TokenFile, "another token")
		wantFile(t, filepath.Join(o.ConfigDir, "token"), "another token")
		// the gate wants the earlier one
		wantCondition(t, admin, o, corev1.ConditionFalse, node.ReasonAllocatorUnreachable)
		g.token.Store(new("another token"))
		wantCondition(t, admin, o, corev1.ConditionTrue, node.ReasonReady)
	})
	t.Run("somebody removes the conflist", func(t *testing.T) {
		path := filepath.Join(o.NetDir, o.ConflistName)
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		wantFile(t, path, string(must(os.ReadFile(o.ConflistFile))))
	})
	t.Run("an outage, and a release", func(t *testing.T) {
		g.shut.Store(true)
		wantCondition(t, admin, o, corev1.ConditionFalse, node.ReasonAllocatorUnreachable)
		wantEvent(t, admin, o, node.ReasonAllocatorUnreachable)
		wantFile(t, filepath.Join(o.NetDir, o.ConflistName), string(must(os.ReadFile(o.ConflistFile))))
		if text, status := get(t, o, "/readyz"); status != http.StatusOK {
			t.Errorf("readyz: %d, %s", status, text)
		}
		store := undelivered.In(o.DataDir)
		err := store.Put(undelivered.Record{
			Cluster: string(system.UID), ContainerID: "3f4e", IfName: "eth0", StartedAt: time.Now(),
			Host: netip.MustParseAddr("10.0.0.11"),
		})
		if err != nil {
			t.Fatal(err)
		}
		wantMetric(t, o, "bcsnet_node_undelivered_records 1")
		g.shut.Store(false)
		wantCondition(t, admin, o, corev1.ConditionTrue, node.ReasonReady)
		wantMetric(t, o, "bcsnet_node_undelivered_records 0")
		wantMetric(t, o, `bcsnet_node_calls_total{command="DEL",outcome="delivered",reason=""} 1`)
	})
	t.Run("pools that are full", func(t *testing.T) {
		dir := runstate.Dir(o.RunDir)
		full := &runstate.Full{At: time.Now(), Message: "no available IP for pod shop/web-0"}
		if err := dir.Update(func(s *runstate.State) { s.AnsweredAt, s.PoolsFull = time.Now(), full }); err != nil {
			t.Fatal(err)
		}
		wantCondition(t, admin, o, corev1.ConditionFalse, node.ReasonPoolsFull)
		wantMetric(t, o, `bcsnet_node_condition{reason="PoolsFull"} 1`)
		if err := dir.Update(func(s *runstate.State) { s.AnsweredAt, s.PoolsFull = time.Now(), nil }); err != nil {
			t.Fatal(err)
		}
		wantCondition(t, admin, o, corev1.ConditionTrue, node.ReasonReady)
	})
	t.Run("the pod is rolled", func(t *testing.T) {
		before := conditionOf(t, admin, o)
		inodesBefore := inodes(t, o)
		if err := life.end(); err != nil {
			t.Error(err)
		}
		life = start(t, o)
		wantMetric(t, o, "bcsnet_node_installed 1")
		wantMetric(t, o, `bcsnet_node_condition{reason="Ready"} 1`)
		if after := conditionOf(t, admin, o); !after.LastTransitionTime.Equal(&before.LastTransitionTime) ||
			after.Status != before.Status {
			t.Errorf("the condition turned: %+v, then %+v", before, after)
		}
		for name, inode := range inodes(t, o) {
			if inodesBefore[name] != inode {
				t.Errorf("%s was written again", name)
			}
		}
	})
	t.Run("the conflist gets another name", func(t *testing.T) {
		earlier := filepath.Join(o.NetDir, o.ConflistName)
		if err := life.end(); err != nil {
			t.Error(err)
		}
		o.ConflistName = "05-lan.conflist"
		life = start(t, o)
		wantFile(t, filepath.Join(o.NetDir, o.ConflistName), string(must(os.ReadFile(o.ConflistFile))))
		controlplane.Eventually(t, func() error {
			if _, err := os.Lstat(earlier); !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("the earlier one is there: %w", err)
			}
			return nil
		})
	})
	foreign := filepath.Join(o.NetDir, "20-other.conflist")
	t.Run("a conflist of somebody else names the plugins", func(t *testing.T) {
		if err := life.end(); err != nil { // it has ended with its part of the test
			t.Error(err)
		}
		life = start(t, o)
		put(t, foreign, `{"cniVersion":"1.0.0","name":"other","plugins":[{"type":"not-there","ipam":{"type":"bcsnet-ipam"}}]}`)
		controlplane.Eventually(t, func() error {
			c := conditionOf(t, admin, o)
			if c == nil || c.Status != corev1.ConditionTrue || !strings.Contains(c.Message, "20-other.conflist") {
				return fmt.Errorf("the condition is %+v", c)
			}
			return nil
		})
	})
	if err := life.end(); err != nil {
		t.Error(err)
	}
	t.Run("it is not removed while that is so", func(t *testing.T) {
		if err := node.Uninstall(t.Context(), o); err == nil || !strings.Contains(err.Error(), foreign) {
			t.Errorf("%v", err)
		}
		if err := os.Remove(foreign); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("it is removed", func(t *testing.T) {
		if err := node.Uninstall(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		if left := inodes(t, o); len(left) > 0 {
			t.Errorf("%v are left", left)
		}
		if c := conditionOf(t, admin, o); c != nil {
			t.Errorf("the condition is %+v", c)
		}
	})
}

// running is a bcsnet-node that runs in this process.
type running struct {
	stop context.CancelFunc
	done chan error
}

func start(t *testing.T, o node.Options) *running {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	r := &running{stop, make(chan error, 1)}
	go func() { r.done <- node.Run(ctx, o) }()
	t.Cleanup(stop)
	return r
}

func (r *running) end() error {
	r.stop()
	return <-r.done
}

// conditionOf returns our condition of the Node; nil where there is none.
func conditionOf(t *testing.T, admin client.Client, o node.Options) *corev1.NodeCondition {
	t.Helper()
	object := &corev1.Node{}
	if err := admin.Get(t.Context(), types.NamespacedName{Name: o.Node}, object); err != nil {
		t.Fatal(err)
	}
	for _, c := range object.Status.Conditions {
		if c.Type == hosts.ConditionType {
			return &c
		}
	}
	return nil
}

func wantCondition(t *testing.T, admin client.Client, o node.Options, status corev1.ConditionStatus,
	reason node.Reason) {
	t.Helper()
	controlplane.Eventually(t, func() error {
		c := conditionOf(t, admin, o)
		if c == nil || c.Status != status || c.Reason != string(reason) || c.Message == "" {
			return fmt.Errorf("the condition is %+v, want %s, %s", c, status, reason)
		}
		return nil
	})
}

func wantEvent(t *testing.T, admin client.Client, o node.Options, reason node.Reason) {
	t.Helper()
	controlplane.Eventually(t, func() error {
		list := &eventsv1.EventList{}
		if err := admin.List(t.Context(), list, client.InNamespace(metav1.NamespaceDefault)); err != nil {
			return err
		}
		for i := range list.Items {
			if e := &list.Items[i]; e.Reason == string(reason) && e.Regarding.Kind == "Node" &&
				e.Regarding.Name == o.Node {
				return nil
			}
		}
		return fmt.Errorf("the Node has no event %s", reason)
	})
}

func wantFile(t *testing.T, path, want string) {
	t.Helper()
	controlplane.Eventually(t, func() error {
		got, err := os.ReadFile(path)
		if err == nil && string(got) != want {
			err = fmt.Errorf("%s is %s", path, got)
		}
		return err
	})
}

func wantReplicas(t *testing.T, o node.Options, n int) {
	t.Helper()
	controlplane.Eventually(t, func() error {
		var c netconf.Node
		c, err := readConfig(o)
		if err == nil && len(c.Replicas) != n {
			err = fmt.Errorf("the replicas are %v", c.Replicas)
		}
		return err
	})
}

// get returns what the pod serves.
func get(t *testing.T, o node.Options, path string) (string, int) {
	t.Helper()
	status, text, err := fetch(t, "http://"+o.HTTPBindAddress+path)
	if err != nil {
		return err.Error(), 0
	}
	return text, status
}

func wantMetric(t *testing.T, o node.Options, line string) {
	t.Helper()
	controlplane.Eventually(t, func() error {
		text, status := get(t, o, "/metrics")
		if status != http.StatusOK || !strings.Contains(text, "\n"+line+"\n") {
			return fmt.Errorf("HTTP %d, and no line %s", status, line)
		}
		return nil
	})
}
