#!/usr/bin/env bash
# Runs every fuzz target for a while: test/fuzz.sh [TIME]. A finding ends it with the failing input's path.
set -euo pipefail
time=${1:-10s}
grep -rlE '^func Fuzz' --include='*_test.go' . | xargs -n1 dirname | sort -u | while read -r dir; do
	grep -hoE '^func Fuzz[A-Za-z0-9_]+' "$dir"/*_test.go | cut -d' ' -f2 | sort -u | while read -r target; do
		go test "$dir" -run '^$' -fuzz "^$target\$" -fuzztime "$time" </dev/null
	done
done
