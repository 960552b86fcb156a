#!/usr/bin/env bash
# Builds the reference CNI plugins into bin/cni, where a container runtime finds them (and tests of our plugins do),
# at the version that the module beside this script pins; and a program around CRI-O's CNI library, Multus, and the plugin
# of Whereabouts, as ../ocicni, ../multus and ../whereabouts pin them. A binary whose pins, flags and Go version have not
# changed is left alone. Two minutes the first time.
set -euo pipefail

cd "$(dirname "$0")"
. ../pinned.sh
to cni

for path in main/{bridge,host-device,loopback,macvlan,ptp} ipam/{host-local,static} meta/tuning; do
	build "${path#*/}" . "github.com/containernetworking/plugins/plugins/$path" "$(pinned . github.com/containernetworking/plugins)"
done

# What calls plugins on some nodes, or by hand: cnitool, CRI-O's CNI library, and Multus with and without its daemon.
build cnitool . github.com/containernetworking/cni/cnitool "$(pinned . github.com/containernetworking/cni)"
build ocicni ../ocicni . "$(pinned ../ocicni github.com/cri-o/ocicni)"
multus=gopkg.in/k8snetworkplumbingwg/multus-cni.v4
for name in multus multus-daemon multus-shim; do
	build "$name" ../multus "$multus/cmd/$name" "$(pinned ../multus "$multus")"
done

# What writes the objects of another system that tests import.
whereabouts=github.com/k8snetworkplumbingwg/whereabouts
build whereabouts ../whereabouts "$whereabouts/cmd" "$(pinned ../whereabouts "$whereabouts")"
