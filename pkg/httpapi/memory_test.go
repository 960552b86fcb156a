package httpapi

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	"github.com/bcsnet/bcsnet/config"
)

// measured is what docs/benchmarks.md has for the resident memory with 65,536 leases. Twice as much is for pods, nodes
// and claims, and for what is garbage already.
const measured = 128 << 20

// TestMemoryOfTheDeployment: the limit of the Deployment has room for all that questions and lists may count for at
// once beside what the controller takes at rest, and the garbage collector knows of it before the kernel does.
func TestMemoryOfTheDeployment(t *testing.T) {
	text, err := config.Files.ReadFile("manager/deployment.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var d appsv1.Deployment
	if err := yaml.UnmarshalStrict(text, &d); err != nil {
		t.Fatal(err)
	}
	c := d.Spec.Template.Spec.Containers[0]
	limit, request := c.Resources.Limits.Memory().Value(), c.Resources.Requests.Memory().Value()
	i := slices.IndexFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == "GOMEMLIMIT" })
	if i < 0 {
		t.Fatal("GOMEMLIMIT is not set")
	}
	soft, err := resource.ParseQuantity(strings.TrimSuffix(c.Env[i].Value, "B"))
	if err != nil {
		t.Fatal(err)
	}
	const questions = arrivingSmall + arrivingLarge + maxSmall + maxLarge
	const lists = answersSmall + answersLarge + listsAtOnce*makingOneList
	if need := int64(3*measured + questions + lists); soft.Value() < need || request < 2*measured {
		t.Errorf("GOMEMLIMIT is %d and the request %d, %d are needed at most and %d at rest", soft.Value(), request, need,
			2*measured)
	}
	if soft.Value() > limit*9/10 {
		t.Errorf("GOMEMLIMIT is %d of a limit of %d", soft.Value(), limit)
	}
}
