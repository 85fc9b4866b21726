# `make` alone prints the targets.

GO       ?= go
VERSION  ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
COMMIT   ?= $(shell git rev-parse --short=12 HEAD 2>/dev/null || echo unknown)
DATE     ?= $(shell TZ=UTC git log -1 --date=format-local:%Y-%m-%dT%H:%M:%SZ --format=%cd 2>/dev/null || echo unknown)
LDFLAGS  := -s -w -X main.version=$(VERSION) -X main.commit=$(COMMIT) -X main.date=$(DATE)
NODE     := scripts/models/node_modules/.package-lock.json
TOOL     := $(GO) tool -modfile=tools/go.mod

.DEFAULT_GOAL := help
.PHONY: help build run test check proof verify format lint vet race models vulnerabilities cover mutants model bench outages soak fuzz chaos chart image compose picture release outdated clean

help: ## Print this help
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## Build bin/retry-worker (static, no cgo)
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o bin/retry-worker ./cmd/retry-worker

run: ## Run a development engine, the worker and its console with seventy samples of four processes; Ctrl-C ends it
	@echo 'Compiling; the first time it takes some minutes.'
	@CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-s -w' -o bin/retry-worker-dev ./cmd/retry-worker-dev && exec bin/retry-worker-dev

test: ## Run every test, the end-to-end scenarios on the development engine included
	@GO='$(GO)' scripts/test

check: ## Unit tests, vet and lint, a minute at most: the loop while writing
	$(GO) vet ./...
	$(GO) test -short -p 4 ./internal/... ./cmd/... ./bpmn/... ./docs/...
	$(TOOL) golangci-lint run

proof: build ## The longer versions of the tests, some five hours: PROOF_KILLS (1000) kills a store, PROOF_CLAIMS (1000) claims counted everywhere, PROOF_HELD (500) claims through a portal that is down in five ways, PROOF_FAULTS (1000) claims in each row of the fault matrix, ENGINE_KILLS (50) kills of the development engine and ENGINE_INSTANCES (50000) through it, PROOF_DUE (200) claims before a portal that shuts, PROOF_OPERATIONS (1000000) in histories of what people decide, on both stores, PROOF_SIM (1h) of simulated worlds, PROOF_SAME (1000) of them twice, PROOF_SEED (the time) of a thousand cases of each property, PROOF_FUZZ (60s) a fuzz target
	PROOF_FAULTS=$${PROOF_FAULTS:-1000} PROOF_OPERATIONS=$${PROOF_OPERATIONS:-1000000} CHAOS_KILLS=$${PROOF_KILLS:-1000} CHAOS_SEED=$${CHAOS_SEED:-$$(date +%s)} $(GO) test -count=1 -timeout 90m -v ./e2e/chaos
	ENGINE_KILLS=$${ENGINE_KILLS:-50} ENGINE_INSTANCES=$${ENGINE_INSTANCES:-50000} $(GO) test -count=1 -timeout 30m -v ./e2e/engine
	PROOF_CLAIMS=$${PROOF_CLAIMS:-1000} $(GO) test -count=1 -timeout 30m -v -run TestEverybodyTellsTheSame ./e2e/scenarios
	PROOF_HELD=$${PROOF_HELD:-500} PROOF_HELD_KILLS=20 PROOF_DUE=$${PROOF_DUE:-200} $(GO) test -count=1 -timeout 30m -v -run 'TestClaims(WaitForADownPortal|GoBeforeThePortalShuts)' ./e2e/scenarios
	PROOF_SIM=$${PROOF_SIM:-1h} PROOF_SAME=$${PROOF_SAME:-1000} $(GO) test -count=1 -timeout 100h -v ./internal/sim
	PROOF_SEED=$${PROOF_SEED:-$$(date +%s)} $(GO) test -count=1 -timeout 60m ./internal/access ./internal/catalogue ./internal/deadletter \
	  ./internal/decision ./internal/journal ./internal/redact ./internal/worker -rapid.checks=1000
	FUZZTIME=$${PROOF_FUZZ:-60s} scripts/fuzz

verify: format lint vet race models vulnerabilities ## Format, lint, vet, race detector, known vulnerabilities; by Node: the process models, accessibility of the console

format: ## Check the formatting
	@files=$$(gofmt -l $$(git ls-files -co --exclude-standard '*.go')); \
	  if [ -n "$$files" ]; then echo "not formatted (run gofmt -w):"; echo "$$files"; exit 1; fi

lint: ## Lint, the direction of the dependencies included
	$(TOOL) golangci-lint run

vet: ## go vet
	$(GO) vet ./...
	$(GO) -C tools vet ./release

chart: ## Every test of the Helm chart, those on a Kubernetes that is built here included: an API server, and a node, which takes root
	$(GO) test -count=1 -timeout 60m ./e2e/helm
	$(GO) test -count=1 -timeout 60m -v -run TestKubernetes ./e2e/image

image: ## Build the Dockerfile's images twice, check what it makes and run it hardened, by Docker or else Podman, which root installs
	$(GO) test -count=1 -timeout 60m -v -run TestImage ./e2e/image

compose: ## Start docker-compose.yml, kill its engine, play the samples, take it down: by Docker or else Podman
	$(GO) test -count=1 -timeout 60m -v -run TestCompose ./e2e/image

# The detector allocates, and slows what is timed: those tests say nothing under it.
race: ## The unit tests under the race detector, without those of time and allocations
	$(GO) test -short -race -skip 'Allocations|LinearTime' ./internal/... ./cmd/... ./bpmn/...

models: $(NODE) ## Lint the process models and element templates, compare the pictures, check the console by axe; needs Node and npm
	node scripts/models/lint.mjs bpmn/*.bpmn
	node scripts/models/validate.mjs bpmn/element-templates/*.json
	node scripts/models/render.mjs --check
	$(GO) test -count=1 -run 'Accessible$$' ./e2e/console

picture: $(NODE) ## Draw the models' pictures anew
	node scripts/models/render.mjs

$(NODE): scripts/models/package-lock.json
	npm ci --prefix scripts/models --ignore-scripts --no-progress

vulnerabilities: ## Known vulnerabilities in what the binary calls, where the database can be reached
	@scripts/vulnerabilities

cover: ## Statement coverage of the decision core (at least 96 %)
	@scripts/cover

# Of the journal only fold.go and rules.go are pure: those whose names begin otherwise are left out. So are tests that
# take seconds and notice nothing that no other does.
mutants: ## Change the pure code place by place (MUTANTS=calendar: one package), about two hours: the tests must notice 95 % of it
	@for p in $${MUTANTS:-calendar decision access destination journal classify}; do \
	  leave=decisiontest; if [ $$p = journal ]; then leave='^([a-eg-qs-z]|f[^o]|r[^u])'; fi; \
	  GOFLAGS='-short -failfast -vet=off -ldflags=-w -skip=TestJitterIsUniform|TestJitterDeviation|TestR22|TestLengthsOf|TestRandom|TestHostileMessages|TestFarBehind' \
	    $(GO) run github.com/go-gremlins/gremlins/cmd/gremlins@v0.6.0 unleash --workers 1 --timeout-coefficient 60 \
	    --threshold-efficacy 95 --output-statuses lt --exclude-files "$$leave" ./internal/$$p || exit 1; done

model: ## Check the specifications of the simulator's world by TLC, and what it does (MODEL=60s of worlds) against them; two minutes
	@GO='$(GO)' scripts/model

bench: build ## Measure the worker against a bare gRPC loop; prints a table with the ratio
	$(GO) run ./bench

outages: ## Play recorded outages against a policy, beside its plain ladder and a clairvoyant (ARGS='--outages FILE --claims-per-minute 0.1 -o json')
	$(GO) run ./bench/outages $(ARGS)

soak: build ## Claims for SOAK (60m) on each store, the worker rolled every 5 minutes; prints a table
	SOAK=$${SOAK:-60m} $(GO) test -count=1 -timeout 4h -v -run TestSoak ./e2e/scenarios

fuzz: ## Fuzz each target for FUZZTIME (default 60s)
	@scripts/fuzz

chaos: build ## Kill, starve and mislead the worker: CHAOS_KILLS (300) a store, CHAOS_SEED (printed; replays a run)
	CHAOS_KILLS=$${CHAOS_KILLS:-300} CHAOS_SEED=$${CHAOS_SEED:-$$(date +%s)} $(GO) test -count=1 -timeout 60m -v ./e2e/chaos

release: ## Build what is released into dist/, and test a release of both: amd64 and arm64, bills of materials, licences, sums
	GO='$(GO)' scripts/release dist
	ARCHS='amd64 arm64' $(GO) test -count=1 -timeout 30m ./e2e/release

outdated: ## What the binary is made of and has a newer version
	@$(GO) list -m -u -f '{{with .Update}}{{.Path}} has {{.Version}}{{end}}' \
	  $$($(GO) list -deps -f '{{with .Module}}{{if not .Main}}{{.Path}}{{end}}{{end}}' ./cmd/retry-worker | sort -u) | grep . || true

clean: ## Remove what was built
	rm -rf bin dist coverage.out
