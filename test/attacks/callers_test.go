package attacks_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/workload"
	"github.com/bcsnet/bcsnet/test/inprocess"
)

// beyondReach are attacks by what a request leads to beyond what its caller may act for.
func beyondReach() []attack {
	return []attack{
		{"DEL_in_the_future", futureDEL}, {"DELs_beside_an_ADD", delsBesideADD},
		{"flood_of_DELs_that_find_nothing", fruitlessDELs}, {"who_has_an_address", whoHas},
		{"static_pod_that_draws_from_a_claim", mirrorPod},
	}
}

// A DEL that frees nothing is remembered: of the caller's own host alone, whatever time it names.
func futureDEL(t *testing.T, w *world) {
	for what, in := range map[string]time.Duration{
		"a moment": time.Second, "a bit": 3 * time.Second, "just so": 299 * time.Second, "an hour": time.Hour,
		"ten years": 10 * 365 * 24 * time.Hour,
	} {
		at := time.Now().Add(in).UTC().Format(time.RFC3339Nano)
		for _, to := range w.replicas() {
			body := with(w.victim, "host", mine, "startedAt", at)
			h := w.send(t, ask{to: to, token: w.node, method: "DELETE", path: prefix, body: body})
			if data := h.done(t, "DEL in "+what); len(data["ips"].([]any)) > 0 {
				t.Errorf("DEL released %v", data["ips"])
			}
			w.send(t, ask{to: to, token: w.node, method: "DELETE", path: prefix, body: object{
				"host": mine, "owner": w.owner["owner"], "startedAt": at,
			}}).refused(t, "DEL of an owner in "+what, ipam.ReasonNotPermitted)
			w.send(t, ask{to: to, token: w.node, method: "DELETE", path: prefix + "/ip/" + w.ownerAddress, body: object{
				"owner": w.owner["owner"],
			}}).refused(t, "release of an owner's address", ipam.ReasonNotPermitted)
		}
		w.untouched(t)
	}
	// An operator whose clock is wrong may end what the owner has. The owner's own requests are not barred by that
	// clock.
	h := w.send(t, ask{token: w.operator, method: "DELETE", path: prefix, body: object{
		"host": mine, "owner": w.owner["owner"],
		"startedAt": time.Now().Add(4 * time.Minute).UTC().Format(time.RFC3339Nano),
	}})
	if data := h.done(t, "an operator's DEL"); len(data["ips"].([]any)) != 1 {
		t.Errorf("an operator's DEL released %v", data["ips"])
	}
	w.eventuallyAdd(t, w.operator, w.owner, w.ownerAddress)
}

// DELs that come all the time take nothing back that the holder asks for meanwhile.
func delsBesideADD(t *testing.T, w *world) {
	done := make(chan struct{})
	k := w.keep(t, "")
	var sending sync.WaitGroup
	for _, body := range []object{
		with(w.victim, "host", mine), {"host": mine, "owner": w.owner["owner"]},
	} {
		sending.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					at := time.Now().Add(time.Minute).UTC().Format(time.RFC3339Nano)
					k.send(t.Context(), ask{token: w.node, method: "DELETE", path: prefix, body: with(body, "startedAt",
						at)})
				}
			}
		})
	}
	defer func() { close(done); sending.Wait() }()
	for range 50 {
		w.hears(t, shared.shipped, w.theirNode, w.victim, w.address)
		w.hears(t, shared.shipped, w.operator, w.owner, w.ownerAddress)
	}
	w.untouched(t)
}

// Whoever sends DELs without end that free nothing is told to come again. What he really gives back is taken, and so is
// what others give back.
func fruitlessDELs(t *testing.T, w *world) {
	const host = "10.77.0.14"
	w.plugin(t, "node-fruitless", host, "plugin-fruitless")
	token := w.token(t, "plugin", "plugin-fruitless")
	w.pod(t, shop, "web-fruitless", "node-fruitless", "")
	own := w.add("web-fruitless", host)
	w.eventuallyAdd(t, token, own, "")
	k := w.keep(t, "")
	for what, of := range map[string]func(i int) ask{
		"no container": func(i int) ask {
			return ask{path: prefix, body: with(own, "containerID",
				fmt.Sprint("none-", i))}
		},
		"the victim's": func(int) ask { return ask{path: prefix, body: with(w.victim, "host", host)} },
		"of long ago": func(int) ask {
			return ask{path: prefix, body: with(own, "startedAt",
				time.Now().Add(-4*time.Minute).UTC().Format(time.RFC3339Nano))}
		},
		"an address": func(int) ask {
			return ask{path: prefix + "/ip/10.78.0.89",
				body: object{"containerID": "none"}}
		},
		"the victim's by IP": func(int) ask { return w.calls()["release"] },
	} {
		over := false
		for i := 0; i < 5000 && !over; i++ {
			a := of(i)
			a.token, a.method = token, "DELETE"
			status := k.send(t.Context(), a)
			if over = status == http.StatusServiceUnavailable; status == http.StatusTooManyRequests {
				t.Fatalf("%s: a DEL is answered with %d", what, status)
			}
		}
		if !over {
			t.Errorf("%s: 5,000 DELs that free nothing are taken", what)
		}
	}
	w.send(t, ask{token: w.node, method: "DELETE", path: prefix, body: w.add("web-none", mine)}).done(t,
		"another node's DEL")
	h := w.send(t, ask{token: token, method: "DELETE", path: prefix, body: own})
	if data := h.done(t, "its own DEL"); len(data["ips"].([]any)) != 1 {
		t.Errorf("its own DEL released %v", data["ips"])
	}
}

// No answer tells a node who has the address of another one, and no answer tells a tenant who has that of another
// namespace.
func whoHas(t *testing.T, w *world) {
	secrets := []string{"web-theirs", w.victim["containerID"].(string), theirs, w.owner["owner"].(string)}
	told := func(what string, h heard, allowed ...string) {
		t.Helper()
		if h.Code == 0 {
			t.Errorf("%s: %.300s", what, h.text)
		}
		for _, secret := range secrets {
			if !strings.Contains(strings.Join(allowed, " "), secret) && strings.Contains(h.text, secret) {
				t.Errorf("%s tells %s: %.300s", what, secret, h.text)
			}
		}
	}
	w.pod(t, tenant, "web-asks", nodeMine, "")
	w.pod(t, shop, "web-asks", nodeMine, "")
	for _, address := range []string{w.address, w.ownerAddress} {
		for what, a := range map[string]ask{
			"release": {method: "DELETE", path: prefix + "/ip/" + address, body: object{"containerID": "none"}},
			"conflict": {method: "POST", path: prefix + "/ip/" + address + "/conflict",
				body: object{"containerID": "none", "mac": "02:00:5e:10:00:01"}},
			"ADD": {method: "POST", path: prefix, body: with(w.add("web-asks", mine), "ipAddr", address)},
		} {
			a.token = w.node
			h := w.send(t, a)
			told("a node's "+what+" of "+address, h)
			if !strings.Contains(h.text, "another host") {
				t.Errorf("a node's %s of %s: %.300s", what, address, h.text)
			}
			a.token = w.operator
			if h := w.send(t, a); what != "ADD" && !strings.Contains(h.text, "web-theirs") && !strings.Contains(h.text,
				"vm-9") {
				t.Errorf("an operator's %s of %s tells nobody: %.300s", what, address, h.text)
			}
		}
		told("a tenant's ADD of "+address, w.send(t, ask{token: w.tenant, method: "POST", path: prefix, body: object{
			"host": mine, "containerID": uuid.NewString(), "podName": "web-asks", "podNamespace": tenant,
			"ipAddr": address,
		}}))
	}
	body := with(w.add("web-asks", mine), "containerID", w.victim["containerID"])
	told("a node's ADD of the container", w.send(t, ask{token: w.node, method: "POST", path: prefix, body: body}),
		w.victim["containerID"].(string))
	told("a tenant's ADD of the container", w.send(t, ask{
		token: w.tenant, method: "POST", path: prefix, body: with(body, "podNamespace", tenant),
	}), w.victim["containerID"].(string))
}

// A kubelet makes mirrors of static pods in any namespace, with any annotations. None draws from a claim.
func mirrorPod(t *testing.T, w *world) {
	for name, annotations := range map[string]map[string]string{
		"claim":  {workload.ClaimAnnotation: "of-the-shop"},
		"policy": {"networkextension.bkbcs.tencent.com/release-policy": "never"},
	} {
		w.mirror(t, nodeMine, "static-"+name, fmt.Sprintf("%032x", len(name)), annotations)
		w.send(t, ask{token: w.node, method: "POST", path: prefix, body: w.add("static-"+name, mine)}).
			refused(t, name, ipam.ReasonInvalidAnnotation)
	}
}

// replicas returns those that an attack goes to.
func (w *world) replicas() []*inprocess.Controller {
	return []*inprocess.Controller{shared.shipped, shared.strict}
}
