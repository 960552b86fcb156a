#!/usr/bin/env bash
# Runs the tests of make test and prints what go test -json does, for gotestsum: hack/test.sh [FLAG...] [-- PACKAGE...]
# Packages that are named have the race detector. Where none is, all have it, except that in the short form it is left out
# where tests run programs: these are built without it, so it would see the tests alone, and make them slow.
set -euo pipefail

# Three at a time, as they wait more than they work (for hand-overs, nodes that die, leases that end). The longest ones come
# first, so that at the end none runs alone.
programs=(./pkg/cli ./test/sticky ./test/node ./test/node/install ./test/node/image ./test/floatingip ./test/pools ./test/upgrade
	./test/install ./test/storm ./test/faults ./test/monitoring ./test/api ./test/controlplane ./test/node/bed
	./hack/... ./cmd/... ./plugins/...)
code=(./test/collect ./test/hostnic ./test/http ./test/groups ./test/ipamclaim ./pkg/allocator ./pkg/httpapi ./pkg/... ./test/... ./...)

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
	race "${programs[@]}" "${code[@]}"
else
	all=$(go list "${code[@]}")
	run=$(go list "${programs[@]}")
	mapfile -t all < <(grep --fixed-strings --line-regexp --invert-match "$run" <<<"$all")
	plain "${programs[@]}"
	race "${all[@]}"
fi
exit "$result"
