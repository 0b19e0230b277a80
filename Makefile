# The two commands of the README are "go run ./examples/quickstart" and
# "make test". Everything else here is for people who work on the library.

GO      ?= go
COUNT   ?= 10
FUZZ    ?= 20s
LINT    := $(GO) tool -modfile=tools.mod golangci-lint

# The race detector needs a C compiler. Where there is none, the tests run
# without it, with all of the cases.
RACE    := $(shell command -v $$($(GO) env CC) >/dev/null 2>&1 && [ "$$($(GO) env CGO_ENABLED)" = 1 ] && echo -race)

.PHONY: fips api test smoke check race 32bits shapes-unchanged valkey long mutants lint bench bench-own bench-scaling faults fuzz shapes sim constants fairness tidy redis admin-test gateway-load gateway-compare rls-bench overload overload-cores modules structure versions vulnerabilities workflows site site-test release-test dockerfiles fleet

# The tests in random order, with few cases, without those that wait for seconds or for other
# processes: three minutes on a fresh machine of two processors, 90 s with a warm cache. Package
# distributed, which waits most, begins first, beside the others.
test: redis
	$(GO) test -vet=off -short -shuffle=on -p 3 -parallel 8 -timeout 9m ./distributed/... ./...

# A first look in 15 s with a warm cache: decisions, limiters, gRPC; no Redis.
smoke:
	$(GO) test -vet=off -short ./algo/... ./internal/decide ./internal/admission ./internal/class ./internal/clientip ./keyfunc/... ./grpcmw

# The rest of what every change must pass: all tests under the race detector with everyday
# counts, nested modules, 32 bits, pictures, lint. 16 minutes on two processors.
check: race modules 32bits shapes-unchanged lint fips

race: redis
	$(GO) test $(RACE) -vet=off -shuffle=on -parallel 4 -timeout 15m ./distributed/... ./...
	$(if $(RACE),,@echo "WARNING: no C compiler: the tests ran without the race detector")

32bits:
	@GO="$(GO)" sh internal/cases/32bits.sh

# The packages that hash, where only algorithms of FIPS 140-3 may be used.
fips: redis
	GODEBUG=fips140=only $(GO) test -short -run 'Secret|Hash|Pepper|TestTokenBucket|TestCorrections|TestInFlightHolds' ./distributed ./keyfunc

shapes-unchanged: shapes
	git diff --exit-code --stat docs/shapes

# A redis-server for the tests of package distributed.
redis:
	@sh internal/redistest/install.sh

# The tests that need a Redis, on Valkey.
valkey: export SLUICE_REDIS_SERVER := valkey-server
valkey: redis
	$(GO) test -count 1 -timeout 20m ./distributed/... ./internal/redistest
	cd distributed/rueidisstore && $(GO) test -count 1 ./...

# What happens to package distributed under each fault of Redis, as the table of docs/faults.md:
# all cells and seeds, some six minutes on two processors.
faults: redis
	SLUICE_LONG=1 $(GO) test -count 1 -timeout 60m -parallel 4 -v -run FaultTable ./distributed

# The full counts of every property, and each fuzz target for FUZZ: a line for
# each promise of doc.go, and the output of each failure. PROMISES='W1 S3' runs
# some of them. About an hour with the default FUZZ on two processors.
long: redis
	@FUZZ=$(FUZZ) sh internal/cases/long.sh $(PROMISES)

# Known faults, planted one at a time: which tests find each. 95 % must be
# found. MUTANTS is a pattern for some of them.
mutants: redis
	cd bench && $(GO) run ./mutants -only '$(MUTANTS)'

# The tests of the nested modules. That of the admin page's browser needs a
# Chromium: see admin-test.
MODULES := algo/telemetry/otelmetrics distributed/rueidisstore httpmw/admin bench $(patsubst %/go.mod,%,$(wildcard examples/*/go.mod))
modules: redis
	@for m in $(MODULES); do (cd $$m && $(GO) mod tidy -diff && $(GO) vet ./... && $(GO) test -timeout 9m ./...) || exit 1; done

# Lint, and vet for 32 bits too. Code that only tests use is unused.
lint:
	$(GO) mod tidy -diff
	$(GO) vet ./...
	GOARCH=386 $(GO) vet ./...
	$(LINT) run ./...
	$(LINT) run --tests=false --enable-only unused ./...
	cd bench && "$$(cd .. && $(GO) tool -n -modfile=tools.mod golangci-lint)" run ./...

# The library beside its peers, and the attacks on all of them: one program, some
# four minutes on a quiet machine, which writes docs/benchmarks.md and its
# pictures. BENCH='-quick -only inflight' prints a first look instead.
BENCH   ?= -out ../docs
bench: redis
	cd bench && $(GO) run . $(BENCH)

# The same decisions on 1, 2, 4, 8 and 16 processors, as far as the machine has them: three
# minutes on 16. PROCS is another list.
bench-scaling:
	cd bench && $(GO) run . -scaling '$(or $(PROCS),1,2,4,8,16)'

# The benchmarks of the packages alone, with the floor (one reading of the clock
# and one swap) in the same run. Compare ratios, not nanoseconds.
bench-own:
	$(GO) test -run '^$$' -bench . -benchmem -count $(COUNT) ./algo ./adaptive ./httpmw ./grpcmw ./keyfunc

# The admin page in a headless Chromium, and the rules of axe-core on it and on the
# playground (needs Node 20). With PICTURES=1 it also takes the
# pictures in docs/admin, over five minutes of load.
admin-test: redis
	@sh httpmw/admin/browser/install.sh
	npm ci --no-audit --no-fund --prefix httpmw/admin/browser/axe
	cd httpmw/admin/browser && $(if $(PICTURES),PICTURES=../../../docs/admin) $(GO) test $(if $(PICTURES),-tags pictures) -count 1 -timeout 20m -v .

# The capacity of a real server that limiters keep under overload: one core for the server,
# one for the load, nothing else on the machine, near 40 minutes. A part of it:
#   make overload WORK=5ms,30ms LIMITERS=none,default LOADS=0.85,5 OUT=/tmp
# OUT is where the page goes, RECORDS a file that keeps the figures of several
# runs, LENGTH the seconds of each overload.
overload:
	@GO="$(GO)" WORK="$(WORK)" LIMITERS="$(LIMITERS)" LOADS="$(LOADS)" LENGTH="$(LENGTH)" \
	  OUT="$(abspath $(or $(OUT),docs))" RECORDS="$(abspath $(RECORDS))" sh bench/overload/run.sh

# A real server under traffic that is not a Poisson process, with clients that retry, within a
# container's quota (as root), and on 2 to 16 processors over HTTP/1.1, HTTP/2 and TLS: less
# than 40 minutes on 16 processors; those that the machine lacks are left out. A part of it:
#   make overload-cores KINDS=burst,closed,slowbody,events,listener LENGTH=2 OUT=/tmp/page.md
overload-cores:
	@GO="$(GO)" KINDS="$(KINDS)" PROCS="$(PROCS)" PROTOCOLS="$(PROTOCOLS)" WORK="$(WORK)" LIMITERS="$(LIMITERS)" LENGTH="$(LENGTH)" \
	  OUT="$(abspath $(or $(OUT),docs/overload-cores.md))" sh bench/overload/cores.sh

# Two versions of the module side by side on one Redis: this tree and OLD, a commit or the
# last tag, whose functions it needs.
OLD ?= $(shell git describe --tags --abbrev=0 2>/dev/null)
versions: redis
	@test -n "$(OLD)" || { echo "no version is tagged: make versions OLD=commit" >&2; exit 2; }
	cd bench && $(GO) test -count 1 -v ./versions -old $(OLD)

# The pictures of what each algorithm admits, in docs/shapes.
shapes:
	cd bench && $(GO) run ./shapes -out ../docs/shapes

# Package adaptive under simulated overload: all scenarios, as tables and
# pictures, in bench/sim/results. Takes some minutes of one processor.
sim:
	cd bench && $(GO) run ./sim/cmd/sim -out sim/results

# What becomes of the simulator's scenarios if a constant of RunQueue changes, in bench/sim/results.
constants:
	cd bench && $(GO) run ./sim/cmd/constants -out sim/results

# Fair shares between tenants in the simulator: a table and a picture, in bench/sim/results.
fairness:
	cd bench && $(GO) run ./sim/cmd/fairness -out sim/results

# The gateway under wrk: what it costs, whether limits hold, and what changes of
# its file do to requests and debt. Needs wrk.
gateway-load:
	cd examples/gateway && $(GO) run ./load

# The tools of internal/release/go.mod, which pins them.
TOOL     = "$$($(GO) -C internal/release tool -n $(1))"

# The gateway, nginx and Caddy before one upstream under wrk, in turns, as tables; three
# minutes. Needs wrk, nginx and caddy. LENGTH=2s ROUNDS=1 is a first look.
gateway-compare:
	@LENGTH="$(or $(LENGTH),10s)" ROUNDS="$(or $(ROUNDS),3)" sh examples/gateway/bench/compare.sh

# The rate limit service beside envoyproxy/ratelimit's design (INCRBY and EXPIRE for each
# descriptor) on one redis-server, in turns, as a table; three minutes. RLS_BENCH='-turn 500ms -turns 1'
# is a first look.
rls-bench: redis
	cd examples/rls && $(GO) run ./bench $(RLS_BENCH)

# Decisions on one Redis by eight processes at once, beside redis_rate.
fleet: redis
	cd bench && $(GO) run ./fleet

# Known vulnerabilities in the code that the released modules call. VULNDB=file:///... is a
# copy of the database. 3 means that there are some.
VULNDB ?= https://vuln.go.dev
vulnerabilities:
	@tool=$(call TOOL,govulncheck); for m in . httpmw/admin algo/telemetry/otelmetrics distributed/rueidisstore; do \
	  "$$tool" -C $$m -db $(VULNDB) ./... || { status=$$?; \
	    [ $$status = 3 ] || echo "nothing was checked: make vulnerabilities needs $(VULNDB); VULNDB=file:///... names a copy" >&2; \
	    exit $$status; }; done

# A release of a copy of the repository: notes, source, SBOM, checksums, tag.
release-test:
	cd internal/release && $(GO) vet . && $(GO) test -count 1 -timeout 9m -v .

# The pages as a web site in site/dist, with a search, and a check of all its links.
# Needs Node 20. With the playground as WASM. The lock pins every package; rollup is one of which all platforms are on record.
site:
	cd site && npm ci --no-audit --no-fund && npm run build

# A headless Chromium clicks through the built site and its playground, at 1280 and 390
# pixels, light and dark. PICTURES=/tmp keeps pictures.
site-test: site
	@sh httpmw/admin/browser/install.sh
	npm ci --no-audit --no-fund --prefix httpmw/admin/browser/axe
	cd httpmw/admin/browser && $(if $(PICTURES),PICTURES=$(abspath $(PICTURES))) $(GO) test -tags site -count 1 -run TestSite -timeout 9m -v .

# The workflows of the hosting service, which call .ci/run and targets of this file.
workflows:
	$(call TOOL,actionlint)

# The Dockerfiles of the examples; it needs npm.
dockerfiles:
	npx --yes dockerfilelint@1.8.0 $(sort $(wildcard examples/*/Dockerfile))

# Records the public API, which the tests compare.
api:
	$(GO) test . -run TestPublicAPI -update

# The structure of the library and its English as a table of numbers. TREE is
# another version to measure.
structure:
	cd bench && $(GO) run ./structure -tree $(abspath $(or $(TREE),.))

# Every fuzz target for FUZZ each.
fuzz:
	@for pkg in $$($(GO) list ./...); do \
	  for target in $$($(GO) test -list '^Fuzz' $$pkg | grep '^Fuzz'); do \
	    echo "$$pkg $$target"; \
	    $(GO) test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZ) $$pkg || exit 1; \
	  done; \
	done

tidy:
	$(GO) mod tidy
	@for m in $(MODULES); do (cd $$m && $(GO) mod tidy) || exit 1; done
	$(GO) mod tidy -modfile=tools.mod
