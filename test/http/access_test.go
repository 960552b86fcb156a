package http_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/hosts"
	"github.com/bcsnet/bcsnet/pkg/httpapi/wire"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/test/controlplane"
)

// door is a site whose callers show who they are, to a leader and a follower.
type door struct {
	*site
	secureGroup
	http *http.Client
}

func newDoor(t *testing.T) *door {
	t.Helper()
	d := &door{site: newSite(t), secureGroup: newSecureGroup(t, nil)}
	d.http = d.client()
	d.knownToTLS(t)
	return d
}

// knownToTLS waits until both replicas have a certificate.
func (d *door) knownToTLS(t *testing.T) {
	t.Helper()
	for _, i := range []*instance{d.leader, d.follower} {
		controlplane.Eventually(t, func() error {
			_, err := d.send(t.Context(), i, "", "GET", "/readyz", nil)
			return err
		})
	}
}

// heard is an answer as far as these tests look at it.
type heard struct {
	status int
	wire.Envelope
}

// send sends a request with a token over TLS, on a connection of its own.
func (d *door) send(ctx context.Context, to *instance, token, method, path string, body any) (h heard, err error) {
	at, err := url.Parse(to.URL)
	if err != nil {
		return h, err
	}
	text, err := json.Marshal(body)
	if err != nil {
		return h, err
	}
	if body == nil {
		text = nil
	}
	r, err := http.NewRequestWithContext(ctx, method, "https://"+at.Host+path, bytes.NewReader(text))
	if err != nil {
		return h, err
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := d.http.Do(r)
	if err != nil {
		return h, err
	}
	defer resp.Body.Close()
	h.status = resp.StatusCode
	_ = json.NewDecoder(resp.Body).Decode(&h.Envelope) // a page is no envelope
	return h, nil
}

// token returns a token of a ServiceAccount, which it makes: bound to a pod, if one is named.
func (d *door) token(t *testing.T, name, audience, pod string) string {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: d.site.Namespace, Name: name}}
	if err := shared.admin.Create(t.Context(), account); client.IgnoreAlreadyExists(err) != nil {
		t.Fatal(err)
	}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: []string{audience}}}
	if pod != "" {
		request.Spec.BoundObjectRef = &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: pod}
	}
	if err := shared.admin.SubResource("token").Create(t.Context(), account, request); err != nil {
		t.Fatal(err)
	}
	return request.Status.Token
}

// bind gives a ServiceAccount a role: in one namespace, or everywhere where that is empty.
func (d *door) bind(t *testing.T, name, role, namespace string) {
	t.Helper()
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: d.site.Namespace, Name: name}}
	meta := metav1.ObjectMeta{Name: d.site.Namespace + "-" + name, Namespace: namespace}
	var o client.Object = &rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: subjects}
	if namespace == "" {
		o = &rbacv1.ClusterRoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: subjects}
		t.Cleanup(func() { _ = shared.admin.Delete(context.Background(), o) })
	}
	if err := shared.admin.Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
}

// node makes a Node with an address, perhaps with further ones.
func (d *door) node(t *testing.T, name, host, further string) {
	t.Helper()
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if further != "" {
		n.Annotations = map[string]string{hosts.Annotation: further}
	}
	d.create(n)
	t.Cleanup(func() { _ = shared.admin.Delete(context.Background(), n) })
	n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: host}}
	if err := shared.admin.Status().Update(t.Context(), n); err != nil {
		t.Fatal(err)
	}
}

// podOn makes a pod on a node.
func (d *door) podOn(t *testing.T, name, node, account string) *corev1.Pod {
	t.Helper()
	if account == "" {
		account = "default"
	}
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: d.site.Namespace, Name: name},
		Spec: corev1.PodSpec{
			NodeName: node, ServiceAccountName: account, Containers: []corev1.Container{{Name: "main", Image: "main"}},
		},
	}
	d.create(p)
	return p
}

// Who may what, with tokens of the API server and the roles of the manifests, asked of the leader and of a follower.
func TestWhoMayWhat(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	ns := d.site.Namespace
	mine, theirs, further := d.Host, d.host(21), d.host(22)
	d.site.pool(40, func(p *v1.BCSNetPool) { p.Spec.Hosts = []string{mine, theirs, further} })
	d.knownTo(d.leader.caller(), d.follower.caller())
	d.node(t, ns+"-a", mine, further)
	d.node(t, ns+"-b", theirs, "")
	for _, name := range []string{"plugin", "operator", "viewer", "tenant", "nobody"} {
		d.token(t, name, "bcsnet", "")
	}
	d.podOn(t, "plugin-a", ns+"-a", "plugin")
	d.podOn(t, "plugin-b", ns+"-b", "plugin")
	d.podOn(t, "operator-a", ns+"-a", "operator")
	d.bind(t, "plugin", "bcsnet-node", "")
	d.bind(t, "operator", "bcsnet-operator", "")
	d.bind(t, "viewer", "bcsnet-viewer", "")
	d.bind(t, "tenant", "bcsnet-operator", ns)
	tokens := map[string]string{
		"nobody shown": "", "nonsense": "nonsense", "another audience": d.token(t, "operator", "other", ""),
		"the API server's audience": d.token(t, "operator", "https://kubernetes.default.svc.cluster.local", ""),
		"node":                      d.token(t, "plugin", "bcsnet", "plugin-a"), "operator": d.token(t, "operator",
			"bcsnet", ""),
		"operator on the node": d.token(t, "operator", "bcsnet", "operator-a"),
		"viewer":               d.token(t, "viewer", "bcsnet", ""), "tenant": d.token(t, "tenant", "bcsnet", ""),
		"no role": d.token(t, "nobody", "bcsnet", ""),
	}
	d.podOn(t, "web-a", ns+"-a", "")
	d.podOn(t, "web-b", ns+"-b", "")
	// The other node's pod has an address, which nobody below may touch but who acts for all.
	other := with(d.request(newID(), "web-b"), "host", theirs)
	taken := d.leader.caller().do(t, "POST", prefix, other).done(t)["ipAddr"].(string)
	own := func() object { return d.request(newID(), "web-a") }
	asks := map[string]struct {
		method, path string
		body         func() object
	}{
		"ADD":              {"POST", prefix, own},
		"ADD further":      {"POST", prefix, func() object { return with(own(), "host", further) }},
		"ADD as another":   {"POST", prefix, func() object { return with(own(), "host", theirs) }},
		"ADD of another's": {"POST", prefix, func() object { return with(own(), "podName", "web-b") }},
		"ADD of a container": {"POST", prefix, func() object {
			return with(own(), "containerID",
				other["containerID"])
		}},
		"ADD of an owner":     {"POST", prefix, func() object { return object{"host": mine, "owner": d.owner("x")} }},
		"DEL":                 {"DELETE", prefix, own},
		"DEL as another":      {"DELETE", prefix, func() object { return with(own(), "host", theirs) }},
		"GC":                  {"POST", prefix + "/gc", func() object { return gcOf(mine) }},
		"GC as another":       {"POST", prefix + "/gc", func() object { return gcOf(theirs) }},
		"conflict":            {"POST", prefix + "/ip/" + d.ip(5) + "/conflict", func() object { return object{} }},
		"host release":        {"DELETE", prefix + "/host/" + further, nil},
		"another's release":   {"DELETE", prefix + "/host/" + d.host(23), nil},
		"list":                {"GET", prefix, nil},
		"list of a namespace": {"GET", prefix + "?podNamespace=" + ns, nil},
		"address":             {"GET", prefix + "/ip/" + taken, nil},
		"galaxy's list":       {"GET", "/v1/ip", nil},
		"galaxy's pool":       {"POST", "/v1/pool", func() object { return object{} }},
		"placement": {"POST", "/v1/filter", func() object {
			return object{"Pod": object{},
				"NodeNames": []any{}}
		}},
	}
	const ok, unknown, no = "", ipam.ReasonUnauthenticated, ipam.ReasonNotPermitted
	all := func(r ipam.Reason, except map[string]ipam.Reason) map[string]ipam.Reason {
		out := map[string]ipam.Reason{}
		for name := range asks {
			out[name] = r
		}
		maps.Copy(out, except)
		return out
	}
	reads := map[string]ipam.Reason{"list": ok, "list of a namespace": ok, "address": ok, "galaxy's list": ok}
	for who, want := range map[string]map[string]ipam.Reason{
		"nobody shown": all(unknown, nil), "nonsense": all(unknown, nil), "another audience": all(unknown, nil),
		"the API server's audience": all(unknown, nil), "no role": all(no, nil), "viewer": all(no, reads),
		"node": all(ok, map[string]ipam.Reason{
			"ADD as another": no, "ADD of another's": no, "ADD of an owner": no, "DEL as another": no,
			"GC as another": no, "host release": no, "another's release": no, "address": no, "galaxy's list": no,
			"galaxy's pool": no, "placement": no,
		}),
		"operator": all(ok, map[string]ipam.Reason{"placement": no}),
		"operator on the node": all(ok, map[string]ipam.Reason{
			"ADD as another": no, "ADD of another's": no, "ADD of an owner": no, "DEL as another": no,
			"GC as another": no, "another's release": no, "address": no, "galaxy's list": no, "galaxy's pool": no,
			"placement": no,
		}),
		"tenant": all(no, map[string]ipam.Reason{
			"ADD": ok, "ADD further": ok, "ADD as another": ok, "ADD of another's": ok, "ADD of a container": ok,
			"DEL":            ok,
			"DEL as another": ok, "list of a namespace": ok,
		}),
	} {
		if who == "operator" || who == "tenant" {
			delete(want, "ADD of another's") // it takes the pod's address over, as a newer container of it does
		}
		for what, reason := range want {
			for replica, to := range map[string]*instance{"the leader": d.leader, "a follower": d.follower} {
				ask := asks[what]
				var body any
				if ask.body != nil {
					body = ask.body()
				}
				h, err := d.send(t.Context(), to, tokens[who], ask.method, ask.path, body)
				if err != nil {
					t.Fatal(err)
				}
				switch h.status {
				case http.StatusUnauthorized:
					h.Reason = unknown // galaxy's routes have no reason
				case http.StatusForbidden:
					h.Reason = no
				}
				if refused := h.Reason == unknown || h.Reason == no; refused != (reason != ok) || refused &&
					h.Reason != reason ||
					h.Reason == ipam.ReasonUnavailable {
					t.Errorf("%s, %s to %s: %d %s %s, want %q", who, what, replica, h.status, h.Reason, h.Message,
						reason)
				}
			}
		}
	}
	if o := stored(t, taken); o.Status.ContainerID != other["containerID"] {
		t.Errorf("the other node's container has lost %s: %+v", taken, o.Status)
	}
}

func gcOf(host string) object {
	return object{
		"host": host, "cniNetwork": "none", "startedAt": "2026-01-02T03:04:05Z", "attachments": []any{},
	}
}

// A node's DEL and conflict of a container that is another node's change nothing, and its lists show its own alone; a
// tenant's DEL of a container of another namespace changes nothing.
func TestNodesTouchTheirOwnAlone(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	ns, theirs := d.site.Namespace, d.host(21)
	d.site.pool(20, func(p *v1.BCSNetPool) { p.Spec.Hosts = []string{d.Host, theirs} })
	d.knownTo(d.leader.caller(), d.follower.caller())
	d.node(t, ns+"-a", d.Host, "")
	d.node(t, ns+"-b", theirs, "")
	d.token(t, "plugin", "bcsnet", "")
	d.podOn(t, "plugin-a", ns+"-a", "plugin")
	d.bind(t, "plugin", "bcsnet-node", "")
	token := d.token(t, "plugin", "bcsnet", "plugin-a")
	d.podOn(t, "web-b", ns+"-b", "")
	other := with(d.request(newID(), "web-b"), "host", theirs)
	address := d.leader.caller().do(t, "POST", prefix, other).done(t)["ipAddr"].(string)
	strange := newSite(t)
	tenant := strange.Namespace
	d.token(t, "tenant", "bcsnet", "")
	d.bind(t, "tenant", "bcsnet-operator", tenant)
	tenants := d.token(t, "tenant", "bcsnet", "")
	for _, to := range []*instance{d.leader, d.follower} {
		for name, r := range map[string]struct {
			token, method, path string
			body                object
		}{
			"DEL":     {token, "DELETE", prefix, with(other, "host", d.Host)},
			"release": {token, "DELETE", prefix + "/ip/" + address, object{"containerID": other["containerID"]}},
			"conflict": {token, "POST", prefix + "/ip/" + address + "/conflict", object{
				"containerID": other["containerID"], "ifName": "eth0", "mac": "02:00:5e:10:00:01",
			}},
			"a tenant's DEL": {tenants, "DELETE", prefix, with(other, "podNamespace", tenant)},
		} {
			if _, err := d.send(t.Context(), to, r.token, r.method, r.path, r.body); err != nil {
				t.Fatal(err)
			}
			if o := stored(t, address); o.Status.ContainerID != other["containerID"] ||
				o.Status.Status != v1.IPActive ||
				o.Status.Conflict != nil {
				t.Fatalf("%s changed it: %+v", name, o.Status)
			}
		}
		for _, path := range []string{"", "/container/" + other["containerID"].(string), "/pod/" + ns + "/web-b"} {
			h, err := d.send(t.Context(), to, token, "GET", prefix+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			if list, ok := h.Data.(object); !ok || list["total"] != 0.0 {
				t.Errorf("%s shows the node %v", path, h.Data)
			}
		}
	}
}

// A certificate of the cluster's client CA counts for its user, that of a kubelet for its node, and one of another CA,
// or one that a replica shows, for nobody.
func TestClientCertificates(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	d.node(t, d.site.Namespace+"-a", d.Host, "")
	secure := d.http.Transport.(*http.Transport).TLSClientConfig
	kubelet, err := shared.cluster.NodeConfig(d.site.Namespace + "-a")
	if err != nil {
		t.Fatal(err)
	}
	admin := shared.cluster.Config
	for name, c := range map[string]struct {
		cert, key []byte
		path      string
		status    int
	}{
		"an administrator":           {admin.CertData, admin.KeyData, prefix, http.StatusOK},
		"an administrator, releases": {admin.CertData, admin.KeyData, prefix + "/host/" + d.host(29), http.StatusOK},
		"a kubelet without a role":   {kubelet.CertData, kubelet.KeyData, prefix, http.StatusForbidden},
	} {
		pair, err := tls.X509KeyPair(c.cert, c.key)
		if err != nil {
			t.Fatal(err)
		}
		config := secure.Clone()
		config.Certificates = []tls.Certificate{pair}
		shown := &door{site: d.site, secureGroup: d.secureGroup, http: &http.Client{
			Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: config},
		}}
		method := "GET"
		if c.path != prefix {
			method = "DELETE"
		}
		controlplane.Eventually(t, func() error { // the client CA may not have been read yet
			h, err := shown.send(t.Context(), d.follower, "", method, c.path, nil)
			if err != nil || h.status == c.status {
				return err
			}
			return fmt.Errorf("%s: %s", name, h.Message)
		})
	}
}

// A ServiceAccount or a role that goes counts for a minute at most; here that is seen by an account that never had one,
// and is given one: refusals count for seconds.
func TestRoleIsGiven(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	token := d.token(t, "late", "bcsnet", "")
	h, err := d.send(t.Context(), d.leader, token, "GET", prefix, nil)
	if err != nil || h.Reason != ipam.ReasonNotPermitted {
		t.Fatalf("%+v %v", h, err)
	}
	d.bind(t, "late", "bcsnet-viewer", "")
	controlplane.Eventually(t, func() error {
		h, err := d.send(t.Context(), d.leader, token, "GET", prefix, nil)
		if err == nil && h.Code != 0 {
			return errors.New(h.Message)
		}
		return err
	})
}

// The log of the replica that answers and the history of an address say who did what, and from where, also of what
// another replica forwarded.
func TestAudit(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	d.site.pool(5, nil)
	d.knownTo(d.leader.caller(), d.follower.caller())
	token := d.token(t, "op", "bcsnet", "")
	d.bind(t, "op", "bcsnet-operator", "")
	user := "system:serviceaccount:" + d.site.Namespace + ":op"
	d.site.pod("web-0")
	h, err := d.send(t.Context(), d.follower, token, "POST", prefix, d.request(newID(), "web-0"))
	if err != nil || h.Code != 0 {
		t.Fatalf("%+v %v", h, err)
	}
	address := h.Data.(object)["ipAddr"].(string)
	if d.leader.Log.Line("msg=allocated", "user="+user, "from=127.0.0.1") == "" {
		t.Errorf("the leader's log does not say who:\n%s", d.leader.Log)
	}
	if h, err = d.send(t.Context(), d.follower, token, "DELETE", prefix+"/host/"+d.Host, nil); err != nil ||
		h.Code != 0 {
		t.Fatalf("%+v %v", h, err)
	}
	history, err := json.Marshal(stored(t, address).Status.History)
	if err != nil || !bytes.Contains(history, []byte(user+" from 127.0.0.1")) {
		t.Errorf("the history does not say who: %s", history)
	}
	nobody := d.token(t, "nobody", "bcsnet", "")
	if h, err = d.send(t.Context(), d.follower, nobody, "DELETE", prefix+"/host/"+d.Host, nil); err != nil ||
		h.Reason != ipam.ReasonNotPermitted {
		t.Fatalf("%+v %v", h, err)
	}
	if d.follower.Log.Line("request refused", "reason=NotPermitted", "user=system:serviceaccount:"+d.site.Namespace+
		":nobody", "from=127.0.0.1") == "" {
		t.Errorf("the follower's log does not say who was refused:\n%s", d.follower.Log)
	}
}
