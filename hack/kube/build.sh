#!/usr/bin/env bash
# Builds the binaries of the local control plane into bin/kube, each from the module beside this
# script that pins it. A binary whose pins, flags and Go version have not changed is left alone.
set -euo pipefail

cd "$(dirname "$0")"
. ../pinned.sh
to kube

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
