package apiserver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// create makes an object.
func (s *Server) create(t target, body []byte) (code int, answer []byte, p *problem) {
	var data map[string]any
	if err := json.Unmarshal(body, &data); err != nil {
		return 0, nil, badRequest("%v", err)
	}
	m := meta(data)
	if t.name = text(m, "name"); t.name == "" && text(m, "generateName") != "" {
		t.name = fmt.Sprintf("%s%05d", text(m, "generateName"), len(s.made)+1)
		m["name"] = t.name
	}
	if rv := text(m, "resourceVersion"); rv != "" && rv != "0" {
		return 0, nil, refusal(http.StatusInternalServerError, "",
			"resourceVersion should not be set on objects to be created")
	}
	if t.kind.namespaced {
		if p := s.namespace(t); p != nil {
			return 0, nil, p
		}
		m["namespace"] = t.namespace
	}
	if t.kind.status {
		delete(data, "status")
	}
	if p := t.typed(data); p != nil {
		return 0, nil, p
	}
	t.kind.initial(data)
	if p := t.admit(data, nil); p != nil {
		return 0, nil, p
	}
	if t.kind.objects[t.key()] != nil {
		return 0, nil, t.exists()
	}
	m["uid"] = s.uid(t)
	m["creationTimestamp"] = s.seconds(0)
	tidy(m)
	delete(m, "resourceVersion")
	if t.kind.custom != nil || t.kind.group == "apps" || t.kind.kind == "Pod" {
		m["generation"] = int64(1)
	}
	if t.dry {
		return http.StatusCreated, encode(data), nil
	}
	return http.StatusCreated, s.commit(t.kind, t.key(), data).body, nil
}

// uid returns the UID of a new object. It depends only on the object's name and the number of earlier objects of that
// name, not on other objects that are created meanwhile.
func (s *Server) uid(t target) string {
	path := t.kind.path() + "/" + t.key()
	s.made[path]++
	h := fnv.New64a()
	fmt.Fprintf(h, "%s %d", path, s.made[path])
	sum := h.Sum64()
	return fmt.Sprintf("00000000-0000-4000-8%03x-%012x", sum>>48&0xfff, sum&0xffffffffffff)
}

// namespace refuses to create an object in a namespace that is missing or being deleted.
func (s *Server) namespace(t target) *problem {
	ns := s.kinds["/v1/namespaces"]
	o := ns.objects[t.namespace]
	switch {
	case o == nil:
		return target{kind: ns, name: t.namespace}.notFound()
	case o.deleting():
		p := refusal(http.StatusForbidden, metav1.StatusReasonForbidden,
			"%s %q is forbidden: unable to create new content in namespace %s because it is being terminated",
			t.kind.qualified(), t.name, t.namespace)
		p.Details = &metav1.StatusDetails{
			Name: t.name, Kind: t.kind.resource, Causes: []metav1.StatusCause{{
				Type: "NamespaceTerminating", Field: "metadata.namespace", Message: "namespace " + t.namespace +
					" is being terminated",
			}},
		}
		return p
	default:
		return nil
	}
}

// typed refuses a custom object without kind and apiVersion. Kubernetes' own objects need not have them.
func (t target) typed(data map[string]any) *problem {
	version, kind := text(data, "apiVersion"), text(data, "kind")
	switch {
	case version == t.kind.apiVersion() && kind == t.kind.kind:
	case t.kind.custom == nil && version == "" && kind == "":
		data["apiVersion"], data["kind"] = t.kind.apiVersion(), t.kind.kind
	default:
		return badRequest("the object provided is %s %s, not %s %s", version, kind, t.kind.apiVersion(), t.kind.kind)
	}
	return nil
}

// initial sets the initial fields of Kubernetes' own objects.
func (k *kind) initial(data map[string]any) {
	switch k.kind {
	case "Pod":
		data["status"] = map[string]any{"phase": "Pending"}
	case "Namespace":
		data["status"] = map[string]any{"phase": "Active"}
	}
}

func (s *Server) seconds(later time.Duration) string {
	return s.Now().Add(later).UTC().Format(time.RFC3339)
}

// update replaces an object.
func (s *Server) update(t target, body []byte) (code int, answer []byte, p *problem) {
	var data map[string]any
	if err := json.Unmarshal(body, &data); err != nil {
		return 0, nil, badRequest("%v", err)
	}
	if name := text(meta(data), "name"); name != t.name {
		return 0, nil, badRequest("the name of the object (%s) does not match the name on the URL (%s)", name, t.name)
	}
	return s.replace(t, data)
}

// replace stores the next version of an object.
func (s *Server) replace(t target, data map[string]any) (code int, answer []byte, p *problem) {
	old := t.kind.objects[t.key()]
	if old == nil {
		return 0, nil, t.notFound()
	}
	m, before := meta(data), old.meta()
	switch rv, uid := text(m, "resourceVersion"), text(m, "uid"); {
	case uid != "" && uid != text(before, "uid"):
		return 0, nil, t.conflict(precondition("UID", uid, text(before, "uid")))
	case (rv == "" || rv == "0") && !t.kind.blind:
		return 0, nil, t.invalid([]complaint{{
			"FieldValueInvalid", "metadata.resourceVersion", "must be specified for an update",
		}})
	case rv != "" && rv != "0" && rv != text(before, "resourceVersion"):
		return 0, nil, t.conflict(modified)
	}
	switch {
	case t.status:
		next := clone(old.data).(map[string]any)
		next["status"] = data["status"]
		data = next
	case t.kind.status:
		if status, had := old.data["status"]; had {
			data["status"] = clone(status)
		} else {
			delete(data, "status")
		}
	}
	m = meta(data)
	for _, field := range []string{
		"uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation", "namespace",
	} {
		if v, had := before[field]; had {
			m[field] = v
		} else {
			delete(m, field)
		}
	}
	m["resourceVersion"] = text(before, "resourceVersion")
	tidy(m)
	if p := t.typed(data); p != nil {
		return 0, nil, p
	}
	if p := t.admit(data, old); p != nil {
		return 0, nil, p
	}
	if g, ok := number(before["generation"]); ok && t.generates(old.data, data) {
		m["generation"] = g + 1
	}
	switch {
	case bytes.Equal(encode(data), old.body): // nothing is written
		return http.StatusOK, old.body, nil
	case t.dry:
		return http.StatusOK, encode(data), nil
	case old.deleting() && len(finalizers(m)) == 0 && t.kind.kind != "Pod":
		s.drop(t.kind, t.key())
		return http.StatusOK, encode(data), nil
	default:
		return http.StatusOK, s.commit(t.kind, t.key(), data).body, nil
	}
}

// generates reports whether a change affects the generation, as changes of the spec do.
func (t target) generates(old, now map[string]any) bool {
	left := []string{"metadata"}
	if t.kind.status {
		left = append(left, "status")
	}
	return !reflect.DeepEqual(without(old, left...), without(now, left...))
}

// tidy drops what is not stored: empty lists and maps, and managed fields.
func tidy(m map[string]any) {
	delete(m, "managedFields")
	for _, field := range []string{"finalizers", "labels", "annotations", "ownerReferences"} {
		switch v := m[field].(type) {
		case []any:
			if len(v) == 0 {
				delete(m, field)
			}
		case map[string]any:
			if len(v) == 0 {
				delete(m, field)
			}
		}
	}
}

func number(v any) (int64, bool) {
	switch v := v.(type) {
	case int64:
		return v, true
	case float64:
		return int64(v), true
	default:
		return 0, false
	}
}

// remove deletes an object, or marks it if it has finalizers or is a pod with a kubelet.
func (s *Server) remove(t target, body []byte) (code int, answer []byte, p *problem) {
	var o metav1.DeleteOptions
	if len(body) > 0 {
		if err := json.Unmarshal(body, &o); err != nil {
			return 0, nil, badRequest("%v", err)
		}
		t.dry = len(o.DryRun) > 0 // with a body, parameters are ignored
	}
	old := t.kind.objects[t.key()]
	if old == nil || t.name == "" {
		return 0, nil, t.notFound()
	}
	if p := t.preconditions(o.Preconditions, old); p != nil {
		return 0, nil, p
	}
	grace := t.grace(o, old)
	switch {
	case t.dry:
		return http.StatusOK, t.done(old, s.seconds(0)), nil
	case grace == 0 && len(finalizers(old.meta())) == 0:
		return http.StatusOK, t.done(s.drop(t.kind, t.key()), s.seconds(0)), nil
	case old.deleting() && !t.shorter(old, grace):
		return http.StatusOK, old.body, nil
	}
	data := clone(old.data).(map[string]any)
	m := meta(data)
	m["deletionTimestamp"] = s.seconds(time.Duration(grace) * time.Second)
	m["deletionGracePeriodSeconds"] = grace
	if g, ok := number(m["generation"]); ok && !old.deleting() {
		m["generation"] = g + 1
	}
	return http.StatusOK, s.commit(t.kind, t.key(), data).body, nil
}

// done returns the answer to a deletion: the last state of a pod, or a success for any other kind.
func (t target) done(last *object, now string) []byte {
	if t.kind.kind == "Pod" {
		data := clone(last.data).(map[string]any)
		m := meta(data)
		if g, _ := number(m["generation"]); !last.deleting() {
			m["deletionTimestamp"], m["generation"] = now, g+1
		}
		m["deletionGracePeriodSeconds"] = 0
		return encode(data)
	}
	return encode(map[string]any{
		"kind": "Status", "apiVersion": "v1", "metadata": map[string]any{}, "status": "Success",
		"details": map[string]any{
			"name": t.name, "group": t.kind.group, "kind": t.kind.resource, "uid": text(last.meta(), "uid"),
		},
	})
}

// shorter reports whether a pod that is being deleted must end sooner.
func (t target) shorter(old *object, grace int64) bool {
	before, ok := number(old.meta()["deletionGracePeriodSeconds"])
	return t.kind.kind == "Pod" && ok && grace < before
}

func (t target) preconditions(want *metav1.Preconditions, old *object) *problem {
	switch m := old.meta(); {
	case want == nil:
	case want.UID != nil && string(*want.UID) != text(m, "uid"):
		return t.conflict(precondition("UID", string(*want.UID), text(m, "uid")))
	case want.ResourceVersion != nil && *want.ResourceVersion != text(m, "resourceVersion"):
		return t.conflict(precondition("ResourceVersion", *want.ResourceVersion, text(m, "resourceVersion")))
	}
	return nil
}

// grace returns the seconds that a pod has to end; 0 for any other kind and for a pod without a node.
func (t target) grace(o metav1.DeleteOptions, old *object) int64 {
	if t.kind.kind != "Pod" {
		return 0
	}
	phase, _ := lookup(old.data, "status", "phase").(string)
	node, _ := lookup(old.data, "spec", "nodeName").(string)
	if node == "" || phase == "Succeeded" || phase == "Failed" {
		return 0
	}
	if o.GracePeriodSeconds != nil {
		return *o.GracePeriodSeconds
	}
	if g, ok := number(lookup(old.data, "spec", "terminationGracePeriodSeconds")); ok {
		return g
	}
	return 30
}

// patch changes parts of an object, by a merge or an apply.
func (s *Server) patch(t target, body []byte, contentType string) (code int, answer []byte, p *problem) {
	var change map[string]any
	if err := json.Unmarshal(body, &change); err != nil {
		return 0, nil, badRequest("%v", err)
	}
	apply := strings.HasPrefix(contentType, "application/apply-patch")
	if !apply && !strings.HasPrefix(contentType, "application/merge-patch") &&
		!strings.HasPrefix(contentType, "application/strategic-merge-patch") {
		return 0, nil, refusal(http.StatusUnsupportedMediaType, metav1.StatusReasonUnsupportedMediaType,
			"the simulated API server knows no %s", contentType)
	}
	old := t.kind.objects[t.key()]
	if old == nil && apply {
		meta(change)["name"] = t.name
		return s.create(t, encode(change))
	}
	if old == nil {
		return 0, nil, t.notFound()
	}
	data := clone(old.data).(map[string]any)
	merge(data, change)
	if rv := text(meta(change), "resourceVersion"); rv == "" {
		meta(data)["resourceVersion"] = strconv.FormatUint(old.version, 10)
	}
	return s.replace(t, data)
}

// merge applies change to into as RFC 7386 describes.
func merge(into, change map[string]any) {
	for key, value := range change {
		switch v := value.(type) {
		case nil:
			delete(into, key)
		case map[string]any:
			inner, ok := into[key].(map[string]any)
			if !ok {
				inner = map[string]any{}
				into[key] = inner
			}
			merge(inner, v)
		default:
			into[key] = v
		}
	}
}
