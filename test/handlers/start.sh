#!/usr/bin/env bash
# A start script as images have them: a server in the background, then the handler, which is asked for nothing before the
# server answers. Arguments: the interpreter, the handler, the port of the server.
set -u
cd "$HOME" || exit 1
"$1" -m http.server --bind 127.0.0.1 "$3" >/dev/null 2>&1 &
until curl -sf "http://127.0.0.1:$3/" >/dev/null; do sleep 0.05; done
echo "server is up"
"$1" -u "$2"
