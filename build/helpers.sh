#!/usr/bin/env bash
# Builds the two GPU helpers for $GOOS/$GOARCH, stamped with $VERSION:
#   build/helpers.sh beside DIR   into the folder of the program
#   build/helpers.sh embed        compressed, where a build with -tags embedprobes takes them from
# The CUDA helper needs no C compiler. The NVML helper does: without one it is left out, and costs health rows only.
set -euo pipefail
cd "$(dirname "$0")/.."

module=runpodctl-worker
arch=$(go env GOARCH)
packed=internal/checks/gpu/embedded/bin/$arch

# compiler prints the C compiler for the target, if there is one.
compiler() {
	local candidate
	candidate=$(go env CC)
	if [ -z "${CC:-}" ] && [ "$arch" != "$(go env GOHOSTARCH)" ]; then
		case $arch in
		amd64) candidate=x86_64-linux-gnu-gcc ;;
		arm64) candidate=aarch64-linux-gnu-gcc ;;
		*) return 0 ;;
		esac
	fi
	command -v "$candidate" || true
}

build() { # NAME DIR LDFLAGS
	go build -trimpath -o "$2/$module-$1-probe" \
		-ldflags "-s -w -X $module/internal/$1probe.version=${VERSION:-0.0.0-dev} $3" "./cmd/$module-$1-probe"
}

build_both() { # DIR
	CGO_ENABLED=0 build cuda "$1" ""
	local cc
	cc=$(compiler)
	if [ -z "$cc" ]; then
		rm -f "$1/$module-nvml-probe"
		echo "no C compiler for $arch: built without the NVML helper" >&2
		return
	fi
	local old=$PWD/.cache/oldglibc/$arch # a fixed place, since the path shows in the program's build id
	build/oldglibc.sh "$cc" "$arch" "$old"
	# Its calls are bound when they are made, whatever the compiler prefers: no driver has all functions of go-nvml.
	CGO_ENABLED=1 CC=$cc CGO_CFLAGS="-O2 -g -Wno-deprecated-declarations" \
		build nvml "$1" "'-extldflags=-Wl,-z,lazy -L$old'"
}

if [ "$(go env GOOS)" != linux ]; then
	exit 0 # the driver is on Linux only
fi
case "${1:-}" in
beside)
	build_both "$2"
	;;
embed)
	work=$(mktemp -d)
	trap 'rm -rf "$work"' EXIT
	build_both "$work"
	rm -rf "$packed"
	mkdir -p "$packed"
	for helper in "$work"/*; do
		name=${helper##*/"$module"-}
		gzip -9nc "$helper" >"$packed/$name.gz"
	done
	;;
*)
	echo "usage: build/helpers.sh beside DIR | embed" >&2
	exit 2
	;;
esac
