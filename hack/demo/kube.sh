#!/usr/bin/env bash
# Finds etcd, kube-apiserver and kubectl for the demo, and writes their directory to bin/.demo-kube. In this order: the directory
# KUBEBUILDER_ASSETS; bin/kube if it has all three; envtest's index, if it answers within ENVTEST_SECONDS (10); a build from
# source. DEMO_SOURCE=1 builds from source. ENVTEST_INDEX is the URL of another index.
set -euo pipefail
cd "$(dirname "$0")/../.."

programs=(etcd kube-apiserver kubectl)
index=${ENVTEST_INDEX:-https://raw.githubusercontent.com/kubernetes-sigs/controller-tools/HEAD/envtest-releases.yaml}

use() { mkdir -p bin && printf '%s\n' "$1" >bin/.demo-kube; }

build() {
	hack/kube/build.sh "${programs[@]}"
	use "$PWD/bin/kube"
}

# within SECONDS COMMAND...: runs a command and ends it after SECONDS.
within() {
	local seconds=$1 command timer status=0
	shift
	"$@" &
	command=$!
	{
		sleep "$seconds" &
		trap 'kill $!' TERM
		wait $! && kill "$command"
	} >/dev/null 2>&1 &
	timer=$!
	wait "$command" || status=$?
	kill "$timer" 2>/dev/null || true
	return "$status"
}

# download puts the binaries of the minor release that hack/kube pins into bin/envtest and prints their directory. The index has
# the checksum of each archive, and setup-envtest refuses an archive that has another.
download() {
	local minor
	minor=$(awk '$1 == "k8s.io/kubernetes" { split(substr($2, 2), v, "."); print v[1] "." v[2]; exit }' hack/kube/kubernetes/go.mod)
	within "${ENVTEST_SECONDS:-10}" bin/tools/setup-envtest list --index "$index" --bin-dir bin/envtest "$minor.x" >/dev/null &&
		within 300 bin/tools/setup-envtest use --index "$index" --bin-dir "$PWD/bin/envtest" -p path "$minor.x"
}

complete() {
	local name
	for name in "${programs[@]}"; do
		[[ -x $1/$name ]] || return 1
	done
}

if [[ -n ${KUBEBUILDER_ASSETS-} ]]; then
	use "$KUBEBUILDER_ASSETS"
elif [[ -n ${DEMO_SOURCE-} ]] || complete bin/kube; then
	build
elif directory=$(download) && complete "$directory"; then
	echo "demo: etcd, kube-apiserver and kubectl are from $index" >&2
	use "$directory"
else
	echo "demo: no binaries from $index: building them, about seven minutes on two cores" >&2
	build
fi
