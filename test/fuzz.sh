#!/usr/bin/env bash
# Runs every fuzz target for a while: test/fuzz.sh [TIME]. A finding ends it with the failing input's path.
set -euo pipefail
time=${1:-10s}
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# By default each input that reaches new code is made smaller for up to a minute, in which nothing new is tried.
fuzz() { # PACKAGE TARGET
	if go test "$1" -run '^$' -fuzz "^$2\$" -fuzztime "$time" -fuzzminimizetime 100x </dev/null >"$log" 2>&1; then
		tail -n 1 "$log"
		return
	fi
	# The fuzzer now and then reports the end of its own time as a failure; a finding names its input.
	if ! grep -q 'Failing input written' "$log" && grep -q 'context deadline exceeded' "$log"; then
		echo "ok $1 $2 (time is up)"
		return
	fi
	cat "$log"
	return 1
}

targets=$(grep -rnoE '^func Fuzz[A-Za-z0-9_]+' --include='*_test.go' . | sed -E 's#^(.*)/[^/]+:[0-9]+:func (.*)$#\1 \2#' | sort -u)
while read -r dir target; do
	fuzz "$dir" "$target"
done <<<"$targets"
