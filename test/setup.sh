#!/usr/bin/env bash
# Makes sure that one tool of the tests is there: test/setup.sh python|node|gcc|shell|tmux|disk.
# On Debian and Ubuntu it installs what is missing; elsewhere it says what to install.
set -euo pipefail

have() { command -v "$1" >/dev/null 2>&1; }

install() {
	if have apt-get; then
		local sudo=""
		[ "$(id -u)" = 0 ] || sudo=sudo
		$sudo apt-get update -qq
		$sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "$@" >/dev/null
	else
		echo "please install: $*" >&2
		exit 1
	fi
}

case "${1:-}" in
python)
	have python3 && python3 -c 'import venv, ensurepip' 2>/dev/null || install python3 python3-venv
	;;
node)
	have npm || install nodejs npm
	;;
gcc) # the race detector needs cgo
	have gcc || have cc || install gcc libc6-dev
	;;
shell) # the worker that is a shell script
	have curl || install curl
	have jq || install jq
	;;
tmux) # terminals for the doctor
	have tmux || install tmux
	have script || install bsdutils
	;;
disk) # a volume that stops answering
	[ "$(uname)" != Linux ] || [ -x /sbin/mkfs.ext4 ] || install e2fsprogs
	;;
*)
	echo "usage: test/setup.sh python|node|gcc|shell|tmux|disk" >&2
	exit 2
	;;
esac
