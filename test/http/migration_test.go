package http_test

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/httpapi/wire"
	"github.com/bcsnet/bcsnet/test/controlplane"
)

// TestMigration: while a virtual machine migrates live, every answer about its address says so: that of the target's
// ADD, of repeated ones from either pod, and of those who look. The DEL and the release of a host end their half.
func TestMigration(t *testing.T) {
	t.Parallel()
	shared.cluster.InstallKubeVirt(t)
	s := newSite(t)
	second := s.host(12)
	s.pool(3, func(p *v1.BCSNetPool) { p.Spec.Hosts = append(p.Spec.Hosts, second) })
	vmi := controlplane.KubeVirtObject("VirtualMachineInstance", s.Namespace, "win",
		map[string]any{"status": map[string]any{"phase": "Running"}})
	by := controlplane.KubeVirtObject("VirtualMachineInstanceMigration", s.Namespace, "win-1",
		map[string]any{"spec": map[string]any{"vmiName": "win"}})
	s.create(vmi)
	s.create(by)
	launcher := func(name, host string, labels map[string]string) (p *corev1.Pod, body object) {
		p = &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: s.Namespace, Name: name, Labels: labels,
				OwnerReferences: []metav1.OwnerReference{controlplane.ControlledBy(vmi)},
				Annotations:     map[string]string{"networkextension.bkbcs.tencent.com/release-policy": "never"},
			},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "compute", Image: "compute"}}},
		}
		if len(labels) > 0 {
			p.Annotations["kubevirt.io/migrationJobName"] = by.GetName()
		}
		s.create(p)
		return p, with(s.request(newID(), name), "host", host, "podUID", string(p.UID))
	}
	lists := func(pods ...*corev1.Pod) {
		t.Helper()
		all := map[string]any{}
		for _, p := range pods {
			all[string(p.UID)] = "node"
		}
		_ = unstructured.SetNestedField(vmi.Object, all, "status", "activePods")
		if err := shared.admin.Update(t.Context(), vmi); err != nil {
			t.Fatal(err)
		}
	}
	// says asks, and compares whether the answer has the field.
	says := func(body object, address string, want bool) {
		t.Helper()
		a := s.add(body)
		data := a.done(t)
		if data["ipAddr"] != address || data["host"] != body["host"] || data["containerID"] != body["containerID"] {
			t.Errorf("got %s", a.Raw)
		}
		if got, there := data["migration"]; there != want || want && got != true {
			t.Errorf("migration is %v, %v, want %v: %s", got, there, want, a.Raw)
		}
	}
	sees := func(path, pod, host, other string) {
		t.Helper()
		got := s.call.get(t, path).Items
		if len(got) != 1 || got[0].PodName != pod || got[0].Host != host || (got[0].Second != nil) != (other != "") ||
			other != "" && got[0].Second.PodName != other {
			t.Errorf("GET %s: %+v, want %s on %s beside %q", path, got, pod, host, other)
		}
	}
	source, from := launcher("virt-launcher-win-a", s.Host, nil)
	lists(source)
	address := s.add(from).done(t)["ipAddr"].(string)
	says(from, address, false)

	target, to := launcher("virt-launcher-win-b", second,
		map[string]string{"kubevirt.io/migrationJobUID": string(by.GetUID())})
	if a := s.add(to); a.Reason != "ClaimConflict" || a.Hint == "" ||
		!strings.Contains(a.Message, "does not list it among its pods yet") {
		t.Fatalf("too early: %d %s", a.Status, a.Raw)
	}
	lists(source, target)
	for range 2 {
		says(to, address, true)
		says(from, address, true)
	}

	// Those who look, as CHECK does, see the pod that they ask about, and the other one.
	for _, of := range []struct{ path, pod, host, other string }{
		{"/container/" + from["containerID"].(string), source.Name, s.Host, target.Name},
		{"/container/" + to["containerID"].(string), target.Name, second, source.Name},
		{"/pod/" + s.Namespace + "/" + source.Name, source.Name, s.Host, target.Name},
		{"/pod/" + s.Namespace + "/" + target.Name, target.Name, second, source.Name},
		{"/host/" + s.Host, source.Name, s.Host, target.Name},
		{"/host/" + second, target.Name, second, source.Name},
		{"?host=" + second + "&status=Active", target.Name, second, source.Name},
		{"?podNamespace=" + s.Namespace + "&podName=" + target.Name, target.Name, second, source.Name},
		{"?containerID=" + to["containerID"].(string), target.Name, second, source.Name},
	} {
		sees(of.path, of.pod, of.host, of.other)
	}
	if got := s.call.get(t, "?status=Active&pool="+s.Namespace); got.Total != 1 {
		t.Errorf("the address counts %d times", got.Total)
	}
	var one wire.Lease
	s.call.do(t, "GET", prefix+"/ip/"+address, nil).doneInto(t, &one)
	if one.PodName != source.Name || one.Second == nil || one.Second.Host != second ||
		one.Second.ContainerID != to["containerID"] || one.Second.PodUID != string(target.UID) {
		t.Errorf("by address: %+v beside %+v", one, one.Second)
	}

	// The release of the target's host ends its half, and asking again the other one's does nothing to it.
	var freed []string
	s.call.do(t, "DELETE", prefix+"/host/"+second, nil).doneInto(t, &freed)
	if !slices.Equal(freed, []string{address}) {
		t.Errorf("freed %v, want %s", freed, address)
	}
	sees("/pod/"+s.Namespace+"/"+source.Name, source.Name, s.Host, "")
	says(from, address, false)
	if got := ips(s.del(to).done(t)); len(got) != 0 {
		t.Errorf("the late DEL released %v", got)
	}

	// The next container at the target, and the end of the source: DEL by address, then the ordinary one, doubled.
	to = with(to, "containerID", newID())
	says(to, address, true)
	s.call.do(t, "DELETE", prefix+"/ip/"+address, object{"containerID": from["containerID"]}).done(t)
	for range 2 {
		if got := ips(s.del(from).done(t)); len(got) != 0 {
			t.Errorf("the DEL of the source released %v", got)
		}
	}
	says(to, address, false)
	sees("/host/"+second, target.Name, second, "")
	if got := ips(s.del(to).done(t)); !slices.Equal(got, []string{address}) {
		t.Errorf("the DEL of the target released %v", got)
	}
	if o := stored(t, address); o.Status.Status != v1.IPReserved || o.Status.SecondAttachment != nil || len(o.Labels) > 0 {
		t.Errorf("in the end: %+v %v", o.Status, o.Labels)
	}
}
