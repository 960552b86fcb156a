package attacks_test

import (
	"strings"
	"testing"

	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// strangers show nothing that counts.
func strangers() []attack {
	return []attack{{"nothing_shown", nothingShown}, {"pages_tell_no_secret", pagesTellNoSecret}}
}

func nothingShown(t *testing.T, w *world) {
	for name, a := range w.calls() {
		w.send(t, a).refused(t, name, ipam.ReasonUnauthenticated)
	}
}

// What is shown to everybody has neither keys nor tokens, nor who has which address.
func pagesTellNoSecret(t *testing.T, w *world) {
	for _, path := range []string{"/healthz", "/readyz", "/version", "/info", "/metrics", "/openapi.json", "/apidocs.json"} {
		h := w.send(t, ask{method: "GET", path: path})
		for _, secret := range []string{
			"PRIVATE KEY", w.node, w.operator, w.victim["containerID"].(string), w.address, "web-theirs",
		} {
			if strings.Contains(h.text, secret) {
				t.Errorf("%s shows %.40s", path, secret)
			}
		}
	}
}
