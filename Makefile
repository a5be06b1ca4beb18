# What there is to do; how it is done stands in scripts/. `make` alone lists it.

# Flags for `go test`: make test RACE=-race, or TESTFLAGS='-run Prune -v'.
RACE      =
TESTFLAGS =
# make demo KEEP=1 leaves the demo running.
KEEP      =
# make soak SOAK=20m
SOAK      = 1h
# make fuzz FUZZTIME=10m, for each parser.
FUZZTIME  = 1m
# make image VERSION=1.2.3 IMAGE=registry/name
IMAGE     = kubesync/kubesync
VERSION   = $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
BUILDER   = docker

.PHONY: help build unit test e2e demo bench crash soak fuzz lint verify update image image-test clean

help: ## list these targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## build bin/kubesync
	@VERSION='$(VERSION)' scripts/build

demo: ## watch it work on a control plane of its own (KEEP=1 leaves it running)
	@KEEP='$(KEEP)' scripts/demo

unit: ## run what needs no control plane, in about a minute
	@# Without cgo, as kubesync is built, to link takes half as long. The race detector needs cgo.
	@$(if $(RACE),,. scripts/goflags; )go test -short $(RACE) $(TESTFLAGS) ./...

test: ## run all tests, unit and scenarios, on real servers (RACE=-race)
	@scripts/controlplane get >/dev/null
	@# Bombs take five times as long to make under the race detector, which leaves them out.
	@status=0; \
	go test $(RACE) -timeout 30m $(TESTFLAGS) ./... || status=1; \
	$(if $(RACE),go test -timeout 30m $(TESTFLAGS) ./test/bombs || status=1;) \
	exit $$status

e2e: ## run only the scenarios: the built binary against real servers
	@scripts/controlplane get >/dev/null
	go test $(RACE) -timeout 30m $(TESTFLAGS) ./test/

bench: ## measure everything, half an hour, and rewrite test/bench/RESULTS.md
	@scripts/bench -out test/bench/RESULTS.md

crash: ## kill it at every request and falsify every answer, for hours, and rewrite test/crash/RESULTS.md
	@scripts/crash -out test/crash/RESULTS.md

soak: ## walk at random for an hour with one daemon, which must not grow (SOAK=20m)
	@scripts/model -soak $(SOAK) -out test/model/RESULTS.md

fuzz: ## look for inputs that break a parser (FUZZTIME=1m each)
	@FUZZTIME='$(FUZZTIME)' scripts/fuzz

lint: ## run the pinned linters: Go (go vet included), the chart, the workflows
	@scripts/lint/run
	@"$$(scripts/tool helm)" lint --strict deploy/chart/kubesync
	@"$$(scripts/tool actionlint)" -shellcheck= -pyflakes=

verify: ## check formatting, generated parts and modules
	@scripts/verify

update: ## format, generate and tidy what verify checks
	@scripts/verify -fix

image: ## build both images (BUILDER=docker, podman or buildah)
	$(BUILDER) build --build-arg VERSION='$(VERSION)' -t '$(IMAGE):$(VERSION)' .
	$(BUILDER) build --build-arg VERSION='$(VERSION)' -t '$(IMAGE):$(VERSION)-slim' --target slim .

image-test: ## build both images without pulling, and run them (root, Debian)
	@scripts/image-test

clean: ## remove what was built here; caches stay
	rm -rf bin
