#!/bin/sh
# Measures the overload matrix and draws its picture, or, with "cores", the tables of other traffic
# and of several processors.
#
#   WORK, LIMITERS, LOADS   restrict the matrix, or the table of processors (comma between); empty: all
#   LENGTH                  seconds of each measurement; empty: as in the matrix, 3 for the tables
#   OUT                     directory of the picture; empty: none
#   RECORDS                 file to which the figures of the matrix are appended; empty: none is kept
#   KINDS, PROCS, PROTOCOLS tables, processors and protocols; empty: all
set -u
cd "$(dirname "$0")/.." || exit 1
fail() { echo "overload: $*" >&2; exit 1; }
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' INT TERM
GO=${GO:-go}
$GO build -o "$dir/server" ./overload/server || fail "the server was not built"
$GO build -o "$dir/overload" ./overload || fail "the generator was not built"
tables=${1:-}
set -- -server "$dir/server"
[ -n "${LIMITERS:-}" ] && set -- "$@" -limiter "$LIMITERS"
[ -n "${WORK:-}" ] && set -- "$@" -work "$WORK"

if [ "$tables" = cores ]; then
  [ -z "${WORK:-}" ] && set -- "$@" -work 500us,5ms
  [ -n "${PROCS:-}" ] && set -- "$@" -procs "$PROCS"
  [ -n "${PROTOCOLS:-}" ] && set -- "$@" -protocols "$PROTOCOLS"
  "$dir/overload" "$@" -seconds "${LENGTH:-3}" \
    -kinds "${KINDS:-pools,burst,closed,slowbody,events,metastable,tenants,quota,cores}"
  exit
fi

command -v taskset >/dev/null 2>&1 || fail "taskset is missing (package util-linux)"
taskset -c 0 true 2>/dev/null && taskset -c 1 true 2>/dev/null ||
  fail "two processors are needed, 0 for the server and 1 for the load; $(nproc) can be used here"
records=${RECORDS:-$dir/records}
[ -n "${LOADS:-}" ] && set -- "$@" -loads "$LOADS"
[ -n "${LENGTH:-}" ] && set -- "$@" -seconds "$LENGTH"
taskset -c 1 "$dir/overload" -json "$records" "$@"
status=$?
# What was measured is written even if cells failed: the report says which.
[ -s "$records" ] || exit 1
"$dir/overload" -report "${OUT:-$dir}" -json "$records" || exit 1
exit $status
