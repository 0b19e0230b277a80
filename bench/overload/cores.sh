#!/bin/sh
# Measures bench/overload/cells by itself and writes its page: bursts, closed loops,
# slow clients, rejections at the socket and their price, retries, tenants and classes, containers with a
# quota, and 2 to 16 processors over HTTP/1.1, HTTP/2 and TLS. On 16 processors less than 40 minutes; processors that the machine
# lacks are left out.
#
#   KINDS     tables (comma between); empty: all
#   PROCS     processors; empty: 2,4,8,16
#   PROTOCOLS of the table of processors; empty: all
#   WORK      handlers of that table; empty: 500us,5ms
#   LIMITERS  limiters; empty: none,default
#   LENGTH    seconds of each measurement; empty: 3
#   OUT       the page; empty: docs/overload-cores.md
set -u
cd "$(dirname "$0")/.." || exit 1
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' INT TERM
GO=${GO:-go}
$GO build -o "$dir/server" ./overload/server || exit 1
$GO build -o "$dir/cells" ./overload/cells || exit 1
set --
[ -n "${KINDS:-}" ] && set -- "$@" -kinds "$KINDS"
[ -n "${PROCS:-}" ] && set -- "$@" -procs "$PROCS"
[ -n "${PROTOCOLS:-}" ] && set -- "$@" -protocols "$PROTOCOLS"
[ -n "${WORK:-}" ] && set -- "$@" -work "$WORK"
[ -n "${LIMITERS:-}" ] && set -- "$@" -limiter "$LIMITERS"
[ -n "${LENGTH:-}" ] && set -- "$@" -seconds "$LENGTH"
"$dir/cells" -server "$dir/server" "$@" > "$dir/page.md" || { cat "$dir/page.md"; exit 1; }
cp "$dir/page.md" "${OUT:-../docs/overload-cores.md}"
cat "$dir/page.md"
