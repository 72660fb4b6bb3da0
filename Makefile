# Everything that a fresh machine needs: Go 1.26, Python 3.9 or newer, Node.js 18 or newer, make.
SHELL   := bash
VERSION := $(shell cat VERSION)
COMMIT  := $(shell git rev-parse --short HEAD 2>/dev/null)
# The flag library's writer of manual pages, which nobody calls, would be initialised at each start.
TAGS    := urfave_cli_no_docs
LDFLAGS := -s -w -X runpodctl-worker/internal/cli.version=$(VERSION) -X runpodctl-worker/internal/cli.commit=$(COMMIT)
BIN     := bin/runpodctl-worker
PKGS    := ./...

LINT_VERSION := v2.15.0
LINT         := .cache/bin/golangci-lint-$(LINT_VERSION)

export CGO_ENABLED := $(if $(CGO_ENABLED),$(CGO_ENABLED),0)
# go-nvml uses functions that NVIDIA has deprecated, and gcc would say so at length.
export CGO_CFLAGS := -O2 -g -Wno-deprecated-declarations
export VERSION

.DEFAULT_GOAL := help

.PHONY: help
help: ## Show what there is to make
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## Build bin/runpodctl-worker and, beside it, its GPU helpers
	@go build -trimpath -tags $(TAGS) -ldflags '$(LDFLAGS)' -o $(BIN) ./cmd/runpodctl-worker
	@build/helpers.sh beside $(dir $(BIN))

.PHONY: release-build
release-build: ## Build bin/runpodctl-worker as released, with the GPU helpers inside
	@build/helpers.sh embed
	@go build -trimpath -tags $(TAGS),embedprobes -ldflags '$(LDFLAGS)' -o $(BIN) ./cmd/runpodctl-worker

.PHONY: run
run: build ## Run one job of a sample handler through the local Runpod
	$(BIN) serve --test_input testdata/job.json --handler testdata/handlers/sync.py

.PHONY: setup
setup: .venv/ready test/sdk/js/node_modules/ready ## Install the official SDKs that the tests drive

.venv/ready: test/sdk/python/requirements.txt
	test/setup.sh python
	python3 -m venv .venv
	.venv/bin/python -m pip install --quiet --disable-pip-version-check -r $<
	touch $@

test/sdk/js/node_modules/ready: test/sdk/js/package-lock.json
	test/setup.sh node
	cd test/sdk/js && npm ci --no-audit --no-fund
	touch $@

.PHONY: test
test: setup ## Run all tests, with the race detector and the official SDKs
	test/setup.sh gcc
	test/setup.sh shell
	test/setup.sh tmux
	test/setup.sh disk
	RUNPODCTL_TEST_PYTHON=$(CURDIR)/.venv/bin/python CGO_ENABLED=1 go test -race -shuffle=on -timeout 20m $(PKGS)

.PHONY: fuzz
fuzz: ## Fuzz each parser for ten seconds
	test/fuzz.sh 10s

.PHONY: bench
bench: setup build ## Measure against the official SDK; prints the table of docs/benchmarks.md
	RUNPODCTL_TEST_PYTHON=$(CURDIR)/.venv/bin/python go run ./test/bench -bin $(BIN)

.PHONY: chaos
chaos: build ## Run thousands of jobs while calls go wrong and the worker is killed; prints what became of them
	go run ./test/chaos -bin $(BIN)

.PHONY: lint
lint: $(LINT) ## Check format, style and the import rules
	test/setup.sh gcc
	$(LINT) run
	CGO_ENABLED=1 $(LINT) run ./internal/nvmlprobe/... # go-nvml is seen with cgo only
	GOOS=darwin go vet $(PKGS)

$(LINT):
	GOBIN=$(CURDIR)/.cache/bin go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(LINT_VERSION)
	mv .cache/bin/golangci-lint $@

.PHONY: clean
clean: ## Remove what was built and installed here
	rm -rf bin dist internal/checks/gpu/embedded/bin .venv .cache test/sdk/js/node_modules
