package app

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/bcsnet/bcsnet/pkg/internal/suggest"
	"github.com/bcsnet/bcsnet/pkg/ipam/index"
	"github.com/bcsnet/bcsnet/pkg/store"
)

// Connect reads the kubeconfig. It sends no request.
func (s *App) Connect() (*rest.Config, error) {
	if s.Config != nil {
		return s.Config, nil
	}
	if limit := *s.Flags.Timeout; limit != "" {
		if _, err := clientcmd.ParseTimeout(limit); err != nil {
			return nil, Usagef("--request-timeout %q is not a time",
				limit).WithHint("write it as 30s or 2m; 0 means no limit")
		}
	}
	cfg, err := s.Flags.ToRESTConfig()
	if err != nil {
		return nil, s.ConfigProblem(err)
	}
	if s.nowhere(cfg) {
		return nil, s.noCluster()
	}
	cfg = rest.CopyConfig(cfg)
	cfg.UserAgent = ProgramName + "/" + s.Version
	// The API server limits requests by itself; client-go would allow only five a second.
	cfg.QPS = -1
	cfg.WarningHandler = rest.NewWarningWriter(s.ErrOut,
		rest.WarningWriterOptions{Deduplicate: true, Color: s.Say.Terminal.Color})
	s.Config = cfg
	return cfg, nil
}

// AsBearer returns a copy of the call that authenticates only by the token, without the user's own rights. Connect must
// have been called. It sends no request.
func (s *App) AsBearer(token string) *App {
	as := *s
	as.Config, as.user = rest.AnonymousClientConfig(s.Config), nil
	as.Config.BearerToken = token
	return &as
}

// nowhere reports whether no flag, variable or file names the cluster's address. client-go would then try port 8080 of
// this machine, which is always wrong.
func (s *App) nowhere(cfg *rest.Config) bool {
	if *s.Flags.APIServer != "" || cfg.Host != clientcmd.ClusterDefaults.Server || s.getenv("KUBERNETES_MASTER") != "" {
		return false
	}
	raw, err := s.Flags.ToRawKubeConfigLoader().RawConfig()
	return err == nil && len(raw.Clusters) == 0
}

// ConfigProblem rewords an error of the kubeconfig and adds a hint. It returns other errors unchanged.
func (s *App) ConfigProblem(err error) error {
	switch {
	case clientcmd.IsEmptyConfig(err), clientcmd.IsConfigurationInvalid(err) && *s.Flags.KubeConfig == "" &&
		s.getenv("KUBECONFIG") == "":
		return s.noCluster()
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, os.ErrPermission):
		return (&Failure{Message: "the kubeconfig cannot be used: " + err.Error(), Cause: err}).
			WithHint("name another with --kubeconfig or KUBECONFIG")
	}
	if raw, readErr := s.Flags.ToRawKubeConfigLoader().RawConfig(); readErr == nil &&
		raw.Contexts[*s.Flags.Context] == nil && *s.Flags.Context != "" {
		f := &Failure{Message: "the kubeconfig has no context " + *s.Flags.Context, Cause: err}
		if near := suggest.Nearest(*s.Flags.Context, slices.Sorted(maps.Keys(raw.Contexts))); near != "" {
			return f.WithHint("did you mean %s? All contexts: kubectl config get-contexts", near)
		}
		return f.WithHint("see the contexts: kubectl config get-contexts")
	}
	return (&Failure{Message: "the kubeconfig cannot be used: " + err.Error(), Cause: err}).
		WithHint("see what it holds: kubectl config view")
}

// noCluster returns the error for a call if no kubeconfig names a cluster. client-go ignores files of KUBECONFIG that
// do not exist.
func (s *App) noCluster() *Failure {
	why := "there is no kubeconfig, or it names none"
	for _, path := range filepath.SplitList(s.getenv("KUBECONFIG")) {
		if _, err := os.Stat(path); *s.Flags.KubeConfig == "" && errors.Is(err, fs.ErrNotExist) {
			why = "KUBECONFIG names " + path + ", which does not exist"
			break
		}
	}
	return (&Failure{Message: "no cluster: " + why}).WithHint("export KUBECONFIG=FILE or pass --kubeconfig FILE")
}

// Where names the cluster, for use in a sentence.
func (s *App) Where() string {
	if raw, err := s.Flags.ToRawKubeConfigLoader().RawConfig(); err == nil {
		name := raw.CurrentContext
		if *s.Flags.Context != "" {
			name = *s.Flags.Context
		}
		if name != "" {
			return "context " + name
		}
	}
	return s.Config.Host
}

// Dynamic returns a dynamic client for the cluster of the flags and the kubeconfig.
func (s *App) Dynamic() (dynamic.Interface, error) {
	cfg, err := s.Connect()
	if err != nil {
		return nil, err
	}
	c, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return nil, s.ConfigProblem(err)
	}
	return c, nil
}

// Leases returns a client for leases. Its writes obey --dry-run=server.
func (s *App) Leases() (*store.Client, error) { return s.LeasesWith(nil) }

// LeasesWith returns a client for leases that adds its writes to an index.
func (s *App) LeasesWith(index *index.Index) (*store.Client, error) {
	cfg, err := s.limited()
	if err != nil {
		return nil, err
	}
	if index != nil { // which a feed fills
		cfg.Wrap(store.NewRestores().Wrap)
	}
	c, err := store.New(cfg, index, store.NewClock(s.Now))
	if err != nil {
		return nil, s.ConfigProblem(err)
	}
	if s.DryRun == DryRunServer {
		c = c.Dry()
	}
	return c, nil
}

// EachOther calls fn with the JSON of every object of a kind of another program. An object is valid until fn returns.
func (s *App) EachOther(
	ctx context.Context, kind schema.GroupVersionResource, fn func(object []byte) error,
) error {
	cfg, err := s.limited()
	if err != nil {
		return err
	}
	return store.EachOther(ctx, cfg, kind, fn)
}

// limited returns a configuration for clients of package store, with the time limit of the flags.
func (s *App) limited() (*rest.Config, error) {
	cfg, err := s.Connect()
	if err != nil {
		return nil, err
	}
	limit := timeLimit(cfg.Timeout)
	cfg = rest.CopyConfig(cfg)
	cfg.Wrap(limit.wrap)
	return cfg, nil
}

// timeLimit applies --request-timeout to requests of package store, which sets none because it also reads long lists
// and watches. 0 means no limit.
type timeLimit time.Duration

func (l timeLimit) wrap(next http.RoundTripper) http.RoundTripper {
	if l <= 0 {
		return next
	}
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		ctx, cancel := context.WithTimeout(r.Context(), time.Duration(l))
		resp, err := next.RoundTrip(r.WithContext(ctx))
		if err != nil {
			cancel()
			return nil, err
		}
		resp.Body = &limitedBody{ReadCloser: resp.Body, cancel: cancel}
		return resp, nil
	})
}

// limitedBody cancels the time limit of its request when it is closed.
type limitedBody struct {
	io.ReadCloser
	cancel context.CancelFunc
}

func (b *limitedBody) Close() error {
	defer b.cancel()
	return b.ReadCloser.Close()
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
