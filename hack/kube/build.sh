#!/usr/bin/env bash
# Builds the binaries of the local control plane into bin/kube, each from the module beside this
# script that pins it: all, or those that are named. A binary whose pins, flags and Go version have not changed is left alone.
set -euo pipefail

cd "$(dirname "$0")"
. ../pinned.sh
to kube

etcd=$(pinned etcd go.etcd.io/etcd/server/v3)
kwok=$(pinned kwok sigs.k8s.io/kwok)
kubernetes=$(pinned kubernetes k8s.io/kubernetes)

stamps=$(kubernetes_stamps "$kubernetes")

[[ $# -gt 0 ]] || set -- etcd kube-apiserver kubectl kube-controller-manager kube-scheduler kwok

# Download what Kubernetes is made of while etcd compiles: to list the packages takes their sources.
if [[ ! -x $out/kube-apiserver ]]; then
	go list -C kubernetes -deps k8s.io/kubernetes/cmd/{kube-apiserver,kubectl} >/dev/null 2>&1 &
fi
while [[ $# -gt 0 ]]; do
	name=$1
	shift
	left="$*"
	case $name in
	etcd) build etcd etcd go.etcd.io/etcd/server/v3 "$etcd" ;;
	kwok) build kwok kwok sigs.k8s.io/kwok/cmd/kwok "$kwok" ;;
	kube-apiserver | kubectl | kube-controller-manager | kube-scheduler)
		build "$name" kubernetes "k8s.io/kubernetes/cmd/$name" "$kubernetes" "$stamps"
		;;
	*) echo "kube: there is no $name to build" >&2 && exit 2 ;;
	esac
done
