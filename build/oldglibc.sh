#!/usr/bin/env bash
# Makes stand-ins for libpthread and libdl to link against: build/oldglibc.sh CC GOARCH DIR, then link with -L DIR.
# In glibc 2.34 the functions of both moved into libc and got a new version, so that whatever is linked there starts
# nowhere else. Every glibc, however new, still has the oldest version too, and that is what these ask for.
set -euo pipefail
cc=$1 arch=$2 dir=$3
mkdir -p "$dir"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

stub() { # SONAME VERSIONS FUNCTION...
	printf 'void %s(void) {}\n' "${@:3}" >"$work/stub.c"
	echo "$2" >"$work/stub.map"
	"$cc" -shared -nostdlib -fno-builtin -Wl,-soname,"$1" -Wl,--version-script="$work/stub.map" -o "$work/stub.so" "$work/stub.c"
	cp "$work/stub.so" "$dir/$1.$$"
	mv -f "$dir/$1.$$" "$dir/${1%.*}" # somebody may be linking right now
}

case $arch in
amd64) pthread='GLIBC_2.2.5 { *; };' dl='GLIBC_2.2.5 { *; }; GLIBC_2.3.3 { dlinfo; };' ;;
*) pthread='GLIBC_2.17 { *; };' dl=$pthread ;;
esac
stub libpthread.so.0 "$pthread" __libc_start_main pthread_attr_getstack pthread_attr_getstacksize pthread_create \
	pthread_getattr_np pthread_key_create pthread_setspecific pthread_sigmask
stub libdl.so.2 "$dl" dlclose dlerror dlinfo dlopen dlsym
