package rights

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bcsnet/bcsnet/test/controlplane"
)

const (
	system = controlplane.SystemNamespace
	read   = "get list watch"
	write  = "create update patch delete"
)

// role is a role of the manifests, as one who has it.
type role struct {
	user string
	// may are the verbs on each resource: resource.group, of our group where there is none but a core resource.
	// @NAMESPACE is for one namespace, and =NAME for one object.
	may map[string]string
}

// roles says of each role all that it may. TestRoles tries every verb on everything that stands here and in
// temptations, so what does not stand under a role is refused to it.
func roles() map[string]role {
	see := map[string]string{
		"bcsnetpools": read, "bcsnetips": read, "bcsnetipclaims": read, "allocations": "get list",
		"events.events.k8s.io": read, "deployments.apps=bcsnet-controller": "get list",
		"leases.coordination.k8s.io=bcsnet-controller": "get", "servicecidrs.networking.k8s.io": "get list",
		"configmaps=bcsnet-controller-plain-callers": "get",
	}
	for _, resource := range []string{"bcsnetips", "bcsnetpools", "bcsnetipclaims", "bcsnethistories"} {
		see["customresourcedefinitions.apiextensions.k8s.io="+resource+".networkextension.bkbcs.tencent.com"] = "get list"
	}
	workloads := map[string]string{}
	for _, resource := range []string{
		"replicationcontrollers", "deployments.apps", "replicasets.apps", "statefulsets.apps", "daemonsets.apps", "jobs.batch",
		"cronjobs.batch", "clonesets.apps.kruise.io", "statefulsets.apps.kruise.io", "tapps.apps.tkestack.io",
		"gamedeployments.tkex.tencent.com", "gamestatefulsets.tkex.tencent.com", "rollouts.argoproj.io",
		"virtualmachines.kubevirt.io", "virtualmachineinstances.kubevirt.io", "virtualmachineinstancereplicasets.kubevirt.io",
		"virtualmachineinstancemigrations.kubevirt.io", "ipamclaims.k8s.cni.cncf.io",
		"network-attachment-definitions.k8s.cni.cncf.io",
	} {
		workloads[resource] = "get"
	}
	for _, resource := range []string{"ipaddressclaims", "ipaddresses"} {
		workloads[resource+".ipam.cluster.x-k8s.io"] = "get list"
	}
	workloads["services"] = "get list"
	controller := map[string]string{
		"bcsnetpools": read + " " + write, "bcsnetipclaims": read + " " + write,
		"bcsnetpools/status": "update patch", "bcsnetipclaims/status": "update patch",
		"bcsnetpools/finalizers": "update patch", "bcsnetipclaims/finalizers": "update patch",
		"bcsnetips":       read + " create update delete",
		"bcsnethistories": "get list create update delete",
		"mutatingadmissionpolicies.admissionregistration.k8s.io=bcsnet-authors":       "get",
		"mutatingadmissionpolicybindings.admissionregistration.k8s.io=bcsnet-authors": "get",
		"pods": read, "nodes": read, "namespaces": read, "replicationcontrollers": read, "deployments.apps": read,
		"replicasets.apps": read, "statefulsets.apps": read, "daemonsets.apps": read, "jobs.batch": read, "cronjobs.batch": read,
		"*.apps.kruise.io": read, "*.apps.tkestack.io": read, "*.tkex.tencent.com": read, "rollouts.argoproj.io": read,
		"clonesets.apps.kruise.io": read, "statefulsets.apps.kruise.io": read, "tapps.apps.tkestack.io": read,
		"gamedeployments.tkex.tencent.com": read, "gamestatefulsets.tkex.tencent.com": read,
		"virtualmachines.kubevirt.io": read, "virtualmachineinstances.kubevirt.io": read,
		"virtualmachineinstancereplicasets.kubevirt.io": read, "virtualmachineinstancemigrations.kubevirt.io": "get",
		"*/scale.*": "get", "deployments/scale.apps": "get", "events.events.k8s.io": "create patch update",
		"tokenreviews.authentication.k8s.io": "create", "subjectaccessreviews.authorization.k8s.io": "create",
		"leases.coordination.k8s.io@bcsnet-system":                  read + " " + write,
		"leases.coordination.k8s.io@kube-node-lease":                "get",
		"secrets@bcsnet-system":                                     "create",
		"secrets@bcsnet-system=bcsnet-controller-ca":                "get update",
		"configmaps@bcsnet-system":                                  "create",
		"configmaps@bcsnet-system=bcsnet-controller-ca":             "get update",
		"configmaps@bcsnet-system=bcsnet-controller-waits":          "get update",
		"configmaps@bcsnet-system=bcsnet-controller-plain-callers":  "get update",
		"configmaps@kube-system=extension-apiserver-authentication": read,
	}
	// What nodeCapacity, floatingipConfig, hostnicIPAMConfig, ipamClaims, clusterAPI and services.enabled add.
	optional := map[string]string{
		"nodes/status": "patch",
		"configmaps@kube-system=floatingip-config":                                  read,
		"configmaps@kube-system=hostnic-ipam-config":                                read,
		"ipamclaims.k8s.cni.cncf.io":                                                read,
		"ipamclaims/status.k8s.cni.cncf.io":                                         "patch",
		"customresourcedefinitions.apiextensions.k8s.io=ipamclaims.k8s.cni.cncf.io": "get",
		"ipaddressclaims.ipam.cluster.x-k8s.io":                                     read,
		"ipaddressclaims/status.ipam.cluster.x-k8s.io":                              "patch",
		"ipaddressclaims/finalizers.ipam.cluster.x-k8s.io":                          "update",
		"ipaddresses.ipam.cluster.x-k8s.io":                                         read + " create patch delete",
		"clusters.cluster.x-k8s.io":                                                 read,
		"services":                                                                  read,
		"services/status":                                                           "patch",
	}
	return map[string]role{
		"viewer": {"viewer", with(see, workloads, map[string]string{"pods": "get", "nodes": "get", "namespaces": "get",
			"bcsnethistories": "get list"})},
		"operator": {"operator", with(see, workloads, map[string]string{
			"bcsnetpools": read + " " + write, "bcsnetipclaims": read + " " + write,
			"bcsnetips": read + " create update manage", "bcsnethistories": "get list",
			"allocations": "create delete get list", "hostreleases": "create", "conflicts": "create", "gc": "create",
			"pods": read, "nodes": read, "namespaces": "get list",
		}, otherSystems(), map[string]string{
			"leases.coordination.k8s.io=bcsnet-import": "get update",
		})},
		"plugins":   {"plugin", map[string]string{"allocations": "create delete get list", "conflicts": "create", "gc": "create"}},
		"scheduler": {"scheduler", map[string]string{"placements": "create"}},
		"node": {serviceAccount(system, "bcsnet-node"), map[string]string{
			"namespaces=kube-system": "get", "nodes": "get", "nodes/status": "patch",
			"allocations": "get list create delete", "conflicts": "create", "gc": "create",
			"configmaps@bcsnet-system=bcsnet-controller-ca": "list watch",
			"endpointslices.discovery.k8s.io@bcsnet-system": "list watch", "events.events.k8s.io@default": "create patch update",
		}},
		"controller":       {serviceAccount(system, "bcsnet-controller"), with(controller, optional)},
		"controller alone": {serviceAccount(system, alone), controller},
	}
}

// otherSystems are the kinds that bcsnetctl import reads.
func otherSystems() map[string]string {
	kinds := map[string]string{}
	for _, kind := range []string{
		"bcsnetips.netservice.bkbcs.tencent.com", "bcsnetpools.netservice.bkbcs.tencent.com",
		"bcsnetipclaims.netservice.bkbcs.tencent.com", "ippools.whereabouts.cni.cncf.io", "floatingips.galaxy.k8s.io",
		"staticips.ipkeeper.generals.space", "ippools.network.qingcloud.com", "ipamblocks.network.qingcloud.com",
		"vxnetpools.network.qingcloud.com",
		"overlappingrangeipreservations.whereabouts.cni.cncf.io", "spiderippools.spiderpool.spidernet.io",
		"spiderreservedips.spiderpool.spidernet.io", "ippools.crd.projectcalico.org", "ipamblocks.crd.projectcalico.org",
		"ipreservations.crd.projectcalico.org", "subnets.kubeovn.io", "ips.kubeovn.io", "vips.kubeovn.io",
		"network-attachment-definitions.k8s.cni.cncf.io",
	} {
		kinds[kind] = "get list"
	}
	kinds["configmaps=floatingip-config"], kinds["configmaps=hostnic-ipam-config"] = "get", "get"
	return kinds
}

// temptations are what nobody needs, or what only some role above needs of others' objects.
func temptations() []string {
	return []string{
		"secrets", "secrets@kube-system", "configmaps", "configmaps@kube-system", "pods/exec", "pods/eviction", "pods/binding",
		"nodes/proxy", "serviceaccounts", "serviceaccounts/token@bcsnet-system", "events", "services", "endpoints",
		"deployments.apps@bcsnet-system", "leases.coordination.k8s.io",
		"clusterroles.rbac.authorization.k8s.io", "clusterrolebindings.rbac.authorization.k8s.io",
		"rolebindings.rbac.authorization.k8s.io@bcsnet-system", "customresourcedefinitions.apiextensions.k8s.io",
		"validatingadmissionpolicies.admissionregistration.k8s.io",
		"validatingadmissionpolicybindings.admissionregistration.k8s.io",
		"mutatingadmissionpolicies.admissionregistration.k8s.io",
		"mutatingwebhookconfigurations.admissionregistration.k8s.io", "flowschemas.flowcontrol.apiserver.k8s.io",
		"certificatesigningrequests.certificates.k8s.io", "users", "groups",
	}
}

// verbs are those of the API server and those that it only knows by name.
func verbs() []string {
	return append(strings.Fields(read+" "+write), "deletecollection", "manage", "bind", "escalate", "impersonate", "approve")
}

// with returns all verbs of several tables; a later one goes before an earlier one.
func with(tables ...map[string]string) map[string]string {
	all := map[string]string{}
	for _, t := range tables {
		maps.Copy(all, t)
	}
	return all
}

// Every role may what the table says, and nothing else of all that stands there.
func TestRoles(t *testing.T) {
	ready(t)
	all := roles()
	var places []string
	for name, r := range all {
		places = slices.AppendSeq(places, maps.Keys(r.may))
		for at, verbs := range bound(t, r.user) {
			for verb := range verbs {
				if !given(r.may, at, verb) {
					t.Errorf("the role %s gives %s on %s, which no table has", name, verb, at)
				}
			}
		}
	}
	places = append(places, temptations()...)
	slices.Sort(places)
	places = slices.Compact(places)
	for name, r := range all {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := map[string]string{}
			for _, place := range places {
				for _, verb := range verbs() {
					if given(r.may, place, verb) {
						want[place] += " " + verb
					}
				}
			}
			if diff := cmp.Diff(want, asked(t, r.user, places)); diff != "" {
				t.Errorf("%s may something else (-want +got):\n%s", name, diff)
			}
		})
	}
}
