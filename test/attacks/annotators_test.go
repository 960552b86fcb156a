package attacks_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/workload"
	"github.com/bcsnet/bcsnet/test/controlplane"
)

const ours = "networkextension.bkbcs.tencent.com/"

// annotators are attacks by who writes annotations and claims in one namespace, networks, or reads in one namespace.
func annotators() []attack {
	return []attack{
		{"addresses_of_another_namespaces_pool", anothersAddresses}, {"claim_of_another_namespace", anothersClaim},
		{"every_way_to_keep_addresses", keepEachWay}, {"annotations_that_a_terminal_obeys", annotationsForTerminals},
		{"host_that_a_network_names", namedHost}, {"reader_of_one_namespace", readerOfOne},
	}
}

// Pods of one namespace name addresses and pools of another one by each annotation, and by a claim of their own.
func anothersAddresses(t *testing.T, w *world) {
	const vault, address = "vault", "10.88.0.12"
	w.create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: vault}})
	w.create(t, &v1.BCSNetPool{ObjectMeta: metav1.ObjectMeta{Name: vault}, Spec: v1.BCSNetPoolSpec{
		Net: "10.88.0.0", Mask: 24, Gateway: "10.88.0.1", Hosts: []string{theirs}, Namespaces: []string{vault},
		Network: vault, AvailableIPs: []string{"10.88.0.10-10.88.0.19"},
	}})
	for name, spec := range map[string]v1.BCSNetIPClaimSpec{
		"of-pool": {Pool: vault}, "of-addresses": {Addresses: []string{address}},
		"for-both": {Pool: vault, Namespaces: []string{vault, tenant}},
	} {
		spec.ReleasePolicy = v1.ReleaseNever
		w.create(t, &v1.BCSNetIPClaim{ObjectMeta: metav1.ObjectMeta{Namespace: tenant, Name: name}, Spec: spec})
	}
	// An ADD that is refused is tried again, as a kubelet does: the controller has then made the claim that it lacks.
	for name, annotations := range map[string]map[string]string{
		"address": {ours + "ip": address}, "length": {ours + "ip": address + "/24"}, "subnet": {ours + "ip": "10.88.0.0/24"},
		"interface": {ours + "ip.eth0": address}, "pool": {ours + "pool": vault}, "pools": {ours + "pool": vault + ",shop"},
		"galaxy":    {"k8s.v1.cni.galaxy.io/args": `{"request_ip_range":[["10.88.0.10~10.88.0.19"]]}`},
		"keeper":    {"ipkeeper.generals.space/ip_address": address + "/24"},
		"keeper's":  {"ipkeeper.generals.space/ip_pool": address + "/24,10.88.0.13/24"},
		"kept":      {ours + "ip": address, ours + "release-policy": "never"},
		"by-pool":   {workload.ClaimAnnotation: "of-pool"},
		"by-claim":  {workload.ClaimAnnotation: "of-addresses"},
		"for-both":  {workload.ClaimAnnotation: "for-both"},
		"shared":    {"tke.cloud.tencent.com/eni-ip-pool": vault, ours + "pool": vault},
		"elsewhere": {ours + "ip": address, "k8s.v1.cni.cncf.io/networks": "vault"},
	} {
		body := w.podWith(t, tenant, "wants-"+strings.ReplaceAll(name, "'", ""), annotations)
		for _, network := range []string{"", vault} {
			body := with(body, "network", network)
			for range 3 {
				h := w.adds(t, body)
				if data, ok := h.Data.(object); ok && strings.HasPrefix(fmt.Sprint(data["ipAddr"]), "10.88.") {
					t.Errorf("%s got %v of the pool of another namespace", name, data["ipAddr"])
				}
			}
			w.ends(t, body)
		}
	}
	w.adds(t, w.podWith(t, vault, "owner", map[string]string{ours + "ip": address})).done(t, "the pool's namespace")
}

// A claim that does not serve a namespace gives its pods nothing, and tells them nothing of who has its addresses.
func anothersClaim(t *testing.T, w *world) {
	w.create(t, &v1.BCSNetIPClaim{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "closed"}, Spec: v1.BCSNetIPClaimSpec{
		Pool: "shop", ReleasePolicy: v1.ReleaseNever,
	}})
	named := func(name string) map[string]string { return map[string]string{workload.ClaimAnnotation: name} }
	own := w.podWith(t, shop, "closed-1", named("closed"))
	var address any
	controlplane.Eventually(t, func() error { // the controller knows the claim
		h := w.adds(t, own)
		if h.Code != 0 {
			return errors.New(h.text)
		}
		address = h.Data.(object)["ipAddr"]
		return nil
	})
	w.ends(t, own)
	w.adds(t, w.podWith(t, tenant, "closed-1", named(shop+"/closed"))).
		refused(t, "another namespace's pod", ipam.ReasonClaimConflict)
	w.adds(t, w.podWith(t, tenant, "closed-2", map[string]string{
		workload.ClaimAnnotation: shop + "/closed", "primarykey.netservicecontroller.bkbcs.tencent.com": "closed-1",
	})).refused(t, "with its primary key", ipam.ReasonClaimConflict)
	if got := w.adds(t, with(own, "containerID", "closed-next")).done(t, "ADD of its namespace")["ipAddr"]; got != address {
		t.Errorf("the claim's pod gets %v, want %v", got, address)
	}
	w.ends(t, with(own, "containerID", "closed-next"))
}

// One pod at a time, by each policy that keeps an address: half of a pool of the default chain stays free.
func keepEachWay(t *testing.T, w *world) {
	const size = 11
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: tenant, Name: "hoard"}, Spec: appsv1.StatefulSetSpec{
		Replicas: new(int32(size + 1)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "hoard"}},
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "hoard"}},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "main"}}},
		},
	}}
	w.create(t, set)
	for i, way := range []struct {
		name, pods  string
		owner       bool
		annotations map[string]string
	}{
		{"timed", "timed", false, map[string]string{ours + "keep": "8760h"}},
		{"fixed", "fixed", false, map[string]string{
			"netservicecontroller.bkbcs.tencent.com": "fixed-ip", "keepduration.netservicecontroller.bkbcs.tencent.com": "500h",
		}},
		{"shared", "shared", false, map[string]string{}}, // each of another shared pool
		{"ordinals", "hoard", true, map[string]string{ours + "release-policy": "immutable"}},
	} {
		pool := "hoard-" + way.name
		w.create(t, &v1.BCSNetPool{ObjectMeta: metav1.ObjectMeta{Name: pool}, Spec: v1.BCSNetPoolSpec{
			Net: fmt.Sprintf("10.89.%d.0", i), Mask: 24, Gateway: fmt.Sprintf("10.89.%d.1", i), Hosts: []string{theirs},
			Priority: -5, AvailableIPs: []string{fmt.Sprintf("10.89.%d.20-10.89.%d.%d", i, i, 20+size-1)},
		}})
		way.annotations[ours+"pool"] = pool
		kept := 0
		for ; kept <= size; kept++ {
			if way.name == "shared" {
				way.annotations["tke.cloud.tencent.com/eni-ip-pool"] = fmt.Sprintf("hoard-%d", kept)
			}
			p := &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{
					Namespace: tenant, Name: fmt.Sprintf("%s-%d", way.pods, kept), Annotations: way.annotations,
				},
				Spec: corev1.PodSpec{NodeName: nodeTheirs, Containers: []corev1.Container{{Name: "main", Image: "main"}}},
			}
			if way.owner {
				p.OwnerReferences = []metav1.OwnerReference{{
					APIVersion: "apps/v1", Kind: "StatefulSet", Name: set.Name, UID: set.UID, Controller: new(true),
				}}
			}
			w.create(t, p)
			body := with(w.add(p.Name, theirs), "podNamespace", tenant)
			h := w.adds(t, body)
			if h.Code != 0 && kept > 0 {
				h.refused(t, way.name, ipam.ReasonQuotaExceeded)
				break
			}
			h.done(t, way.name)
			w.ends(t, body)
		}
		if kept > size/2+1 {
			t.Errorf("%s: the namespace keeps %d of %d addresses", way.name, kept, size)
		}
		w.adds(t, w.podWith(t, shop, "beside-"+way.name, map[string]string{ours + "pool": pool})).
			done(t, "a pod of another namespace")
	}
}

// Values of annotations stand in refusals, which go into events of the pod and by the plugin into those of the kubelet.
func annotationsForTerminals(t *testing.T, w *world) {
	odd := func(text string) (found []string) {
		for _, c := range text {
			if !unicode.IsPrint(c) && c != '\n' {
				found = append(found, fmt.Sprintf("%U", c))
			}
		}
		return found
	}
	const value = "a\x1b[2Jb\u202ec\u200bd\u009be\u2028f\rg"
	for i, key := range []string{
		ours + "ip", ours + "pool", ours + "claim", ours + "release-policy", ours + "keep", ours + "ip-families",
		ours + "ip-family-policy", ours + "ip.eth0", ours + "pol", "k8s.v1.cni.galaxy.io/args",
		"k8s.v1.cni.galaxy.io/release-policy", "tke.cloud.tencent.com/eni-ip-pool", "ipkeeper.generals.space/ip_pool",
		"ipkeeper.generals.space/gateway", "netservicecontroller.bkbcs.tencent.com/ipclaim",
		"primarykey.netservicecontroller.bkbcs.tencent.com", "k8s.v1.cni.cncf.io/networks",
	} {
		name := fmt.Sprintf("odd-%d", i)
		body := w.podWith(t, tenant, name, map[string]string{key: value})
		h := w.adds(t, body)
		if found := odd(h.Message); len(found) > 0 {
			t.Errorf("%s: the answer has %v: %q", key, found, h.Message)
		}
		if h.Code == 0 {
			w.ends(t, body)
			continue
		}
		controlplane.Eventually(t, func() error { // what comes too fast gets no event, and the kubelet asks again
			w.adds(t, body)
			var all eventsv1.EventList
			if err := shared.admin.List(t.Context(), &all, client.InNamespace(tenant)); err != nil {
				return err
			}
			for _, e := range all.Items {
				if e.Regarding.Name != name {
					continue
				}
				if found := odd(e.Note); len(found) > 0 {
					t.Errorf("%s: the event has %v: %q", key, found, e.Note)
				}
				return nil
			}
			return errors.New("there is no event of " + name)
		})
	}
}

// A network names another node's address as its host. The node's token does not ask for it.
func namedHost(t *testing.T, w *world) {
	p, _, _ := w.onNode(t)
	args := attaching(fmt.Sprintf(`,"host":%q`, theirs))
	if err := p.Funcs().Add(args); err == nil || !strings.Contains(err.Error(), "only for its own node") {
		t.Errorf("ADD: %v", err)
	}
	if err := p.Funcs().Del(args); err != nil {
		t.Errorf("DEL: %v", err)
	}
}

// Who may read in one namespace reads of that one, whatever else the request says.
func readerOfOne(t *testing.T, w *world) {
	w.account(t, "reader", "bcsnet-viewer", tenant)
	token := w.token(t, "reader", "")
	own := "?podNamespace=" + tenant
	for name, path := range map[string]string{
		"own": own, "by host": own + "&host=" + theirs, "by pool": own + "&pool=shop", "by owner": own + "&owner=vm-9",
		"by container": own + "&containerID=" + fmt.Sprint(w.victim["containerID"]),
		"from there":   own + "&continue=10.78.0.19", "in use": own + "&status=Active",
	} {
		h := w.send(t, ask{token: token, method: "GET", path: prefix + path})
		if h.done(t, name); strings.Contains(h.text, "web-theirs") || strings.Contains(h.text, "vm-9") {
			t.Errorf("%s shows %.300s", name, h.text)
		}
	}
	for name, path := range map[string]string{
		"all": "", "another": "?podNamespace=" + shop, "none": "?podNamespace=", "pod": "/pod/" + shop + "/web-theirs",
		"container": "/container/" + fmt.Sprint(w.victim["containerID"]), "host": "/host/" + theirs, "pool": "/pool/shop",
		"address": "/ip/" + w.address, "address, named": "/ip/" + w.address + own, "host, named": "/host/" + theirs + own,
	} {
		w.send(t, ask{token: token, method: "GET", path: prefix + path}).
			refused(t, name, ipam.ReasonNotPermitted, ipam.ReasonBadRequest)
	}
	for _, path := range []string{"/v1/ip", "/v1/ip?namespace=" + tenant, "/v1/pool/payments"} {
		w.send(t, ask{token: token, method: "GET", path: path}).refused(t, path, ipam.ReasonNotPermitted)
	}
}
