package attacks_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/keyutil"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bcsnet/bcsnet/pkg/access"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/test/controlplane"
)

func forgedTokens() []attack {
	return []attack{
		{"unsigned_token", unsignedToken}, {"expired_token", expiredToken}, {"token_of_another_cluster", foreignToken},
		{"token_for_another_audience", otherAudience}, {"token_of_a_deleted_pod", deletedPod},
		{"token_of_a_deleted_account", deletedAccount},
	}
}

// claims returns what a token of the operator says that ends at a time.
func (w *world) claims(t *testing.T, end time.Time) object {
	t.Helper()
	var o corev1.ServiceAccount
	if err := shared.admin.Get(t.Context(), client.ObjectKey{Namespace: shop, Name: "operator"}, &o); err != nil {
		t.Fatal(err)
	}
	begin := time.Now().Add(-2 * time.Hour).Unix()
	return object{
		"iss": "https://kubernetes.default.svc.cluster.local", "sub": "system:serviceaccount:" + shop + ":operator",
		"aud": []string{access.Audience}, "exp": end.Unix(), "iat": begin, "nbf": begin,
		"kubernetes.io": object{
			"namespace": shop, "serviceaccount": object{"name": "operator", "uid": string(o.UID)},
		},
	}
}

// signed returns a token, signed by a key; nil for none.
func signed(t *testing.T, key *ecdsa.PrivateKey, claims object) string {
	t.Helper()
	part := func(v any) string {
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return base64.RawURLEncoding.EncodeToString(text)
	}
	if key == nil {
		return part(object{"alg": "none", "typ": "JWT"}) + "." + part(claims) + "."
	}
	text := part(object{"alg": "ES256", "typ": "JWT"}) + "." + part(claims)
	sum := sha256.Sum256([]byte(text))
	r, s, err := ecdsa.Sign(rand.Reader, key, sum[:])
	if err != nil {
		t.Fatal(err)
	}
	signature := make([]byte, 64)
	r.FillBytes(signature[:32])
	s.FillBytes(signature[32:])
	return text + "." + base64.RawURLEncoding.EncodeToString(signature)
}

// clusterKey returns the key that signs the cluster's tokens.
func clusterKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(shared.cluster.Dir, "pki", "sa.key"))
	if err != nil {
		t.Fatal(err)
	}
	key, err := keyutil.ParsePrivateKeyPEM(text)
	if err != nil {
		t.Fatal(err)
	}
	return key.(*ecdsa.PrivateKey)
}

// list is a call that the operator may make.
func list(token string) ask { return ask{token: token, method: "GET", path: prefix} }

func unsignedToken(t *testing.T, w *world) {
	for name, token := range map[string]string{
		"nonsense": "nonsense", "unsigned": signed(t, nil, w.claims(t, time.Now().Add(time.Hour))),
		"cut off": w.operator[:len(w.operator)-4], "two": w.operator + " " + w.operator,
	} {
		w.send(t, list(token)).refused(t, name, ipam.ReasonUnauthenticated)
	}
	for _, header := range []string{"Basic YTpi", "Bearer", "Bearer ", w.operator, "Bearer, " + w.operator} {
		w.send(t, ask{method: "GET", path: prefix, headers: []string{"Authorization", header}}).
			refused(t, header[:min(len(header), 12)], ipam.ReasonUnauthenticated)
	}
}

// The same token counts while it has not expired: it is its end that refuses it.
func expiredToken(t *testing.T, w *world) {
	key := clusterKey(t)
	w.send(t, list(signed(t, key, w.claims(t, time.Now().Add(time.Hour))))).done(t, "before its end")
	w.send(t, list(signed(t, key, w.claims(t, time.Now().Add(-time.Minute))))).
		refused(t, "after its end", ipam.ReasonUnauthenticated)
}

func foreignToken(t *testing.T, w *world) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	claims := w.claims(t, time.Now().Add(time.Hour))
	w.send(t, list(signed(t, key, claims))).refused(t, "signed by another key", ipam.ReasonUnauthenticated)
	claims["iss"] = "https://attacker.example"
	w.send(t, list(signed(t, key, claims))).refused(t, "of another issuer", ipam.ReasonUnauthenticated)
	w.send(t, list(signed(t, clusterKey(t), claims))).refused(t, "of another issuer, by our key",
		ipam.ReasonUnauthenticated)
}

// A token that a pod shows to other services, or to the API server, is none for this port.
func otherAudience(t *testing.T, w *world) {
	for _, audience := range []string{"vault", "https://kubernetes.default.svc.cluster.local", "bcsnet2"} {
		w.send(t, list(w.tokenFor(t, "operator", "", audience))).refused(t, audience, ipam.ReasonUnauthenticated)
	}
}

func deletedPod(t *testing.T, w *world) {
	p := w.pod(t, shop, "plugin-gone", nodeMine, "plugin")
	token := w.token(t, "plugin", p.Name)
	if err := shared.admin.Delete(t.Context(), p, client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
	w.soonUnknown(t, token)
}

func deletedAccount(t *testing.T, w *world) {
	w.account(t, "gone", "bcsnet-operator", "")
	token := w.token(t, "gone", "")
	if err := shared.admin.Delete(t.Context(), &corev1.ServiceAccount{
		ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "gone"},
	}); err != nil {
		t.Fatal(err)
	}
	w.soonUnknown(t, token)
}

// soonUnknown fails the test unless the API server says that nobody has a token once it knows of a deletion. The
// controller is asked then for the first time.
func (w *world) soonUnknown(t *testing.T, token string) {
	t.Helper()
	controlplane.Eventually(t, func() error { return w.reviewedUnknown(t.Context(), token) })
	w.send(t, list(token)).refused(t, "a token of what is gone", ipam.ReasonUnauthenticated)
}

// reviewedUnknown returns an error while the API server knows whose token it is.
func (w *world) reviewedUnknown(ctx context.Context, token string) error {
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{
		Token: token, Audiences: []string{access.Audience},
	}}
	if err := shared.admin.Create(ctx, review); err != nil {
		return err
	}
	if review.Status.Authenticated {
		return errors.New("the token counts")
	}
	return nil
}
