#!/bin/sh
# Measures the overload matrix and writes the page and the plots of it.
#
#   WORK, LIMITERS, LOADS   restrict the matrix (comma between); empty: all of it
#   LENGTH                  seconds of each overload; empty: as in the matrix
#   OUT                     directory of the page and the plots
#   RECORDS                 file to which the figures are appended; empty: none is kept
set -u
cd "$(dirname "$0")/.." || exit 1
fail() { echo "overload: $*" >&2; exit 1; }

command -v taskset >/dev/null 2>&1 || fail "taskset is missing (package util-linux)"
taskset -c 0 true 2>/dev/null && taskset -c 1 true 2>/dev/null ||
  fail "two processors are needed, 0 for the server and 1 for the load; $(nproc) can be used here"

dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' INT TERM
GO=${GO:-go}
$GO build -o "$dir/server" ./overload/server || fail "the server was not built"
$GO build -o "$dir/overload" ./overload || fail "the generator was not built"

out=${OUT:-../docs}
records=${RECORDS:-$dir/records}
set --
[ -n "${WORK:-}" ] && set -- "$@" -work "$WORK"
[ -n "${LIMITERS:-}" ] && set -- "$@" -limiter "$LIMITERS"
[ -n "${LOADS:-}" ] && set -- "$@" -loads "$LOADS"
[ -n "${LENGTH:-}" ] && set -- "$@" -seconds "$LENGTH"
taskset -c 1 "$dir/overload" -server "$dir/server" -matrix -json "$records" "$@"
status=$?
# What was measured is written even if cells failed: the page says which.
[ -s "$records" ] || exit 1
"$dir/overload" -report "$out" -json "$records" || exit 1
exit $status
