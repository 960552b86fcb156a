package workload_test

import (
	"testing"

	"github.com/bcsnet/bcsnet/pkg/workload"
)

func TestParseOwner(t *testing.T) {
	for text, want := range map[string]workload.OwnerObject{
		"capi/fleet/m-0":    {Kind: workload.OwnerClusterAPI, Namespace: "fleet", Name: "m-0"},
		"service/shop/web":  {Kind: workload.OwnerService, Namespace: "shop", Name: "web"},
		"vm-7":              {},
		"capi/m-0":          {},
		"capi//m-0":         {},
		"capi/fleet/":       {},
		"capi/fleet/m/0":    {},
		"machine/fleet/m-0": {},
		"":                  {},
	} {
		got, ok := workload.ParseOwner(text)
		if got != want || ok != (want != workload.OwnerObject{}) {
			t.Errorf("%q is %+v, %v", text, got, ok)
		}
		if ok && got.String() != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}
