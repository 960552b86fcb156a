package rights

import (
	"bytes"
	"errors"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/cli"
	"github.com/bcsnet/bcsnet/pkg/controller"
	"github.com/bcsnet/bcsnet/test/controlplane"
	"github.com/bcsnet/bcsnet/test/inprocess"
	"github.com/bcsnet/bcsnet/test/site"
)

// serve runs a controller as its ServiceAccount, with a pool, and returns what asks it.
func serve(t *testing.T, pool string, addresses ...string) *site.Site {
	t.Helper()
	cfg, err := cluster.ServiceAccountConfig(t.Context(), system, controlplane.ControllerName)
	if err != nil {
		t.Fatal(err)
	}
	c := inprocess.ForTest(t, cfg, func(o *controller.Options) { o.LeaderElect = false })
	s := &site.Site{T: t, Admin: admin, Host: "10.0.0.11", URL: c.URL, Caller: &http.Client{Transport: &http.Transport{}}}
	s.NewPool(pool, nil, addresses...)
	return s
}

// allocates has the controller give an address and take it back.
func allocates(s *site.Site, pod string) {
	s.Helper()
	s.NewPod(pod)
	var got string
	controlplane.Eventually(s, func() error { // the controller may not know the pool yet
		a := s.Ask(http.MethodPost, pod, "")
		if got = a.Message; a.Code == 0 {
			got = a.Addrs()[0].String()
			return nil
		}
		return errors.New(a.Message)
	})
	if got := status(s, got); got != v1.IPActive {
		s.Errorf("%s has %s", pod, got)
	}
	if a := s.Ask(http.MethodDelete, pod, ""); a.Code != 0 {
		s.Errorf("DEL: %s", a.Message)
	}
	if got := status(s, got); got != v1.IPAvailable {
		s.Errorf("after DEL the address is %s", got)
	}
}

func status(s *site.Site, address string) v1.IPPhase {
	s.Helper()
	o := &v1.BCSNetIP{}
	if err := admin.Get(s.Context(), client.ObjectKey{Name: address}, o); err != nil {
		s.Fatal(err)
	}
	return o.Status.Status
}

// command runs the command line as a user, and returns its exit code, what it prints and what it says.
func command(t *testing.T, user string, args ...string) (int, string, string) {
	t.Helper()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := cluster.WriteKubeconfig(kubeconfig); err != nil {
		t.Fatal(err)
	}
	var out, said bytes.Buffer
	all := append([]string{"bcsnetctl", "--kubeconfig", kubeconfig, "--as", user, "--as-group", "system:authenticated"}, args...)
	code := cli.Main(all, "v1.2.3", genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: &out, ErrOut: &said})
	return code, out.String(), said.String()
}

// The controller serves, operators write addresses by the command line, viewers see why, and who may write addresses by
// RBAC alone is told what is missing. (All other commands run with the policies in the scripts of pkg/cli.)
func TestServiceAndCommands(t *testing.T) {
	ready(t)
	s := serve(t, "served", "10.8.0.20-10.8.0.29")
	allocates(s, "web")
	s.BoundPod("shown")
	if a := s.Ask(http.MethodPost, "shown", "10.8.0.20"); a.Code != 0 {
		t.Fatal(a.Message)
	}
	for _, test := range []struct {
		user, args string
		code       int
		want       string
	}{
		{"operator", "ip reserve 10.8.0.28 --reason rack", 0, ""},
		{"operator", "ip unreserve 10.8.0.28", 0, ""},
		{"operator", "ip allocate --pool served --address 10.8.0.27 --for vm-1", 0, ""},
		{"operator", "ip release 10.8.0.27 --yes", 0, ""},
		{"operator", "ip reserve 10.8.0.28 --dry-run=server", 0, ""},
		{"writer", "ip reserve 10.8.0.26", 1, "10.8.0.26 was refused to writer: "},
		{"writer", "ip reserve 10.8.0.26", 1, "hint: your user needs the ClusterRole bcsnet-operator"},
		{"viewer", "ip reserve 10.8.0.26", 1, "Forbidden"},
		{"viewer", "explain default/shown", 0, "10.8.0.20"},
		{"viewer", "explain namespace default", 0, "served"},
		{"viewer", "trace default/shown", 0, "10.8.0.20"},
		{"viewer", "pool list", 0, "served"},
		{"operator", "release-host 10.0.0.11 --force", 0, ""},
	} {
		code, out, said := command(t, test.user, strings.Fields(test.args)...)
		if code != test.code || !strings.Contains(out+said, test.want) {
			t.Errorf("%s: %s: exit code %d without %q: %s%s", test.user, test.args, code, test.want, out, said)
		}
	}
	if got := status(s, "10.8.0.20"); got != v1.IPAvailable {
		t.Errorf("after release-host the address is %s", got)
	}
}

// Without the policies everything works, and RBAC alone says who writes; with them again, it is as before.
func TestWithoutPolicies(t *testing.T) {
	ready(t)
	root, err := controlplane.ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	policies := filepath.Join(root, "config", "policies")
	if out, err := cluster.Kubectl(t.Context(), "delete", "-k", policies).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if err := effective(t.Context(), false); err != nil {
		t.Error(err)
	}
	allocates(serve(t, "unguarded", "10.8.1.20-10.8.1.29"), "free")
	if code, _, said := command(t, "operator", "ip", "reserve", "10.8.1.28"); code != 0 {
		t.Error(said)
	}
	if err := as(t, "writer").Update(t.Context(), held(t)); err != nil {
		t.Error(err)
	}
	if out, err := cluster.Kubectl(t.Context(), "apply", "--server-side", "-k", policies).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if err := effective(t.Context(), true); err != nil {
		t.Fatal(err)
	}
}
