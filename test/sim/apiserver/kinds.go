package apiserver

import (
	"net/http"
	"net/url"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// kind is a kind of objects.
type kind struct {
	group, version, resource, kind string
	namespaced                     bool
	// status: the status is a subresource. A create ignores it.
	status bool
	// blind: an update without a version replaces the object unconditionally.
	blind bool
	// custom is the CRD; nil for Kubernetes' own kinds, whose objects are not validated.
	custom *custom

	objects map[string]*object
}

func (k *kind) path() string { return k.group + "/" + k.version + "/" + k.resource }

func (k *kind) apiVersion() string {
	if k.group == "" {
		return k.version
	}
	return k.group + "/" + k.version
}

// qualified returns the resource in the form of messages.
func (k *kind) qualified() string {
	if k.group == "" {
		return k.resource
	}
	return k.resource + "." + k.group
}

func builtIn() []*kind {
	return []*kind{
		{version: "v1", resource: "pods", kind: "Pod", namespaced: true, status: true, blind: true},
		{version: "v1", resource: "nodes", kind: "Node", status: true, blind: true},
		{version: "v1", resource: "namespaces", kind: "Namespace", blind: true},
		{version: "v1", resource: "secrets", kind: "Secret", namespaced: true, blind: true},
		{version: "v1", resource: "configmaps", kind: "ConfigMap", namespaced: true, blind: true},
		{group: "coordination.k8s.io", version: "v1", resource: "leases", kind: "Lease", namespaced: true},
		{group: "events.k8s.io", version: "v1", resource: "events", kind: "Event", namespaced: true, blind: true},
		{
			group: "apps", version: "v1", resource: "deployments", kind: "Deployment", namespaced: true, status: true,
			blind: true,
		},
		{
			group: "apps", version: "v1", resource: "replicasets", kind: "ReplicaSet", namespaced: true, status: true,
			blind: true,
		},
		{
			group: "apps", version: "v1", resource: "statefulsets", kind: "StatefulSet", namespaced: true, status: true,
			blind: true,
		},
		{
			group: "apps", version: "v1", resource: "daemonsets", kind: "DaemonSet", namespaced: true, status: true,
			blind: true,
		},
		{group: "batch", version: "v1", resource: "jobs", kind: "Job", namespaced: true, status: true, blind: true},
		{group: "batch", version: "v1", resource: "cronjobs", kind: "CronJob", namespaced: true, status: true,
			blind: true},
		{
			group: machines, version: "v1", resource: "virtualmachineinstances", kind: "VirtualMachineInstance",
			namespaced: true, blind: true,
		},
		{
			group: machines, version: "v1", resource: "virtualmachineinstancemigrations",
			kind: "VirtualMachineInstanceMigration", namespaced: true, blind: true,
		},
	}
}

// target is what a request is about.
type target struct {
	kind      *kind
	namespace string
	name      string // empty for all
	status    bool   // the subresource
	query     url.Values
	partial   bool // metadata alone is wanted
	dry       bool
}

func (t target) key() string {
	if t.kind.namespaced {
		return t.namespace + "/" + t.name
	}
	return t.name
}

// target parses a path "/apis/GROUP/VERSION/[namespaces/NAME/]RESOURCE[/NAME[/status]]".
func (s *Server) target(r *http.Request) (t target, p *problem) {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	none := refusal(http.StatusNotFound, unserved, "")
	var group string
	switch {
	case len(parts) > 3 && parts[0] == "apis":
		group, parts = parts[1]+"/"+parts[2], parts[3:]
	case len(parts) > 2 && parts[0] == "api":
		group, parts = "/"+parts[1], parts[2:]
	default:
		return t, none
	}
	t.query = r.URL.Query()
	t.partial = strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadata")
	t.dry = t.query.Get("dryRun") == metav1.DryRunAll
	if len(parts) > 2 && parts[0] == "namespaces" {
		t.namespace, parts = parts[1], parts[2:]
	}
	if t.kind = s.kinds[group+"/"+parts[0]]; t.kind == nil || len(parts) > 3 || len(parts) == 3 &&
		(parts[2] != "status" || !t.kind.status) {
		return t, none
	}
	if len(parts) > 1 {
		t.name = parts[1]
	}
	t.status = len(parts) == 3
	return t, nil
}
