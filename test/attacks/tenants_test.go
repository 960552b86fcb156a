package attacks_test

import (
	"testing"

	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// tenants are attacks by who has a role in one namespace, or one that reads.
func tenants() []attack {
	return []attack{
		{"own_namespace_named_beside", namedBeside}, {"container_of_another_namespace", otherNamespace},
		{"namespaces_that_are_none", noNamespace}, {"viewer_that_writes", viewerWrites},
		{"no_role_at_all", noRole},
	}
}

// A namespace in the body or the query of what is about all namespaces does not make it about that one.
func namedBeside(t *testing.T, w *world) {
	w.send(t, ask{token: w.tenant, method: "GET", path: prefix + "?podNamespace=" + tenant}).done(t, "the own list")
	for name, a := range w.calls() {
		switch name {
		case "ADD", "DEL", "pod":
			continue // these are about the namespace that they name
		}
		a.token = w.tenant
		if body, ok := a.body.(object); ok {
			a.body = with(body, "podNamespace", tenant, "namespace", tenant, "PodNamespace", tenant)
		}
		w.send(t, a).refused(t, name, ipam.ReasonNotPermitted)
		if a.path += "?podNamespace=" + tenant; name == "list" {
			continue // that is the own one
		}
		w.send(t, a).refused(t, name+" with a query", ipam.ReasonNotPermitted, ipam.ReasonBadRequest)
	}
}

func otherNamespace(t *testing.T, w *world) {
	h := w.send(t, ask{token: w.tenant, method: "DELETE", path: prefix, body: with(w.victim, "podNamespace", tenant)})
	if data := h.done(t, "DEL"); len(data["ips"].([]any)) > 0 {
		t.Errorf("DEL released %v", data["ips"])
	}
	w.send(t, ask{token: w.tenant, method: "POST", path: prefix, body: with(w.victim, "podNamespace", tenant, "podName",
		"web-tenant")}).refused(t, "ADD of the container", ipam.ReasonContainerHoldsOther)
	for _, body := range []object{w.victim, with(w.victim, "podNamespace", ""), with(w.victim, "PODNAMESPACE", shop)} {
		w.send(t, ask{token: w.tenant, method: "DELETE", path: prefix, body: with(body, "host", theirs)}).
			refused(t, "DEL", ipam.ReasonNotPermitted)
	}
}

func noNamespace(t *testing.T, w *world) {
	for _, name := range []string{
		tenant + "\n" + admins, tenant + "\x00", "*", tenant + "/../" + shop, tenant + " ", "TENANT",
	} {
		for _, method := range []string{"POST", "DELETE"} {
			w.send(t, ask{token: w.tenant, method: method, path: prefix, body: with(w.victim, "podNamespace", name)}).
				refused(t, name, ipam.ReasonBadRequest)
		}
	}
}

func viewerWrites(t *testing.T, w *world) {
	w.send(t, list(w.viewer)).done(t, "a list")
	for name, a := range w.calls() {
		switch name {
		case "list", "container", "pod", "host", "pool", "address", "galaxy's list", "galaxy's pool":
			continue
		}
		a.token = w.viewer
		w.send(t, a).refused(t, name, ipam.ReasonNotPermitted)
	}
}

func noRole(t *testing.T, w *world) {
	for name, a := range w.calls() {
		a.token = w.nobody
		w.send(t, a).refused(t, name, ipam.ReasonNotPermitted)
	}
}
