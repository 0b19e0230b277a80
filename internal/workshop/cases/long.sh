#!/bin/sh
# The tests of every promise with their full counts, and each of its fuzz targets
# for FUZZ (default 20s): a line for each promise, and the output of each failure.
# A test of several promises runs with the first of them. Arguments are promises;
# without any, all of them and then the remaining tests.
set -u
cd "$(dirname "$0")/../../.." || exit 2
all="W1 W2 W3 W4 U1 U2 L1 L2 C1 C2 M1 M2 M3 F1 F2 F3 F4 S1 S2 S3 G1"
modules=". bench programs/plan"
log=$(mktemp) && trap 'rm -f "$log"' EXIT
failed=0 ran='^$'

# run PATTERN: its tests in all modules, with the full counts.
run() {
	for m in $modules; do
		(cd "$m" && SLUICE_LONG=1 go test -v -p 1 -count 1 -shuffle=on -timeout 180m -run "$1" -skip "$ran" ./...) || return 1
	done
}

# fuzz ID: its fuzz targets.
fuzz() {
	go test -list "^Fuzz.*$1" ./... | awk '/^Fuzz/ {t[n++]=$1} /^ok/ {for (i=0; i<n; i++) print $2, t[i]; n=0}' |
		while read -r pkg target; do
			echo "$1: $target"
			go test -run '^$' -fuzz "^$target\$" -fuzztime "${FUZZ:-20s}" "$pkg" || exit 1
		done
}

# report NAME COMMAND...: runs it and prints a line.
report() {
	name=$1 began=$(date +%s)
	shift
	if "$@" >"$log" 2>&1; then
		verdict=ok
	else
		verdict=FAILED failed=1
		grep -v '^=== ' "$log"
	fi
	tests=$(grep -c '^--- PASS' "$log")
	figures=$(sed -n "s/^.*[a-z_]*_test\.go:[0-9]*: $name: //p" "$log" | sort | uniq -c | awk '{n=$1; $1=""; printf "%s%s%s", s, (n>1 ? n " x" : ""), $0; s=";"}')
	printf '%s  %s tests,%s  %s, %ss\n' "$name" "$tests" "${figures:- no figures}" "$verdict" "$(($(date +%s) - began))"
}

promise() { run "^(Test|Fuzz)([A-Z][0-9]_)*$1_" && fuzz "$1"; }

for id in ${*:-$all}; do
	report "$id" promise "$id"
	ran="$ran|^(Test|Fuzz)([A-Z][0-9]_)*${id}_"
done
[ $# -gt 0 ] || report rest run .
exit $failed
