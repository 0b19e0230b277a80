#!/bin/sh
# Tests on 32 bits, where the words of a key are not those of the machine. Some kernels cannot
# run such programs; there they are only compiled, by make lint.
set -eu
cd "$(dirname "$0")/../../.."
go=${GO:-go}
export GOARCH=386
dir=$(mktemp -d) && trap 'rm -rf "$dir"' EXIT
printf 'package main\n\nfunc main() {}\n' >"$dir/main.go"
"$go" build -o "$dir/main" "$dir/main.go"
if ! "$dir/main" 2>/dev/null; then
	echo "WARNING: the tests on 32 bits were not run: this kernel cannot run a program of GOARCH=386"
	exit 0
fi
"$go" test -vet=off -short ./internal/... ./algo
"$go" test -vet=off -short ./keyfunc/... ./httpmw ./grpcmw ./adaptive
# The Lua of miniredis has integers of the machine's size; Redis itself has not.
"$go" test -vet=off -short -run 'Conformance|L2_|Levels|Mixed|Calendar|Refund' -skip 'Miniredis|^Example' ./distributed
