package resource

import (
	"testing"

	v1 "github.com/bcsnet/bcsnet/api/v1"
)

// TestSource: what keeps a pool, by the marks of both ConfigMaps.
func TestSource(t *testing.T) {
	for want, marks := range map[string]map[string]string{
		"ConfigMap ":       nil,
		"ConfigMap n/fips": {v1.FloatingIPConfigAnnotation: "n/fips"},
		"ConfigMap n/fips, which no longer has it: the pool is deleted when none of its addresses is held": {
			v1.FloatingIPConfigAnnotation: "n/fips", v1.FloatingIPGoneAnnotation: "true",
		},
		"ConfigMap n/blocks": {v1.HostnicConfigAnnotation: "n/blocks"},
		"ConfigMap n/blocks, which no longer gives it to its namespace: the block is deleted when it is empty": {
			v1.HostnicConfigAnnotation: "n/blocks", v1.HostnicGoneAnnotation: "true",
		},
	} {
		p := Pool{BCSNetPool: &v1.BCSNetPool{}}
		p.Annotations = marks
		if got := SourceText(p); got != want {
			t.Errorf("%v: %q, want %q", marks, got, want)
		}
	}
}
