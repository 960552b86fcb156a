package access

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/cache"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// The API server publishes its client CA for extension API servers in this ConfigMap.
const (
	clientCANamespace, clientCAName = "kube-system", "extension-apiserver-authentication"
	clientCAKey                     = "client-ca-file"
	// readEvery is the pause between two reads of the CA, and retryEvery the pause after a failed read.
	readEvery, retryEvery = time.Minute, 2 * time.Second
)

// clientCA identifies people and components by certificates of the cluster's client CA.
type clientCA struct {
	core corev1client.CoreV1Interface
	log  *slog.Logger
	// now returns the API server's time, by which it judges the same certificates.
	now  func() time.Time
	pool atomic.Pointer[x509.CertPool] // nil before it was read
	// looked caches, by chain, whether the chain was valid.
	looked *cache.LRUExpireCache
}

func newClientCA(core corev1client.CoreV1Interface, now func() time.Time, log *slog.Logger) *clientCA {
	return &clientCA{core: core, log: log, now: now, looked: cache.NewLRUExpireCache(most)}
}

// run reads the CA periodically until the context ends.
func (c *clientCA) run(ctx context.Context) {
	failing := false
	for {
		pause := readEvery
		err := c.read(ctx)
		if err != nil {
			pause = retryEvery
			if !failing && ctx.Err() == nil {
				c.log.Warn("callers are not known by client certificates", "error", err)
			}
		}
		failing = err != nil
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
	}
}

// read reads the CA. A cluster without one has no client certificates.
func (c *clientCA) read(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	o, err := c.core.ConfigMaps(clientCANamespace).Get(ctx, clientCAName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		c.pool.Store(x509.NewCertPool())
		return nil
	}
	if err != nil {
		return err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM([]byte(o.Data[clientCAKey]))
	c.pool.Store(pool)
	return nil
}

// identify returns the user of a chain of certificates: as for the API server, the name is the common name, and the
// groups are the organizations. While a refusal is cached, the chain is refused without verification.
func (c *clientCA) identify(chain []*x509.Certificate) (User, error) {
	pool := c.pool.Load()
	if pool == nil {
		return User{}, ipam.Refuse(ipam.ReasonUnavailable, "the cluster's client CA has not been read yet").
			WithHint("ask again")
	}
	key := chainKey(chain)
	if good, ok := c.looked.Get(key); ok && !good.(bool) {
		return User{}, refuseChain()
	}
	if err := c.verify(chain, pool); err != nil {
		c.looked.Add(key, false, refused)
		c.log.Debug("a client certificate does not count", "subject", chain[0].Subject.String(), "error", err)
		return User{}, refuseChain()
	}
	c.looked.Add(key, true, remembered)
	// The package tls shares one object between connections with the same certificate: nothing may be appended to it.
	name := chain[0].Subject
	return User{
		Username: name.CommonName, Groups: slices.Concat(name.Organization, []string{"system:authenticated"}),
	}, nil
}

// verify returns the reason why a chain is invalid.
func (c *clientCA) verify(chain []*x509.Certificate, pool *x509.CertPool) error {
	leaf, between := chain[0], x509.NewCertPool()
	for _, other := range chain[1:] {
		between.AddCert(other)
	}
	if err := checkNames(leaf.Subject.CommonName, leaf.Subject.Organization...); err != nil {
		return err
	}
	_, err := leaf.Verify(x509.VerifyOptions{
		Roots: pool, Intermediates: between, CurrentTime: c.now(),
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	return err
}

func refuseChain() *ipam.Refusal {
	return ipam.Refuse(ipam.ReasonUnauthenticated, "the client certificate does not count here: it is not one of the "+
		"cluster's client CA, has expired, or names nobody").
		WithHint("kubectl config view has the one that kubectl uses")
}

// remembers reports whether a chain was recently verified. A valid chain is verified again in any case.
func (c *clientCA) remembers(chain []*x509.Certificate) bool {
	_, ok := c.looked.Get(chainKey(chain))
	return ok
}

// chainKey returns the cache key of a chain of certificates.
func chainKey(chain []*x509.Certificate) (key [sha256.Size]byte) {
	all := sha256.New()
	for _, c := range chain {
		one := sha256.Sum256(c.Raw)
		_, _ = all.Write(one[:]) // never fails
	}
	all.Sum(key[:0])
	return key
}
