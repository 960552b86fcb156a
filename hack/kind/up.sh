#!/usr/bin/env bash
# Makes a kind cluster whose pods have addresses of bcsnet, in the Docker network of its nodes: make kind-up.
# It needs Docker. Each pod is routed by its node (ptp), and the node answers ARP for it (proxy_arp).
set -euo pipefail
cd "$(dirname "$0")/../.."

command -v docker >/dev/null || { echo "kind-up: there is no docker; hint: make node-up starts real nodes without it" >&2; exit 1; }
tag=dev cluster=bcsnet
go run ./hack/image -version "$tag" -arch "$(go env GOARCH)" -o dist/images
bin/tools/kind get clusters | grep -qx "$cluster" || bin/tools/kind create cluster --config hack/kind/kind.yaml
for archive in dist/images/*.tar; do
	bin/tools/kind load image-archive --name "$cluster" "$archive"
done
for node in $(bin/tools/kind get nodes --name "$cluster"); do
	docker exec "$node" sysctl -qw net.ipv4.conf.eth0.proxy_arp=1
done

# Docker gives its containers the first addresses of the network. The pool has a /24 near its end, and an unused gateway.
subnet=$(docker network inspect kind --format '{{range .IPAM.Config}}{{println .Subnet}}{{end}}' | grep -m 1 '\.')
[[ $subnet == *.0.0/16 ]] || { echo "kind-up: the Docker network kind is $subnet, want a /16" >&2; exit 1; }
prefix=${subnet%.0.0/16}

context=kind-$cluster
bin/tools/helm --kube-context "$context" upgrade --install bcsnet charts/bcsnet --namespace bcsnet-system --create-namespace \
	--set image.tag="$tag" --set node.enabled=true --set-file node.conflist=hack/kind/conflist.json
kubectl --context "$context" apply -f - <<POOL
apiVersion: networkextension.bkbcs.tencent.com/v1
kind: BCSNetPool
metadata:
  name: kind
spec:
  net: $prefix.0.0
  mask: 16
  gateway: $prefix.255.254
  hostSubnets: [$subnet]
  availableIPs: [$prefix.240.0/24]
POOL
kubectl --context "$context" wait --for=condition=Ready nodes --all --timeout=5m
echo "kind-up: ready; kubectl --context $context run first --image nginx:1.29" >&2
