package serving

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
)

const (
	// lookEvery is the interval in which the Secret is read, and retryEvery the pause after a failure.
	lookEvery, retryEvery = 30 * time.Second, time.Second
	// callTime bounds one check, which reads or writes at most five objects.
	callTime = 20 * time.Second
)

// Config is the configuration of Certificates.
type Config struct {
	Core corev1client.CoreV1Interface
	// Namespace is the namespace of the Secret and of the Service.
	Namespace string
	// Replica names this replica in its certificates, for people.
	Replica string
	// Now returns the API server's time.
	Now func() time.Time
	// Every is the interval in which the Secret is read; zero for half a minute.
	Every time.Duration
	// Mounted returns the certificate that clients get instead of one of the own CA; nil for none.
	Mounted func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	Log     *slog.Logger
}

// Certificates hold the CA that all replicas share, and the certificate of this replica, whose key exists only in
// memory.
type Certificates struct {
	Config
	names   Names
	objects store
	current atomic.Pointer[served]

	// Only Run uses the following fields: known is the last content of the Secret, and held is the time since which a
	// CA that nobody announced is accepted.
	known *trust
	held  time.Time
}

// served is the state for new connections.
type served struct {
	leaf *tls.Certificate
	// by is the CA that issued the leaf.
	by   *x509.Certificate
	pool *x509.CertPool
	// bundle has the certificates that clients trust, in PEM.
	bundle []byte
	// shared is a secret that is known to all who can read the key of the signing CA.
	shared []byte
}

// Shared returns a secret that only replicas know; nil before there is a CA. It changes with the CA.
func (c *Certificates) Shared() []byte {
	if s := c.current.Load(); s != nil {
		return s.shared
	}
	return nil
}

// New returns Certificates, which are empty until Run is called.
func New(c Config) *Certificates {
	if c.Every == 0 {
		c.Every = lookEvery
	}
	return &Certificates{Config: c, names: Names{c.Namespace}, objects: store{c.Core, c.Namespace}}
}

// Run maintains the CA and the certificate until the context ends.
func (c *Certificates) Run(ctx context.Context) error {
	failing := false
	for {
		pause := c.Every
		err := c.renew(ctx)
		if ctx.Err() != nil {
			return nil //nolint:nilerr // it is asked to end
		}
		if err != nil {
			pause = min(retryEvery, c.Every)
			if !failing {
				c.Log.Warn("the certificates of the allocator's port are not kept", "error", err, "serves",
					c.current.Load() != nil)
			}
		} else if failing {
			c.Log.Info("the certificates of the allocator's port are kept again")
		}
		failing = err != nil
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C:
		}
	}
}

// renew reads the Secret and does what is due: for the CA, which any replica may do, and for this replica's
// certificate.
func (c *Certificates) renew(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	secret, err := c.secret(ctx)
	if err != nil {
		return err
	}
	now := c.Now()
	t, err := parseTrust(secret.Data)
	if err != nil {
		return fmt.Errorf("the Secret %s/%s is damaged (%w): restore it, or delete it to have a new CA made",
			c.Namespace, SecretName, err)
	}
	adopted := false
	if s := c.current.Load(); s != nil && !t.has(s.by) && now.Before(s.leaf.Leaf.NotAfter) {
		c.Log.Warn("the Secret of the CA has another CA than before: both are published, and this replica goes over "+
			"to it in an hour", "namespace", c.Namespace, "secret", SecretName)
		t, adopted = t.adopt(s.by, now), true
	}
	var unpublished error
	if !adopted {
		unpublished = c.objects.publish(ctx, t.bundle())
	}
	_, asked := secret.Annotations[RotateAnnotation]
	t, rotated, err := t.rotate(now, asked, !adopted && unpublished == nil)
	if err != nil {
		return err
	}
	if adopted || rotated {
		if _, err := c.objects.update(ctx, secret, t); err != nil {
			if apierrors.IsConflict(err) {
				err = fmt.Errorf("another replica was first: %w", err)
			}
			return err
		}
		unpublished = c.objects.publish(ctx, t.bundle())
		c.Log.Info("the CA of the allocator's port", "signs", t.signs.cert.Subject.CommonName, "published",
			len(t.certificates()))
	}
	if unpublished != nil {
		unpublished = fmt.Errorf("publish the CA in the ConfigMap %s/%s: %w", c.Namespace, ConfigMapName, unpublished)
	}
	return errors.Join(c.serve(t, now), unpublished)
}

// secret returns the Secret. If there is none, it creates one with the previous CA or a new one.
func (c *Certificates) secret(ctx context.Context) (*corev1.Secret, error) {
	secret, err := c.objects.read(ctx)
	if secret != nil || err != nil {
		return secret, err
	}
	t := c.known
	if t == nil {
		made, err := newTrust(c.Now())
		if err != nil {
			return nil, err
		}
		t = &made
	} else {
		c.Log.Warn("the Secret of the CA is gone: it is created again with the same CA", "namespace", c.Namespace,
			"secret", SecretName)
	}
	return c.objects.create(ctx, *t)
}

// serve uses a trust for new connections, with a new certificate if one is due.
func (c *Certificates) serve(t trust, now time.Time) error {
	s := c.current.Load()
	announcedNext := c.known != nil && c.known.next != nil && c.known.next.cert.Equal(t.signs.cert)
	c.known = &t
	shared, err := t.signs.shared()
	if err != nil {
		return err
	}
	next := served{pool: t.pool(), bundle: t.bundle(), shared: shared}
	due := true
	switch {
	case s == nil || !now.Before(s.leaf.Leaf.NotAfter):
	case s.by.Equal(t.signs.cert):
		c.held = time.Time{}
		due = now.Sub(s.leaf.Leaf.NotBefore.Add(behind)) >= leafRenew
	case announcedNext:
	case c.held.IsZero():
		c.held, due = now.Add(announced), false
	default:
		due = !now.Before(c.held)
	}
	if !due {
		next.leaf, next.by = s.leaf, s.by
		c.current.Store(&next)
		return nil
	}
	leaf, err := t.signs.leaf(c.names, c.Replica, now)
	if err != nil {
		return err
	}
	next.leaf, next.by, c.held = leaf, t.signs.cert, time.Time{}
	c.current.Store(&next)
	return nil
}
