package apiserver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	"github.com/bcsnet/bcsnet/test/controlplane"
	"github.com/bcsnet/bcsnet/test/sim/apiserver"
)

var cluster *controlplane.ControlPlane

func TestMain(m *testing.M) { os.Exit(controlplane.Main(m, &cluster)) }

// TestConformance has the real API server and the simulated one answer the same requests. Both say the same, but for
// names that a server makes up, times, versions (which compare all the same: what is one version there is one here) and
// messages.
func TestConformance(t *testing.T) {
	root, err := controlplane.ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	if err := cluster.InstallCRDs(t.Context(), filepath.Join(root, "config", "crd")); err != nil {
		t.Fatal(err)
	}
	h, err := rest.HTTPClientFor(cluster.Config)
	if err != nil {
		t.Fatal(err)
	}
	defer h.CloseIdleConnections()
	answersLists(t, h)
	simulated, err := apiserver.New()
	if err != nil {
		t.Fatal(err)
	}
	setup(t, h, cluster.Config.Host)
	setup(t, &http.Client{Transport: simulated}, "http://sim")
	for name, requests := range conversations() {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			genuine, sim := newTalk(h, cluster.Config.Host), newTalk(&http.Client{Transport: simulated}, "http://sim")
			for i, r := range requests {
				want, got := genuine.ask(t, r), sim.ask(t, r)
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("request %d: %s %s\n%s\n(-real +simulated):\n%s", i, r.method, r.path, r.body, diff)
				}
			}
		})
	}
}

// answersLists waits until the real API server lists our kinds: until its cache of them is filled it says 429.
func answersLists(t *testing.T, h *http.Client) {
	t.Helper()
	for _, kind := range []string{"bcsnetpools", "bcsnetips", "bcsnetipclaims"} {
		controlplane.Eventually(t, func() error {
			resp, err := h.Get(cluster.Config.Host + "/apis/networkextension.bkbcs.tencent.com/v1/" + kind)
			if err != nil {
				return err
			}
			defer resp.Body.Close()
			if resp.StatusCode != http.StatusOK {
				return fmt.Errorf("listing %s: %s", kind, resp.Status)
			}
			return nil
		})
	}
}

func setup(t *testing.T, h *http.Client, host string) {
	t.Helper()
	for _, body := range []string{`{"metadata":{"name":"conformance"}}`} {
		resp, err := h.Post(host+"/api/v1/namespaces", "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	}
}

// talk is a conversation with a server.
type talk struct {
	http     *http.Client
	host     string
	versions map[string]string // what stands for a version in what is compared
	vars     map[string]string // what requests may name: $rv of the last object, $first of the first, $uid, $continue
}

func newTalk(h *http.Client, host string) *talk {
	return &talk{http: h, host: host, versions: map[string]string{}, vars: map[string]string{}}
}

// request is one request. A watch is read for so many events.
type request struct {
	method, path, body string
	contentType        string
	accept             string
	events             int
}

// said is what is compared.
type said struct {
	Code   int
	Reason string
	Causes []string
	Body   any
	Events []any
}

var variable = regexp.MustCompile(`\$[a-z]+`)

func (c *talk) fill(text string) string {
	return variable.ReplaceAllStringFunc(text, func(v string) string {
		if value, ok := c.vars[v[1:]]; ok {
			return value
		}
		return v
	})
}

func (c *talk) ask(t *testing.T, r request) (s said) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, r.method, c.host+c.fill(r.path), strings.NewReader(c.fill(r.body)))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if r.contentType != "" {
		req.Header.Set("Content-Type", r.contentType)
	}
	req.Header.Set("Accept", "application/json")
	if r.accept != "" {
		req.Header.Set("Accept", r.accept)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		t.Fatalf("%s %s: %v", r.method, r.path, err)
	}
	defer resp.Body.Close()
	s.Code = resp.StatusCode
	if _, err := http.ParseTime(resp.Header.Get("Date")); err != nil {
		t.Errorf("%s %s: %v", r.method, r.path, err)
	}
	if r.events > 0 && resp.StatusCode == http.StatusOK {
		d := json.NewDecoder(resp.Body)
		for range r.events {
			var e struct {
				Type   string         `json:"type"`
				Object map[string]any `json:"object"`
			}
			if err := d.Decode(&e); err != nil {
				s.Events = append(s.Events, fmt.Sprint(err))
				break
			}
			s.Events = append(s.Events, map[string]any{"type": e.Type, "object": c.normal(e.Object)})
		}
		return s
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	var o map[string]any
	if err := json.Unmarshal(body, &o); err != nil {
		s.Body = string(body)
		return s
	}
	if o["kind"] == "Status" && o["status"] == "Failure" {
		s.Reason, _ = o["reason"].(string)
		details, _ := o["details"].(map[string]any)
		causes, _ := details["causes"].([]any)
		for _, cause := range causes {
			m, _ := cause.(map[string]any)
			s.Causes = append(s.Causes, fmt.Sprint(m["reason"], " ", m["field"]))
		}
		return s
	}
	s.Body = c.normal(o)
	return s
}

// normal is an object without what no two servers say alike; it takes note of what later requests may name.
func (c *talk) normal(o map[string]any) any {
	m, _ := o["metadata"].(map[string]any)
	if items, is := o["items"].([]any); is {
		c.vars["continue"], _ = m["continue"].(string)
		c.vars["list"], _ = m["resourceVersion"].(string)
		for i := range items {
			item, _ := items[i].(map[string]any)
			items[i] = c.normal(item)
		}
		o["metadata"] = map[string]any{"more": c.vars["continue"] != ""}
		return o
	}
	for field, value := range m {
		switch field {
		case "managedFields", "selfLink":
			delete(m, field)
		case "uid":
			c.vars["uid"] = fmt.Sprint(value)
			m[field] = "a uid"
		case "creationTimestamp", "deletionTimestamp":
			if value == nil {
				delete(m, field)
			} else {
				m[field] = "a time"
			}
		case "resourceVersion":
			version := fmt.Sprint(value)
			if c.versions[version] == "" {
				c.versions[version] = fmt.Sprint("version ", len(c.versions))
				if len(c.versions) == 1 {
					c.vars["first"] = version
				}
			}
			if o["kind"] == "Status" || len(m) == 1 { // a bookmark
				delete(m, field)
				continue
			}
			c.vars["rv"] = version
			m[field] = c.versions[version]
		}
	}
	if o["kind"] == "Status" {
		delete(o, "message")
	}
	if o["kind"] == "Pod" { // its spec has many defaults, and its status what kubelets and the scheduler add
		grace := m["deletionGracePeriodSeconds"]
		status, _ := o["status"].(map[string]any)
		return map[string]any{"metadata": m, "grace": grace, "phase": status["phase"], "podIPs": status["podIPs"]}
	}
	if details, is := o["details"].(map[string]any); is {
		delete(details, "uid")
	}
	return o
}
