# `make` alone prints the targets.

GO       ?= go
VERSION  ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
COMMIT   ?= $(shell git rev-parse --short=12 HEAD 2>/dev/null || echo unknown)
DATE     ?= $(shell TZ=UTC git log -1 --date=format-local:%Y-%m-%dT%H:%M:%SZ --format=%cd 2>/dev/null || echo unknown)
LDFLAGS  := -s -w -X main.version=$(VERSION) -X main.commit=$(COMMIT) -X main.date=$(DATE)
NODE     := scripts/models/node_modules/.package-lock.json
TOOL     := $(GO) tool -modfile=tools/go.mod

.DEFAULT_GOAL := help
.PHONY: help build run test check proof verify format lint vet race models licences vulnerabilities cover mutants model bench outages soak fuzz chaos chart image compose picture release outdated clean

help: ## Print this help
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## Build bin/retry-worker (static, no cgo)
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o bin/retry-worker ./cmd/retry-worker

run: ## Run engine, worker and console with seventy samples; Ctrl-C ends it
	@echo 'Compiling; the first time it takes some minutes.'
	@CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-s -w' -o bin/retry-worker-dev ./cmd/retry-worker-dev && exec bin/retry-worker-dev

test: ## Run every test, the end-to-end scenarios included
	@GO='$(GO)' scripts/test

check: ## Vet, unit tests, lint: the loop while writing, a minute
	$(GO) vet ./...
	$(GO) test -short -p 4 ./internal/... ./cmd/... ./bpmn/... ./docs/...
	$(TOOL) golangci-lint run

# PROOF_KILLS (1000) kills a store, PROOF_CLAIMS (1000) claims counted everywhere, PROOF_HELD (500) claims through a portal
# that is down in five ways, PROOF_FAULTS (1000) claims in each row of the fault matrix, ENGINE_KILLS (50) kills of the
# development engine, PROOF_OPERATIONS (1000000) in histories of what people decide, on both stores, PROOF_SIM (1h) of simulated
# worlds, PROOF_SAME (1000) of them twice, PROOF_SEED (the time) of a thousand cases of each property, PROOF_FUZZ (60s) a fuzz
# target.
proof: build ## Run the longer versions of the tests, some five hours
	PROOF_FAULTS=$${PROOF_FAULTS:-1000} PROOF_OPERATIONS=$${PROOF_OPERATIONS:-1000000} CHAOS_KILLS=$${PROOF_KILLS:-1000} CHAOS_SEED=$${CHAOS_SEED:-$$(date +%s)} $(GO) test -count=1 -timeout 90m -v ./e2e/chaos
	ENGINE_KILLS=$${ENGINE_KILLS:-50} $(GO) test -count=1 -timeout 30m -v ./e2e/engine
	PROOF_CLAIMS=$${PROOF_CLAIMS:-1000} $(GO) test -count=1 -timeout 30m -v -run TestEverybodyTellsTheSame ./e2e/scenarios
	PROOF_HELD=$${PROOF_HELD:-500} PROOF_HELD_KILLS=20 $(GO) test -count=1 -timeout 30m -v -run TestClaimsWaitForADownPortal ./e2e/scenarios
	PROOF_SIM=$${PROOF_SIM:-1h} PROOF_SAME=$${PROOF_SAME:-1000} $(GO) test -count=1 -timeout 100h -v ./internal/sim
	PROOF_SEED=$${PROOF_SEED:-$$(date +%s)} $(GO) test -count=1 -timeout 60m ./internal/access ./internal/catalogue ./internal/deadletter \
	  ./internal/decision ./internal/journal ./internal/redact ./internal/worker -rapid.checks=1000
	FUZZTIME=$${PROOF_FUZZ:-60s} scripts/fuzz

verify: format lint vet race models licences vulnerabilities ## Format, lint, vet, race, licences, vulnerabilities; models by Node

format: ## Check the formatting
	@files=$$(gofmt -l $$(git ls-files -co --exclude-standard '*.go')); \
	  if [ -n "$$files" ]; then echo "not formatted (run gofmt -w):"; echo "$$files"; exit 1; fi

lint: ## Lint, the direction of the imports included
	$(TOOL) golangci-lint run

vet: ## Run go vet
	$(GO) vet ./...
	$(GO) -C tools vet ./release

chart: ## Install the Helm chart on a Kubernetes that is built here (root)
	$(GO) test -count=1 -timeout 60m -v -run TestKubernetes ./e2e/image

image: ## Build the images twice and run them hardened (Docker or Podman)
	$(GO) test -count=1 -timeout 60m -v -run TestImage ./e2e/image

compose: ## Play docker-compose.yml, its engine killed (Docker or Podman)
	$(GO) test -count=1 -timeout 60m -v -run TestCompose ./e2e/image

# The detector allocates, and slows what is timed: those tests say nothing under it.
race: ## Run the unit tests under the race detector
	$(GO) test -short -race -skip 'Allocations|LinearTime' ./internal/... ./cmd/... ./bpmn/...

models: $(NODE) ## Lint models and templates, check the console by axe (Node, npm)
	node scripts/models/lint.mjs bpmn/*.bpmn
	node scripts/models/validate.mjs bpmn/element-templates/*.json
	node scripts/models/render.mjs --check
	$(GO) test -count=1 -run 'Accessible$$' ./e2e/console

picture: $(NODE) ## Draw the models' pictures anew
	node scripts/models/render.mjs

$(NODE): scripts/models/package-lock.json
	npm ci --prefix scripts/models --ignore-scripts --no-progress

licences: build ## Refuse a licence that asks for more than being named
	$(GO) run -C tools ./release -binary ../bin/retry-worker -version $(VERSION) -date $(DATE) -project .. -sbom /dev/null -licences /dev/null

vulnerabilities: ## Look for known vulnerabilities in what the binary calls
	@scripts/vulnerabilities

cover: ## Measure the coverage of the decision core (at least 96 %)
	@scripts/cover

# MUTANTS=calendar changes one package, in five minutes; 95 % of the changes must be noticed. Of the journal only fold.go and
# rules.go are pure: those whose names begin otherwise are left out. So are tests that take seconds and notice nothing that
# no other does.
mutants: ## Change the pure code place by place: tests must notice, two hours
	@for p in $${MUTANTS:-calendar decision access destination journal classify}; do \
	  leave=decisiontest; if [ $$p = journal ]; then leave='^([a-eg-qs-z]|f[^o]|r[^u])'; fi; \
	  GOFLAGS='-short -failfast -vet=off -ldflags=-w -skip=TestJitterIsUniform|TestRandom|TestHostile|TestFarBehind' \
	    $(GO) run github.com/go-gremlins/gremlins/cmd/gremlins@v0.6.0 unleash --workers 1 --timeout-coefficient 60 \
	    --threshold-efficacy 95 --output-statuses lt --exclude-files "$$leave" ./internal/$$p || exit 1; done

# MODEL (60s) of worlds; some two minutes.
model: ## Check the specifications by TLC, and the simulator by them
	@GO='$(GO)' scripts/model

bench: build ## Measure the worker against a bare gRPC loop
	$(GO) run ./bench

outages: ## Play recorded outages against a policy (ARGS='--help')
	$(GO) run ./bench/outages $(ARGS)

soak: build ## Let claims run for SOAK (60m) on each store, the worker rolled
	SOAK=$${SOAK:-60m} $(GO) test -count=1 -timeout 4h -v -run TestSoak ./e2e/scenarios

fuzz: ## Fuzz each target for FUZZTIME (60s)
	@scripts/fuzz

# CHAOS_SEED, which is printed, replays a run.
chaos: build ## Kill, starve and mislead the worker, CHAOS_KILLS (300) a store
	CHAOS_KILLS=$${CHAOS_KILLS:-300} CHAOS_SEED=$${CHAOS_SEED:-$$(date +%s)} $(GO) test -count=1 -timeout 60m -v ./e2e/chaos

release: ## Build what is released into dist/, and test it: amd64, arm64
	GO='$(GO)' scripts/release dist
	ARCHS='amd64 arm64' $(GO) test -count=1 -timeout 30m ./e2e/release

outdated: ## List what the binary is made of that has a newer version
	@$(GO) list -m -u -f '{{with .Update}}{{.Path}} has {{.Version}}{{end}}' \
	  $$($(GO) list -deps -f '{{with .Module}}{{if not .Main}}{{.Path}}{{end}}{{end}}' ./cmd/retry-worker | sort -u) | grep . || true

clean: ## Remove what was built
	rm -rf bin dist coverage.out
