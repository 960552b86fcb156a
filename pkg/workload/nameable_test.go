package workload_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bcsnet/bcsnet/pkg/workload"
)

// Owner references hold what the pod's maker wrote. None leads to a path of its own, and what nothing can be is not
// asked for.
func TestReferencesThatNameNothing(t *testing.T) {
	f := newFixture(t, false)
	reference := func(apiVersion, kind, name string) metav1.OwnerReference {
		return metav1.OwnerReference{APIVersion: apiVersion, Kind: kind, Name: name, UID: "u", Controller: new(true)}
	}
	up := strings.Repeat("../", 8)
	for name, owner := range map[string]metav1.OwnerReference{
		"a path to all of a kind":      reference("apps/v1", "StatefulSet", up+"api/v1/replicationcontrollers"),
		"one of a passing kind":        reference("apps/v1", "ReplicaSet", up+"api/v1/replicationcontrollers"),
		"the directory":                reference("apps/v1", "StatefulSet", "."),
		"the one above":                reference("apps/v1", "StatefulSet", ".."),
		"an escape":                    reference("apps/v1", "StatefulSet", "%2e%2e"),
		"a long name":                  reference("apps/v1", "StatefulSet", strings.Repeat("n", 1<<20)),
		"a long kind":                  reference("example.org/v1", strings.Repeat("K", 1<<20), "n"),
		"a kind that is a path":        reference("example.org/v1", "../Kind", "n"),
		"a group above all":            reference("../v1", "Kind", "n"),
		"a long group":                 reference(strings.Repeat("g", 1<<20)+"/v1", "Kind", "n"),
		"a group that is an upper one": reference("Example.org/v1", "Kind", "n"),
	} {
		t.Run(name, func(t *testing.T) {
			pod := f.pod("some", owner)
			f.tap.Forget()
			before := f.Owners.Remembered()
			p, err := f.Resolve(t.Context(), pod)
			if err != nil || p.Release != workload.ReleaseWithPod {
				t.Errorf("its policy: %+v, %v", p, err)
			}
			if r, err := f.Owners.Replicas(t.Context(), p.Workload); !errors.Is(err, workload.ErrGone) {
				t.Errorf("its replicas: %+v, %v", r, err)
			}
			if gone, err := f.Owners.Gone(t.Context(), p.Workload); !gone || err != nil {
				t.Errorf("gone: %t, %v", gone, err)
			}
			if n := f.tap.Count(func(r *http.Request) bool {
				return !strings.HasSuffix(r.URL.Path, "/namespaces/"+f.ns)
			}); n > 0 {
				t.Errorf("the API server was asked %d times", n)
			}
			if n := f.Owners.Remembered(); n != before {
				t.Errorf("%d kinds are remembered, before %d", n, before)
			}
		})
	}
}

// Kinds that nobody serves are remembered for a while, and not without end.
func TestInventedKinds(t *testing.T) {
	f := newFixture(t, false)
	before := f.Owners.Remembered()
	for i := range 1100 {
		owner := metav1.OwnerReference{
			APIVersion: "nowhere.example.org/v1", Kind: fmt.Sprintf("Kind%d", i), Name: "n", UID: "u", Controller: new(true),
		}
		if _, err := f.Resolve(t.Context(), f.pod("some", owner)); err != nil {
			t.Fatal(err)
		}
	}
	if n := f.Owners.Remembered() - before; n > 1024 || n < 1000 {
		t.Errorf("%d kinds are remembered", n)
	}
}
