#!/usr/bin/env bash
# Builds whereabouts into bin/neighbours, at the version that the module beside this script pins, and copies its CRDs
# there: make bench measures it beside bcsnet-ipam. What is there and up to date is left alone. Minutes the first time.
set -euo pipefail

cd "$(dirname "$0")"
. ../pinned.sh
to neighbours

module=github.com/k8snetworkplumbingwg/whereabouts
build whereabouts . "$module/cmd" "$(pinned . "$module")"
mkdir -p "$out/whereabouts-crds"
install -m 644 "$(go list -m -f '{{.Dir}}' "$module")"/doc/crds/whereabouts.cni.cncf.io_*.yaml "$out/whereabouts-crds/"
