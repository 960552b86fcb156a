# Everything here needs Go, gcc, git and a shell, nothing else: tools and the Kubernetes binaries are
# built from source at the versions that hack/tools and hack/kube pin.

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
LDFLAGS := -s -w -X main.version=$(VERSION)

# Nothing is compiled for debuggers, as the linker drops that: it saves an eighth of the time. All is compiled with the same
# flags, so that what programs, tools and tests share is compiled once.
SLIM := -gcflags=all=-dwarf=false
export GOFLAGS := $(filter-out $(SLIM),$(GOFLAGS)) $(SLIM)
GORUN := CGO_ENABLED=0 go run -trimpath

.DEFAULT_GOAL := help

##@ Build

# Each program of bin/ and the package that it is built from.
PACKAGE_bcsnet-controller := ./cmd/controller
PACKAGE_bcsnetctl := ./cmd/bcsnetctl
PACKAGE_kubectl-bcsnet := ./plugins/kubectl
PACKAGE_bcsnet-podcheck := ./cmd/podcheck
PACKAGE_bcsnet-ipam := ./plugins/cni/bcsnet-ipam
PACKAGE_bcsnet-announce := ./plugins/cni/bcsnet-announce
PACKAGE_bcsnet-node := ./cmd/node
PROGRAMS := $(patsubst PACKAGE_%,bin/%,$(filter PACKAGE_%,$(.VARIABLES)))

.PHONY: build $(PROGRAMS)
build: $(PROGRAMS) ## Build the controller, the CLI, the kubectl plugin, the CNI plugins and the image of nodes into bin/.
	install -m 755 plugins/kubectl/kubectl_complete-bcsnet bin/
	@$(GORUN) ./hack/image -program bin/bcsnet-node -cmd install -name docker.io/library/bcsnet-node:latest -o bin/bcsnet-node.tar \
		bcsnet-podcheck=bin/bcsnet-podcheck programs/bcsnet-ipam=bin/bcsnet-ipam programs/bcsnet-announce=bin/bcsnet-announce

$(PROGRAMS): bin/%:
	CGO_ENABLED=0 go build -trimpath -ldflags '$(LDFLAGS)' -o $@ $(PACKAGE_$*)

.PHONY: image
image: ## Build container images for amd64 and arm64 into dist/images/, with SBOMs; no container engine is needed.
	@$(GORUN) ./hack/image -version $(VERSION) -o dist/images

.PHONY: release
release: bin/tools/helm bin/tools/nfpm ## Make a release in dist/VERSION/ (VERSION=v1.2.3): images, archives, packages, krew manifest, chart, checksums.
	@$(GORUN) ./hack/image -version $(VERSION) -o dist/$(VERSION)
	@$(GORUN) ./hack/release -version $(VERSION) -o dist/$(VERSION)

.PHONY: kube
kube: ## Build etcd, the Kubernetes binaries and kwok into bin/kube/ (minutes once, then instant).
	@hack/kube/build.sh

.PHONY: node
node: ## Build what real nodes run into bin/node/ and bin/cni/ (minutes once, then instant).
	@hack/node/build.sh

.PHONY: clean
clean: ## Stop what runs locally and remove what was built.
	@if [ -d .local/node ]; then $(GORUN) ./hack/local down -dir .local/node; fi
	@if [ -d .local ]; then $(GORUN) ./hack/local down; fi
	rm -rf bin dist

##@ Check

# What to test and how, say: make test PKG=./pkg/ipam/index TESTFLAGS='-run Pick -count 10'
# A program with the race detector lives on for GORACE's atexit_sleep_ms (a second, where nothing is said) after its end, so
# that what runs beside it can still be found.
PKG ?=
TESTFLAGS ?=
SHORT ?= -short
TESTFORMAT ?= pkgname-and-test-fails

.PHONY: test
test: kube build node bin/tools/gotestsum bin/tools/promtool bin/tools/helm bin/tools/nfpm bin/tools/kubeconform bin/tools/setup-envtest ## Run the tests in their short form, our code with the race detector (PKG=./pkg/ipam/index for some).
	@GORACE=atexit_sleep_ms=10 bin/tools/gotestsum --format $(TESTFORMAT) --format-hide-empty-pkg --raw-command -- \
		hack/test.sh $(SHORT) $(TESTFLAGS) -- $(PKG)

.PHONY: test-all
test-all: ## Run all tests with the race detector: also those that make test leaves out, as they take long.
	@$(MAKE) --no-print-directory test SHORT=

.PHONY: test-faults
test-faults: kube build ## Break everything at random under load (FAULTS_MINUTES=60, FAULTS_SEED=N); many callers at once.
	@go test ./test/faults -run 'TestFaults|TestStorm' -count 1 -v -timeout 0

.PHONY: test-mutations
test-mutations: kube build ## Break one guard at a time: the tests that are named for it, or the fault suite, must find each.
	@FAULTS_MUTATIONS=1 go test ./test/faults -run 'TestGuards|TestMutations' -count 1 -v -timeout 0

# How long to simulate, in minutes; SIM_OPERATIONS=1000000 in their place.
SIM_MINUTES ?= 10

.PHONY: sim
sim: ## Simulate replicas, faults and time from a seed (SIM_MINUTES=10, SIM_OPERATIONS, SIM_SEED, SIM_PLAN=FILE, SIM_MUTATIONS=1).
	@mkdir -p bin/sim
	@SIM_DIR=$(CURDIR)/bin/sim SIM_PLAN=$(abspath $(SIM_PLAN)) SIM_MINUTES=$(if $(SIM_OPERATIONS),,$(SIM_MINUTES)) go test ./test/sim \
		-run '$(if $(SIM_PLAN),TestReplay,$(if $(SIM_MUTATIONS),TestMutations,TestSim))$$' -count 1 -v -timeout 0

.PHONY: test-sticky
test-sticky: kube build ## Sticky addresses in full, then at random (STICKY_OPERATIONS=1000, STICKY_SEED=N).
	@STICKY_LONG=1 go test ./test/sticky -count 1 -v -timeout 0

.PHONY: test-groups
test-groups: kube build ## Pools that are carved from others, in full.
	@GROUPS_LONG=1 go test ./test/groups -count 1 -v -timeout 0

.PHONY: test-node
test-node: kube build node ## Pods on real nodes in full, with outages of five minutes.
	@NODE_LONG=1 go test ./test/node/... -count 1 -v -timeout 0

# Packages with neighbours, say ./test/cni; all where none is named.
NEIGHBOURS ?=

.PHONY: test-neighbours
test-neighbours: kube build node bin/tools/promtool ## Others' programs beside ours, in full; writes docs/neighbours.md.
	@$(GORUN) ./hack/neighbours $(NEIGHBOURS)

.PHONY: test-upgrade
test-upgrade: kube build bin/tools/helm ## From the release before this one to this one and back, under traffic, in full; upgrades that are killed.
	@UPGRADE_LONG=1 go test ./test/upgrade -count 1 -v -timeout 0
	@UPGRADE_LONG=1 go test ./test/install -run 'TestUpgrade|TestHelm' -count 1 -v -timeout 0

# How long each target of make fuzz runs.
FUZZTIME ?= 60s

.PHONY: fuzz
fuzz: ## Run every fuzz target, of every decoder, for FUZZTIME (60s) each.
	@FUZZTIME=$(FUZZTIME) hack/fuzz.sh

.PHONY: verify
verify: tools ## Check that all is generated, tidy, formatted and without findings.
	@hack/verify.sh

.PHONY: bench
bench: kube build node ## Measure throughput and latency beside their floors (docs/benchmarks.md).
	@$(GORUN) ./test/bench

##@ Change

.PHONY: generate
generate: bin/tools/controller-gen bin/tools/crd-ref-docs bin/tools/helm ## Write again what is generated: deepcopy, CRDs and their reference, the manifests of the chart, go generate.
	bin/tools/controller-gen object paths=./api/...
	bin/tools/controller-gen crd paths=./api/... output:crd:dir=charts/bcsnet/files/crd
	bin/tools/crd-ref-docs --source-path=api/v1 --config=hack/docs/fields/config.yaml --templates-dir=hack/docs/fields --renderer=markdown \
		--output-path=docs/reference/fields.md --log-level=ERROR
	go generate ./...

.PHONY: fmt
fmt: bin/tools/golangci-lint ## Format the Go code and sort its imports.
	bin/tools/golangci-lint fmt ./...

.PHONY: lint
lint: bin/tools/golangci-lint ## Run the linters (make lint LINTFLAGS=--fix mends what it can).
	bin/tools/golangci-lint run $(LINTFLAGS) ./...

.PHONY: tools
tools: bin/tools/controller-gen bin/tools/crd-ref-docs bin/tools/golangci-lint bin/tools/gotestsum bin/tools/promtool bin/tools/helm bin/tools/nfpm bin/tools/kubeconform ## Build the tools into bin/tools/.

# A tool is built again when its pins or the Go version change: a linter built with an older Go
# refuses code for a newer one.
GOVERSION := $(shell go env GOVERSION)

# Without the dozens of service discoveries, each with the library of a cloud.
bin/tools/promtool: TOOLTAGS := remove_all_sd

bin/tools/%: hack/tools/%/go.mod hack/tools/%/go.sum bin/tools/.$(GOVERSION)
	@echo "tools: building $*" >&2
	@GOWORK=off GOFLAGS='-mod=readonly $(SLIM)' CGO_ENABLED=0 go -C hack/tools/$* build -trimpath -buildvcs=false -tags "$(TOOLTAGS)" -o $(CURDIR)/bin/tools/ tool
	@touch $@

bin/tools/.$(GOVERSION):
	@mkdir -p $(@D)
	@rm -f $(@D)/.go*
	@touch $@

##@ Try it

.PHONY: demo demo-kube
demo: ## Take the whole tour on a control plane of its own, and leave nothing behind (DEMO_SOURCE=1 builds all from source).
	@echo "demo: building bcsnet, and getting etcd, kube-apiserver and kubectl if they are not there; then the tour of half a minute" >&2
	@$(MAKE) --no-print-directory -s -j 2 demo-kube bin/bcsnet-controller bin/kubectl-bcsnet
	@KUBEBUILDER_ASSETS="$$(cat bin/.demo-kube)" $(GORUN) ./hack/demo

demo-kube: bin/tools/setup-envtest
	@hack/demo/kube.sh

.PHONY: up
up: kube build ## Start a local control plane with the controller; the files are in .local/.
	@$(GORUN) ./hack/local up

.PHONY: down
down: ## Stop the local control plane and remove .local/.
	@$(GORUN) ./hack/local down

# How many real nodes make node-up starts, and the one that node-kill and node-start are about.
NODES ?= 2
NODE ?= n1

.PHONY: node-up
node-up: kube build node ## Start a control plane with real nodes, and bcsnet (NODES=2); the files are in .local/node/.
	@$(GORUN) ./hack/local up -dir .local/node -nodes $(NODES)

.PHONY: node-kill
node-kill: ## End a real node as a power cut would (NODE=n1).
	@$(GORUN) ./hack/local kill -dir .local/node $(NODE)

.PHONY: node-start
node-start: ## Start a real node again (NODE=n1).
	@$(GORUN) ./hack/local start -dir .local/node $(NODE)

.PHONY: node-down
node-down: ## Stop the real nodes and remove .local/node/.
	@$(GORUN) ./hack/local down -dir .local/node

.PHONY: kind-up kind-down
kind-up: bin/tools/kind bin/tools/helm ## Make a kind cluster with bcsnet as its pod network; needs Docker and kubectl.
	@hack/kind/up.sh

kind-down: bin/tools/kind ## Delete the kind cluster.
	@bin/tools/kind delete cluster --name bcsnet

##@ Help

.PHONY: help
help: ## List the targets.
	@awk 'BEGIN { FS = ":.*## " } \
		/^##@ / { printf "\n%s\n", substr($$0, 5) } \
		/^[a-z-]+:.*## / { printf "  %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
