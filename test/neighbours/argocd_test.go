// Package neighbours has others' tools read our objects and files, by the libraries that those tools are made of.
package neighbours

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	lua "github.com/yuin/gopher-lua"
	"sigs.k8s.io/yaml"

	"github.com/bcsnet/bcsnet/test/controlplane"
)

// file returns the text of a file of the tree.
func file(t *testing.T, path ...string) string {
	t.Helper()
	root, err := controlplane.ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(append([]string{root}, path...)...))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// states are objects in the moments of their life, and what each tool has to say of them.
var states = map[string]struct {
	object, argocd, kstatus string
}{
	"new":          {`{metadata: {generation: 1}}`, "Progressing", "Current"},
	"ready":        {`{metadata: {generation: 2}, status: {observedGeneration: 2, conditions: [{type: Ready, status: "True", reason: Ready}]}}`, "Healthy", "Current"},
	"full":         {`{metadata: {generation: 1}, status: {observedGeneration: 1, conditions: [{type: Exhausted, status: "True"}, {type: Ready, status: "True", reason: Exhausted}]}}`, "Healthy", "Current"},
	"changed":      {`{metadata: {generation: 3}, status: {observedGeneration: 2, conditions: [{type: Ready, status: "True"}]}}`, "Progressing", "InProgress"},
	"no hosts":     {`{metadata: {generation: 1}, status: {observedGeneration: 1, conditions: [{type: Ready, status: "False", reason: NoHosts, message: m}]}}`, "Degraded", "InProgress"},
	"rebuilding":   {`{metadata: {generation: 1}, status: {observedGeneration: 1, conditions: [{type: Ready, status: "False", reason: Rebuilding}]}}`, "Progressing", "InProgress"},
	"cordoned":     {`{metadata: {generation: 1}, status: {observedGeneration: 1, conditions: [{type: Ready, status: "False", reason: Cordoned}]}}`, "Suspended", "InProgress"},
	"unknown":      {`{metadata: {generation: 1}, status: {observedGeneration: 1, conditions: [{type: Ready, status: Unknown}]}}`, "Progressing", "InProgress"},
	"in conflict":  {`{metadata: {generation: 1}, status: {observedGeneration: 1, conditions: [{type: Ready, status: "True"}, {type: Conflict, status: "True", message: m}]}}`, "Degraded", "Current"},
	"being ended":  {`{metadata: {generation: 1, deletionTimestamp: "2026-01-01T00:00:00Z"}, status: {observedGeneration: 1, conditions: [{type: Ready, status: "True"}]}}`, "Progressing", "Terminating"},
	"no condition": {`{metadata: {generation: 1}, status: {observedGeneration: 1}}`, "Progressing", "Current"},
}

// TestArgoCD runs the health check with the engine of Argo CD, and holds the ConfigMap against the script.
func TestArgoCD(t *testing.T) {
	script := file(t, "contrib", "argocd", "health.lua")
	var patch struct{ Data map[string]string }
	if err := yaml.UnmarshalStrict([]byte(file(t, "contrib", "argocd", "argocd-cm.yaml")), &patch); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"BCSNetPool", "BCSNetIPClaim"} {
		if patch.Data["resource.customizations.health.networkextension.bkbcs.tencent.com_"+kind] != script {
			t.Errorf("the patch has another script for %s than health.lua", kind)
		}
	}
	for name, s := range states {
		t.Run(name, func(t *testing.T) {
			var object map[string]any
			if err := yaml.Unmarshal([]byte(s.object), &object); err != nil {
				t.Fatal(err)
			}
			l := lua.NewState(lua.Options{SkipOpenLibs: true})
			defer l.Close()
			l.Push(l.NewFunction(lua.OpenBase))
			l.Call(0, 0)
			l.SetGlobal("obj", value(l, object))
			if err := l.DoString(script); err != nil {
				t.Fatal(err)
			}
			got, is := l.Get(-1).(*lua.LTable)
			if !is || got.RawGetString("status").String() != s.argocd {
				t.Errorf("Argo CD sees %v, want %s", l.Get(-1), s.argocd)
			}
			if strings.Contains(s.object, "message: m") && got.RawGetString("message").String() != "m" {
				t.Error("the message of the condition is not shown")
			}
		})
	}
}

// value returns a value of JSON as Argo CD gives it to a script.
func value(l *lua.LState, v any) lua.LValue {
	switch v := v.(type) {
	case map[string]any:
		t := l.NewTable()
		for k, x := range v {
			t.RawSetString(k, value(l, x))
		}
		return t
	case []any:
		t := l.NewTable()
		for _, x := range v {
			t.Append(value(l, x))
		}
		return t
	case string:
		return lua.LString(v)
	case float64:
		return lua.LNumber(v)
	case bool:
		return lua.LBool(v)
	}
	return lua.LNil
}
