package neighbours

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
	"sigs.k8s.io/yaml"
)

// TestKstatus has the library by which Flux and Helm wait read our objects. An object that no controller has seen yet
// counts as Current there, as those of every kind do that is not built in.
func TestKstatus(t *testing.T) {
	for name, s := range states {
		t.Run(name, func(t *testing.T) {
			o := &unstructured.Unstructured{}
			text, err := yaml.YAMLToJSON([]byte(s.object))
			if err == nil {
				err = json.Unmarshal(text, &o.Object) // with whole numbers, as a client has them
			}
			if err != nil {
				t.Fatal(err)
			}
			o.SetAPIVersion("networkextension.bkbcs.tencent.com/v1")
			o.SetKind("BCSNetPool")
			got, err := status.Compute(o)
			if err != nil || got.Status.String() != s.kstatus {
				t.Errorf("kstatus sees %+v, %v, want %s", got, err, s.kstatus)
			}
		})
	}
}
