package controller

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/spf13/pflag"

	"github.com/bcsnet/bcsnet/pkg/controller/gc"
)

// parse reads a command line and an environment as the command does.
func parse(args []string, env map[string]string) (Options, error) {
	var o Options
	f := pflag.NewFlagSet("bcsnet-controller", pflag.ContinueOnError)
	o.AddFlags(f)
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if err := SetFromEnv(f, func(name string) (string, bool) { v, ok := env[name]; return v, ok }); err != nil {
		return o, err
	}
	return o, o.Validate()
}

func defaults() Options {
	return Options{
		HTTPBindAddress: "127.0.0.1:8090", MetricsBindAddress: "127.0.0.1:8091",
		HealthProbeBindAddress: "127.0.0.1:8092",
		LeaderElect:            true, LeaderElectionNamespace: "bcsnet-system", LeaseDuration: 15 * time.Second,
		RenewDeadline: 10 * time.Second,
		RetryPeriod:   2 * time.Second, GatewaySource: "pool",
		GarbageCollection: gc.On, HostGrace: 24 * time.Hour, HistoryRetention: 720 * time.Hour, HistoryParts: 500,
		LogLevel: "info", LogFormat: "text",
		NodeResources: []string{"tke.cloud.tencent.com/eni-ip", "netservice.bkbcs.tencent.com/bcsnetip"},
	}
}

func TestUnknownEnv(t *testing.T) {
	var o Options
	f := pflag.NewFlagSet("bcsnet-controller", pflag.ContinueOnError)
	o.AddFlags(f)
	got := UnknownEnv(f, []string{
		"PATH=/bin", "BCSNET_LOG_LEVEL=debug", "BCSNET_POD_IP=10.0.0.1", "BCSNET_GARBAGE_COLECTION=off", "BCSNET_=",
		"BCSNET_CONTROLLER_SERVICE_HOST=10.0.0.2",
		"BCSNET_CONTROLLER_PORT=tcp://10.0.0.2:80", "BCSNET_CONTROLLER_PORT_80_TCP=tcp://10.0.0.2:80",
		"BCSNET_HTTP_BIND_ADDRESS",
	})
	if diff := cmp.Diff([]string{"BCSNET_", "BCSNET_GARBAGE_COLECTION"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestOptions(t *testing.T) {
	with := func(change func(*Options)) Options {
		o := defaults()
		change(&o)
		return o
	}
	for name, c := range map[string]struct {
		args []string
		env  map[string]string
		want Options
	}{
		"defaults": {nil, nil, defaults()},
		"every flag": {
			[]string{
				"--kubeconfig", "/k", "--http-bind-address", ":80", "--metrics-bind-address=[::1]:81",
				"--health-probe-bind-address=0",
				"--leader-elect=false", "--leader-election-namespace=net", "--leader-elect-lease-duration=4s",
				"--leader-elect-renew-deadline=3s",
				"--leader-elect-retry-period=1s", "--advertise-address=https://a.example", "--plain-http",
				"--tls-cert-file=/c", "--tls-private-key-file=/p", "--gateway-source=host",
				"--garbage-collection=dry-run", "--host-grace=10m",
				"--floatingip-config=kube-system/floatingip-config",
				"--hostnic-ipam-config=kube-system/hostnic-ipam-config", "--ipam-claims", "--cluster-api",
				"--services", "--services-default-class", "--services-kube-vip", "--shared-pools-for-all",
				"--node-resources=a.b/c,d.e/f", "--history-retention=48h", "--history-parts=9", "--log-level=debug",
				"--log-format=json",
			}, nil,
			Options{
				Kubeconfig: "/k", HTTPBindAddress: ":80", MetricsBindAddress: "[::1]:81", HealthProbeBindAddress: "0",
				LeaderElectionNamespace: "net", LeaseDuration: 4 * time.Second, RenewDeadline: 3 * time.Second,
				RetryPeriod:      time.Second,
				AdvertiseAddress: "https://a.example", PlainHTTP: true, TLSCertFile: "/c", TLSPrivateKeyFile: "/p",
				GatewaySource:     "host",
				GarbageCollection: gc.DryRun, HostGrace: 10 * time.Minute,
				FloatingIPConfig:  "kube-system/floatingip-config",
				HostnicIPAMConfig: "kube-system/hostnic-ipam-config", IPAMClaims: true, ClusterAPI: true,
				Services:             true,
				ServicesDefaultClass: true, ServicesKubeVIP: true, SharedPoolsForAll: true,
				NodeResources: []string{"a.b/c", "d.e/f"}, HistoryRetention: 48 * time.Hour, HistoryParts: 9,
				LogLevel: "debug", LogFormat: "json",
			},
		},
		"everything in the environment": {
			nil, map[string]string{
				"BCSNET_KUBECONFIG": "/k", "BCSNET_HTTP_BIND_ADDRESS": "localhost:80",
				"BCSNET_METRICS_BIND_ADDRESS":      "0",
				"BCSNET_HEALTH_PROBE_BIND_ADDRESS": "10.0.0.1:82", "BCSNET_LEADER_ELECT": "false",
				"BCSNET_LEADER_ELECTION_NAMESPACE":   "net",
				"BCSNET_LEADER_ELECT_LEASE_DURATION": "4s", "BCSNET_LEADER_ELECT_RENEW_DEADLINE": "3s",
				"BCSNET_LEADER_ELECT_RETRY_PERIOD": "1s",
				"BCSNET_ADVERTISE_ADDRESS":         "none", "BCSNET_PLAIN_HTTP": "true", "BCSNET_TLS_CERT_FILE": "/c",
				"BCSNET_TLS_PRIVATE_KEY_FILE": "/p",
				"BCSNET_GATEWAY_SOURCE":       "host", "BCSNET_GARBAGE_COLLECTION": "off", "BCSNET_HOST_GRACE": "0",
				"BCSNET_FLOATINGIP_CONFIG": "net/fips", "BCSNET_HOSTNIC_IPAM_CONFIG": "net/blocks",
				"BCSNET_NODE_RESOURCES": "", "BCSNET_HISTORY_RETENTION": "0", "BCSNET_HISTORY_PARTS": "2",
				"BCSNET_LOG_LEVEL": "ERROR", "BCSNET_LOG_FORMAT": "json",
			},
			Options{
				Kubeconfig: "/k", HTTPBindAddress: "localhost:80", MetricsBindAddress: "0",
				HealthProbeBindAddress:  "10.0.0.1:82",
				LeaderElectionNamespace: "net", LeaseDuration: 4 * time.Second, RenewDeadline: 3 * time.Second,
				RetryPeriod:      time.Second,
				AdvertiseAddress: "none", PlainHTTP: true, TLSCertFile: "/c", TLSPrivateKeyFile: "/p",
				GatewaySource:     "host",
				GarbageCollection: gc.Off, FloatingIPConfig: "net/fips", HostnicIPAMConfig: "net/blocks",
				NodeResources: []string{}, HistoryParts: 2, LogLevel: "ERROR",
				LogFormat: "json",
			},
		},
		"the flag wins": {
			[]string{"--log-level=warn", "--leader-elect"},
			map[string]string{"BCSNET_LOG_LEVEL": "nonsense", "BCSNET_LEADER_ELECT": "nonsense",
				"BCSNET_LOG_FORMAT": "json"},
			with(func(o *Options) { o.LogLevel, o.LogFormat = "warn", "json" }),
		},
		"others' variables": {nil, map[string]string{"BCSNET_URL": "http://x", "LOG_LEVEL": "debug",
			"BCSNET_HELP": "x"}, defaults()},
		"a lease needs a namespace only where there is one": {
			[]string{"--leader-elect=false", "--leader-election-namespace="}, nil,
			with(func(o *Options) { o.LeaderElect, o.LeaderElectionNamespace = false, "" }),
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := parse(c.args, c.env)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got, cmpopts.IgnoreFields(Options{}, "LogOutput")); diff != "" {
				t.Errorf("options (-want +got):\n%s", diff)
			}
		})
	}
}

// A bad value ends the start with one line that names the flag, or the variable, and the value.
func TestBadOptions(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, []byte("nonsense: [\n- }"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		args []string
		env  map[string]string
		want []string
	}{
		"a negative retention": {[]string{"--history-retention=-1h"}, nil,
			[]string{"--history-retention -1h0m0s is negative"}},
		"one part": {[]string{"--history-parts=1"}, nil, []string{"--history-parts 1 is below 2"}},
		"a class without Services": {[]string{"--services-default-class"}, nil,
			[]string{"--services-kube-vip go with --services"}},
		"a certificate alone": {[]string{"--tls-cert-file=/c"}, nil,
			[]string{"--tls-cert-file and --tls-private-key-file go together"}},
		"a key alone": {[]string{"--tls-private-key-file=/c"}, nil,
			[]string{"--tls-cert-file and --tls-private-key-file go together"}},
		"http address": {[]string{"--http-bind-address=8090"}, nil,
			[]string{`--http-bind-address "8090" is not HOST:PORT`}},
		"no http address": {[]string{"--http-bind-address=0"}, nil,
			[]string{`--http-bind-address "0" is not HOST:PORT`}},
		"empty http address": {nil, map[string]string{"BCSNET_HTTP_BIND_ADDRESS": ""},
			[]string{`--http-bind-address "" is not HOST:PORT`}},
		"floatingip-config": {[]string{"--floatingip-config=floatingip-config"}, nil,
			[]string{`--floatingip-config "floatingip-config" is not NAMESPACE/NAME`}},
		"node-resources": {[]string{"--node-resources=a.b/c,cpu"}, nil,
			[]string{`--node-resources: "cpu" is not the name of an extended resource, such as example.com/address`}},
		"floatingip-config's name": {[]string{"--floatingip-config=kube-system/a/b"}, nil,
			[]string{`--floatingip-config "kube-system/a/b" is not NAMESPACE/NAME`}},
		"http port": {[]string{"--http-bind-address=127.0.0.1:99999"}, nil,
			[]string{`--http-bind-address "127.0.0.1:99999" is not HOST:PORT`}},
		"http port with a name": {[]string{"--http-bind-address=127.0.0.1:x"}, nil,
			[]string{`--http-bind-address "127.0.0.1:x" is not HOST:PORT`}},
		"http without port": {[]string{"--http-bind-address=127.0.0.1:"}, nil,
			[]string{`--http-bind-address "127.0.0.1:" is not HOST:PORT`}},
		"http URL": {[]string{"--http-bind-address=http://127.0.0.1:80"}, nil,
			[]string{`--http-bind-address "http://127.0.0.1:80" is not HOST:PORT`}},
		"metrics address": {[]string{"--metrics-bind-address=localhost"}, nil,
			[]string{`--metrics-bind-address "localhost" is not HOST:PORT`}},
		"health address": {nil, map[string]string{"BCSNET_HEALTH_PROBE_BIND_ADDRESS": "::1"},
			[]string{`--health-probe-bind-address "::1" is not HOST:PORT`}},
		"leader-elect": {[]string{"--leader-elect=maybe"}, nil, []string{"--leader-elect", `"maybe"`}},
		"leader-elect in env": {nil, map[string]string{"BCSNET_LEADER_ELECT": "maybe"},
			[]string{"BCSNET_LEADER_ELECT", `"maybe"`}},
		"leader namespace": {[]string{"--leader-election-namespace="}, nil,
			[]string{"--leader-election-namespace is empty"}},
		"no lease": {[]string{"--leader-elect-lease-duration=0s"}, nil,
			[]string{"--leader-elect-lease-duration 0s is not a number of whole seconds"}},
		"half a second of lease": {[]string{"--leader-elect-lease-duration=15500ms"}, nil,
			[]string{"--leader-elect-lease-duration 15.5s is not a number of whole seconds"}},
		"renewal after the lease": {[]string{"--leader-elect-lease-duration=10s"}, nil,
			[]string{"--leader-elect-renew-deadline 10s is not below --leader-elect-lease-duration 10s"}},
		"no second attempt": {[]string{"--leader-elect-retry-period=9s"}, nil,
			[]string{"--leader-elect-renew-deadline 10s is not above 1.2 times --leader-elect-retry-period 9s"}},
		"no retry period": {nil, map[string]string{"BCSNET_LEADER_ELECT_RETRY_PERIOD": "0s"},
			[]string{"--leader-elect-retry-period 0s is not above zero"}},
		"advertised path": {[]string{"--advertise-address=http://10.0.0.1:8090/x"}, nil,
			[]string{`--advertise-address "http://10.0.0.1:8090/x" is not the URL of a replica`}},
		"advertised address": {nil, map[string]string{"BCSNET_ADVERTISE_ADDRESS": "10.0.0.1:8090"},
			[]string{`--advertise-address "10.0.0.1:8090" is not the URL of a replica`}},
		"the pod's IP": {nil, map[string]string{"BCSNET_POD_IP": "node-1"},
			[]string{`BCSNET_POD_IP="node-1" is not an IP address`}},
		"gateway source": {[]string{"--gateway-source=node"}, nil,
			[]string{`--gateway-source "node" is not pool or host`}},
		"garbage collection": {[]string{"--garbage-collection=maybe"}, nil,
			[]string{`--garbage-collection "maybe" is not on, dry-run or off`}},
		"host grace":            {[]string{"--host-grace=-1s"}, nil, []string{"--host-grace -1s is negative"}},
		"host grace of no unit": {[]string{"--host-grace=24"}, nil, []string{"--host-grace", `"24"`}},
		"log level": {nil, map[string]string{"BCSNET_LOG_LEVEL": "loud"},
			[]string{`--log-level "loud" is not debug, info, warn or error`}},
		"log level with an offset": {[]string{"--log-level=info+2"}, nil,
			[]string{`--log-level "info+2" is not debug, info, warn or error`}},
		"log format": {[]string{"--log-format=xml"}, nil,
			[]string{`--log-format "xml" is not text or json`}},
		"unknown flag": {[]string{"--colour"}, nil, []string{"unknown flag: --colour"}},
		"argument":     {[]string{"serve"}, nil, []string{`unknown command "serve"`}},
		"no kubeconfig": {[]string{"--kubeconfig=/does/not/exist"}, nil, []string{"--kubeconfig: ",
			"/does/not/exist"}},
		"a kubeconfig of nonsense": {[]string{"--kubeconfig=" + file}, nil, []string{"--kubeconfig: ", file}},
		"an address of others": {[]string{"--http-bind-address=192.0.2.1:80"}, nil,
			[]string{"--http-bind-address: ", "192.0.2.1:80"}},
	} {
		t.Run(name, func(t *testing.T) {
			for k, v := range c.env {
				t.Setenv(k, v)
			}
			c.args = append(c.args, defaultKubeconfig(t, c.args)...)
			cmd := NewCommand("test")
			var out bytes.Buffer
			cmd.SetArgs(c.args)
			cmd.SetOut(&out)
			cmd.SetErr(&out)
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			err := cmd.ExecuteContext(ctx)
			if err == nil {
				t.Fatal("it started, and ended only when it was told to")
			}
			if strings.Contains(err.Error(), "\n") || out.Len() > 0 {
				t.Errorf("more than one line: %q, and %q", err, out.String())
			}
			for _, part := range c.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("the error has no %q: %v", part, err)
				}
			}
		})
	}
}

// Where other replicas call this one.
func TestAdvertised(t *testing.T) {
	for name, c := range map[string]struct{ option, pod, listen, want string }{
		"told":               {"https://a.example", "10.0.0.1", "0.0.0.0:8090", "https://a.example"},
		"told none":          {"none", "10.0.0.1", "10.0.0.1:8090", ""},
		"its own address":    {"", "10.0.0.1", "10.0.0.9:8090", "https://10.0.0.9:8090"},
		"loopback":           {"", "10.0.0.1", "127.0.0.1:8090", "http://127.0.0.1:8090"},
		"every address":      {"", "10.0.0.1", "[::]:8090", "https://10.0.0.1:8090"},
		"every IPv4 address": {"", "fd00::1", "0.0.0.0:8090", "https://[fd00::1]:8090"},
		"no pod":             {"", "", "[::]:8090", ""},
	} {
		o := Options{AdvertiseAddress: c.option, PodIP: c.pod}
		if got := advertised(o, net.TCPAddrFromAddrPort(netip.MustParseAddrPort(c.listen))); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// defaultKubeconfig names an API server that nobody asks for anything, where the test names none.
func defaultKubeconfig(t *testing.T, args []string) []string {
	t.Helper()
	for _, a := range args {
		if strings.HasPrefix(a, "--kubeconfig") {
			return nil
		}
	}
	file := filepath.Join(t.TempDir(), "kubeconfig")
	text := `{"apiVersion":"v1","kind":"Config","clusters":[{"name":"c","cluster":{"server":"http://127.0.0.1:1"}}],
"contexts":[{"name":"c","context":{"cluster":"c"}}],"current-context":"c"}`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return []string{"--kubeconfig=" + file}
}

// Questions about the command are answered whatever the environment holds: a VERSION is easily there.
func TestVersionAndHelp(t *testing.T) {
	t.Setenv("BCSNET_VERSION", "1.2.3")
	t.Setenv("BCSNET_HELP", "me")
	for arg, want := range map[string]string{
		"--version": "bcsnet-controller version test", "--help": "--http-bind-address",
	} {
		cmd := NewCommand("test")
		var out bytes.Buffer
		cmd.SetArgs([]string{arg})
		cmd.SetOut(&out)
		if err := cmd.ExecuteContext(t.Context()); err != nil || !strings.Contains(out.String(), want) {
			t.Errorf("%s: %v: %s", arg, err, out.String())
		}
	}
	cmd := NewCommand("test")
	cmd.SetArgs([]string{"--log-level=loud"})
	if err := cmd.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), "--log-level") {
		t.Errorf("the environment's VERSION and HELP stop the start: %v", err)
	}
}

func TestLogger(t *testing.T) {
	for _, c := range []struct{ level, format, want string }{
		{"info", "text", "level=INFO msg=b n=1\nlevel=ERROR msg=d n=1\n"},
		{"error", "json", `{"level":"ERROR","msg":"d","n":1}` + "\n"},
		{"debug", "text", "level=DEBUG msg=a n=1\nlevel=INFO msg=b n=1\nlevel=ERROR msg=d n=1\n"},
	} {
		var out bytes.Buffer
		o := Options{LogLevel: c.level, LogFormat: c.format, LogOutput: &out}
		log := o.Logger().With(slog.Int("n", 1))
		log.Debug("a")
		log.Info("b")
		log.Error("d")
		var got strings.Builder
		for line := range strings.Lines(out.String()) {
			_, rest, _ := strings.Cut(line, "level")
			if c.format == "json" {
				rest = strings.Replace(rest, `":`, `{"level":`, 1)
			} else {
				rest = "level" + rest
			}
			got.WriteString(rest)
		}
		if got.String() != c.want {
			t.Errorf("%s, %s: %q, want %q", c.level, c.format, got.String(), c.want)
		}
	}
}
