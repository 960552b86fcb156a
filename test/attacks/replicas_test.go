package attacks_test

import (
	"crypto/x509"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// replicas are attacks by who pretends to be one.
func replicas() []attack {
	return []attack{
		{"headers_of_a_replica", replicaHeaders}, {"headers_beside_a_token", headersBesideToken},
		{"certificate_without_the_replicas_name", almostReplica}, {"replica_without_a_proof", noProof},
	}
}

// stolen returns the headers of a request that a replica has forwarded for somebody who may do all.
func stolen(w *world) []string {
	return []string{
		"Bcsnet-Forwarded", w.replicaID, "Bcsnet-User", "admin", "Bcsnet-Hosts", theirs, "Bcsnet-Caller", theirs,
		"Bcsnet-Arrived", time.Now().UTC().Format(time.RFC3339Nano), "Bcsnet-Proof", strings.Repeat("A", 43),
	}
}

func replicaHeaders(t *testing.T, w *world) {
	for name, a := range w.calls() {
		a.headers = stolen(w)
		w.send(t, a).refusedAsForwarded(t, "nobody: "+name)
		a.token = w.operator
		w.send(t, a).refusedAsForwarded(t, "an operator: "+name)
	}
	a := w.calls()["DEL"].elsewhere("127.0.0.7")
	a.headers = append(a.headers, stolen(w)...)
	w.send(t, a).refusedAsForwarded(t, "by plain HTTP")
	a.token, a.plain, a.headers = "", true, stolen(w)
	a.source = ""
	w.send(t, a).refusedAsForwarded(t, "on this machine")
}

// refusedAsForwarded fails the test unless an answer says that the request is of no replica.
func (h heard) refusedAsForwarded(t *testing.T, what string) {
	t.Helper()
	if h.status < 500 || !strings.Contains(h.text, "prove") && !strings.Contains(h.text, "shows no certificate") {
		t.Errorf("%s: HTTP %d %.300s", what, h.status, h.text)
	}
}

// Without the header that names a replica the others say nothing.
func headersBesideToken(t *testing.T, w *world) {
	for name, a := range w.calls() {
		switch name {
		case "ADD", "DEL", "GC", "host":
		default:
			continue
		}
		a.token, a.headers = w.node, slices.Concat(stolen(w)[2:], []string{
			"X-Forwarded-For", theirs, "X-Real-Ip", theirs, "X-Remote-User", "admin", "X-Remote-Group", admins,
			"Impersonate-User", "admin", "Impersonate-Group", admins,
		})
		w.send(t, a).refused(t, name, ipam.ReasonNotPermitted)
	}
}

// forwardedBy sends what a replica forwards, with a certificate of our CA.
func (w *world) forwardedBy(t *testing.T, names ...string) {
	t.Helper()
	template := templateOf("replica")
	template.DNSNames = names
	w.forwardedWith(t, template)
}

func (w *world) forwardedWith(t *testing.T, template *x509.Certificate) {
	t.Helper()
	a := w.calls()["DEL"]
	a.cert, a.headers = ourCA(t).issue(t, template), stolen(w)
	w.send(t, a).refusedAsForwarded(t, "DEL")
}

func almostReplica(t *testing.T, w *world) {
	w.forwardedBy(t, serverName)
	w.forwardedBy(t, "*."+serverName)
	server := templateOf("replica")
	server.DNSNames, server.ExtKeyUsage = []string{"replica." + serverName}, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	w.forwardedWith(t, server)
	a := w.calls()["DEL"]
	template := templateOf("replica")
	template.DNSNames = []string{"replica." + serverName}
	a.cert, a.headers = newIssuer(t).issue(t, template), stolen(w)
	w.send(t, a).refusedAsForwarded(t, "of another CA")
}

// Who has the CA's key can make himself a replica's certificate. What he says that others forwarded needs their proof.
func noProof(t *testing.T, w *world) { w.forwardedBy(t, "replica."+serverName) }
