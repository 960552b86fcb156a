#!/usr/bin/env bash
# Builds the binaries of the local control plane into bin/kube, each from the module beside this
# script that pins it. A binary whose pins, flags and Go version have not changed is left alone.
set -euo pipefail

cd "$(dirname "$0")"
out=../../bin/kube
mkdir -p "$out"

# Whatever surrounds this checkout (a workspace, -mod=mod, a cross build) must not change what is built.
export GOWORK=off GOFLAGS=-mod=readonly CGO_ENABLED=0
unset GOOS GOARCH
goversion=$(go env GOVERSION)

# pinned MODULE PATH: the version of PATH that MODULE/go.mod requires.
pinned() {
	awk -v path="$2" '$1 == "require" { $1 = $2; $2 = $3 } $1 == path && $2 ~ /^v/ { print $2; exit }' "$1/go.mod"
}

# build NAME MODULE PACKAGE VERSION [LDFLAGS]
build() {
	local name=$1 module=$2 package=$3 version=$4 ldflags="-s -w${5-}"
	local stamp=$out/.$name.stamp want started=$SECONDS
	want="$version $goversion $ldflags $(cat "$module/go.mod" "$module/go.sum" | cksum)"
	if [[ -x $out/$name && -f $stamp && $(<"$stamp") == "$want" ]]; then
		echo "kube: $name $version is up to date" >&2
		return
	fi
	echo "kube: building $name $version" >&2
	# Renamed into place: a running control plane keeps its binary, an interrupted build leaves none.
	go build -C "$module" -trimpath -buildvcs=false -ldflags "$ldflags" -o "../$out/.$name.new" "$package"
	mv "$out/.$name.new" "$out/$name"
	echo "$want" >"$stamp"
	echo "kube: built $name $version in $((SECONDS - started)) s" >&2
}

etcd=$(pinned etcd go.etcd.io/etcd/server/v3)
kwok=$(pinned kwok sigs.k8s.io/kwok)
kubernetes=$(pinned kubernetes k8s.io/kubernetes)

# The API server derives from its version which features and API versions it serves: without the
# stamp it would call itself v0.0.0-master and emulate the wrong release.
IFS=. read -r major minor _ <<<"${kubernetes#v}"
stamps=
for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
	for value in gitVersion="$kubernetes" gitMajor="$major" gitMinor="$minor" gitTreeState=clean; do
		stamps+=" -X $package.$value"
	done
done

build etcd etcd go.etcd.io/etcd/server/v3 "$etcd"
for name in kube-apiserver kubectl kube-controller-manager kube-scheduler; do
	build "$name" kubernetes "k8s.io/kubernetes/cmd/$name" "$kubernetes" "$stamps"
done
build kwok kwok sigs.k8s.io/kwok/cmd/kwok "$kwok"
