#!/usr/bin/env bash
# Runs the tests of make test and prints what go test -json does, for gotestsum: hack/test.sh [FLAG...] [-- PACKAGE...]
# Packages that are named have the race detector. Where none is, all have it, except that in the short form it is left out
# where tests run programs, which are built without it, and where the controller runs in the test as it does in test/http.
# Those of the pages run both ways then: with a browser without it, as a page comes much later with it, and the others with it.
set -euo pipefail

# Four at a time, three with the race detector, as they wait more than they work (for hand-overs, nodes that die, leases that
# end). The longest ones come first, so that at the end none runs alone.
plainly=(./pkg/cli ./test/pools ./test/collect ./test/sticky ./test/faults ./test/floatingip ./test/hostnic ./test/node/install
	./test/node ./test/groups ./test/install ./test/ipamclaim ./test/clusterapi ./test/services ./test/upgrade ./test/rights ./test/history ./test/controlplane ./test/node/image
	./test/cni ./hack/local ./hack/release ./test/attacks ./test/node/bed ./test/monitoring ./test/api ./test/sim/... ./hack/... ./cmd/... ./plugins/...)
rest=(./pkg/allocator ./test/http ./pkg/store ./pkg/ipam/index ./pkg/httpapi ./pkg/workload ./pkg/... ./...)

# Symbols are for debuggers: stacks and the race detector do without.
flags=(-json -vet=off -ldflags="-s -w" -timeout 45m)
while (($#)) && [[ $1 != -- ]]; do
	flags+=("$1")
	shift
done
result=0
race() { CGO_ENABLED=1 go test -race -p 3 "${flags[@]}" "$@" || result=$?; }
plain() { CGO_ENABLED=0 go test -trimpath -p 4 "${flags[@]}" "$@" || result=$?; }

if (($# > 1)); then
	race "${@:2}"
elif [[ " ${flags[*]} " != *" -short "* ]]; then
	race "${plainly[@]}" "${rest[@]}"
else
	all=$(go list "${rest[@]}")
	those=$(go list "${plainly[@]}")
	mapfile -t all < <(grep --fixed-strings --line-regexp --invert-match "$those" <<<"$all")
	plain "${plainly[@]}" ./pkg/cli/ui
	race "${all[@]}"
fi
exit "$result"
