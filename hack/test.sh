#!/usr/bin/env bash
# Runs the tests of make test and prints what go test -json does, for gotestsum: hack/test.sh [FLAG...] [-- PACKAGE...]
# Packages that are named have the race detector. Where none is, all have it, except that in the short form it is left out
# where tests run programs, which are built without it, and where the controller runs in the test as it does in test/http.
set -euo pipefail

# Three at a time, as they wait more than they work (for hand-overs, nodes that die, leases that end). The longest ones come
# first, so that at the end none runs alone.
plainly=(./pkg/cli ./test/sticky ./test/node ./test/node/install ./test/node/image ./test/pools ./test/collect ./test/hostnic
	./test/floatingip ./test/upgrade ./test/install ./test/groups ./test/ipamclaim ./test/faults ./test/storm ./test/monitoring ./test/api
	./test/attacks ./test/rights ./test/controlplane ./test/cni ./test/node/bed ./test/sim/... ./hack/... ./cmd/... ./plugins/...)
rest=(./test/http ./pkg/allocator ./pkg/httpapi ./pkg/... ./...)

flags=(-json -vet=off -p 3 -timeout 45m)
while (($#)) && [[ $1 != -- ]]; do
	flags+=("$1")
	shift
done
result=0
race() { CGO_ENABLED=1 go test -race "${flags[@]}" "$@" || result=$?; }
plain() { CGO_ENABLED=0 go test -trimpath "${flags[@]}" "$@" || result=$?; }

if (($# > 1)); then
	race "${@:2}"
elif [[ " ${flags[*]} " != *" -short "* ]]; then
	race "${plainly[@]}" "${rest[@]}"
else
	all=$(go list "${rest[@]}")
	those=$(go list "${plainly[@]}")
	mapfile -t all < <(grep --fixed-strings --line-regexp --invert-match "$those" <<<"$all")
	plain "${plainly[@]}"
	race "${all[@]}"
fi
exit "$result"
