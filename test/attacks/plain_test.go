package attacks_test

import (
	"slices"
	"testing"

	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// plainCallers are attacks by plain HTTP.
func plainCallers() []attack {
	return []attack{
		{"plain_HTTP_from_another_machine", byEachWay(plainFromElsewhere)}, {"plain_HTTP_for_another_host", byEachWay(plainForAnother)},
		{"address_in_a_proxys_header", byEachWay(proxyHeader)}, {"proxy_on_the_controllers_machine", localProxy},
		{"page_of_another_site", otherSite}, {"token_over_plain_HTTP", byEachWay(plainToken)},
	}
}

func plainFromElsewhere(t *testing.T, w *world, by way) {
	calls := w.calls()
	for _, page := range []string{"/metrics", "/info", "/openapi.json", "/nowhere"} {
		calls[page] = ask{method: "GET", path: page}
	}
	for name, a := range calls {
		a.to = shared.strict
		w.send(t, by.bring(a)).refused(t, name, ipam.ReasonPlainHTTP)
	}
}

// With --plain-http a host is answered for itself.
func plainForAnother(t *testing.T, w *world, by way) {
	for name, a := range w.calls() {
		switch name {
		case "list", "container", "pod", "pool": // show what is on the host: nothing
			h := w.send(t, by.bring(a))
			if data := h.done(t, name); data["total"] != 0.0 {
				t.Errorf("%s shows %.300s", name, h.text)
			}
		case "release", "conflict":
			w.send(t, by.bring(a)).refused(t, name, ipam.ReasonAddressNotHeld)
		default:
			w.send(t, by.bring(a)).refused(t, name, ipam.ReasonPlainHTTP)
		}
	}
	// The own host, and the container or the pod of another.
	h := w.send(t, by.bring(ask{method: "DELETE", path: prefix, body: with(w.victim, "host", by.source)}))
	if data := h.done(t, "DEL"); len(data["ips"].([]any)) > 0 {
		t.Errorf("DEL released %v", data["ips"])
	}
	w.send(t, by.bring(ask{method: "POST", path: prefix, body: with(w.victim, "host", by.source)})).
		refused(t, "ADD", ipam.ReasonNotPermitted)
}

// The source is the connection's, whatever a header says.
func proxyHeader(t *testing.T, w *world, by way) {
	for _, header := range []string{"X-Forwarded-For", "X-Real-Ip", "Forwarded", "X-Client-Ip", "True-Client-Ip"} {
		for _, value := range []string{theirs, "127.0.0.1", "for=" + theirs} {
			a := ask{method: "DELETE", path: prefix, body: w.victim, headers: []string{header, value}}
			w.send(t, by.bring(a)).refused(t, header+": "+value, ipam.ReasonPlainHTTP)
		}
	}
}

// What somebody else sends by way of a proxy on the controller's machine is not that machine's.
func localProxy(t *testing.T, w *world) {
	for name, a := range map[string]ask{
		"a proxy":        {headers: []string{"X-Forwarded-For", "192.0.2.7"}},
		"another one":    {headers: []string{"Forwarded", "for=192.0.2.7"}},
		"a name":         {host: "attacker.example:8090"},
		"a like name":    {host: "localhost.attacker.example"},
		"our own's name": {host: serverName},
		"its address":    {host: "10.0.0.11:8090"},
		"that by IPv6":   {host: "[fd00::11]:8090"},
	} {
		a.to, a.plain, a.method, a.path, a.body = shared.strict, true, "DELETE", prefix, w.victim
		w.send(t, a).refused(t, name, ipam.ReasonPlainHTTP)
	}
}

// A browser on the controller's machine sends what a page of another site wants, and says so.
func otherSite(t *testing.T, w *world) {
	for _, header := range [][]string{
		{"Origin", "https://attacker.example"}, {"Origin", "null"}, {"Sec-Fetch-Site", "cross-site"},
	} {
		for _, a := range []ask{
			{method: "DELETE", path: prefix, body: w.victim}, {method: "GET", path: prefix},
			{method: "DELETE", path: prefix + "/host/" + theirs},
		} {
			a.plain, a.headers = true, slices.Concat(header, []string{"Content-Type", "text/plain"})
			w.send(t, a).refused(t, header[0]+": "+a.method, ipam.ReasonBadRequest)
		}
	}
}

// A token counts over TLS alone: what is sent openly is everybody's.
func plainToken(t *testing.T, w *world, by way) {
	a := w.calls()["DEL"]
	a.token = w.operator
	w.send(t, by.bring(a)).refused(t, "with --plain-http", ipam.ReasonPlainHTTP)
	a = w.calls()["DEL"]
	a.to, a.token = shared.strict, w.operator
	w.send(t, by.bring(a)).refused(t, "without", ipam.ReasonPlainHTTP)
}
