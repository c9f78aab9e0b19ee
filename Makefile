# The way into this project: `make help`.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory

# The flags of the images, so that tests and images share one build cache.
export CGO_ENABLED := 0
export GOFLAGS := -trimpath

BUILD := .build
BIN := $(BUILD)/bin
# A tree with changes gets a version of its own for each state, so that Pods follow.
ifndef VERSION
VERSION := $(shell git describe --tags --always 2>/dev/null || echo unknown)$(shell \
	test -z "$$(git status --porcelain 2>/dev/null)" || \
	{ echo -n -; { git diff HEAD; git ls-files -oz --exclude-standard | xargs -0r cat; } | sha256sum | cut -c1-8; })
endif
export VERSION

# Where the bundle goes. ENV picks charts/agent-sandbox/values-$(ENV).yaml.
ENV ?=
RELEASE ?= agent-sandbox
NAMESPACE ?= agent-sandbox-system
IMAGE_REGISTRY ?=
HELM_ARGS ?=

CLUSTER := $(CURDIR)/$(BIN)/cluster
IMAGE := $(CURDIR)/$(BIN)/image
# The cluster is ours unless KUBECONFIG names another: `make up` prints ours to export.
AGENT_SANDBOX_CLUSTER_STATE ?= /var/lib/agent-sandbox-cluster
OWN_KUBECONFIG := $(AGENT_SANDBOX_CLUSTER_STATE)/kubeconfig
OWN_CLUSTER := $(if $(filter-out $(OWN_KUBECONFIG),$(KUBECONFIG)),,yes)
KUBECTL = $(if $(OWN_CLUSTER),$$($(CLUSTER) kubectl-path),kubectl)
# Evaluated when used: the path is known before the cluster is.
KUBECONFIG_PATH = $(if $(OWN_CLUSTER),$$($(CLUSTER) kubeconfig),$(KUBECONFIG))

CHART := charts/agent-sandbox
VALUES = $(if $(ENV),-f $(CHART)/values-$(ENV).yaml) $(if $(OWN_CLUSTER),-f $$($(CLUSTER) values-path)) \
	$(if $(IMAGE_REGISTRY),--set global.imageRegistry=$(IMAGE_REGISTRY))
GO_MODULES := . .tools .tools/argocd .tools/golangci-lint .tools/original e2e/cluster $(patsubst %/go.mod,%,$(wildcard e2e/cluster/components/*/go.mod))

##@ Using it
.PHONY: help
help: ## Explain every target
	@awk 'BEGIN {FS = ":.*## "; printf "Usage: make <target> [ENV=dev|staging|prod] [KUBECONFIG=...] [IMAGE_REGISTRY=...]\n"} \
		/^##@/ {printf "\n%s\n", substr($$0, 5)} \
		/^[a-zA-Z0-9_-]+:.*## / {printf "  %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: up
up: $(BIN)/helm $(CLUSTER) $(IMAGE) ## A real Kubernetes with the bundle installed; with KUBECONFIG set, installs into that cluster
	@$(if $(OWN_CLUSTER),$(CLUSTER) up,$(if $(IMAGE_REGISTRY),true,echo "make up: KUBECONFIG is set, so the images must go to a registry: set IMAGE_REGISTRY=host/prefix" >&2; exit 1))
	@$(if $(OWN_CLUSTER),$(MAKE) load,$(MAKE) push)
	@$(MAKE) install
	@echo; echo "Try next:"; echo "  export KUBECONFIG=$(KUBECONFIG_PATH)"; \
	 $(if $(OWN_CLUSTER),echo "  alias kubectl=$(KUBECTL)";) \
	 echo "  kubectl get pods -n $(NAMESPACE)"; \
	 echo "  kubectl explain sandbox.spec"; \
	 echo "  make e2e     # the users' stories on this cluster"

.PHONY: install
install: $(BIN)/helm $(CLUSTER) ## Install or upgrade the chart in the cluster that is up
	@KUBECONFIG=$(KUBECONFIG_PATH) $(BIN)/helm upgrade --install $(RELEASE) $(CHART) \
		--namespace $(NAMESPACE) --create-namespace --take-ownership --wait --timeout 3m \
		--set-string image.tag=$(VERSION) $(VALUES) $(HELM_ARGS) >/dev/null \
	|| { echo "make install: the release is not ready; the last events of namespace $(NAMESPACE):" >&2; \
		$(KUBECTL) --kubeconfig $(KUBECONFIG_PATH) -n $(NAMESPACE) get events --sort-by=.lastTimestamp \
			--field-selector type=Warning -o custom-columns=OBJECT:.involvedObject.name,MESSAGE:.message | tail -5 >&2; exit 1; }
	@echo "Installed $(RELEASE) $(VERSION) into namespace $(NAMESPACE)$(if $(ENV), with the values of $(ENV))."

.PHONY: down
down: $(CLUSTER) ## Stop the cluster that `make up` started and remove every trace of it
	@$(CLUSTER) down

.PHONY: kubeconfig
kubeconfig: $(CLUSTER) ## Print the path of the cluster's kubeconfig
	@$(CLUSTER) kubeconfig

.PHONY: images
images: $(IMAGE) ## Build the container images as archives in .build/images
	@mkdir -p $(BUILD)/images
	@$(IMAGE) build -version $(VERSION) -out $(CURDIR)/$(BUILD)/images

.PHONY: push
push: $(IMAGE) ## Build the images and push them to the registry IMAGE_REGISTRY
	@$(IMAGE) push -registry "$(IMAGE_REGISTRY)" -version $(VERSION)

.PHONY: load
load: images $(CLUSTER) ## Load the images, and those that the tests use, into the cluster
	@$(IMAGE) probe -out $(CURDIR)/$(BUILD)/images/probe.tar
	@$(IMAGE) debian -ref python:3.12-slim -out $(CURDIR)/$(BUILD)/images/python.tar
	@$(CLUSTER) load $(CURDIR)/$(BUILD)/images/*.tar

##@ Developing it
.PHONY: generate
generate: $(BIN)/controller-gen ## Regenerate deepcopy, CRDs, roles and the tables of the documents
	@rm -rf $(BUILD)/crds && mkdir -p $(BUILD)/crds $(CHART)/files
	@$(BIN)/controller-gen object:headerFile=.tools/header.txt paths=./controller/api/...
	@$(BIN)/controller-gen crd paths=./controller/api/... output:crd:dir=$(BUILD)/crds
	@go -C .tools run ./crds -from ../$(BUILD)/crds -plain ../controller/api/crds -chart ../$(CHART)/charts/crds/templates
	@$(BIN)/controller-gen rbac:roleName=controller,fileName=controller-role.yaml paths=./controller/... paths=./cmd/agent-sandbox-controller/... output:rbac:dir=$(CHART)/files
	@$(BIN)/controller-gen rbac:roleName=webhook,fileName=webhook-role.yaml paths=./webhook/... output:rbac:dir=$(CHART)/files
	@gofmt -l -w controller/api
	@go test ./charts -count=1 -run 'TestReadme' -update >/dev/null

.PHONY: lint
lint: $(BIN)/golangci-lint ## Run every linter over every module of ours
	@$(BIN)/golangci-lint run ./...
	@cd e2e/cluster && $(CURDIR)/$(BIN)/golangci-lint run --config $(CURDIR)/.golangci.yml ./...
	@cd .tools && $(CURDIR)/$(BIN)/golangci-lint run --config $(CURDIR)/.golangci.yml ./...
	@cd .tools/argocd && $(CURDIR)/$(BIN)/golangci-lint run --config $(CURDIR)/.golangci.yml ./...

# All that there is at the top of the project.
TOP_LEVEL := charts|controller|webhook|policies|cmd|e2e|go[.]mod|go[.]sum|Makefile|README[.]md|LICENSE|[.].*

.PHONY: verify
verify: ## Regenerate, lint, and fail if that changed anything
	@$(MAKE) generate
	@for m in $(GO_MODULES); do go -C $$m mod tidy -diff >/dev/null || { echo "verify: run 'go mod tidy' in $$m" >&2; exit 1; }; done
	@$(MAKE) lint
	@strays="$$(git ls-files | cut -d/ -f1 | sort -u | grep -vxE '$(TOP_LEVEL)' || true)"; \
		test -z "$$strays" || { echo "verify: these do not belong into the project:" >&2; echo "$$strays" >&2; exit 1; }
	@test -z "$$(git status --porcelain)" || { echo "verify: these files differ from what is committed:" >&2; git status --porcelain >&2; exit 1; }

##@ Testing it
.PHONY: unit
unit: ## Unit tests of every module
	@go test ./...
	@go -C e2e/cluster test ./...

.PHONY: integration
integration: ## Tests of the controllers, and of the webhook as the chart installs it, on a real apiserver
	@# Alone, since it compares how long things take.
	@go test -tags integration -count=1 -timeout 20m ./e2e/bench/...
	@go test -tags integration -count=1 -timeout 20m ./e2e/apiserver/... ./e2e/shipped/... ./controller/... ./webhook/...
	@go test -tags integration -count=1 -timeout 20m -run 'TestServed|TestApiserver' ./charts

.PHONY: test-policies
test-policies: $(BIN)/opa ## Rego tests, checks and formatting with the stock opa command
	@$(BIN)/opa fmt --fail --list policies/lib policies/library
	@$(BIN)/opa check --strict policies/lib policies/library
	@$(BIN)/opa test --fail-on-empty policies/lib policies/library
	@$(BIN)/opa test --coverage --threshold 95 policies/lib policies/library >/dev/null

.PHONY: e2e
e2e: $(CLUSTER) ## User stories on a real cluster; starts one when none is up, and stops what it started
	@$(if $(OWN_CLUSTER),$(CLUSTER) status >/dev/null 2>&1 || trap '$(MAKE) down' EXIT; $(MAKE) up ENV= && )$(MAKE) stories

E2E_PACKAGES ?= ./e2e/...

# Expects the bundle to be up.
.PHONY: stories
stories: $(CLUSTER)
	@KUBECONFIG=$(KUBECONFIG_PATH) IMAGE_TAG=$(VERSION) E2E_VALUES=$(if $(OWN_CLUSTER),$$($(CLUSTER) values-path)) \
		go test -tags e2e -count=1 -timeout 40m -parallel 8 $(E2E_ARGS) $(E2E_PACKAGES)

.PHONY: test
test: unit integration test-policies e2e ## Everything: unit tests, real apiserver, policy tests, user stories

BENCH_ARGS ?=

.PHONY: bench
bench: ## What a decision, admission, a claim and a thousand Sandboxes cost, claims beside the original, and admission under load on a cluster
	@go test -run '^$$' -bench . -benchmem ./policies/... ./webhook/... ./controller/...
	@$(MAKE) bench-admission bench-sandboxes bench-claims bench-original bench-audit bench-life

.PHONY: bench-audit
bench-audit: ## What an audit of 10,000 objects costs: time, memory, reads and writes
	@AUDIT_OBJECTS=10000 go test -tags integration -count=1 -v -timeout 20m -run TestAnAuditReadsFromCaches ./controller/audit

.PHONY: bench-claims
bench-claims: ## What claims cost and how long they take; BENCH_ARGS=-report writes it into e2e/bench/README.md
	@go test -tags integration -run '^$$' -bench BenchmarkClaims -benchtime 1x -timeout 20m ./e2e/bench $(BENCH_ARGS)

.PHONY: bench-original
bench-original: ## Claims beside the controller that this API comes from, in turn on one machine
	@go test -tags integration -run '^$$' -bench BenchmarkBesideTheOriginal -benchtime 1x -timeout 30m ./e2e/bench $(BENCH_ARGS)

.PHONY: bench-admission
bench-admission: ## What mutate and validate add to a create
	@go test -tags integration -run '^$$' -bench BenchmarkAdmission -benchtime 1x -timeout 20m ./e2e/bench $(BENCH_ARGS)

.PHONY: bench-life
bench-life: ## Fifty requests a second while the webhook is upgraded, scaled, killed and given new certificates and policies
	@$(MAKE) e2e E2E_ARGS='-v -run TestWhateverHappensToTheWebhook' E2E_PACKAGES='./e2e -paced $(BENCH_ARGS)'

.PHONY: bench-sandboxes
bench-sandboxes: ## What a thousand Sandboxes cost on fake nodes
	@go test -tags integration -run '^$$' -bench BenchmarkThousandSandboxes -benchtime 1x -timeout 20m ./e2e/bench $(BENCH_ARGS)

FUZZ_TIME ?= 10m

.PHONY: test-long
test-long: ## The property tests with many more random sequences, a namespace with three thousand Sandboxes, the whole corpus applied twice, every mutant of the rules, fuzzing, and admission under load
	@PROPERTY_SEEDS=500 POLICY_SANDBOXES=3000 go test -tags integration -count=1 -timeout 90m -run 'TestAnySequence|TestALife|TestOnePolicyServes' ./controller/sandbox
	@PROPERTY_SEEDS=20 go test -tags integration -count=1 -timeout 90m -run 'TestAnySequence|TestOneSandbox|TestNeverTooMany|TestNoClaimGets' ./controller/claim ./controller/warmpool ./controller/audit
	@DRIFT_OF_ALL=yes go test -tags integration -count=1 -timeout 30m -run 'TestServed|TestApiserver' ./charts
	@go test -count=1 -timeout 60m -run 'TestMutants|TestNoValue' ./policies -mutants
	@for f in Quantity Facts Image CIDR; do go test -run '^$$' -fuzz "Fuzz$$f\$$" -fuzztime $(FUZZ_TIME) -fuzzminimizetime 20x ./policies/engine || exit 1; done
	@go test -run '^$$' -fuzz FuzzOperations -fuzztime $(FUZZ_TIME) -fuzzminimizetime 20x ./controller/defaults
	@for f in Admission Body; do go test -run '^$$' -fuzz "Fuzz$$f\$$" -fuzztime $(FUZZ_TIME) -fuzzminimizetime 20x ./webhook || exit 1; done
	@LIFE_ROUNDS=10 $(MAKE) e2e E2E_ARGS='-v -run TestWhateverHappensToTheWebhook'

##@ Tools, pinned in .tools/go.mod
TOOL_controller-gen := sigs.k8s.io/controller-tools/cmd/controller-gen
TOOL_helm := helm.sh/helm/v3/cmd/helm
# What helm assumes of a cluster that it does not ask, as in helm template.
LDFLAGS_helm := -X helm.sh/helm/v3/pkg/chartutil.k8sVersionMajor=1 -X helm.sh/helm/v3/pkg/chartutil.k8sVersionMinor=37
TOOL_opa := github.com/open-policy-agent/opa

# Our own commands: Go decides what there is to do.
$(BIN)/cluster $(BIN)/image: $(BIN)/%: FORCE
	@mkdir -p $(BIN)
	@go -C e2e/cluster build -o $(CURDIR)/$@ ./cmd/$*
$(CLUSTER) $(IMAGE): $(CURDIR)/%: %
FORCE:

# The linter's dependencies do not agree with those of the others.
$(BIN)/golangci-lint: .tools/golangci-lint/go.mod .tools/golangci-lint/go.sum
	@mkdir -p $(BIN)
	@echo "Building golangci-lint (once) …"
	@go -C .tools/golangci-lint build -o $(CURDIR)/$@ github.com/golangci/golangci-lint/v2/cmd/golangci-lint

$(BIN)/%: .tools/go.mod .tools/go.sum
	@mkdir -p $(BIN)
	@echo "Building $* (once) …"
	@go -C .tools build -ldflags '$(LDFLAGS_$*)' -o $(CURDIR)/$@ $(TOOL_$*)
