package access

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/client-go/kubernetes"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// Audience is the required audience of tokens.
const Audience = "bcsnet"

const (
	// remembered is the time for which an answer of the API server is cached. A connection caches it for 10 s more, so
	// a revoked token or role counts for at most a minute.
	remembered = 40 * time.Second
	// refused is the time for which a refusal is cached.
	refused = 5 * time.Second
	// most bounds the number of cached answers of each kind.
	most = 16384
	// maxToken bounds a token, in octets. Real tokens are shorter.
	maxToken = 16 << 10
)

// User identifies a caller.
type User = authenticationv1.UserInfo

// Gate identifies callers by tokens and by certificates of the cluster's client CA, and asks RBAC for their
// permissions.
type Gate struct {
	client kubernetes.Interface
	log    *slog.Logger
	// tokens has a *User by the hash of the token, nil for an invalid token; rights has a bool by question.
	tokens, rights *cache.LRUExpireCache
	clients        *clientCA
}

// New returns a Gate that uses a client. now returns the API server's time: the clock of this machine may be wrong.
func New(client kubernetes.Interface, now func() time.Time, log *slog.Logger) *Gate {
	return &Gate{
		client: client, log: log, tokens: cache.NewLRUExpireCache(most), rights: cache.NewLRUExpireCache(most),
		clients: newClientCA(client.CoreV1(), now, log),
	}
}

// Run keeps the cluster's client CA up to date until the context ends.
func (g *Gate) Run(ctx context.Context) error {
	g.clients.run(ctx)
	return nil
}

// Identify returns the sender of a request that came over TLS: by its token, or else by its client certificate. The
// error is a refusal.
func (g *Gate) Identify(r *http.Request) (User, error) {
	if shown := r.Header.Get("Authorization"); shown != "" {
		token, ok := bearer(shown)
		if !ok {
			return User{}, ipam.Refuse(ipam.ReasonUnauthenticated, "the header Authorization has no bearer token").
				WithHint("send a token for the audience %s: kubectl create token NAME --audience %s", Audience,
					Audience)
		}
		return g.byToken(r.Context(), token)
	}
	if r.TLS != nil && len(r.TLS.PeerCertificates) > 0 {
		return g.clients.identify(r.TLS.PeerCertificates)
	}
	return User{}, ipam.Refuse(ipam.ReasonUnauthenticated,
		"the request shows neither a token nor a client certificate").
		WithHint("send a token for the audience %s: kubectl create token NAME --audience %s", Audience, Audience)
}

// bearer returns the token of a header. It must be one word, because the API server would use the first of several.
func bearer(shown string) (token string, ok bool) {
	scheme, token, _ := strings.Cut(shown, " ")
	token = strings.TrimSpace(token)
	word := !strings.ContainsFunc(token, func(c rune) bool { return c <= ' ' || c > '~' })
	return token, strings.EqualFold(scheme, "Bearer") && token != "" && len(token) <= maxToken && word
}

// Remembers reports whether the sender of a request can be identified without a request to the API server, and without
// verifying a certificate that was not seen recently.
func (g *Gate) Remembers(r *http.Request) bool {
	shown := r.Header.Get("Authorization")
	if shown == "" {
		return r.TLS == nil || len(r.TLS.PeerCertificates) == 0 || g.clients.remembers(r.TLS.PeerCertificates)
	}
	token, ok := bearer(shown)
	if !ok {
		return true // such a header is refused without a question
	}
	_, ok = g.tokens.Get(sha256.Sum256([]byte(token)))
	return ok
}

func (g *Gate) byToken(ctx context.Context, token string) (User, error) {
	key := sha256.Sum256([]byte(token))
	known, ok := g.tokens.Get(key)
	if !ok {
		review, err := g.client.AuthenticationV1().TokenReviews().Create(ctx, &authenticationv1.TokenReview{
			Spec: authenticationv1.TokenReviewSpec{Token: token, Audiences: []string{Audience}},
		}, metav1.CreateOptions{})
		if err != nil {
			return User{}, ipam.Refuse(ipam.ReasonUnavailable, "the API server does not say whose token it is: %v",
				err).
				WithHint("ask again; the controller's ClusterRole has to allow it to create tokenreviews")
		}
		var who *User
		lasts := refused
		s := review.Status
		odd := checkNames(s.User.Username)
		if s.Authenticated && slices.Contains(s.Audiences, Audience) && odd == nil {
			who, lasts = &s.User, remembered
		} else {
			g.log.Debug("a token does not count", "why", s.Error, "audiences", s.Audiences, "name", odd)
		}
		known = who
		g.tokens.Add(key, known, lasts)
	}
	if who := known.(*User); who != nil {
		return *who, nil
	}
	return User{}, ipam.Refuse(ipam.ReasonUnauthenticated, "the token does not count here: it is not for the audience "+
		"%s, has expired, or is none of this cluster", Audience).
		WithHint("kubectl create token NAME --audience %s", Audience)
}

// Question asks whether RBAC allows a user an action. An empty namespace stands for all namespaces.
type Question struct{ Verb, Resource, Namespace string }

// Allow returns a refusal unless RBAC allows the action.
func (g *Gate) Allow(ctx context.Context, who User, q Question) error {
	key := rightKey(who, q)
	known, ok := g.rights.Get(key)
	if !ok {
		extra := make(map[string]authorizationv1.ExtraValue, len(who.Extra))
		for name, values := range who.Extra {
			extra[name] = authorizationv1.ExtraValue(values)
		}
		review, err := g.client.AuthorizationV1().SubjectAccessReviews().Create(ctx,
			&authorizationv1.SubjectAccessReview{
				Spec: authorizationv1.SubjectAccessReviewSpec{
					User: who.Username, Groups: who.Groups, UID: who.UID, Extra: extra,
					ResourceAttributes: &authorizationv1.ResourceAttributes{
						Verb: q.Verb, Group: v1.GroupVersion.Group, Version: v1.GroupVersion.Version,
						Resource:  q.Resource,
						Namespace: q.Namespace,
					},
				},
			}, metav1.CreateOptions{})
		if err != nil {
			return ipam.Refuse(ipam.ReasonUnavailable, "the API server does not say what %s may do: %v", who.Username,
				err).
				WithHint("ask again; the controller's ClusterRole has to allow it to create subjectaccessreviews")
		}
		lasts := refused
		if review.Status.Allowed {
			lasts = remembered
		}
		known = review.Status.Allowed
		g.rights.Add(key, known, lasts)
	}
	if known.(bool) {
		return nil
	}
	where := "in all namespaces"
	if q.Namespace != "" {
		where = "in namespace " + q.Namespace
	}
	return ipam.Refuse(ipam.ReasonNotPermitted, "%s may not %s %s.%s %s", who.Username, q.Verb, q.Resource,
		v1.GroupVersion.Group, where).WithHint("bind a role that allows it, such as bcsnet-node or bcsnet-operator")
}

// Recalls reports whether the answer to a question about a user is cached.
func (g *Gate) Recalls(who User, q Question) bool {
	_, ok := g.rights.Get(rightKey(who, q))
	return ok
}

// rightKey returns the cache key of a question about a user. It hashes their JSON, which differs whenever they differ:
// names from certificates may contain any character.
func rightKey(who User, q Question) [sha256.Size]byte {
	text, _ := json.Marshal([]any{who, q}) // strings, and lists and maps of strings
	return sha256.Sum256(text)
}

// checkNames refuses a user without a name, and names with unprintable characters. Line ends, terminal escapes and
// marks that change the writing direction would forge lines in logs and histories. Such a name also could not be
// forwarded to another replica in a header.
func checkNames(user string, groups ...string) error {
	if user == "" {
		return errors.New("it has no name")
	}
	for _, name := range append([]string{user}, groups...) {
		if !utf8.ValidString(name) || strings.ContainsFunc(name, func(c rune) bool { return !unicode.IsPrint(c) }) {
			return fmt.Errorf("the name %q has characters that cannot be printed", name)
		}
	}
	return nil
}

const (
	// nodeName is the key under which the API server names the node of the pod to which a token is bound.
	nodeName = "authentication.kubernetes.io/node-name"
	// podName is the key under which it names the pod itself.
	podName = "authentication.kubernetes.io/pod-name"
	// kubelets is the group of kubelets, and kubelet the prefix of their names.
	kubelets, kubelet = "system:nodes", "system:node:"
)

// NodeOf returns the node of a user, and whether the user is bound to one: by a token that is bound to a pod or a node,
// or by the certificate of a kubelet. If the user is bound but the API server does not name the node, the name is
// empty: such a user acts for no host, rather than for all.
func NodeOf(who User) (name string, bound bool) {
	if names, ok := who.Extra[nodeName]; ok {
		return strings.Join(names, ","), true
	}
	if _, ok := who.Extra[podName]; ok {
		return "", true
	}
	if name, ok := strings.CutPrefix(who.Username, kubelet); ok && slices.Contains(who.Groups, kubelets) {
		return name, true
	}
	return "", slices.Contains(who.Groups, kubelets)
}
