package pool

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/diff"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/yaml"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/cli/terminal"
	"github.com/bcsnet/bcsnet/pkg/importer/backup"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// write prints the changed pools: the lines of their files, followed by the effects on leases.
func (v *poolDiff) write(all []change) error {
	var b bytes.Buffer
	for _, c := range all {
		if c.action == actionUnchanged {
			continue
		}
		text, err := c.unified()
		if err != nil {
			return err
		}
		b.WriteString(paintDiff(v.Terminal, text))
		var lines []string
		for _, e := range c.effects.say() {
			line := "  " + e.text
			if e.grave {
				line = v.Terminal.Paint(terminal.Red, line)
			}
			lines = append(lines, line)
		}
		if c.action != actionRefused && len(lines) > 0 {
			fmt.Fprintf(&b, "Effects of pool %s:\n%s\n", c.name, strings.Join(lines, "\n"))
		}
	}
	_, err := v.Out.Write(b.Bytes())
	return err
}

// unified returns the change of a pool's file as diff -u does.
func (c change) unified() (string, error) {
	var texts [2][]byte
	for i, p := range []resource.Pool{c.before, c.after} {
		if p.Stored == nil {
			continue
		}
		var err error
		if texts[i], err = yaml.Marshal(backup.Kept(p.Stored).Object); err != nil {
			return "", err
		}
	}
	text := diff.Diff("pool "+c.name+" in the cluster", texts[0], "pool "+c.name+" after applying", texts[1])
	_, lines, _ := bytes.Cut(text, []byte("\n")) // the first line is diff's command line
	return string(lines), nil
}

func paintDiff(t terminal.Terminal, text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		switch {
		case strings.HasPrefix(line, "@@"):
			line = t.Paint(terminal.Cyan, line)
		case strings.HasPrefix(line, "-"):
			line = t.Paint(terminal.Red, line)
		case strings.HasPrefix(line, "+"):
			line = t.Paint(terminal.Green, line)
		}
		b.WriteString(line + "\n")
	}
	return b.String()
}

// samePool reports whether two pools have the same cleaned form.
func samePool(a, b resource.Pool) bool {
	return equality.Semantic.DeepEqual(backup.Kept(a.Stored).Object, backup.Kept(b.Stored).Object)
}

// diffFields returns the fields of a comparison for -o json and similar formats.
func diffFields(c change) map[string]any {
	o := map[string]any{"pool": c.name, "action": c.action, "changes": fieldChanges(c)}
	switch c.action {
	case actionRefused:
		o["error"] = c.refused.Error()
	case actionCreated, actionChanged:
		o["effects"] = effectObject(c.effects)
	}
	return o
}

// fieldChanges returns the fields of the spec that differ, sorted by name.
func fieldChanges(c change) []any {
	specOf := func(p resource.Pool) map[string]any {
		if p.Stored == nil {
			return nil
		}
		spec, _ := p.Stored.Object["spec"].(map[string]any)
		return spec
	}
	before, after := specOf(c.before), specOf(c.after)
	names := slices.Concat(slices.Collect(maps.Keys(before)), slices.Collect(maps.Keys(after)))
	slices.Sort(names)
	out := []any{}
	for _, name := range slices.Compact(names) {
		if !equality.Semantic.DeepEqual(before[name], after[name]) {
			out = append(out, map[string]any{"field": "spec." + name, "from": before[name], "to": after[name]})
		}
	}
	return out
}

func effectObject(e effects) map[string]any {
	drains, cutOff, overlaps := []any{}, []any{}, []any{}
	for _, l := range e.drains {
		drains = append(drains, resource.LeaseObject(l))
	}
	for _, h := range e.cutOff {
		cutOff = append(cutOff, map[string]any{"host": h.host.String(), "leases": int64(h.held)})
	}
	for _, o := range e.overlaps {
		overlaps = append(overlaps, map[string]any{"pool": o.Pool.Name, "addresses": ipaddr.FormatSet(o.Addrs)})
	}
	namespacesCutOff := app.Map(e.chain.cutOff,
		func(n namespaceShare) any { return map[string]any{"namespace": n.namespace, "leases": int64(n.held)} })
	keepGiven, keepOldGateway := map[string]any{}, 0
	for _, name := range e.changed {
		if keepGiven[name] = int64(e.kept.By[name]); name == lease.SettingGateway {
			keepOldGateway = e.kept.By[name]
		}
	}
	return map[string]any{
		"leaveDefaultChain": resource.Values(e.chain.leave), "joinDefaultChain": resource.Values(e.chain.join),
		"namespacesCutOff": namespacesCutOff,
		"added":            ipaddr.FormatSet(e.more), "removed": ipaddr.FormatSet(e.fewer), "drains": drains,
		"hostsCutOff": cutOff, "overlaps": overlaps, "keepOldGateway": int64(keepOldGateway),
		"keepGiven": keepGiven, "givenUnknown": int64(e.unknown()),
	}
}
