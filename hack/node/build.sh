#!/usr/bin/env bash
# Builds what a node of the test bed runs into bin/node: kubelet (of the module of hack/kube, so that it has the version of the
# API server), containerd with its shim and ctr, and runc from Debian; and by hack/cni the reference CNI plugins into bin/cni.
# What is there and up to date is left alone. Six minutes of two processors at the first time, nearly all of it for containerd.
set -euo pipefail

cd "$(dirname "$0")"
../cni/build.sh
. ../pinned.sh
to node

left='containerd and its tools: up to six minutes in all'
kubernetes=$(pinned ../kube/kubernetes k8s.io/kubernetes)
build kubelet ../kube/kubernetes k8s.io/kubernetes/cmd/kubelet "$kubernetes" "$(kubernetes_stamps "$kubernetes")"

# Without the snapshotters that want libraries or file systems of their own; the shim speaks ttrpc alone, as upstream's does.
containerd=$(pinned containerd github.com/containerd/containerd/v2)
stamp=" -X github.com/containerd/containerd/v2/version.Version=${containerd#v}"
left='containerd: minutes'
for name in containerd-shim-runc-v2 ctr containerd; do
	[[ $name != containerd ]] || left='runc and an image: seconds'
	tags='urfave_cli_no_docs no_btrfs no_devmapper no_zfs'
	[[ $name != *shim* ]] || tags+=' no_grpc'
	build "$name" containerd "github.com/containerd/containerd/v2/cmd/$name" "$containerd" "$stamp" "$tags"
done

# runc wants cgo and libseccomp to be built, so Debian's is taken: without its seccomp no sandbox starts, as the kubelet asks
# for RuntimeDefault. It is unpacked, not installed. A machine that has none and gets none can do without: the test bed says
# that it is missing.
provide_runc() {
	local have
	if [[ -x $out/runc ]] && "$out/runc" --version >/dev/null 2>&1; then
		echo "node: runc $(version_of "$out/runc") is up to date" >&2
		return
	fi
	rm -rf "$out/.runc" "$out/runc"
	mkdir "$out/.runc"
	if have=$(type -P runc); then
		ln -s "$have" "$out/runc"
	elif command -v apt-get dpkg >/dev/null; then
		echo "node: downloading runc" >&2
		(cd "$out/.runc" && apt-get -qq -o APT::Sandbox::User=root download runc libseccomp2 && for deb in *.deb; do
			dpkg -x "$deb" . && rm "$deb"
		done) || { without "apt-get could not download runc and libseccomp2; hint: apt-get update, or install runc" && return; }
		ln -s .runc/usr/sbin/runc "$out/runc"
		# A machine without the library has that of the package.
		"$out/runc" --version >/dev/null 2>&1 || printf '#!/bin/sh\nLD_LIBRARY_PATH=%s exec %s "$@"\n' \
			"'$(echo "$out"/.runc/usr/lib/*-linux-*)'" "'$out/.runc/usr/sbin/runc'" | install -m 755 /dev/stdin "$out/runc"
	else
		without "there is no runc, and no apt-get to download it with; hint: install runc" && return
	fi
	"$out/runc" --version >/dev/null || { without "$out/runc does not run" && return; }
	echo "node: runc $(version_of "$out/runc") is there" >&2
}
version_of() { "$1" --version | awk 'NR == 1 { print $NF }'; }
without() { echo "node: no real nodes: $*" >&2 && rm -rf "$out/runc"; }
provide_runc

# The image of the pods: static programs, that of tests and that of bcsnetctl check nodes.
cd ../..
export GOFLAGS="-trimpath $slim"
go build -buildvcs=false -ldflags '-s -w' -o "$out/podtool" ./hack/node/podtool
go build -buildvcs=false -ldflags '-s -w' -o "$out/bcsnet-podcheck" ./cmd/podcheck
go run ./hack/image -program "$out/podtool" -cmd pause -name bcsnet.test/podtool:1 -o "$out/podtool.tar" \
	bcsnet-podcheck="$out/bcsnet-podcheck"
