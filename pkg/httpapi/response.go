package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/google/uuid"

	"github.com/bcsnet/bcsnet/pkg/httpapi/wire"
)

func respond(w http.ResponseWriter, status int, e wire.Envelope) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(marshal(e), '\n')) // the client may be gone
}

func marshal(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // plain structs of strings and numbers
	}
	return b
}

func plain(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text + "\n"))
}

const maxRequestID = 128

type idKey struct{}

// requestID uses the caller's X-Request-Id, if it is short and printable, or creates one.
func requestID(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := r.Header.Get("X-Request-Id")
		if id == "" || len(id) > maxRequestID || strings.ContainsFunc(id, func(c rune) bool {
			return c < ' ' ||
				c > '~'
		}) {
			id = uuid.NewString()
		}
		w.Header().Set("X-Request-Id", id)
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), idKey{}, id)))
	})
}

func idOf(r *http.Request) string {
	id, _ := r.Context().Value(idKey{}).(string)
	return id
}
