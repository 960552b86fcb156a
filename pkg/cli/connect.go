package cli

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"slices"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/store"
)

// connect finds the cluster. No request is sent.
func (s *session) connect() (*rest.Config, error) {
	if s.config != nil {
		return s.config, nil
	}
	if limit := *s.flags.Timeout; limit != "" {
		if _, err := clientcmd.ParseTimeout(limit); err != nil {
			return nil, usagef("--request-timeout %q is no time", limit).withHint("write it as 30s or 2m; 0 is no limit")
		}
	}
	cfg, err := s.flags.ToRESTConfig()
	if err != nil {
		return nil, s.configProblem(err)
	}
	if s.nowhere(cfg) {
		return nil, noCluster()
	}
	cfg = rest.CopyConfig(cfg)
	cfg.UserAgent = programName + "/" + s.version
	// The API server's own fairness is enough; client-go would allow five requests a second.
	cfg.QPS = -1
	cfg.WarningHandler = rest.NewWarningWriter(s.ErrOut, rest.WarningWriterOptions{Deduplicate: true, Color: s.say.term.color})
	s.config = cfg
	return cfg, nil
}

// nowhere is true when nothing says where the cluster is: client-go then means port 8080 of this
// machine, which is never right.
func (s *session) nowhere(cfg *rest.Config) bool {
	if *s.flags.APIServer != "" || cfg.Host != clientcmd.ClusterDefaults.Server || s.getenv("KUBERNETES_MASTER") != "" {
		return false
	}
	raw, err := s.flags.ToRawKubeConfigLoader().RawConfig()
	return err == nil && len(raw.Clusters) == 0
}

func (s *session) configProblem(err error) error {
	switch {
	case clientcmd.IsEmptyConfig(err), clientcmd.IsConfigurationInvalid(err) && *s.flags.KubeConfig == "" && s.getenv("KUBECONFIG") == "":
		return noCluster()
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, os.ErrPermission):
		return (&failure{message: "the kubeconfig cannot be used: " + err.Error(), cause: err}).
			withHint("name another with --kubeconfig or KUBECONFIG")
	}
	if raw, readErr := s.flags.ToRawKubeConfigLoader().RawConfig(); readErr == nil && raw.Contexts[*s.flags.Context] == nil && *s.flags.Context != "" {
		f := &failure{message: "the kubeconfig has no context " + *s.flags.Context, cause: err}
		if near := nearest(*s.flags.Context, slices.Sorted(maps.Keys(raw.Contexts))); near != "" {
			return f.withHint("did you mean %s? All contexts: kubectl config get-contexts", near)
		}
		return f.withHint("see the contexts: kubectl config get-contexts")
	}
	return (&failure{message: "the kubeconfig cannot be used: " + err.Error(), cause: err}).
		withHint("see what it holds: kubectl config view")
}

func noCluster() *failure {
	return (&failure{message: "no cluster: there is no kubeconfig, or it names none"}).
		withHint("export KUBECONFIG=FILE or pass --kubeconfig FILE; a cluster to try things on: make up && . .local/env")
}

// where names the cluster in a sentence.
func (s *session) where() string {
	if raw, err := s.flags.ToRawKubeConfigLoader().RawConfig(); err == nil {
		name := raw.CurrentContext
		if *s.flags.Context != "" {
			name = *s.flags.Context
		}
		if name != "" {
			return "context " + name
		}
	}
	return s.config.Host
}

func (s *session) dynamic() (dynamic.Interface, error) {
	cfg, err := s.connect()
	if err != nil {
		return nil, err
	}
	c, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return nil, s.configProblem(err)
	}
	return c, nil
}

// leases is the way to the addresses; its writes obey --dry-run=server.
func (s *session) leases() (*store.Client, error) { return s.leasesWith(nil) }

// leasesWith tells an index of what is written.
func (s *session) leasesWith(index *ipam.Index) (*store.Client, error) {
	cfg, err := s.connect()
	if err != nil {
		return nil, err
	}
	limit := timeLimit(cfg.Timeout)
	cfg = rest.CopyConfig(cfg)
	cfg.Wrap(limit.wrap)
	c, err := store.New(cfg, index, store.NewClock(s.now))
	if err != nil {
		return nil, s.configProblem(err)
	}
	if s.dry == dryRunServer {
		c = c.Dry()
	}
	return c, nil
}
