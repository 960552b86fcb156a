package http_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/test/controlplane"
)

func adminOf(cp *controlplane.ControlPlane, h *http.Client) (client.Client, error) {
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return nil, err
	}
	if err := v1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	return client.New(cp.Config, client.Options{Scheme: scheme, HTTPClient: h})
}

// adminFor is the administrator of a control plane of the test's own.
func adminFor(t *testing.T, cp *controlplane.ControlPlane) client.Client {
	t.Helper()
	h, err := rest.HTTPClientFor(cp.Config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.CloseIdleConnections)
	admin, err := adminOf(cp, h)
	if err != nil {
		t.Fatal(err)
	}
	return admin
}

// site is a test's own namespace, subnet and host, so that tests do not meet.
type site struct {
	t         *testing.T
	call      caller
	Namespace string
	// Net is a /24: "10.60.7". Net6 is a /64: "fd00:7". Host is a host's address.
	Net, Net6, Host string
}

var sites atomic.Int32

func newSite(t *testing.T) *site {
	t.Helper()
	n := sites.Add(1)
	s := &site{
		t: t, call: allocatorOf(t), Namespace: fmt.Sprintf("site-%d", n),
		Net: fmt.Sprintf("10.60.%d", n), Net6: fmt.Sprintf("fd00:0:0:%x:", n), Host: fmt.Sprintf("172.16.%d.11", n),
	}
	s.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.Namespace}})
	return s
}

func (s *site) create(o client.Object) {
	s.t.Helper()
	if err := shared.admin.Create(s.t.Context(), o); err != nil {
		s.t.Fatal(err)
	}
}

// ip is an address of the site's IPv4 subnet.
func (s *site) ip(last int) string { return fmt.Sprintf("%s.%d", s.Net, last) }

// unused is an address of a pool of n that is none of those.
func (s *site) unused(n int, used ...string) string {
	s.t.Helper()
	for i := range n {
		if !slices.Contains(used, s.ip(20+i)) {
			return s.ip(20 + i)
		}
	}
	s.t.Fatalf("all of %d are used: %v", n, used)
	return ""
}

// host is another host of the site.
func (s *site) host(last int) string {
	return fmt.Sprintf("%s%d", strings.TrimSuffix(s.Host, "11"), last)
}

// ip6 is an address of the site's IPv6 subnet.
func (s *site) ip6(last int) string { return fmt.Sprintf("%s:%x", s.Net6, last) }

// pool makes an IPv4 pool of the site's subnet with the addresses .20 and up to .20+n-1, written singly, and
// returns when the controller knows it.
func (s *site) pool(n int, change func(*v1.BCSNetPool)) *v1.BCSNetPool {
	s.t.Helper()
	p := &v1.BCSNetPool{ObjectMeta: metav1.ObjectMeta{Name: s.Namespace}, Spec: v1.BCSNetPoolSpec{
		Net: s.ip(0), Mask: 24, Gateway: s.ip(1), Hosts: []string{s.Host},
	}}
	for i := range n {
		p.Spec.AvailableIPs = append(p.Spec.AvailableIPs, s.ip(20+i))
	}
	return s.makePool(p, change)
}

// pool6 is pool for IPv6, with the addresses ::20 (hexadecimal) and up.
func (s *site) pool6(n int, change func(*v1.BCSNetPool)) *v1.BCSNetPool {
	s.t.Helper()
	p := &v1.BCSNetPool{ObjectMeta: metav1.ObjectMeta{Name: s.Namespace + "-6"}, Spec: v1.BCSNetPoolSpec{
		Net: s.Net6 + ":", Mask: 64, Gateway: s.ip6(1), Hosts: []string{s.Host},
	}}
	for i := range n {
		p.Spec.AvailableIPs = append(p.Spec.AvailableIPs, s.ip6(0x20+i))
	}
	return s.makePool(p, change)
}

func (s *site) makePool(p *v1.BCSNetPool, change func(*v1.BCSNetPool)) *v1.BCSNetPool {
	s.t.Helper()
	if change != nil {
		change(p)
	}
	s.create(p)
	controlplane.Eventually(s.t, func() error {
		if a := s.call.do(s.t, "GET", prefix+"/pool/"+p.Name, nil); a.Code != 0 {
			return fmt.Errorf("%s", a.Raw)
		}
		return nil
	})
	return p
}

// pod makes a pod.
func (s *site) pod(name string) *corev1.Pod {
	s.t.Helper()
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: name},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "main"}}},
	}
	s.create(p)
	return p
}

// request is the body of a POST or DELETE for a pod.
func (s *site) request(container, pod string) object {
	return object{"host": s.Host, "containerID": container, "podName": pod, "podNamespace": s.Namespace}
}

// with is a copy of a body with more fields, in pairs; nil takes one out.
func with(body object, fields ...any) object {
	out := object{}
	maps.Copy(out, body)
	for i := 0; i < len(fields); i += 2 {
		if out[fields[i].(string)] = fields[i+1]; fields[i+1] == nil {
			delete(out, fields[i].(string))
		}
	}
	return out
}

// owner is a name that is the site's own: owners have no namespace.
func (s *site) owner(name string) string { return s.Namespace + "/" + name }

func (s *site) add(body object) answer { s.t.Helper(); return s.call.do(s.t, "POST", prefix, body) }
func (s *site) del(body object) answer { s.t.Helper(); return s.call.do(s.t, "DELETE", prefix, body) }

// given makes a pod and allocates for it; it returns the request and its container.
func (s *site) given(name string) (body object, address string) {
	s.t.Helper()
	s.pod(name)
	body = s.request(newID(), name)
	return body, s.add(body).done(s.t)["ipAddr"].(string)
}

// stored is the object of an address as the API server has it.
func stored(t *testing.T, address string) *v1.BCSNetIP {
	t.Helper()
	a, err := ipaddr.ParseAddr(address)
	if err != nil {
		t.Fatal(err)
	}
	var o v1.BCSNetIP
	if err := shared.admin.Get(t.Context(), client.ObjectKey{Name: ipaddr.ObjectName(a)}, &o); err != nil {
		t.Fatal(err)
	}
	return &o
}

// active lists the addresses that the API server has as Active for a container.
func active(t *testing.T, admin client.Client, container string) (addresses []string) {
	t.Helper()
	var list v1.BCSNetIPList
	if err := admin.List(context.Background(), &list, client.MatchingFields{"status.containerID": container}); err != nil {
		t.Fatal(err)
	}
	for _, o := range list.Items {
		if o.Status.Status == v1.IPActive {
			addresses = append(addresses, strings.ReplaceAll(o.Name, "-", ":"))
		}
	}
	return addresses
}
