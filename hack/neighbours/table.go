package main

import (
	"maps"
	"slices"
	"strings"
)

// program is one that our tests run, or whose library they call.
type program struct {
	name, chinese string
	// pins are where its version is: the directory of a go.mod, and a module.
	pins []pin
	pkg  string
	// tests are the names of tests, in full or up to a slash: all below belong to the program, too.
	tests []string
}

type pin struct{ dir, module string }

// programs returns all, in the order of the pages.
func programs() []program {
	cni := pin{"hack/cni", "github.com/containernetworking/cni"}
	plugins := pin{"hack/cni", "github.com/containernetworking/plugins"}
	multus := pin{"hack/multus", "gopkg.in/k8snetworkplumbingwg/multus-cni.v4"}
	return []program{
		{
			name: "CRI-O's CNI library (ocicni)", chinese: "CRI-O 的 CNI 库（ocicni）",
			pins: []pin{{"hack/ocicni", "github.com/cri-o/ocicni"}},
			pkg:  "./test/cni", tests: []string{"TestRuntimes", "TestBehindTuning"},
		},
		{
			name: "Multus, thin", chinese: "Multus thin", pins: []pin{multus}, pkg: "./test/cni",
			tests: []string{"TestMultusForms", "TestRuntimes/ours below thin Multus", "TestRuntimes/ours above Multus"},
		},
		{
			name: "Multus, thick", chinese: "Multus thick", pins: []pin{multus},
			pkg: "./test/cni", tests: []string{"TestRuntimes/ours below thick Multus"},
		},
		{
			name: "cnitool, libcni", chinese: "cnitool、libcni", pins: []pin{cni},
			pkg: "./test/cni", tests: []string{"TestCnitool"},
		},
		{
			name: "bridge, macvlan, ptp, tuning", chinese: "bridge、macvlan、ptp、tuning", pins: []pin{plugins},
			pkg: "./test/cni", tests: []string{"TestMainPlugins", "TestBehindTuning"},
		},
		{
			name: "kstatus (Flux, Helm)", chinese: "kstatus（Flux、Helm）",
			pins: []pin{{".", "sigs.k8s.io/cli-utils"}},
			pkg:  "./test/neighbours", tests: []string{"TestKstatus"},
		},
		{
			name: "Argo CD's Lua engine", chinese: "Argo CD 的 Lua 引擎",
			pins: []pin{{".", "github.com/yuin/gopher-lua"}},
			pkg:  "./test/neighbours", tests: []string{"TestArgoCD"},
		},
		{
			name: "kubectl explain: the texts, not the program", chinese: "kubectl explain：只有文字，没有程序",
			pkg: "./test/neighbours", tests: []string{"TestExplained"},
		},
		{
			name: "k9s: its files, not the program", chinese: "k9s：只有文件，没有程序",
			pkg: "./test/neighbours", tests: []string{"TestK9s"},
		},
		{
			name: "promtool", chinese: "promtool",
			pins: []pin{{"hack/tools/promtool", "github.com/prometheus/prometheus"}},
			pkg:  "./test/monitoring", tests: []string{"TestRules", "TestAlerts"},
		},
	}
}

// has reports whether a test belongs to the program.
func (p program) has(pkg, test string) bool {
	return pkg == p.pkg && slices.ContainsFunc(p.tests, func(name string) bool {
		return test == name || strings.HasPrefix(test, name+"/")
	})
}

// packages returns the packages of all tests, in the order of their names.
func packages() []string {
	all := map[string]bool{}
	for _, p := range programs() {
		all[p.pkg] = true
	}
	return slices.Sorted(maps.Keys(all))
}

// roots returns the tests of a package that have to run.
func roots(pkg string) []string {
	all := map[string]bool{}
	for _, p := range programs() {
		for _, test := range p.tests {
			if p.pkg == pkg {
				root, _, _ := strings.Cut(test, "/")
				all[root] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(all))
}
