# Everything here needs Go and a shell, nothing else: the Kubernetes binaries are built from source.

VERSION ?= $(shell git describe --always --dirty 2>/dev/null || echo unknown)
LDFLAGS := -s -w -X main.version=$(VERSION)

.DEFAULT_GOAL := help

##@ Build

.PHONY: build
build: ## Build the controller, the CLI and the kubectl plugin into bin/.
	CGO_ENABLED=0 go build -trimpath -ldflags '$(LDFLAGS)' -o bin/bcsnet-controller ./cmd/controller
	CGO_ENABLED=0 go build -trimpath -ldflags '$(LDFLAGS)' -o bin/bcsnetctl ./cmd/bcsnetctl
	CGO_ENABLED=0 go build -trimpath -ldflags '$(LDFLAGS)' -o bin/kubectl-bcsnet ./plugins/kubectl

.PHONY: kube
kube: ## Build etcd, the Kubernetes binaries and kwok into bin/kube/ (minutes once, then instant).
	@hack/kube/build.sh

##@ Local cluster

.PHONY: up
up: kube build ## Start a local control plane with the controller; the files are in .local/.
	@go run ./hack/local up

.PHONY: down
down: ## Stop the local control plane and remove .local/.
	@go run ./hack/local down

##@ Help

.PHONY: help
help: ## List the targets.
	@awk 'BEGIN { FS = ":.*## " } \
		/^##@ / { printf "\n%s\n", substr($$0, 5) } \
		/^[a-z-]+:.*## / { printf "  %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
