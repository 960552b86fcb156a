package controller

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/leaderelection"

	"github.com/bcsnet/bcsnet/pkg/controller/gc"
	"github.com/bcsnet/bcsnet/pkg/controller/leadership"
	"github.com/bcsnet/bcsnet/pkg/gone"
	"github.com/bcsnet/bcsnet/pkg/replica"
	"github.com/bcsnet/bcsnet/pkg/scheduling"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

// Values of --gateway-source.
const gatewayPool, gatewayHost = "pool", "host"

// Options are the flags of bcsnet-controller.
type Options struct {
	Kubeconfig         string
	HTTPBindAddress    string
	MetricsBindAddress string
	// Profiling serves Go's profiles beside the metrics.
	Profiling               bool
	HealthProbeBindAddress  string
	LeaderElect             bool
	LeaderElectionNamespace string
	LeaseDuration           time.Duration
	RenewDeadline           time.Duration
	RetryPeriod             time.Duration
	AdvertiseAddress        string
	PlainHTTP               bool
	TLSCertFile             string
	TLSPrivateKeyFile       string
	GatewaySource           string
	GarbageCollection       gc.Mode
	HostGrace               time.Duration
	FloatingIPConfig        string
	HostnicIPAMConfig       string
	IPAMClaims              bool
	ClusterAPI              bool
	Services                bool
	ServicesDefaultClass    bool
	ServicesKubeVIP         bool
	SharedPoolsForAll       bool
	NodeResources           []string
	HistoryRetention        time.Duration
	HistoryParts            int
	LogLevel                string
	LogFormat               string
	OTLPEndpoint            string
	// CollectEvery is the interval of the garbage collection. CollectAfter is the time for which a lease must look
	// abandoned if its pod did not request more. Zero means the documented times, so there are no flags for them.
	CollectEvery, CollectAfter time.Duration
	// CertificatesEvery is the interval in which the CA is checked; zero for half a minute.
	CertificatesEvery time.Duration
	// CountLoopback also counts the connections of loopback addresses. It is for tests.
	CountLoopback bool
	// PlainCallersEvery is the interval in which plain HTTP callers are recorded; zero for a minute.
	PlainCallersEvery time.Duration
	// HistoryEvery is the interval in which the history is written; zero for ten seconds.
	HistoryEvery time.Duration
	// AbandonedFor is the time for which a block stays whose namespace is gone; zero likewise.
	AbandonedFor time.Duration
	// PodIP is the IP of this process's pod; empty if it does not run in one. It comes from PodIPEnv.
	PodIP string
	// Version is the version of the program.
	Version string
	// LogOutput receives the log; nil for standard error.
	LogOutput io.Writer
	// Now returns the time of the machine; nil for time.Now.
	Now func() time.Time
	// DialReplica reaches the other replicas; nil for the network. It is for tests.
	DialReplica func(ctx context.Context, network, address string) (net.Conn, error)
}

// EnvPrefix is the prefix of a flag's environment variable, as in BCSNET_HTTP_BIND_ADDRESS.
const EnvPrefix = "BCSNET_"

// AddFlags adds the flags with their defaults.
func (o *Options) AddFlags(f *pflag.FlagSet) {
	f.StringVar(&o.Kubeconfig, "kubeconfig", "",
		"path of a kubeconfig; empty for $KUBECONFIG, else the service account of the pod")
	f.StringVar(&o.HTTPBindAddress, "http-bind-address", "127.0.0.1:8090", "address of the allocator's HTTP service")
	f.StringVar(&o.MetricsBindAddress, "metrics-bind-address", "127.0.0.1:8091", "address of /metrics; 0 for none")
	f.BoolVar(&o.Profiling, "profiling", false,
		"serve Go's profiles at /debug/pprof/ beside /metrics, to those who may get "+
			"profiles.networkextension.bkbcs.tencent.com by RBAC")
	f.StringVar(&o.HealthProbeBindAddress, "health-probe-bind-address", "127.0.0.1:8092",
		"address of /healthz and /readyz; 0 for none")
	f.BoolVar(&o.LeaderElect, "leader-elect", true,
		"let only one replica run the reconcilers; every replica answers requests")
	f.StringVar(&o.LeaderElectionNamespace, "leader-election-namespace", "bcsnet-system",
		"namespace of the Lease and of the claims of shared pools, which bcsnetctl looks for in bcsnet-system")
	timing := electionDefaults()
	f.DurationVar(&o.LeaseDuration, "leader-elect-lease-duration", timing.Lease,
		"how long the Lease of a leader that is not heard of counts; whole seconds")
	f.DurationVar(&o.RenewDeadline, "leader-elect-renew-deadline", timing.Renew,
		"how long a leader tries to renew its Lease before it gives up leading")
	f.DurationVar(&o.RetryPeriod, "leader-elect-retry-period", timing.Retry,
		"time between two attempts to renew or to take the Lease")
	f.StringVar(&o.AdvertiseAddress, "advertise-address", "",
		`URL by which other replicas reach this one, such as https://10.0.0.11:8090; empty for the address that `+
			`--http-bind-address names, or else the pod's ($`+PodIPEnv+`); "none" for none`)
	f.BoolVar(&o.PlainHTTP, "plain-http", false,
		"answer plain HTTP of other machines, too, each only for itself: for plugins of the released system; "+
			"whoever is between the machines can read and change it")
	f.StringVar(&o.TLSCertFile, "tls-cert-file", "",
		"file with the certificate that clients of the HTTP service are shown, in PEM, read anew when it changes; "+
			"empty for one of the controller's own CA")
	f.StringVar(&o.TLSPrivateKeyFile, "tls-private-key-file", "", "file with the key of --tls-cert-file, in PEM")
	f.StringVar(&o.GatewaySource, "gateway-source", gatewayPool,
		`the source of the gateway of an answer: "pool", or "host" for the request's hostGateway, `+
			`else the node's annotation, else the pool's`)
	f.StringVar((*string)(&o.GarbageCollection), "garbage-collection", string(gc.On),
		`take addresses back whose pod has gone: "on", "dry-run" (the log and metrics say what would be taken back) `+
			`or "off"`)
	f.DurationVar(&o.HostGrace, "host-grace", 24*time.Hour,
		"how long addresses of pods that are gone are kept if the host is not a Ready node, because their "+
			"containers may still run there; 0 for ever")
	f.StringVar(&o.FloatingIPConfig, "floatingip-config", "",
		"`NAMESPACE/NAME` of a ConfigMap in the manner of galaxy's kube-system/floatingip-config "+
			"that pools are made from and kept like; empty for none")
	f.StringVar(&o.HostnicIPAMConfig, "hostnic-ipam-config", "",
		"`NAMESPACE/NAME` of a ConfigMap in the manner of hostnic's kube-system/hostnic-ipam-config that says which "+
			"namespaces have which blocks; empty for none; takes the role of config/hostnic")
	f.BoolVar(&o.IPAMClaims, "ipam-claims", false,
		"keep the addresses of interfaces for which pods name an IPAMClaim of k8s.cni.cncf.io (ipam-claim-reference) "+
			"until that is gone; takes the roles of config/ipamclaims")
	f.BoolVar(&o.ClusterAPI, "cluster-api", false,
		"answer the IPAddressClaims of Cluster API whose poolRef is a BCSNetPool; takes the role of config/clusterapi")
	f.BoolVar(&o.Services, "services", false,
		"give Services of type LoadBalancer whose loadBalancerClass is "+workload.ServiceClass+" addresses of pools; "+
			"takes the role of config/services")
	f.BoolVar(&o.ServicesDefaultClass, "services-default-class", false,
		"with --services, also Services without a loadBalancerClass get addresses")
	f.BoolVar(&o.ServicesKubeVIP, "services-kube-vip", false,
		"with --services, write the addresses of a Service also into the annotation kube-vip.io/loadbalancerIPs, so "+
			"that kube-vip announces them")
	f.BoolVar(&o.SharedPoolsForAll, "shared-pools-for-all", false,
		"a shared pool that pods name (tke.cloud.tencent.com/eni-ip-pool) is one for all namespaces, as with galaxy: "+
			"users who may create pods get what it keeps; otherwise each namespace has its own")
	f.StringSliceVar(&o.NodeResources, "node-resources",
		[]string{"tke.cloud.tencent.com/eni-ip", "netservice.bkbcs.tencent.com/bcsnetip"},
		"extended resources by which pods ask the scheduler for an address: nodes publish under these names how many "+
			"there are for them; empty for none")
	f.DurationVar(&o.HistoryRetention, "history-retention", 30*24*time.Hour,
		"how long BCSNetHistory objects keep who held addresses and who changed pools; 0 writes no history")
	f.IntVar(&o.HistoryParts, "history-parts", 500,
		"how many BCSNetHistory objects there are at most, of up to 128 KiB each; the oldest goes first")
	f.StringVar(&o.LogLevel, "log-level", "info", "debug, info, warn or error")
	f.StringVar(&o.LogFormat, "log-format", "text", "text or json")
	f.StringVar(&o.OTLPEndpoint, "otlp-endpoint", "",
		"URL of an OpenTelemetry collector (OTLP over HTTP) that gets traces of requests, such as "+
			"http://127.0.0.1:4318; empty for $OTEL_EXPORTER_OTLP_ENDPOINT, else no traces")
}

// PodIPEnv is the environment variable with the pod's IP in the manifests.
const PodIPEnv = EnvPrefix + "POD_IP"

// electionDefaults returns the timing of Kubernetes' own components.
func electionDefaults() leadership.Timing {
	return leadership.Timing{Lease: 15 * time.Second, Renew: 10 * time.Second, Retry: 2 * time.Second}
}

// SetFromEnv sets every flag that the environment sets and the command line does not. Cobra's own flags, help and
// version, are left out, because they only print something.
func SetFromEnv(f *pflag.FlagSet, lookup func(string) (string, bool)) (err error) {
	f.VisitAll(func(fl *pflag.Flag) {
		name := envName(fl)
		v, ok := lookup(name)
		if !ok || fl.Changed || err != nil || fl.Name == "help" || fl.Name == "version" {
			return
		}
		if e := f.Set(fl.Name, v); e != nil {
			err = fmt.Errorf("%s=%q: %w", name, v, e)
		}
	})
	return err
}

func envName(f *pflag.Flag) string {
	return EnvPrefix + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
}

// UnknownEnv returns the variables of an environment, given as NAME=value, that look like flags but match none.
// Variables that Kubernetes creates for Services named bcsnet-… are left out.
func UnknownEnv(f *pflag.FlagSet, environ []string) (names []string) {
	known := map[string]bool{PodIPEnv: true, EnvPrefix + "URL": true} // the latter is for curl
	f.VisitAll(func(fl *pflag.Flag) { known[envName(fl)] = true })
	for _, variable := range environ {
		name, _, _ := strings.Cut(variable, "=")
		ofService := strings.Contains(name, "_SERVICE_") || strings.HasSuffix(name, "_PORT") ||
			strings.Contains(name, "_PORT_")
		if strings.HasPrefix(name, EnvPrefix) && !known[name] && !ofService {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Validate checks the values. The error has one line.
func (o *Options) Validate() error {
	if err := o.validateAddresses(); err != nil {
		return err
	}
	switch o.GatewaySource {
	case gatewayPool, gatewayHost:
	default:
		return fmt.Errorf("--gateway-source %q is not pool or host", o.GatewaySource)
	}
	switch o.GarbageCollection {
	case gc.On, gc.DryRun, gc.Off:
	default:
		return fmt.Errorf("--garbage-collection %q is not on, dry-run or off", o.GarbageCollection)
	}
	if o.HostGrace < 0 {
		return fmt.Errorf("--host-grace %s is negative", o.HostGrace)
	}
	if o.HistoryRetention < 0 {
		return fmt.Errorf("--history-retention %s is negative", o.HistoryRetention)
	}
	if o.HistoryParts < 2 {
		return fmt.Errorf("--history-parts %d is below 2", o.HistoryParts)
	}
	if _, err := namespacedName(o.FloatingIPConfig); o.FloatingIPConfig != "" && err != nil {
		return fmt.Errorf("--floatingip-config %q is not NAMESPACE/NAME", o.FloatingIPConfig)
	}
	if _, err := namespacedName(o.HostnicIPAMConfig); o.HostnicIPAMConfig != "" && err != nil {
		return fmt.Errorf("--hostnic-ipam-config %q is not NAMESPACE/NAME", o.HostnicIPAMConfig)
	}
	if (o.ServicesDefaultClass || o.ServicesKubeVIP) && !o.Services {
		return errors.New("--services-default-class and --services-kube-vip go with --services")
	}
	if _, err := scheduling.ParseResources(o.NodeResources); err != nil {
		return fmt.Errorf("--node-resources: %w", err)
	}
	if o.LeaderElect {
		if err := o.validateElection(); err != nil {
			return err
		}
	}
	if a := o.AdvertiseAddress; a != "" && a != noAddress {
		if _, err := replica.ParseURL(a); err != nil {
			return fmt.Errorf("--advertise-address %q is not the URL of a replica: %w", a, err)
		}
	}
	if (o.TLSCertFile == "") != (o.TLSPrivateKeyFile == "") {
		return errors.New("--tls-cert-file and --tls-private-key-file go together: give both or none")
	}
	if o.PodIP != "" {
		if _, err := netip.ParseAddr(o.PodIP); err != nil {
			return fmt.Errorf("%s=%q is not an IP address", PodIPEnv, o.PodIP)
		}
	}
	if u, err := url.Parse(o.OTLPEndpoint); o.OTLPEndpoint != "" &&
		(err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https") {
		return fmt.Errorf("--otlp-endpoint %q is not an http or https URL", o.OTLPEndpoint)
	}
	if o.LogFormat != "text" && o.LogFormat != "json" {
		return fmt.Errorf("--log-format %q is not text or json", o.LogFormat)
	}
	switch strings.ToLower(o.LogLevel) {
	case "debug", "info", "warn", "error":
		return nil
	default:
		return fmt.Errorf("--log-level %q is not debug, info, warn or error", o.LogLevel)
	}
}

func (o *Options) validateAddresses() error {
	for _, f := range []struct {
		flag, address string
		optional      bool
	}{
		{"http-bind-address", o.HTTPBindAddress, false},
		{"metrics-bind-address", o.MetricsBindAddress, true},
		{"health-probe-bind-address", o.HealthProbeBindAddress, true},
	} {
		if f.optional && f.address == "0" {
			continue
		}
		_, port, err := net.SplitHostPort(f.address)
		if err == nil {
			_, err = strconv.ParseUint(port, 10, 16)
		}
		if err != nil {
			return fmt.Errorf("--%s %q is not HOST:PORT", f.flag, f.address)
		}
	}
	return nil
}

// validateElection refuses times with which a leader would continue to lead after its Lease has expired, or give up
// after one attempt.
func (o *Options) validateElection() error {
	switch {
	case o.LeaderElectionNamespace == "":
		return errors.New("--leader-election-namespace is empty")
	case o.LeaseDuration < time.Second || o.LeaseDuration%time.Second != 0:
		return fmt.Errorf("--leader-elect-lease-duration %s is not a number of whole seconds above zero",
			o.LeaseDuration)
	case o.RetryPeriod <= 0:
		return fmt.Errorf("--leader-elect-retry-period %s is not above zero", o.RetryPeriod)
	case o.RenewDeadline >= o.LeaseDuration:
		return fmt.Errorf("--leader-elect-renew-deadline %s is not below --leader-elect-lease-duration %s",
			o.RenewDeadline, o.LeaseDuration)
	case float64(o.RenewDeadline) <= leaderelection.JitterFactor*float64(o.RetryPeriod):
		return fmt.Errorf("--leader-elect-renew-deadline %s is not above %.1f times --leader-elect-retry-period %s",
			o.RenewDeadline, leaderelection.JitterFactor, o.RetryPeriod)
	}
	return nil
}

// Logger returns the logger for the options.
func (o *Options) Logger() *slog.Logger {
	var out io.Writer = os.Stderr //nolint:forbidigo // the default of a program
	if o.LogOutput != nil {
		out = o.LogOutput
	}
	var level slog.Level
	_ = level.UnmarshalText([]byte(o.LogLevel)) // Validate has checked it
	h := &slog.HandlerOptions{Level: level}
	if o.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(out, h))
	}
	return slog.New(slog.NewTextHandler(out, h))
}

// goneRule returns the rule that decides whether a holder is gone.
func (o Options) goneRule() gone.Rule {
	r := gone.Default()
	r.Grace = o.HostGrace
	if o.CollectAfter != 0 {
		r.Apart, r.Termination, r.Margin = o.CollectAfter, 0, 0
	}
	return r
}

func namespacedName(text string) (n types.NamespacedName, err error) {
	var ok bool
	if n.Namespace, n.Name, ok = strings.Cut(text, "/"); !ok ||
		len(validation.ValidateNamespaceName(n.Namespace, false)) > 0 ||
		len(validation.NameIsDNSSubdomain(n.Name, false)) > 0 {
		return n, errors.New("not NAMESPACE/NAME")
	}
	return n, nil
}
