package node

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/bcsnet/bcsnet/pkg/cni/netconf"
)

// Options are the flags of bcsnet-node.
type Options struct {
	// Node is the name of the Node, and Host the address by which pools admit it.
	Node, Host string
	Kubeconfig string

	// ProgramsDir contains the plugins to copy to BinDir, in which the runtime finds them.
	ProgramsDir, BinDir string
	// NetDir is the directory in which the runtime finds its conflist.
	NetDir string
	// ConfigDir, DataDir and RunDir are the directories of the plugins, as paths on the node.
	ConfigDir, DataDir, RunDir string

	// ConflistFile is the conflist to copy to NetDir as ConflistName; empty for none.
	ConflistFile, ConflistName string
	// CAFile and TokenFile are copied to ConfigDir. CAConfigMap (NAMESPACE/NAME) provides the CA instead of CAFile.
	// With neither, the plugins use plain HTTP.
	CAFile, CAConfigMap, TokenFile string
	// Service is the allocator's Service, NAMESPACE/NAME, and ServicePort the name of its port.
	Service, ServicePort string
	// ServerName is the name in the replicas' certificates; empty for the Service's name.
	ServerName string

	HTTPBindAddress string
	LogLevel        string

	// Force and Stay are flags of uninstall.
	Force, Stay bool

	// LogOutput receives the log.
	LogOutput io.Writer
	// Now returns the time of the node.
	Now func() time.Time
	// Every has the intervals; zero means the default.
	Every Intervals
	// Reached is called with the name of each finished step of an installation or removal; may be nil.
	Reached func(step string)
}

// Intervals contains the intervals of repeated work.
type Intervals struct {
	// Compare is the interval in which copied files are compared, and Repair that in which the whole installation is
	// checked.
	Compare, Repair time.Duration
	// Check is the interval in which the allocator is asked, unless it has answered a plugin meanwhile.
	Check time.Duration
	// Grace bounds the time of a start. After it, the condition says that something is not installed.
	Grace time.Duration
	// Beat is the interval in which an unchanged condition is written.
	Beat time.Duration
}

func (i *Intervals) fill() {
	for _, v := range []struct {
		to    *time.Duration
		usual time.Duration
	}{
		{&i.Compare, time.Second}, {&i.Repair, 30 * time.Second}, {&i.Check, 20 * time.Second}, {&i.Grace,
			15 * time.Second},
		{&i.Beat, 5 * time.Minute},
	} {
		if *v.to == 0 {
			*v.to = v.usual
		}
	}
}

// addDirs adds the flags that install and uninstall share.
func (o *Options) addDirs(f *pflag.FlagSet) {
	f.StringVar(&o.Node, "node", "", "name of the Node, as spec.nodeName of the pod has it; required")
	f.StringVar(&o.Kubeconfig, "kubeconfig", "", "path of a kubeconfig; empty for the service account of the pod")
	f.StringVar(&o.ProgramsDir, "programs-dir", "/programs", "directory with the plugins")
	f.StringVar(&o.BinDir, "bin-dir", "/opt/cni/bin", "directory that the runtime has its CNI plugins in")
	f.StringVar(&o.NetDir, "net-dir", "/etc/cni/net.d", "directory that the runtime has its network configurations in")
	f.StringVar(&o.ConfigDir, "config-dir", netconf.DefaultConfigDir,
		"directory of config.json, ca.crt and token, by the path that it has on the node: the plugins read it, too")
	f.StringVar(&o.DataDir, "data-dir", netconf.DefaultDataDir,
		"directory of what the plugins keep over a boot, by the path that it has on the node")
	f.StringVar(&o.RunDir, "run-dir", netconf.DefaultRunDir,
		"directory of what the plugins keep until a boot, by the path that it has on the node")
	f.StringVar(&o.ConflistName, "conflist-name", usualConflist,
		"name of the conflist in --net-dir; the runtime takes the first one by name")
	f.StringVar(&o.LogLevel, "log-level", "info", "debug, info, warn or error")
}

func (o *Options) addInstall(f *pflag.FlagSet) {
	f.StringVar(&o.Host, "host", "", "address of the node, as pools list it; status.hostIP of the pod; required")
	f.StringVar(&o.ConflistFile, "conflist-file", "",
		"conflist that is copied to --net-dir, last of all; empty for none, if Multus names the networks of pods")
	f.StringVar(&o.CAFile, "ca-file", "",
		"the same from a file; with neither, the replicas are reached over plain HTTP")
	f.StringVar(&o.CAConfigMap, "ca-config-map", "",
		"`NAMESPACE/NAME` of a ConfigMap with ca.crt, the certificates that sign the replicas' certificates, "+
			"which are reached over https then; it is followed")
	f.StringVar(&o.TokenFile, "token-file", "",
		"token that the plugins show to the replicas, which is copied as often as it changes; needs the CA")
	f.StringVar(&o.Service, "service", "bcsnet-system/bcsnet-controller",
		"`NAMESPACE/NAME` of the allocator's Service, whose EndpointSlices name the replicas")
	f.StringVar(&o.ServicePort, "service-port", "allocator", "name of the Service's port")
	f.StringVar(&o.ServerName, "server-name", "",
		"name in the certificates of the replicas; empty for NAME.NAMESPACE.svc of --service")
	f.StringVar(&o.HTTPBindAddress, "http-bind-address", "127.0.0.1:8093",
		"address of /metrics, /healthz and /readyz; 0 for none")
}

func (o *Options) addUninstall(f *pflag.FlagSet) {
	f.BoolVar(&o.Force, "force", false,
		"remove the plugins although pods of the node have addresses by them; such pods cannot end then")
	f.BoolVar(&o.Stay, "stay", false,
		"try again every ten seconds until all is removed, then wait to be ended; for a DaemonSet")
	f.StringVar(&o.TokenFile, "token-file", "",
		"token by which pods that still end release their addresses; empty for the one that the node has")
	f.StringVar(&o.HTTPBindAddress, "http-bind-address", "127.0.0.1:8093",
		"with --stay, address of /healthz and of /readyz, which is well once all is removed; 0 for none")
}

// Validate checks the flags. The error names all wrong ones.
func (o *Options) Validate() error {
	var errs []error
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if o.Node == "" {
		wrong("--node is missing; hint: spec.nodeName of the pod, by the downward API")
	}
	for _, d := range []struct{ name, dir string }{
		{"programs-dir", o.ProgramsDir}, {"bin-dir", o.BinDir}, {"net-dir", o.NetDir}, {"config-dir", o.ConfigDir},
		{"data-dir", o.DataDir}, {"run-dir", o.RunDir},
	} {
		if !filepath.IsAbs(d.dir) {
			wrong("--%s %q is not an absolute path", d.name, d.dir)
		}
	}
	if !isConflistName(o.ConflistName) {
		wrong("--conflist-name %q is not the name of a file that ends in .conflist", o.ConflistName)
	}
	if o.HTTPBindAddress != "0" {
		if _, _, err := net.SplitHostPort(o.HTTPBindAddress); err != nil {
			wrong("--http-bind-address %q is neither HOST:PORT nor 0", o.HTTPBindAddress)
		}
	}
	if !slices.Contains([]string{"debug", "info", "warn", "error"}, o.LogLevel) {
		wrong("--log-level %q is not debug, info, warn or error", o.LogLevel)
	}
	return errors.Join(errs...)
}

// ValidateInstall checks the flags of install.
func (o *Options) ValidateInstall() error {
	errs := []error{o.Validate()}
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if host, err := netip.ParseAddr(o.Host); err != nil || host.IsUnspecified() || host.Zone() != "" {
		wrong("--host %q is not the IP address of a node; hint: status.hostIP of the pod, by the downward API", o.Host)
	}
	if !isObject(o.Service) {
		wrong("--service %q is not NAMESPACE/NAME", o.Service)
	}
	if o.CAConfigMap != "" && !isObject(o.CAConfigMap) {
		wrong("--ca-config-map %q is not NAMESPACE/NAME", o.CAConfigMap)
	}
	if o.CAConfigMap != "" && o.CAFile != "" {
		wrong("--ca-file and --ca-config-map: the CA comes from one of them")
	}
	if o.TokenFile != "" && !o.secure() {
		wrong("--token-file without --ca-file or --ca-config-map: a token is shown to nobody over plain HTTP")
	}
	return errors.Join(errs...)
}

func isObject(text string) bool {
	namespace, name, ok := strings.Cut(text, "/")
	return ok && namespace != "" && name != "" && !strings.Contains(name, "/")
}

// secure reports whether the replicas are reached over https.
func (o *Options) secure() bool { return o.CAFile != "" || o.CAConfigMap != "" }

// serverName returns the name in the certificates of the replicas.
func (o *Options) serverName() string {
	if o.ServerName != "" {
		return o.ServerName
	}
	namespace, name, _ := strings.Cut(o.Service, "/")
	return name + "." + namespace + ".svc"
}

func (o *Options) reached(step string) {
	if o.Reached != nil {
		o.Reached(step)
	}
}

// logger returns the log. Validate has checked its level.
func (o *Options) logger() *slog.Logger {
	var level slog.Level
	_ = level.UnmarshalText([]byte(o.LogLevel)) // Validate has checked it
	return slog.New(slog.NewTextHandler(o.LogOutput, &slog.HandlerOptions{Level: level}))
}
