# The two commands of the README are "go run ./examples/quickstart" and
# "make test". Everything else here is for people who work on the library.

GO      ?= go
COUNT   ?= 10
FUZZ    ?= 20s
LINT    := $(GO) tool -modfile=tools.mod golangci-lint

# The race detector needs a C compiler. Where there is none, the tests run
# without it, with all of the cases.
RACE    := $(shell command -v $$($(GO) env CC) >/dev/null 2>&1 && [ "$$($(GO) env CGO_ENABLED)" = 1 ] && echo -race)

.PHONY: test long mutants lint bench bench-peers faults fuzz shapes tidy redis

# The whole test suite in random order: everything under the race detector with
# a tenth of the cases, then the properties without it with all of them.
test: redis
	$(GO) vet ./...
	GOARCH=386 $(GO) vet ./...
	$(GO) test $(RACE) -shuffle=on -timeout 9m ./...
	$(if $(RACE),$(GO) test -shuffle=on -timeout 9m ./algo/...,@echo "no C compiler: the tests ran without the race detector")

# A redis-server for the tests of package distributed.
redis:
	@sh internal/redistest/install.sh

# What happens to package distributed under each fault of Redis, as a table.
faults: redis
	$(GO) test -count 1 -timeout 20m -v -run 'TestFaultTable' ./distributed

# The full counts of every property, and each fuzz target for FUZZ: a line for
# each promise of the Guarantees table, and what failed. About an hour with the
# default FUZZ on two processors.
long: redis
	$(GO) run ./internal/promises -fuzz $(FUZZ)

# Known faults, planted one at a time: which tests find each. 95 % must be
# found. MUTANTS is a pattern for some of them.
mutants: redis
	$(GO) run ./internal/mutants -only '$(MUTANTS)'

lint:
	$(GO) mod tidy -diff
	$(LINT) run ./...

# Benchmarks, with the floor (one reading of the clock and one swap) in the
# same run. Compare ratios, not nanoseconds.
bench:
	$(GO) test -run '^$$' -bench . -benchmem -count $(COUNT) ./algo ./httpmw ./grpcmw ./keyfunc

# The library beside its peers, in one run, and on Redis beside redis_rate.
bench-peers: redis
	cd bench && $(GO) run . -out ../docs
	cd bench && $(GO) test -run '^$$' -bench Redis -benchtime 1x ./redis

# The pictures of what each algorithm admits, in docs/shapes.
shapes:
	cd examples/shapes && $(GO) run . -out ../../docs/shapes

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
	$(GO) mod tidy -modfile=tools.mod
