package httpapi

import (
	"crypto/tls"
	"net/http"
	"strings"
	"testing"

	"github.com/bcsnet/bcsnet/pkg/httpapi/wire"
)

// BenchmarkOperation is what a request costs beside what it asks for: a DEL that finds nothing, of a node by TLS, and a
// read of this machine.
func BenchmarkOperation(b *testing.B) {
	f := newFixture(b, knows(&questions{user: onNode("a"), recalls: true, allows: true}), onOneHost)
	const body = `{"host":"10.0.0.1","containerID":"c","podName":"p","podNamespace":"n"}`
	for name, c := range map[string]struct {
		method, path, body string
		secure             bool
	}{
		"DEL":  {http.MethodDelete, wire.Prefix, body, true},
		"read": {http.MethodGet, wire.Prefix + "/ip/10.0.0.7", "", false},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			ctx := withConn(b.Context(), nil)
			for b.Loop() {
				r := localRequest(c.method, c.path, strings.NewReader(c.body)).WithContext(ctx)
				if c.secure {
					r.TLS = &tls.ConnectionState{}
				}
				f.handler.ServeHTTP(&discarded{}, r)
			}
		})
	}
}
