# shellcheck shell=bash
# Builds programs from the modules that pin them; for hack/kube, hack/cni and hack/node, whose scripts source this from their
# own directory.

# Whatever surrounds this checkout (a workspace, -mod=mod, a cross build) must not change what is built.
export GOWORK=off GOFLAGS=-mod=readonly CGO_ENABLED=0
unset GOOS GOARCH
# Nothing is compiled for debuggers, as the linker drops that: it saves an eighth of the time.
slim=-gcflags=all=-dwarf=false
goversion=$(go env GOVERSION)

# to NAME: what is built goes into bin/NAME, and messages begin with NAME.
to() {
	into=$1
	out=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)/bin/$into
	mkdir -p "$out"
}

# pinned MODULE PATH: the version of PATH that MODULE/go.mod requires.
pinned() {
	awk -v path="$2" '$1 == "require" { $1 = $2; $2 = $3 } $1 == path && $2 ~ /^v/ { print $2; exit }' "$1/go.mod"
}

# kubernetes_stamps VERSION: the linker's flags that put VERSION into a program of Kubernetes. The API server derives from it which
# features and API versions it serves: without the stamp it would call itself v0.0.0-master and emulate the wrong release.
kubernetes_stamps() {
	local package value stamps='' major minor
	IFS=. read -r major minor _ <<<"${1#v}"
	for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
		for value in gitVersion="$1" gitMajor="$major" gitMinor="$minor" gitTreeState=clean; do
			stamps+=" -X $package.$value"
		done
	done
	printf '%s' "$stamps"
}

# compiled NAME TOTAL reads what go build -v says: it counts packages, and passes on what is none.
compiled() {
	awk -v into="$into" -v name="$1" -v total="$2" '
		/^[a-zA-Z0-9._~\/+-]+$/ {
			if (++n % 100 == 0) { printf "%s: %s: %d packages compiled, of %d at most\n", into, name, n, total; fflush() }
			next
		}
		/^go: downloading / { if (++d % 50 == 0) { printf "%s: %s: %d modules downloaded\n", into, name, d; fflush() } next }
		{ print; fflush() }'
}

# What is left to do after the next build, for its message; empty to say nothing.
left=

# build NAME MODULE PACKAGE VERSION [LDFLAGS] [TAGS]
build() {
	local name=$1 module=$2 package=$3 version=$4 ldflags="-s -w${5-}" tags=${6-}
	local stamp=$out/.$name.stamp want started=$SECONDS
	want="$version $goversion $ldflags${tags:+ $tags} $(cat "$module/go.mod" "$module/go.sum" | cksum)"
	if [[ -x $out/$name && -f $stamp && $(<"$stamp") == "$want" ]]; then
		echo "$into: $name $version is up to date" >&2
		return
	fi
	echo "$into: building $name $version${left:+, then $left}" >&2
	# Renamed into place: what runs keeps its binary, an interrupted build leaves none. The compiler collects garbage
	# less often, which saves an eighth of its time.
	GOGC=400 GOMEMLIMIT=2GiB go build -C "$module" -v -trimpath "$slim" -buildvcs=false -ldflags "$ldflags" -tags "$tags" -o "$out/.$name.new" "$package" 2> >(
		compiled "$name" "$(go list -C "$module" -tags "$tags" -deps "$package" 2>/dev/null | wc -l)" >&2)
	mv "$out/.$name.new" "$out/$name"
	echo "$want" >"$stamp"
	echo "$into: built $name $version in $((SECONDS - started)) s" >&2
}
