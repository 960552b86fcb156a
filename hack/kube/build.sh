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

stamps=$(kubernetes_stamps "$kubernetes")

build etcd etcd go.etcd.io/etcd/server/v3 "$etcd"
for name in kube-apiserver kubectl kube-controller-manager kube-scheduler; do
	build "$name" kubernetes "k8s.io/kubernetes/cmd/$name" "$kubernetes" "$stamps"
done
build kwok kwok sigs.k8s.io/kwok/cmd/kwok "$kwok"
