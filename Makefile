# The two commands of the README are "go run ./examples/quickstart" and
# "make test". Everything else here is for people who work on the library: "make help".

GO      ?= go
COUNT   ?= 10
FUZZ    ?= 20s
LINT    := $(GO) tool -modfile=tools.mod golangci-lint
REDIS   := @sh internal/workshop/redistest/install.sh
# The tools of internal/release/go.mod, which pins them.
TOOL     = "$$($(GO) -C internal/release tool -n $(1))"

# The race detector needs a C compiler. Where there is none, the tests run
# without it, with all of the cases.
RACE    := $(shell command -v $$($(GO) env CC) >/dev/null 2>&1 && [ "$$($(GO) env CGO_ENABLED)" = 1 ] && echo -race)
SMOKE   := ./algo/... ./internal/decide ./internal/admission ./internal/class ./keyfunc/internal/clientip ./keyfunc/... ./httpmw/... ./grpcmw
MODULES := algo/telemetry/otelmetrics distributed/rueidisstore dropin httpmw/admin bench $(patsubst %/go.mod,%,$(wildcard examples/*/go.mod programs/*/go.mod))

.PHONY: help smoke test check lint api shapes tidy long fuzz mutants faults valkey versions browser vulnerabilities release-test \
  bench bench-own overload overload-cores sim structure site release push-images

help: ## this list
	@awk -F ':.*## ' '/^##@/ {print "\n" substr($$0, 5)} /^[a-z-]+:.*## / {printf "  %-16s %s\n", $$1, $$2}' Makefile

##@ Every change

smoke: ## a first look in 15 s with a warm cache: decisions, limiters, HTTP, gRPC; no Redis
	$(GO) test -vet=off -short $(SMOKE)

# Random order, few cases. Package distributed, which waits most, begins first, beside the others.
test: ## the tests without slow ones, in three minutes on a fresh machine of two processors, 90 s warm
	$(REDIS)
	$(GO) test -vet=off -short -shuffle=on -parallel 4 -timeout 9m ./distributed/... ./...

check: ## the rest: all tests under the race detector, nested modules, 32 bits, FIPS 140-3, pictures, lint; 16 minutes
	$(REDIS)
	$(GO) test $(RACE) -vet=off -shuffle=on -parallel 2 -timeout 15m ./distributed/... $$($(GO) list ./... | grep -v /adaptive$$)
	$(GO) test $(RACE) -vet=off -shuffle=on -short -run 'C1_|M1_|G1_|S3_|Wait|FIFO|Close|CoDel|Wakes|Lost|Tenants|PerKey|Keyed|Peek|Hook' ./adaptive # make test has the simulations
	$(if $(RACE),,@echo "WARNING: no C compiler: the tests ran without the race detector")
	@for m in $(MODULES); do (cd $$m && $(GO) mod tidy -diff && $(GO) vet ./... && \
	  case $$m in programs/*) export GODEBUG=fips140=only;; bench) s=-short;; esac && $(GO) test $$s -timeout 9m ./...) || exit 1; done
	@GO="$(GO)" sh internal/workshop/cases/32bits.sh
	GODEBUG=fips140=only $(GO) test -short -run 'Secret|Hash|Pepper|TestTokenBucket|TestCorrections|TestInFlightHolds|TestStartWithoutRedis' ./distributed ./distributed/rules # miniredis itself uses SHA-1
	GODEBUG=fips140=only $(GO) test -vet=off -short ./keyfunc/... ./grpcmw # algo and adaptive link no cryptography
	$(MAKE) shapes
	git diff --exit-code --stat docs/shapes
	$(MAKE) lint

# Code that only tests use is unused.
lint: ## golangci-lint, and vet, for 32 bits, macOS and Windows too
	$(GO) mod tidy -diff
	$(GO) vet ./...
	GOARCH=386 $(GO) vet ./...
	@for os in darwin windows; do GOOS=$$os $(GO) build ./... && GOOS=$$os $(GO) vet $(SMOKE) || exit 1; done
	$(LINT) run ./...
	$(LINT) run --tests=false --enable-only unused ./...
	cd bench && "$$(cd .. && $(GO) tool -n -modfile=tools.mod golangci-lint)" run ./...

api: ## records the public API, which the tests compare
	$(GO) test . -run TestPublicAPI -update

shapes: ## the pictures in docs/shapes of what each algorithm admits
	cd bench && $(GO) test -count 1 ./shapes -out $(CURDIR)/docs/shapes

tidy: ## go mod tidy in all modules
	@for m in . $(MODULES); do (cd $$m && $(GO) mod tidy) || exit 1; done
	$(GO) mod tidy -modfile=tools.mod

##@ Faults

# A line for each promise of doc.go, and the output of each failure.
long: ## the full counts of every promise (PROMISES='W1 S3' for some), each fuzz target for FUZZ=20s; two hours
	$(REDIS)
	@FUZZ=$(FUZZ) sh internal/workshop/cases/long.sh $(PROMISES)

fuzz: ## every fuzz target for FUZZ=20s
	@for pkg in $$($(GO) list ./...); do \
	  for target in $$($(GO) test -list '^Fuzz' $$pkg | grep '^Fuzz'); do \
	    echo "$$pkg $$target"; \
	    $(GO) test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZ) $$pkg || exit 1; \
	  done; \
	done

mutants: ## known faults, planted one at a time: 95 % must be found; MUTANTS is a pattern for some
	$(REDIS)
	cd bench && $(GO) run ./mutants -only '$(MUTANTS)'

faults: ## package distributed under each fault of Redis, prints a table; six minutes
	$(REDIS)
	SLUICE_LONG=1 $(GO) test -count 1 -timeout 60m -parallel 4 -v -run FaultTable ./distributed

valkey: export SLUICE_REDIS_SERVER := valkey-server
valkey: ## the tests that need a Redis, on Valkey
	$(REDIS)
	$(GO) test -count 1 -timeout 20m ./distributed/... ./internal/workshop/redistest
	cd distributed/rueidisstore && $(GO) test -count 1 ./...

OLD ?= $(shell git describe --tags --abbrev=0 2>/dev/null)
versions: ## this tree beside OLD, a commit or the last tag, on one Redis; FORMATS=sliding-log,in-flight,credits: those of OLD differ
	$(REDIS)
	@test -n "$(OLD)" || { echo "no version is tagged: make versions OLD=commit" >&2; exit 2; }
	cd bench && $(GO) test -count 1 -v ./versions -old $(OLD) -formats "$(FORMATS)"

browser: site ## the admin page and the web site in a headless Chromium, with axe-core; needs Node; PICTURES=1 takes those of docs/admin
	$(REDIS)
	@sh httpmw/admin/browser/install.sh
	npm ci --no-audit --no-fund --prefix httpmw/admin/browser/axe
	cd httpmw/admin/browser && $(if $(PICTURES),PICTURES=../../../docs/admin) $(GO) test $(if $(PICTURES),-tags pictures) -count 1 -timeout 20m -v .
	cd httpmw/admin/browser && $(GO) test -tags site -count 1 -run TestSite -timeout 9m -v .

# 3 means that there are some.
VULNDB ?= https://vuln.go.dev
vulnerabilities: ## known ones in the code that the released modules call; VULNDB=file:///... is a copy of the database
	@tool=$(call TOOL,govulncheck); for m in . httpmw/admin algo/telemetry/otelmetrics distributed/rueidisstore dropin programs/plan; do \
	  "$$tool" -C $$m -db $(VULNDB) ./... || { status=$$?; \
	    [ $$status = 3 ] || echo "nothing was checked: make vulnerabilities needs $(VULNDB); VULNDB=file:///... names a copy" >&2; \
	    exit $$status; }; done

release-test: ## a release of a copy of the repository, its images by a registry of the test, and actionlint
	cd internal/release && $(GO) vet ./... && $(GO) test -count 1 -timeout 20m -v .
	$(call TOOL,actionlint)

##@ Measurements and pages

# BENCH='-quick -only inflight' prints a first look, BENCH='-scaling 1,2,4' the same decisions on so many processors.
bench: ## this library beside its peers, and the attacks; four minutes; first, where a peer is ahead
	$(REDIS)
	cd bench && $(GO) run . $(BENCH)

bench-own: ## the benchmarks of the packages, COUNT=10 times; compare ratios to the floor, not nanoseconds
	$(GO) test -run '^$$' -bench . -benchmem -count $(COUNT) ./algo ./adaptive ./httpmw ./grpcmw ./keyfunc

# One core for the server, one for the load, nothing else on the machine. A part of it:
#   make overload WORK=5ms,30ms LIMITERS=none,default LOADS=0.85,5
# OUT is the folder of overload.svg (none: no picture), RECORDS a file that keeps the figures of
# several runs, LENGTH the seconds of each overload.
overload: ## limiters before a real, overloaded server; 40 minutes; OUT=docs draws the picture
	@GO="$(GO)" WORK="$(WORK)" LIMITERS="$(LIMITERS)" LOADS="$(LOADS)" LENGTH="$(LENGTH)" \
	  OUT="$(abspath $(OUT))" RECORDS="$(abspath $(RECORDS))" sh bench/overload/run.sh

# Traffic that is not a Poisson process, clients that retry, a container's quota (as root), 2 to 16
# processors over HTTP/1.1, HTTP/2 and TLS; those that the machine lacks are left out. A part of it:
#   make overload-cores KINDS=burst,closed,slowbody,events LENGTH=2
overload-cores: ## the same under bursts, retries, slow clients, quotas, and on 2 to 16 processors; 40 minutes
	@GO="$(GO)" KINDS="$(KINDS)" PROCS="$(PROCS)" PROTOCOLS="$(PROTOCOLS)" WORK="$(WORK)" LIMITERS="$(LIMITERS)" LENGTH="$(LENGTH)" \
	  sh bench/overload/run.sh cores

sim: ## simulated overload; SIM=constants: if a constant changes; SIM=fairness: between tenants, OUT=docs draws its picture
	cd bench && $(GO) run ./sim/cmd/$(or $(SIM),sim) $(if $(OUT),-out $(abspath $(OUT)))

structure: ## the structure of the library as numbers; TREE is another version
	cd bench && $(GO) run ./structure -tree $(abspath $(or $(TREE),.))

# The lock pins every package; rollup is one of which all platforms are on record.
site: ## the pages and the playground as a web site in site/dist; fails on a dead link; needs Node
	cd site && npm ci --no-audit --no-fund && npm run build

release: ## tags VERSION=v0.1.0 and writes dist: source, archives and images of gateway and rls, SBOM; pushes nothing
	sh internal/release/release.sh "$(VERSION)"

REGISTRY ?= ghcr.io/sluice-go
push-images: ## the images of VERSION=v0.1.0 from dist to REGISTRY
	@tool=$(call TOOL,crane); for p in gateway rls; do \
	  at=$$(mktemp -d) && tar -C $$at -xf dist/sluice-$$p-$(VERSION)-image.tar && "$$tool" push $$at $(REGISTRY)/sluice-$$p:$(VERSION) || exit 1; \
	  rm -r $$at; done
