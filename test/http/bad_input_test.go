package http_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	v1 "github.com/bcsnet/bcsnet/api/v1"
)

// What is no request at all: the HTTP status says so, and the envelope what is wrong.
func TestNoRequest(t *testing.T) {
	t.Parallel()
	call := allocatorOf(t)
	const good = `{"host":"10.0.0.11","containerID":"c","podName":"p","podNamespace":"n"}`
	kept := "lost Host/ContainerID info in request"
	for name, c := range map[string]struct {
		method, path, body string
		headers            []string
		want               refusal
		allow              string
	}{
		"not JSON":                 {"POST", prefix, `host=10.0.0.11`, nil, refusal{400, 1, "BadRequest", "the body is not JSON", ""}, ""},
		"JSON that ends early":     {"POST", prefix, `{"host":"10.0.0.11"`, nil, refusal{400, 1, "BadRequest", "the body is not JSON", ""}, ""},
		"two objects":              {"DELETE", prefix, `{}{}`, nil, refusal{400, 1, "BadRequest", "the body is not JSON", ""}, ""},
		"empty body":               {"POST", prefix, ``, nil, refusal{400, 1, "BadRequest", "the body is empty; a JSON object is expected", ""}, ""},
		"blank body":               {"DELETE", prefix, " \r\n\t", nil, refusal{400, 1, "BadRequest", "the body is empty; a JSON object is expected", ""}, ""},
		"address without a body":   {"DELETE", prefix + "/ip/10.0.0.21", ``, nil, refusal{400, 1, "BadRequest", "the body is empty; a JSON object is expected", ""}, ""},
		"array":                    {"POST", prefix, `[]`, nil, refusal{200, 1, "BadRequest", "the body must be a JSON object, not a JSON array", ""}, ""},
		"null":                     {"POST", prefix, ` null`, nil, refusal{200, 1, "BadRequest", "the body must be a JSON object, not null", ""}, ""},
		"string":                   {"DELETE", prefix, `"x"`, nil, refusal{200, 1, "BadRequest", "the body must be a JSON object, not a JSON string", ""}, ""},
		"number":                   {"DELETE", prefix, `7`, nil, refusal{200, 1, "BadRequest", "the body must be a JSON object, not a JSON number", ""}, ""},
		"bool":                     {"DELETE", prefix + "/ip/10.0.0.21", `true`, nil, refusal{200, 1, "BadRequest", "the body must be a JSON object, not a JSON bool", ""}, ""},
		"10 MB":                    {"POST", prefix, `{"host":"` + strings.Repeat("1", 10<<20) + `"}`, nil, refusal{413, 1, "BadRequest", "the body is larger than 65536 bytes", ""}, ""},
		"PUT":                      {"PUT", prefix, good, nil, refusal{405, 1, "BadRequest", "method PUT is not allowed here: use DELETE or GET or HEAD or POST", ""}, "DELETE, GET, HEAD, POST"},
		"PATCH of a host":          {"PATCH", prefix + "/host/10.0.0.11", "", nil, refusal{405, 1, "BadRequest", "method PATCH is not allowed here: use DELETE or GET or HEAD", ""}, "DELETE, GET, HEAD"},
		"POST of a pool":           {"POST", prefix + "/pool/x", good, nil, refusal{405, 1, "BadRequest", "method POST is not allowed here: use GET or HEAD", ""}, "GET, HEAD"},
		"unknown path":             {"POST", prefix + "/pods", good, nil, refusal{404, 1, "NotFound", "there is no " + prefix + "/pods", "see /openapi.json"}, ""},
		"slash behind the path":    {"POST", prefix + "/", good, nil, refusal{404, 1, "NotFound", "there is no " + prefix + "/", "see /openapi.json"}, ""},
		"no host in the path":      {"DELETE", prefix + "/host/", "", nil, refusal{404, 1, "NotFound", "there is no " + prefix + "/host/", "see /openapi.json"}, ""},
		"path of galaxy":           {"GET", "/v2/ip", "", nil, refusal{404, 1, "NotFound", "there is no /v2/ip", "see /openapi.json"}, ""},
		"long path":                {"GET", "/" + strings.Repeat("x", 9000), "", nil, refusal{404, 1, "NotFound", "there is no /" + strings.Repeat("x", 99) + "…", ""}, ""},
		"form":                     {"POST", prefix, good, []string{"Content-Type", "application/x-www-form-urlencoded"}, refusal{415, 1, "BadRequest", `Content-Type "application/x-www-form-urlencoded" is not application/json in UTF-8`, "send Content-Type: application/json, or none"}, ""},
		"Content-Type of nonsense": {"DELETE", prefix, good, []string{"Content-Type", ";;"}, refusal{415, 1, "BadRequest", `Content-Type ";;" is not application/json in UTF-8`, ""}, ""},
		"no Content-Type":          {"POST", prefix, `{}`, []string{"Content-Type", ""}, refusal{200, 1, "MissingField", kept, ""}, ""},
		"charset":                  {"POST", prefix, `{}`, []string{"Content-Type", "application/json; charset=utf-8"}, refusal{200, 1, "MissingField", kept, ""}, ""},
		"charset=utf-16":           {"POST", prefix, `{}`, []string{"Content-Type", "application/json; charset=utf-16"}, refusal{415, 1, "BadRequest", `Content-Type "application/json; charset=utf-16" is not application/json in UTF-8`, ""}, ""},
		"double slash":             {"DELETE", "/" + prefix + "/host/10.0.0.11", "", nil, refusal{404, 1, "NotFound", "there is no /" + prefix + "/host/10.0.0.11", "see /openapi.json"}, ""},
		"dots":                     {"DELETE", prefix + "/host/..", "", nil, refusal{404, 1, "NotFound", "there is no " + prefix + "/host/..", "see /openapi.json"}, ""},
		"another site":             {"DELETE", prefix + "/host/10.0.0.11", "", []string{"Sec-Fetch-Site", "cross-site"}, refusal{403, 1, "BadRequest", "a web page of another site sent the request", ""}, ""},
		"capitals":                 {"POST", prefix, `{}`, []string{"Content-Type", "Application/JSON"}, refusal{200, 1, "MissingField", kept, ""}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			a := call.do(t, c.method, c.path, c.body, c.headers...)
			a.refused(t, withCode(c.want))
			if got := a.Header.Get("Allow"); got != c.allow {
				t.Errorf("Allow is %q, want %q", got, c.allow)
			}
			if got := a.Header.Get("Content-Type"); got != "application/json" {
				t.Errorf("Content-Type is %q", got)
			}
		})
	}
	t.Run("OPTIONS", func(t *testing.T) {
		a := call.do(t, "OPTIONS", prefix, nil)
		if a.Status != http.StatusNoContent || a.Header.Get("Allow") != "DELETE, GET, HEAD, POST" {
			t.Errorf("%d, Allow %q", a.Status, a.Header.Get("Allow"))
		}
	})
	t.Run("HEAD", func(t *testing.T) {
		for _, path := range []string{prefix, "/readyz"} {
			if a := call.do(t, "HEAD", path, nil); a.Status != http.StatusOK || len(a.Raw) > 0 {
				t.Errorf("%s: %d %q", path, a.Status, a.Raw)
			}
		}
	})
	t.Run("POST of a page", func(t *testing.T) {
		for _, path := range []string{"/healthz", "/readyz", "/metrics", "/openapi.json"} {
			if a := call.do(t, "POST", path, nil); a.Status != http.StatusMethodNotAllowed ||
				a.Header.Get("Allow") != "GET, HEAD" {
				t.Errorf("%s: %d, Allow %q", path, a.Status, a.Header.Get("Allow"))
			}
		}
	})
}

// withCode: a path that is not there has the code of its reason.
func withCode(r refusal) refusal {
	if r.Reason == "NotFound" {
		r.Code = 2
	}
	return r
}

// One field at a time that is missing or wrong.
func TestBadFields(t *testing.T) {
	t.Parallel()
	call := allocatorOf(t)
	pod := object{"host": "10.0.0.11", "containerID": "c", "podName": "p", "podNamespace": "n"}
	owner := object{"host": "10.0.0.11", "owner": "vm-1"}
	noHost, noPod := "lost Host/ContainerID info in request", "lost PodNamespace/PodName info in request"
	bothHolders := "owner stands in place of podName and podNamespace: give one or the other"
	both, post, del := []string{"POST", "DELETE"}, []string{"POST"}, []string{"DELETE"}
	for name, c := range map[string]struct {
		methods         []string
		body            object
		reason, message string
	}{
		"nothing":               {both, object{}, "MissingField", noHost},
		"no host":               {both, with(pod, "host", nil), "MissingField", noHost},
		"empty host":            {both, with(pod, "host", ""), "MissingField", noHost},
		"null host":             {both, with(object{"host": nil}, "containerID", "c"), "MissingField", noHost},
		"no containerID":        {both, with(pod, "containerID", nil), "MissingField", noHost},
		"no podName":            {post, with(pod, "podName", nil), "MissingField", noPod},
		"no podNamespace":       {post, with(pod, "podNamespace", nil), "MissingField", noPod},
		"owner without host":    {both, with(owner, "host", nil), "MissingField", noHost},
		"owner and pod":         {both, with(owner, "podName", "p"), "BadRequest", bothHolders},
		"owner and namespace":   {both, with(owner, "podNamespace", "n"), "BadRequest", bothHolders},
		"no such family policy": {post, with(pod, "ipFamilyPolicy", "DualStack"), "BadRequest", `ipFamilyPolicy "DualStack": there is no such policy; the policies are SingleStack, PreferDualStack and RequireDualStack`},
		"no such family":        {post, with(pod, "ipFamilies", []string{"ipv6"}), "BadRequest", `ipFamilies: "ipv6" is not a family: it is IPv4 or IPv6`},
		"a family twice":        {post, with(pod, "ipFamilies", []string{"IPv6", "IPv6"}), "BadRequest", "ipFamilies: it names IPv6 twice"},
		"three families":        {post, with(pod, "ipFamilies", []string{"IPv6", "IPv4", "IPv6"}), "BadRequest", "ipFamilies: it names 3 families: there are IPv4 and IPv6"},
		"families are a string": {post, with(pod, "ipFamilies", "IPv4"), "BadRequest", "field ipFamilies must be an array, not a JSON string"},
		"families are not those of the address": {post, with(pod, "ipFamilies", []string{"IPv6"}, "ipAddr", "10.0.0.9"), "BadRequest",
			"ipAddr contradicts the families: 10.0.0.9 is asked for, and ipFamilies IPv6"},
		"single, and two addresses": {post, with(pod, "ipFamilyPolicy", "SingleStack", "ipAddr", "10.0.0.9,2001:db8::9"), "BadRequest",
			"ipAddr contradicts the families: 2 addresses are asked for, and ipFamilyPolicy SingleStack"},
		"host is a number":       {both, with(pod, "host", 10), "BadRequest", "field host must be a string, not a JSON number"},
		"podName is an object":   {both, with(pod, "podName", object{}), "BadRequest", "field podName must be a string, not a JSON object"},
		"wrong behind unknown":   {both, with(pod, "aaa", 1, "startedAt", 1), "BadRequest", "field startedAt must be a string, not a JSON number"},
		"host is a name":         {both, with(pod, "host", "node-1"), "BadRequest", `host "node-1" is not an IP address`},
		"host with port":         {both, with(pod, "host", "10.0.0.11:80"), "BadRequest", `host "10.0.0.11:80" is not an IP address`},
		"host with zone":         {both, with(pod, "host", "fe80::1%eth0"), "BadRequest", `host "fe80::1%eth0" is not an IP address`},
		"host with zeros":        {both, with(pod, "host", "10.0.0.011"), "BadRequest", `host "10.0.0.011" is not an IP address`},
		"host in IPv6 clothes":   {both, with(pod, "host", "::ffff:10.0.0.11"), "BadRequest", `host "::ffff:10.0.0.11" is not an IP address`},
		"long host":              {both, with(pod, "host", strings.Repeat("1", 129)), "BadRequest", "host is longer than 128 bytes"},
		"long containerID":       {both, with(pod, "containerID", strings.Repeat("c", 257)), "BadRequest", "containerID is longer than 256 bytes"},
		"long podName":           {both, with(pod, "podName", strings.Repeat("p", 254)), "BadRequest", "podName is longer than 253 bytes"},
		"long podNamespace":      {both, with(pod, "podNamespace", strings.Repeat("n", 64)), "BadRequest", "podNamespace is longer than 63 bytes"},
		"long ifName":            {both, with(pod, "ifName", strings.Repeat("e", 16)), "BadRequest", "ifName is longer than 15 bytes"},
		"ifName with a slash":    {post, with(pod, "ifName", "net/1"), "BadRequest", `ifName "net/1" cannot be the name of an interface`},
		"ifName with a space":    {post, with(pod, "ifName", "net 1"), "BadRequest", `ifName "net 1" cannot be the name of an interface`},
		"ifName is a folder":     {post, with(pod, "ifName", ".."), "BadRequest", `ifName ".." cannot be the name of an interface`},
		"long network":           {both, with(pod, "network", strings.Repeat("n", 254)), "BadRequest", "network is longer than 253 bytes"},
		"long podUID":            {both, with(pod, "podUID", strings.Repeat("u", 129)), "BadRequest", "podUID is longer than 128 bytes"},
		"long startedAt":         {both, with(pod, "startedAt", "2026-01-02T15:04:05."+strings.Repeat("1", 60)+"Z"), "BadRequest", "startedAt is longer than 64 bytes"},
		"long owner":             {both, with(owner, "owner", strings.Repeat("o", 254)), "BadRequest", "owner is longer than 253 bytes"},
		"long ipAddr":            {post, with(pod, "ipAddr", strings.Repeat("1", 129)), "BadRequest", "ipAddr is longer than 128 bytes"},
		"long hostGateway":       {post, with(pod, "hostGateway", strings.Repeat("1", 129)), "BadRequest", "hostGateway is longer than 128 bytes"},
		"several":                {both, with(pod, "ifName", strings.Repeat("e", 16), "containerID", "a\nb"), "BadRequest", "containerID has characters that are not printable; ifName is longer than 15 bytes"},
		"line feed":              {both, with(pod, "containerID", "a\nb"), "BadRequest", "containerID has characters that are not printable"},
		"NUL":                    {both, with(pod, "podUID", "a\x00b"), "BadRequest", "podUID has characters that are not printable"},
		"DEL":                    {both, with(owner, "owner", "a\x7fb"), "BadRequest", "owner has characters that are not printable"},
		"C1 control":             {both, with(owner, "owner", "a\u0085b"), "BadRequest", "owner has characters that are not printable"},
		"line separator":         {both, with(owner, "owner", "a\u2028b"), "BadRequest", "owner has characters that are not printable"},
		"no UTF-8":               {both, with(owner, "owner", "a\ufffdb"), "BadRequest", "owner has characters that are not printable"},
		"podName no pod has":     {post, with(pod, "podName", "Web_0"), "BadRequest", `podName "Web_0" cannot be the name of a pod`},
		"podName with a slash":   {post, with(pod, "podName", "a/b"), "BadRequest", `podName "a/b" cannot be the name of a pod`},
		"podName of dots":        {post, with(pod, "podName", ".."), "BadRequest", `podName ".." cannot be the name of a pod`},
		"podNamespace with dots": {post, with(pod, "podNamespace", "a.b"), "BadRequest", `podNamespace "a.b" cannot be the name of a namespace`},
		"bad ipAddr":             {post, with(pod, "ipAddr", "10.0.0.256"), "BadAddress", `ipAddr: "10.0.0.256" is not an IP address`},
		"ipAddr is a CIDR":       {post, with(pod, "ipAddr", "10.0.0.0/24"), "BadAddress", `ipAddr: "10.0.0.0/24" is a CIDR, not an address`},
		"ipAddr ends in a comma": {post, with(pod, "ipAddr", "10.0.0.21,"), "BadAddress", `ipAddr: "" is not an IP address`},
		"two of one family":      {post, with(pod, "ipAddr", "10.0.0.21,10.0.0.22"), "BadAddress", "ipAddr asks for 10.0.0.21 and 10.0.0.22: one address of each family at most"},
		"the same twice":         {post, with(pod, "ipAddr", "fd00::1, fd00::1"), "BadAddress", "ipAddr asks for fd00::1 and fd00::1: one address of each family at most"},
		"bad hostGateway":        {post, with(pod, "hostGateway", "gw"), "BadAddress", `hostGateway "gw" is not an IP address`},
		"startedAt is a date":    {both, with(pod, "startedAt", "2026-01-02"), "BadRequest", `startedAt "2026-01-02" is not a time in RFC 3339, such as 2026-01-02T15:04:05.123456789Z`},
		"startedAt is a number":  {both, with(pod, "startedAt", "1700000000"), "BadRequest", `startedAt "1700000000" is not a time in RFC 3339, such as 2026-01-02T15:04:05.123456789Z`},
		"startedAt far away":     {both, with(pod, "startedAt", "9999-01-02T15:04:05Z"), "BadRequest", `startedAt "9999-01-02T15:04:05Z" is not a time in RFC 3339, such as 2026-01-02T15:04:05.123456789Z`},
		"pod that cannot be":     {del, with(pod, "podName", "Web_0"), "", ""}, // a DEL asks nobody for the pod
	} {
		t.Run(name, func(t *testing.T) {
			for _, method := range c.methods {
				a := call.do(t, method, prefix, c.body)
				if c.reason == "" {
					a.done(t)
					continue
				}
				a.refused(t, refusal{200, 1, c.reason, c.message, ""})
			}
		})
	}
	for name, c := range map[string]struct {
		path            string
		body            object
		reason, message string
	}{
		"nobody":           {"10.0.0.21", object{}, "MissingField", "give containerID or owner: who holds the address"},
		"both":             {"10.0.0.21", object{"containerID": "c", "owner": "o"}, "MissingField", "give containerID or owner: who holds the address"},
		"no address":       {"10.0.0", object{"containerID": "c"}, "BadAddress", `"10.0.0" is not an IP address`},
		"long containerID": {"10.0.0.21", object{"containerID": strings.Repeat("c", 257)}, "BadRequest", "containerID is longer than 256 bytes"},
		"wrong type":       {"10.0.0.21", object{"owner": 1}, "BadRequest", "field owner must be a string, not a JSON number"},
	} {
		t.Run("release by address/"+name, func(t *testing.T) {
			call.do(t, "DELETE", prefix+"/ip/"+c.path, c.body).refused(t, refusal{200, 1, c.reason, c.message, ""})
		})
	}
	for host, shown := range map[string]string{
		"10.0.0": "10.0.0", "node-1": "node-1", "10.0.0.11%2F24": "10.0.0.11/24", strings.Repeat("9", 500): strings.Repeat("9", 100) + "…",
	} {
		call.do(t, "DELETE", prefix+"/host/"+host, nil).refused(t,
			refusal{200, 1, "BadRequest", fmt.Sprintf("host %q is not an IP address", shown), ""})
	}
}

// Fields at their bounds are taken, and those that nobody knows are ignored and logged.
func TestFieldsAtTheirBounds(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.pool(1, nil)
	owner, container := strings.Repeat("ö", 126)+"x", strings.Repeat("c", 256)
	body := object{
		"host": s.Host, "owner": owner, "containerID": container, "ifName": strings.Repeat("e", 15), "podUID": "",
		"startedAt": time.Now().Format(time.RFC3339Nano),
	}
	data := s.add(with(body, "colour", "blue", "HOST", s.Host, "newField", object{"deep": []int{1}})).done(t)
	if data["owner"] != owner || data["containerID"] != container {
		t.Errorf("data is %v", data)
	}
	want := v1.BCSNetIPStatus{
		Status: v1.IPActive, Host: s.Host, Owner: owner, ContainerID: container, IfName: strings.Repeat("e", 15),
		Given: &v1.GivenSettings{Gateway: data["gateway"].(string)}, GivenTo: container[:12],
	}
	got := stored(t, s.ip(20)).Status
	got.StartedAt, got.UpdateTime = "", ""
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
	if shared.controller.Log.Line("level=INFO", `fields="[colour newField]"`, "method=POST", "request_id=") == "" {
		t.Errorf("the log does not name the fields:\n%s", shared.controller.Log)
	}
	s.del(body).done(t)
}

// The identity of a request: the caller's when it is decent.
func TestRequestID(t *testing.T) {
	t.Parallel()
	call := allocatorOf(t)
	for _, id := range []string{"a", "Az09-_.:/ ~", strings.Repeat("x", 128)} {
		if a := call.do(t, "GET", prefix, nil, "X-Request-Id", id); a.RequestID != id {
			t.Errorf("request_id is %q, want %q", a.RequestID, id)
		}
	}
	seen := map[string]bool{}
	for _, id := range []string{"", strings.Repeat("x", 129), "tab\there", "ünicode", "\xff\xfe"} {
		a := call.do(t, "GET", prefix, nil, "X-Request-Id", id)
		if a.RequestID == id || len(a.RequestID) != 36 || seen[a.RequestID] {
			t.Errorf("request_id of %q is %q", id, a.RequestID)
		}
		seen[a.RequestID] = true
	}
	// It is in the log of what went on under it.
	s := newSite(t)
	s.pool(1, nil)
	body := object{"host": s.Host, "owner": s.owner("vm")}
	s.call.do(t, "POST", prefix, body, "X-Request-Id", "find-me")
	s.call.do(t, "POST", prefix, body, "X-Request-Id", "find-me-again")
	s.call.do(t, "DELETE", prefix, body, "X-Request-Id", "find-me-too")
	for _, parts := range [][]string{{
		"msg=allocated", s.ip(20), "repeated=false", "owner=" + s.owner("vm"), "request_id=find-me",
	}, {"msg=allocated", "repeated=true", "request_id=find-me-again"},
		{"msg=released", s.ip(20), "owner=" + s.owner("vm"), "request_id=find-me-too"}} {
		if shared.controller.Log.Line(parts...) == "" {
			t.Errorf("the log has no line with %q", parts)
		}
	}
}
