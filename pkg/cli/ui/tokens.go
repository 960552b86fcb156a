package ui

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/cache"
	typedauthenticationv1 "k8s.io/client-go/kubernetes/typed/authentication/v1"
	"k8s.io/utils/lru"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
)

const (
	// sessionCookie is the cookie of a session. Browsers keep one of such a name for this host alone, and for HTTPS.
	sessionCookie = "__Host-bcsnet-ui"
	// longest is how long a session lasts at most.
	longest = 12 * time.Hour
	// maxLogin bounds the form of a login, and maxCookie a cookie: browsers keep no longer one. Both are in octets.
	maxLogin, maxCookie = 16 << 10, 3900
	// mostSessions bounds the visitors whose pages are kept, and those who have gone out.
	mostSessions = 1000
)

// Shared is how a server for many users is reached.
type Shared struct {
	// CertFile and KeyFile are the certificate and its private key. All replicas have the same.
	CertFile, KeyFile string
	// URL is the address that users have in their browser, if it has another name than the certificate; may be nil.
	URL *url.URL
}

// Serve serves the pages by HTTPS until the context ends, to everybody who logs in by a token of the cluster. What they
// are shown is read with that token. The server itself needs no right.
func (o Shared) Serve(ctx context.Context, s *app.App, inner net.Listener) error {
	t, err := o.door(s)
	if err != nil {
		return err
	}
	return t.server.serve(ctx, inner, t.pair.tls())
}

func (o Shared) door(s *app.App) (*tokens, error) {
	u, err := newServer(s)
	if err != nil {
		return nil, err
	}
	pair, err := newKeyPair(o.CertFile, o.KeyFile, s.Say.Warn)
	if err != nil {
		return nil, (&app.Failure{Message: "the certificate cannot be used: " + err.Error(), Cause: err}).
			WithHint("--tls-cert-file and --tls-private-key-file name a certificate and its key in PEM")
	}
	t := &tokens{
		server: u, pair: pair, patience: newPatience(), out: cache.NewLRUExpireCache(mostSessions),
		visitors: lru.NewWithEvictionFunc(mostSessions, func(_ lru.Key, v any) { v.(*visitor).live.stop() }),
	}
	if o.URL != nil {
		t.host, u.origin = o.URL.Hostname(), o.URL.Scheme+"://"+o.URL.Host
	}
	u.door = t
	return t, nil
}

// tokens is the door of a server in a cluster: one logs in by a token that the API server knows. The token is in a
// cookie, sealed, so that any replica knows who comes.
type tokens struct {
	server   *Server
	pair     *keyPair
	host     string // beside the names of the certificate; may be empty
	patience *patience
	out      *cache.LRUExpireCache // the sessions that were ended here

	mu       sync.Mutex
	visitors *lru.Cache // of *visitor, by the session
}

// session is what a cookie holds.
type session struct {
	ID    string    `json:"id"`
	Name  string    `json:"name"`
	Token string    `json:"token"`
	Until time.Time `json:"until"`
}

func (t *tokens) posts(path string) bool  { return path == "/login" || path == "/logout" }
func (t *tokens) public(path string) bool { return t.posts(path) }
func (t *tokens) secure() bool            { return true }

func (t *tokens) routes(mux *http.ServeMux) {
	mux.HandleFunc("POST /login", t.login)
	mux.HandleFunc("GET /login", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/", http.StatusSeeOther) // which asks for a token, if need be
	})
	mux.HandleFunc("POST /logout", t.logout)
}

// admits reports whether a host is a name of the certificate or of the URL.
func (t *tokens) admits(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = strings.Trim(host, "[]")
	}
	return name != "" && (name == t.host || t.pair.names(name))
}

// session returns the session of a request, if it has one that counts.
func (t *tokens) session(r *http.Request) (s session, ok bool) {
	c, err := r.Cookie(sessionCookie)
	if err != nil {
		return s, false
	}
	text, err := t.pair.open(c.Value)
	if err != nil || json.Unmarshal(text, &s) != nil || !time.Now().Before(s.Until) {
		return s, false
	}
	_, gone := t.out.Get(s.ID)
	return s, !gone
}

func (t *tokens) visitor(r *http.Request) *visitor {
	s, ok := t.session(r)
	if !ok {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if v, ok := t.visitors.Get(s.ID); ok {
		return v.(*visitor)
	}
	v := t.server.newVisitor(t.server.app.AsBearer(s.Token), s.Name, s.Until)
	t.visitors.Add(s.ID, v)
	return v
}

// outside asks for a token.
func (t *tokens) outside(w http.ResponseWriter, r *http.Request) {
	what := ""
	if visitorOf(r) != nil {
		t.end(w, r)
		what = "Your token does not count any more"
	}
	t.ask(w, r, http.StatusUnauthorized, what, r.URL.RequestURI())
}

// ask shows the form for a token, and what was wrong.
func (t *tokens) ask(w http.ResponseWriter, r *http.Request, status int, what, to string) {
	t.server.write(w, r, status, "login", map[string]any{"What": what, "To": here(to)})
}

// login takes a token, and gives a cookie for it.
func (t *tokens) login(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxLogin)
	if err := r.ParseForm(); err != nil {
		t.ask(w, r, http.StatusRequestEntityTooLarge, "That is too long for a token", "/")
		return
	}
	token, to := strings.TrimSpace(r.PostForm.Get("token")), here(r.PostForm.Get("to"))
	name, status, wrong := t.identify(r, token)
	if wrong != "" {
		if status == http.StatusTooManyRequests {
			w.Header().Set("Retry-After", "10")
		}
		t.ask(w, r, status, wrong, to)
		return
	}
	s := session{ID: rand.Text(), Name: name, Token: token, Until: until(token, time.Now())}
	text, err := json.Marshal(s)
	if err != nil {
		t.ask(w, r, http.StatusInternalServerError, err.Error(), to)
		return
	}
	value := t.pair.seal(text)
	if len(value) > maxCookie {
		t.ask(w, r, http.StatusRequestEntityTooLarge, "The token is too long for a cookie", to)
		return
	}
	t.setCookie(w, value, int(time.Until(s.Until).Seconds()))
	t.server.app.Say.Note("%s has logged in from %s", name, r.RemoteAddr)
	http.Redirect(w, r, to, http.StatusSeeOther)
}

// identify asks the API server whose token it is. wrong says why nobody is let in by it.
func (t *tokens) identify(r *http.Request, token string) (name string, status int, wrong string) {
	const refused = "The API server does not know this token, or it has ended"
	switch {
	case token == "" || strings.ContainsFunc(token, func(c rune) bool { return c <= ' ' || c > '~' }):
		return "", http.StatusBadRequest, "That is no token: a token is one word"
	case t.patience.knowsWrong(token):
		return "", http.StatusForbidden, refused
	case !t.patience.allows(r):
		return "", http.StatusTooManyRequests, "Too many tokens were tried: try again in ten seconds"
	}
	c, err := typedauthenticationv1.NewForConfig(t.server.app.AsBearer(token).Config)
	if err != nil {
		return "", http.StatusInternalServerError, err.Error()
	}
	review, err := c.SelfSubjectReviews().Create(r.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	switch {
	case apierrors.IsUnauthorized(err), err == nil && review.Status.UserInfo.Username == "system:anonymous":
		t.patience.refused(token)
		return "", http.StatusForbidden, refused
	case err != nil:
		text, _, status := t.server.problem(resource.Explain(t.server.app, err))
		return "", status, text
	}
	return review.Status.UserInfo.Username, 0, ""
}

// logout ends a session.
func (t *tokens) logout(w http.ResponseWriter, r *http.Request) {
	t.end(w, r)
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

// end ends the session of a request: this replica lets nobody in by its cookie any more, and stops what follows pages.
func (t *tokens) end(w http.ResponseWriter, r *http.Request) {
	t.setCookie(w, "", -1)
	s, ok := t.session(r)
	if !ok {
		return
	}
	t.out.Add(s.ID, true, time.Until(s.Until))
	t.mu.Lock()
	defer t.mu.Unlock()
	t.visitors.Remove(s.ID) // which ends them
}

func (t *tokens) setCookie(w http.ResponseWriter, value string, seconds int) {
	http.SetCookie(w, &http.Cookie{
		Name: sessionCookie, Value: value, Path: "/", MaxAge: seconds, HttpOnly: true, Secure: true,
		SameSite: http.SameSiteStrictMode,
	})
}

// until returns when a session of a token ends: with the token, if that says when, and after half a day at most. The API
// server has verified the token.
func until(token string, now time.Time) time.Time {
	latest := now.Add(longest)
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return latest
	}
	text, err := base64.RawURLEncoding.DecodeString(parts[1])
	var claims struct {
		Expires float64 `json:"exp"`
	}
	if err != nil || json.Unmarshal(text, &claims) != nil || claims.Expires <= 0 {
		return latest
	}
	if ends := time.Unix(int64(claims.Expires), 0); ends.Before(latest) {
		return ends
	}
	return latest
}
