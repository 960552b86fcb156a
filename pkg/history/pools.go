package history

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	v1 "github.com/bcsnet/bcsnet/api/v1"
)

// Bounds of the record of a pool.
const (
	maxFields = 24
	maxValue  = 512 // bytes
)

// OfPool returns the record of a change of a pool; ok is false where its spec stays and nobody deletes it. was or is is
// nil for a pool that comes or goes.
func OfPool(was, is *v1.BCSNetPool, now time.Time) (r Record, ok bool) {
	switch {
	case was == nil && is == nil:
		return Record{}, false
	case was == nil:
		r = of(is, WhatCreated, now)
		r.Changes = Fields(v1.BCSNetPoolSpec{}, is.Spec)
	case is == nil:
		r = of(was, WhatDeleted, now)
		r.By = ""
	case was.DeletionTimestamp == nil && is.DeletionTimestamp != nil:
		r = of(is, WhatDeleting, is.DeletionTimestamp.Time)
		r.By = "" // who asked for it is in no object
	case was.Generation != is.Generation:
		r = of(is, WhatChanged, now)
		r.Changes = Fields(was.Spec, is.Spec)
		ok = len(r.Changes) > 0
		return r, ok
	default:
		return Record{}, false
	}
	return r, true
}

func of(p *v1.BCSNetPool, what string, at time.Time) Record {
	return Record{Time: second(at), What: what, Pool: p.Name, Generation: p.Generation,
		By: p.Annotations[v1.ChangedByAnnotation]}
}

// Fields returns the fields of a spec that changed, by their names, at most maxFields: the last one counts the others.
func Fields(was, is v1.BCSNetPoolSpec) (changes []FieldChange) {
	before, after := flat(was), flat(is)
	names := slices.Collect(maps.Keys(before))
	for name := range after {
		if _, ok := before[name]; !ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		if c := fieldChange(name, before[name], after[name]); c.Old != c.New {
			changes = append(changes, c)
		}
	}
	if n := len(changes) - maxFields; n > 0 {
		changes = append(changes[:maxFields], FieldChange{Field: "…"})
	}
	return changes
}

// flat returns the values of a spec by their paths, such as dns.servers: lists and single values.
func flat(spec v1.BCSNetPoolSpec) map[string]any {
	text, _ := json.Marshal(spec) // a spec that was decoded can be encoded
	var fields map[string]any
	_ = json.Unmarshal(text, &fields)
	all := map[string]any{}
	var walk func(path string, value any)
	walk = func(path string, value any) {
		object, ok := value.(map[string]any)
		if !ok {
			all[path] = value
			return
		}
		for name, v := range object {
			walk(strings.TrimPrefix(path+"."+name, "."), v)
		}
	}
	walk("", fields)
	return all
}

// fieldChange returns the change of one field. Of lists it has the entries that went and came; where only their order
// changed, it has the lists.
func fieldChange(name string, was, is any) FieldChange {
	before, isBefore := entries(was)
	after, isAfter := entries(is)
	if isBefore && isAfter {
		gone, came := without(before, after), without(after, before)
		if len(gone)+len(came) > 0 {
			return FieldChange{Field: name, Old: short(strings.Join(gone, " ")), New: short(strings.Join(came, " "))}
		}
		return FieldChange{Field: name, Old: short(strings.Join(before, " ")), New: short(strings.Join(after, " "))}
	}
	return FieldChange{Field: name, Old: short(text(was)), New: short(text(is))}
}

// entries returns the entries of a list as texts; an absent list has none.
func entries(value any) (all []string, ok bool) {
	list, isList := value.([]any)
	for _, entry := range list {
		all = append(all, text(entry))
	}
	return all, isList || value == nil
}

// without returns the texts of a list that another one lacks.
func without(list, other []string) (out []string) {
	has := make(map[string]struct{}, len(other))
	for _, s := range other {
		has[s] = struct{}{}
	}
	for _, s := range list {
		if _, ok := has[s]; !ok {
			out = append(out, s)
		}
	}
	return out
}

func text(value any) string {
	switch v := value.(type) {
	case nil:
		return ""
	case string:
		return v
	}
	b, _ := json.Marshal(value) // it came from JSON
	return string(b)
}

// short cuts a text to maxValue bytes, never inside a character.
func short(s string) string {
	if len(s) <= maxValue {
		return s
	}
	n := maxValue
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}
