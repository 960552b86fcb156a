package api

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
)

// pool is the pool of the bcs-netservice-controller document, with digits for xx.
func pool(edit ...func(*v1.BCSNetPoolSpec)) *v1.BCSNetPool {
	p := &v1.BCSNetPool{
		ObjectMeta: metav1.ObjectMeta{Name: "10.0.0.0"},
		Spec: v1.BCSNetPoolSpec{
			Net: "10.0.0.0", Mask: 24, Gateway: "10.0.0.1",
			Hosts:        []string{"10.0.0.11", "10.0.0.12"},
			AvailableIPs: []string{"10.0.0.20", "10.0.0.21", "10.0.0.22"},
		},
	}
	for _, e := range edit {
		e(&p.Spec)
	}
	return p
}

func subnet(net string, mask int32, gateway string) func(*v1.BCSNetPoolSpec) {
	return func(s *v1.BCSNetPoolSpec) { s.Net, s.Mask, s.Gateway, s.AvailableIPs = net, mask, gateway, nil }
}

func available(entries ...string) func(*v1.BCSNetPoolSpec) {
	return func(s *v1.BCSNetPoolSpec) { s.AvailableIPs = entries }
}

func excluded(entries ...string) func(*v1.BCSNetPoolSpec) {
	return func(s *v1.BCSNetPoolSpec) { s.ExcludeIPs = entries }
}

func hosts(entries ...string) func(*v1.BCSNetPoolSpec) {
	return func(s *v1.BCSNetPoolSpec) { s.Hosts = entries }
}

func hostSubnets(entries ...string) func(*v1.BCSNetPoolSpec) {
	return func(s *v1.BCSNetPoolSpec) { s.HostSubnets = entries }
}

func hostSelector(of metav1.LabelSelector) func(*v1.BCSNetPoolSpec) {
	return func(s *v1.BCSNetPoolSpec) { s.HostSelector = &of }
}

func namespaces(names ...string) func(*v1.BCSNetPoolSpec) {
	return func(s *v1.BCSNetPoolSpec) { s.Namespaces = names }
}

func namespaceSelector(s metav1.LabelSelector) func(*v1.BCSNetPoolSpec) {
	return func(p *v1.BCSNetPoolSpec) { p.NamespaceSelector = &s }
}

func network(name string) func(*v1.BCSNetPoolSpec) {
	return func(s *v1.BCSNetPoolSpec) { s.Network = name }
}

func vlan(id int32) func(*v1.BCSNetPoolSpec) { return func(s *v1.BCSNetPoolSpec) { s.VLAN = id } }

func perHost(n int32) func(*v1.BCSNetPoolSpec) {
	return func(s *v1.BCSNetPoolSpec) { s.MaxPerHost = n }
}

func quotas(all ...v1.NamespaceQuota) func(*v1.BCSNetPoolSpec) {
	return func(s *v1.BCSNetPoolSpec) { s.Quotas = all }
}

func mtu(bytes int32) func(*v1.BCSNetPoolSpec) { return func(s *v1.BCSNetPoolSpec) { s.MTU = bytes } }

func route(dst, gw string) func(*v1.BCSNetPoolSpec) {
	return func(s *v1.BCSNetPoolSpec) { s.Routes = append(s.Routes, v1.Route{Dst: dst, GW: gw}) }
}

func nameservers(ips ...string) func(*v1.BCSNetPoolSpec) {
	return func(s *v1.BCSNetPoolSpec) { s.DNS = &v1.DNS{Nameservers: ips} }
}

var v6 = subnet("2001:db8::", 64, "2001:db8::1")

// poolCase is a pool and what the API server says of it; nothing: it takes the pool.
type poolCase struct {
	edits edits
	want  []string
}

type edits = []func(*v1.BCSNetPoolSpec)

// judge puts pools before the API server without keeping them.
func judge(t *testing.T, tests map[string]poolCase) {
	t.Helper()
	c := connect(t)
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			err := c.Create(t.Context(), pool(tt.edits...), client.DryRunAll)
			if diff := compare(t, tt.want, err); diff != "" {
				t.Error(diff)
			}
		})
	}
}
