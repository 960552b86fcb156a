#!/usr/bin/env bash
# Runs every fuzz target of the module for FUZZTIME, one after the other. What fails is kept by the go command under
# testdata/fuzz of the package, where every later test run tries it again.
set -euo pipefail
cd "$(dirname "$0")/.."

failed=()
while IFS=: read -r file target; do
	echo "fuzz: $target in $(dirname "$file") for $FUZZTIME" >&2
	go test "$(dirname "$file")" -run '^$' -fuzz "^$target\$" -fuzztime "$FUZZTIME" </dev/null || failed+=("$target")
done < <(grep --recursive --include='*_test.go' --only-matching --perl-regexp '^func \KFuzz\w+(?=\(f \*testing\.F\))' ./api ./pkg ./cmd ./plugins ./test ./hack | sort)
((${#failed[@]} == 0)) || { echo "fuzz: failed: ${failed[*]}" >&2 && exit 1; }
