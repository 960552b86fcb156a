package apiserver

import (
	"maps"
	"strconv"
)

// object is one version of an object. It is immutable.
type object struct {
	key     string
	version uint64
	data    map[string]any
	body    []byte // data as JSON
	partial []byte // only its metadata, as JSON; nil until it is requested
}

// meta returns the metadata of an object that is still being changed.
func meta(data map[string]any) map[string]any {
	m, _ := data["metadata"].(map[string]any)
	if m == nil {
		m = map[string]any{}
		data["metadata"] = m
	}
	return m
}

func text(m map[string]any, key string) string {
	v, _ := m[key].(string)
	return v
}

// lookup follows a path through an object.
func lookup(data map[string]any, path ...string) any {
	var at any = data
	for _, name := range path {
		m, ok := at.(map[string]any)
		if !ok {
			return nil
		}
		at = m[name]
	}
	return at
}

func (o *object) meta() map[string]any { return meta(o.data) }

func (o *object) deleting() bool { return text(o.meta(), "deletionTimestamp") != "" }

func finalizers(m map[string]any) []any {
	list, _ := m["finalizers"].([]any)
	return list
}

// as returns the object in the requested form.
func (o *object) as(partial bool) []byte {
	if !partial {
		return o.body
	}
	if o.partial == nil {
		o.partial = encode(map[string]any{
			"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": o.meta(),
		})
	}
	return o.partial
}

// clone copies an object deeply.
func clone(v any) any {
	switch v := v.(type) {
	case map[string]any:
		c := make(map[string]any, len(v))
		for key, value := range v {
			c[key] = clone(value)
		}
		return c
	case []any:
		c := make([]any, len(v))
		for i, value := range v {
			c[i] = clone(value)
		}
		return c
	default:
		return v
	}
}

// without returns a copy of an object without some fields, for comparison.
func without(data map[string]any, fields ...string) map[string]any {
	c := maps.Clone(data)
	for _, f := range fields {
		delete(c, f)
	}
	return c
}

// commit stores a version of an object (nil deletes it) and notifies the watchers. The caller must hold the lock.
func (s *Server) commit(k *kind, key string, data map[string]any) *object {
	old := k.objects[key]
	s.version++
	e := event{kind: k, version: s.version, old: old}
	m := meta(data)
	m["resourceVersion"] = strconv.FormatUint(s.version, 10)
	stored := &object{key: key, version: s.version, data: data, body: encode(data)}
	k.objects[key] = stored
	e.now = stored
	s.tell(e)
	return stored
}

// drop removes an object. Watchers get its last event with the version of the removal.
func (s *Server) drop(k *kind, key string) *object {
	old := k.objects[key]
	delete(k.objects, key)
	s.version++
	data := maps.Clone(old.data)
	m := maps.Clone(meta(data))
	m["resourceVersion"] = strconv.FormatUint(s.version, 10)
	data["metadata"] = m
	last := &object{key: key, version: s.version, data: data, body: encode(data)}
	s.tell(event{kind: k, version: s.version, old: last})
	return last
}

func (s *Server) tell(e event) {
	if s.Written != nil {
		last := e.now
		if last == nil {
			last = e.old
		}
		s.Written(e.kind.resource, last.body, e.now == nil)
	}
	s.events = append(s.events, e)
	for _, w := range s.watchers {
		w.hear(e)
	}
}
