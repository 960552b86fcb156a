package api

import "testing"

// TestPoolSpecial: a subnet whose addresses cannot be given to pods is refused, its neighbours are taken.
func TestPoolSpecial(t *testing.T) {
	tests := map[string]poolCase{}
	for net, mask := range map[string]int32{
		"0.0.0.0": 8, "0.255.255.254": 31, "127.0.0.0": 8, "127.255.255.255": 32, "169.254.0.0": 16, "169.254.255.255": 32,
		"224.0.0.0": 24, "239.255.255.0": 24, "240.0.0.0": 8, "255.255.255.255": 32,
		"::": 64, "0:0::0": 128, "::1": 128, "0:0:0:0:0:0:0:1": 128, "fe80::": 64, "FE80::": 64, "febf:ffff::": 32,
		"ff00::": 8, "ff05::": 64,
	} {
		tests[net] = poolCase{edits: edits{subnet(net, mask, ""), available()}, want: []string{
			`spec.net: Invalid value: "` + net + `": ` + notAssignable,
		}}
	}
	for net, mask := range map[string]int32{
		"1.0.0.0": 8, "126.0.0.0": 8, "128.0.0.0": 8, "169.253.0.0": 16, "169.255.0.0": 16, "223.255.255.0": 24,
		"100.64.0.0": 10, "192.0.2.0": 24, "24.0.0.0": 8, "25.5.0.0": 16,
		"::2": 128, "fc00::": 7, "fe7f:ffff::": 32, "fec0::": 10, "feff:ffff::": 32, "64:ff9b::": 96,
	} {
		tests[net] = poolCase{edits: edits{subnet(net, mask, ""), available()}}
	}
	judge(t, tests)
}
