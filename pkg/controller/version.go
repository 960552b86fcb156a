package controller

import (
	"context"
	"encoding/json"
	"runtime"
	"sync"
	"time"

	apiversion "k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/bcsnet/bcsnet/pkg/httpapi"
)

// versionFresh is the time for which an answer of the API server is cached; versionTime bounds the wait for an answer.
const (
	versionFresh = time.Minute
	versionTime  = 2 * time.Second
)

// versions returns a function that returns the versions of the program and the API server. It reads the API server's
// version at most once a minute, however often it is called.
func versions(program string, cfg *rest.Config) func(context.Context) httpapi.Versions {
	var mu sync.Mutex
	var at time.Time
	v := httpapi.Versions{Version: program, Go: runtime.Version()}
	return func(ctx context.Context) httpapi.Versions {
		mu.Lock()
		defer mu.Unlock()
		if now := time.Now(); at.IsZero() || now.Sub(at) >= versionFresh {
			v.Kubernetes, at = apiServerVersion(ctx, cfg), now
		}
		return v
	}
}

// apiServerVersion returns the version of the API server; empty if it does not answer.
func apiServerVersion(ctx context.Context, cfg *rest.Config) string {
	c, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, versionTime)
	defer cancel()
	body, err := c.RESTClient().Get().AbsPath("/version").Do(ctx).Raw()
	var info apiversion.Info
	if err != nil || json.Unmarshal(body, &info) != nil {
		return ""
	}
	return info.GitVersion
}
