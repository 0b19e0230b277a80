#!/bin/sh
# Builds the playground into the directory of the site: the pages, the limiters as WASM, and
# the glue of the Go version that compiled them.
set -eu
out=$(mkdir -p "$1" && cd "$1" && pwd)
cd "$(dirname "$0")"
cp index.html app.js overload.html overload.js style.css icon.svg "$(go env GOROOT)/lib/wasm/wasm_exec.js" "$out"
GOOS=js GOARCH=wasm go build -C ../../programs/playground -trimpath -ldflags '-s -w' -o "$out/playground.wasm" ./wasm
GOOS=js GOARCH=wasm go build -C ../../bench -trimpath -ldflags '-s -w' -o "$out/overload.wasm" ./sim/wasm
