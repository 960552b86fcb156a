package kubevirt

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/bcsnet/bcsnet/pkg/workload"
)

// TestDenies: each fact that is missing is enough to deny a second attachment.
func TestDenies(t *testing.T) {
	owner := workload.Owner{Group: "kubevirt.io", Kind: "VirtualMachineInstance", Name: "win", UID: "m"}
	const (
		running = `{"metadata":{"name":"win","uid":"m"},"status":{"phase":"Running","activePods":{"u1":"n1","u2":"n2"}}}`
		by      = `{"metadata":{"name":"mig","uid":"j"},"spec":{"vmiName":"win"},"status":{"phase":"Scheduling"}}`
	)
	handed := func(fields string) string {
		return strings.Replace(running, `"phase"`, `"migrationState":{`+fields+`},"phase"`, 1)
	}
	for name, tc := range map[string]struct {
		change  func(from, to *workload.Pod)
		machine string // running by default; "none" for no such machine
		by      string
		want    string // in the answer; empty: it is the target
	}{
		"before it is handed over":            {},
		"after a migration that has ended":    {machine: handed(`"migrationUid":"i","targetPod":"a","completed":true`)},
		"handed over":                         {machine: handed(`"migrationUid":"j","targetPod":"b"`), by: "none"},
		"handed over to another":              {machine: handed(`"migrationUid":"j","targetPod":"c"`), want: "migrates to pod c"},
		"failed":                              {machine: handed(`"migrationUid":"j","targetPod":"b","failed":true`), want: "has ended"},
		"ended":                               {machine: handed(`"migrationUid":"j","targetPod":"b","endTimestamp":"2026-05-04T03:02:01Z"`), want: "has ended"},
		"no machine":                          {machine: "none", want: "there is no VirtualMachineInstance"},
		"another machine of the name":         {machine: strings.Replace(running, `"uid":"m"`, `"uid":"n"`, 1), want: "there is no VirtualMachineInstance"},
		"a machine that ends":                 {machine: strings.Replace(running, "Running", "Succeeded", 1), want: "has ended"},
		"a machine that is deleted":           {machine: strings.Replace(running, `"uid"`, `"deletionTimestamp":"2026-05-04T03:02:01Z","uid"`, 1), want: "being deleted"},
		"not listed":                          {machine: strings.Replace(running, `"u2":"n2"`, `"u3":"n2"`, 1), want: "does not list it"},
		"no migration":                        {by: "none", want: "there is no migration"},
		"another migration of the name":       {by: strings.Replace(by, `"uid":"j"`, `"uid":"k"`, 1), want: "there is no migration"},
		"a migration of another machine":      {by: strings.Replace(by, `"win"`, `"mac"`, 1), want: "there is no migration"},
		"a migration that has succeeded":      {by: strings.Replace(by, "Scheduling", "Succeeded", 1), want: "has ended"},
		"a migration that is cancelled":       {by: strings.Replace(by, `"uid"`, `"deletionTimestamp":"2026-05-04T03:02:01Z","uid"`, 1), want: "cancelled"},
		"a migration that has just begun":     {by: strings.Replace(by, "Scheduling", "", 1)},
		"a pod that names no migration":       {change: func(_, to *workload.Pod) { to.Migration = workload.Migration{} }, want: "does not migrate to it"},
		"a pod that is deleted":               {change: func(_, to *workload.Pod) { to.Deleting = true }, want: "being deleted"},
		"a pod of nobody":                     {change: func(_, to *workload.Pod) { to.Controller = workload.Owner{} }, want: "not of one virtual machine"},
		"a pod of another machine":            {change: func(from, _ *workload.Pod) { from.Controller.UID = "n" }, want: "not of one virtual machine"},
		"pods of a ReplicaSet":                {change: func(from, to *workload.Pod) { from.Controller.Kind, to.Controller.Kind = "ReplicaSet", "ReplicaSet" }, want: "not of one virtual machine"},
		"pods of somebody else's machines":    {change: func(from, to *workload.Pod) { from.Controller.Group, to.Controller.Group = "x.io", "x.io" }, want: "not of one virtual machine"},
		"pods of two namespaces":              {change: func(from, _ *workload.Pod) { from.Namespace = "bank" }, want: "not of one virtual machine"},
		"the pod that the machine is in":      {change: func(from, to *workload.Pod) { *from = *to }},
		"one of two migrations, and not this": {machine: handed(`"migrationUid":"i","targetPod":""`)},
	} {
		t.Run(name, func(t *testing.T) {
			from := workload.Pod{Namespace: "shop", Name: "a", UID: "u1", Controller: owner}
			to := workload.Pod{Namespace: "shop", Name: "b", UID: "u2", Controller: owner,
				Migration: workload.Migration{Name: "mig", UID: "j"}}
			if tc.change != nil {
				tc.change(&from, &to)
			}
			got := denies(from, to, parse[Machine](t, tc.machine, running), parse[Migration](t, tc.by, by))
			if (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
				t.Errorf("%q, want %q in it", got, tc.want)
			}
		})
	}
}

// parse reads an object, the usual one where nothing is said; nil for "none".
func parse[T any](t *testing.T, text, usual string) *T {
	t.Helper()
	if text == "none" {
		return nil
	}
	if text == "" {
		text = usual
	}
	o := new(T)
	if err := json.Unmarshal([]byte(text), o); err != nil {
		t.Fatal(err)
	}
	return o
}
