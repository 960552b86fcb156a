package ui

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedauthenticationv1 "k8s.io/client-go/kubernetes/typed/authentication/v1"

	"github.com/bcsnet/bcsnet/pkg/cli/resource"
)

// ask shows the form for a token. what is the error of the previous attempt.
func (t *tokens) ask(w http.ResponseWriter, r *http.Request, status int, what, to string) {
	t.server.write(w, r, status, "login", map[string]any{"What": what, "To": here(to)})
}

// login exchanges a token for a cookie.
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
	http.Redirect(w, r, to, http.StatusSeeOther) //nolint:gosec // here returns a path of these pages
}

// identify asks the API server for the user of a token. wrong is the reason why the login fails.
func (t *tokens) identify(r *http.Request, token string) (name string, status int, wrong string) {
	const refused = "The API server does not know this token, or it has ended"
	switch {
	case token == "" || strings.ContainsFunc(token, func(c rune) bool { return c <= ' ' || c > '~' }):
		return "", http.StatusBadRequest, "This is not a token: a token is one word"
	case t.patience.knowsWrong(token):
		return "", http.StatusForbidden, refused
	case !t.patience.allows(r):
		return "", http.StatusTooManyRequests, "Too many tokens were tried: try again in ten seconds"
	}
	c, err := typedauthenticationv1.NewForConfig(t.server.app.AsBearer(token).Config)
	if err != nil {
		return "", http.StatusInternalServerError, err.Error()
	}
	review, err := c.SelfSubjectReviews().
		Create(r.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	switch {
	case apierrors.IsUnauthorized(err), err == nil && review.Status.UserInfo.Username == "system:anonymous":
		t.patience.refused(token)
		return "", http.StatusForbidden, refused
	case err != nil:
		text, _, status := problem(t.server.app, resource.Explain(t.server.app, err))
		return "", status, text
	}
	return review.Status.UserInfo.Username, 0, ""
}

// logout ends a session.
func (t *tokens) logout(w http.ResponseWriter, r *http.Request) {
	t.end(w, r)
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

// end ends the session of a request: this replica no longer accepts its cookie, and stops its streams.
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

// until returns when a session ends: with the token if that names its end, but after 12 hours at most. The API server
// must have verified the token.
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
