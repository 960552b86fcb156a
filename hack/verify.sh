#!/usr/bin/env bash
# Runs the checks of `make verify`, all of them whatever the first ones find, and says at the end what
# failed and what to run. It wants the tools in bin/tools.
set -euo pipefail

cd "$(dirname "$0")/.."
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/objects"

# in_scratch runs git with an index and an object store of our own: nothing in .git changes.
in_scratch() {
	GIT_INDEX_FILE=$scratch/index GIT_OBJECT_DIRECTORY=$scratch/objects \
		GIT_ALTERNATE_OBJECT_DIRECTORIES=$objects git "$@"
}
objects=$(cd "$(git rev-parse --git-path objects)" && pwd)

# tree prints the identity of all files as they are now, untracked ones included and ignored ones not.
tree() {
	in_scratch read-tree HEAD
	in_scratch add --all .
	in_scratch write-tree
}

# unchanged TREE: the files are still those of TREE; otherwise it shows what differs.
unchanged() {
	local now
	now=$(tree)
	[[ $now == "$1" ]] || { in_scratch --no-pager diff --stat --patch "$1" "$now" | head -n 200 && false; }
}

files() { git ls-files --cached --others --exclude-standard -- "$@"; }

generated() {
	make --no-print-directory generate && unchanged "$before"
}

# promtool's go.mod is left out: tidying it would download a gigabyte of clouds' libraries that its build does not need.
# So is that of hack/clusterapi, which only names a module whose files tests read.
tidy() {
	local mod bad=0
	while read -r mod; do
		[[ -f $mod && $mod != hack/tools/promtool/go.mod && $mod != hack/clusterapi/go.mod ]] || continue
		GOWORK=off go -C "$(dirname "$mod")" mod tidy -diff || bad=1
	done < <(files go.mod '*/go.mod')
	return "$bad"
}

formatted() {
	bin/tools/golangci-lint fmt --diff ./...
}

# Tests compile with the race detector. Linting and vetting the same variant spares them, and a clean
# checkout, a second compilation of every dependency.
linted() { GOFLAGS="${GOFLAGS-} -race" bin/tools/golangci-lint run ./...; }
vetted() { go vet -race ./...; }

scripts() {
	local file line bad=0
	while read -r file; do
		read -r line <"$file"
		[[ $line != '#!'* ]] || bash -n "$file" || bad=1
	done < <(git grep --untracked -lIE '^#!.*sh( |$)')
	return "$bad"
}

# forbidden WHY REGEXP [PATH...] fails on files that match.
forbidden() {
	local why=$1 regexp=$2
	shift 2
	if git --no-pager grep --untracked -nIE -e "$regexp" -- "$@"; then
		echo "$why" >&2
		return 1
	fi
}

# The repository speaks of the project alone, not of the machine on which it was written.
clean() {
	local bad=0
	forbidden 'Absolute paths of one machine do not belong here.' \
		'(^|[^[:alnum:]_.~})/-])/(root|work|home|Users)(/|[^[:alnum:]/_-]|$)' || bad=1
	forbidden 'Where modules and packages come from is for each machine to say.' \
		'(GOPROXY|GOPRIVATE|GONOSUMDB|GONOPROXY|GOSUMDB)=|https?://[^/[:space:]"]*\.(internal|corp|lan|intranet)[:/]|/(artifactory|nexus)/' || bad=1
	forbidden 'Do it now, or open an issue.' '(TODO|FIXME|XXX)' '*.go' || bad=1
	return "$bad"
}

failed=()
# check NAME HINT COMMAND...
check() {
	local name=$1 hint=$2 started=$SECONDS verdict=ok
	shift 2
	echo "verify: $name" >&2
	"$@" || { verdict=FAILED && failed+=("$name: $hint"); }
	printf 'verify: %s: %s (%d s)\n' "$name" "$verdict" "$((SECONDS - started))" >&2
}

before=$(tree)
check words 'reword the lines above' clean
check scripts 'mend the syntax' scripts
check generate '`make generate` has just changed files; commit them' generated
check tidy 'run `go mod tidy` in the directory of the go.mod' tidy
check format 'run `make fmt`' formatted
check lint 'run `make lint`; `make lint LINTFLAGS=--fix` mends some' linted
check vet 'run `go vet ./...`' vetted
[[ ${failed[*]-} == *generate:* ]] || check tree 'one of the checks above wrote files; `git status` names them' unchanged "$before"

if ((${#failed[@]})); then
	printf 'verify: %s\n' "${failed[@]}" >&2
	echo "verify: FAILED: ${#failed[@]} of the checks, after $SECONDS s" >&2
	exit 1
fi
echo "verify: all checks passed in $SECONDS s" >&2
