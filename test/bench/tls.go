package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/transport"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/access"
	"github.com/bcsnet/bcsnet/test/controlplane"
)

// callerName is a user of the controller's HTTPS.
const callerName = "bench-caller"

// way is how requests reach the controller.
type way struct {
	http *http.Client
	url  string
}

// secure compares HTTPS with a token with plain HTTP on loopback, which nobody is asked for: allocations on connections
// that are kept, allocations with a connection each, as a plugin makes, and a page for which nobody is asked over
// either, which is TLS alone.
func (b *bench) secure(ctx context.Context) error {
	p, err := b.pool(ctx, "bench-tls", "10.128.0.0/20", v1.MaterializeAlways)
	if err != nil {
		return err
	}
	if err := b.waitNormal(ctx, p); err != nil {
		return err
	}
	token, err := b.callerToken(ctx)
	if err != nil {
		return err
	}
	pool, err := b.publishedCA(ctx)
	if err != nil {
		return err
	}
	for _, kept := range []bool{true, false} {
		plain, secure := b.way(kept, nil, ""), b.way(kept, pool, token)
		what := "allocate, connections kept"
		if !kept {
			what = "allocate, a connection each"
		}
		for _, callers := range []int{1, 16} {
			if err := b.duelOfWays(ctx, what, callers, plain, secure, func(w way, round int) cycle {
				s := service{b: b, kind: fmt.Sprintf("%s/%d/%d/%s", what, callers, round, w.url), over: &w}
				return allocate.cycle(s.add, s.del, s.first)
			}); err != nil {
				return err
			}
		}
		what = strings.Replace(what, "allocate", "a page, nobody asked", 1)
		if err := b.duelOfWays(ctx, what, 1, plain, secure, func(w way, _ int) cycle {
			return cycle{timed: func(ctx context.Context, _, _ int) error {
				_, err := send(ctx, w.http, http.MethodGet, w.url+"/healthz", nil)
				return err
			}}
		}); err != nil {
			return err
		}
		plain.http.CloseIdleConnections()
		secure.http.CloseIdleConnections()
	}
	return nil
}

// duelOfWays measures both ways in turn.
func (b *bench) duelOfWays(
	ctx context.Context, what string, callers int, plain, secure way, of func(w way, round int) cycle,
) error {
	say("%s: %d callers by HTTPS and by plain HTTP", what, callers)
	ways, results := []way{plain, secure}, map[string][]result{}
	for round := range b.rounds {
		slices.Reverse(ways)
		for _, w := range ways {
			r, err := b.warmLoad(ctx, callers, of(w, round))
			if err != nil {
				return err
			}
			results[w.url] = append(results[w.url], r)
		}
	}
	b.report.secured(what, callers, results[plain.url], results[secure.url])
	return nil
}

// way returns a way to the controller: with a CA by HTTPS and a token, without by plain HTTP.
func (b *bench) way(kept bool, pool *x509.CertPool, token string) way {
	t := &http.Transport{MaxIdleConnsPerHost: maxCallers, DisableKeepAlives: !kept}
	if pool == nil {
		return way{&http.Client{Transport: t}, b.controller.URL}
	}
	t.TLSClientConfig = &tls.Config{
		RootCAs: pool, ServerName: "bcsnet-controller." + controlplane.SystemNamespace + ".svc",
		MinVersion: tls.VersionTLS12,
	}
	return way{
		&http.Client{Transport: transport.NewBearerAuthRoundTripper(token, t)},
		strings.Replace(b.controller.URL, "http:", "https:", 1),
	}
}

// callerToken makes a user who may what a plugin may, and returns a token of it.
func (b *bench) callerToken(ctx context.Context) (string, error) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: callerName}}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: callerName},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "bcsnet-node"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: callerName}},
	}
	request := &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{Audiences: []string{access.Audience}},
	}
	err := errors.Join(b.admin.Create(ctx, account), b.admin.Create(ctx, binding))
	if err == nil {
		err = b.admin.SubResource("token").Create(ctx, account, request)
	}
	return request.Status.Token, err
}

// publishedCA returns what the controller's clients trust.
func (b *bench) publishedCA(ctx context.Context) (*x509.CertPool, error) {
	pool := x509.NewCertPool()
	return pool, controlplane.WaitFor(ctx, time.Minute, func() error {
		var o corev1.ConfigMap
		err := b.admin.Get(ctx, client.ObjectKey{
			Namespace: controlplane.SystemNamespace, Name: "bcsnet-controller-ca",
		}, &o)
		if err == nil && !pool.AppendCertsFromPEM([]byte(o.Data["ca.crt"])) {
			err = errors.New("no CA is published")
		}
		return err
	})
}
