package api

import (
	"fmt"
	"strings"
	"testing"
)

// claimOf is the manifest of a claim with a spec in JSON.
func claimOf(spec string) string {
	return fmt.Sprintf(
		`{"apiVersion":"networkextension.bkbcs.tencent.com/v1","kind":"BCSNetIPClaim","metadata":{"name":"rules","namespace":"default"},"spec":%s}`, spec)
}

// TestClaimRules: the API server itself takes what can be meant and refuses the rest, naming the field.
func TestClaimRules(t *testing.T) {
	owner := func(name string) string {
		return `{"owner":{"apiVersion":"apps/v1","kind":"Deployment","name":"` + name + `"}}`
	}
	for spec, want := range map[string]string{ // what the message holds; empty where it is taken
		`{}`: "", `{"replicas":0}`: "", owner("web"): "",
		`{"releasePolicy":"Timed","keep":"1h30m"}`:                                           "",
		`{"addresses":["10.0.0.9","10.0.0.1-10.0.0.3","10.0.0.1~10.0.0.3","2001:db8::/64"]}`: "",
		`{"preallocate":true,"replicas":3}`:                                                  "", `{"preallocate":true,"addresses":["10.0.0.9"],"releasePolicy":"Never"}`: "", `{"preallocate":false}`: "",
		`{"preallocate":true}`: "set one of them",
		`{"preallocate":true,"replicas":3,"releasePolicy":"WithPod"}`:           "preallocate goes with the releasePolicy Immutable or Never",
		`{"preallocate":true,"replicas":3,"releasePolicy":"Timed","keep":"1h"}`: "preallocate goes with the releasePolicy Immutable or Never",
		`{"preallocate":"yes","replicas":3}`:                                    "preallocate",
		`{"keep":"1h"}`:                                                         "spec.keep: Invalid value", `{"releasePolicy":"Timed"}`: "keep goes with the releasePolicy Timed",
		`{"releasePolicy":"Timed","keep":"0s"}`:    "more than 0 and at most 8760h",
		`{"releasePolicy":"Timed","keep":"9000h"}`: "more than 0 and at most 8760h",
		`{"releasePolicy":"Timed","keep":"-1h"}`:   "more than 0 and at most 8760h",
		`{"releasePolicy":"Timed","keep":"1d"}`:    "more than 0 and at most 8760h",
		`{"releasePolicy":"Sometimes"}`:            "supported values",
		`{"replicas":-1}`:                          "spec.replicas", `{"surge":70000}`: "spec.surge",
		`{"addresses":["10.0.0.300"]}`: "must be an IPv4 or IPv6 address", `{"addresses":["10.0.0.9/24"]}`: "without bits beyond its length",
		`{"addresses":["10.0.0.9-2001:db8::1"]}`: "must be an IPv4 or IPv6 address",
		`{"owner":{"kind":"Deployment"}}`:        "spec.owner.apiVersion",
		`{"namespaces":["a","a"]}`:               "Duplicate value",
	} {
		out, err := kubectlInput(t, claimOf(spec), "create", "--dry-run=server", "-f", "-")
		switch {
		case want == "" && err != nil:
			t.Errorf("%s: %s", spec, out)
		case want != "" && (err == nil || !strings.Contains(out, want)):
			t.Errorf("%s: %s; want %q in it", spec, out, want)
		}
	}
	if out, err := kubectlInput(t, claimOf(owner("web")), "create", "-f", "-"); err != nil {
		t.Fatal(out)
	}
	defer func() {
		if out, err := kubectl(t, "delete", "bnc", "rules", "-n", "default"); err != nil {
			t.Error(out)
		}
	}()
	for _, spec := range []string{owner("db"), `{}`} {
		if out, err := kubectlInput(t, claimOf(spec), "replace", "-f", "-"); err == nil ||
			!strings.Contains(out, "cannot change: make another claim") {
			t.Errorf("replaced by %s: %s", spec, out)
		}
	}
}
