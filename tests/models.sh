#!/bin/sh
# models.sh - models come and go while others answer. Usage: tests/models.sh
# after `make`; called by ./test. The last line counts.
# SPDX-License-Identifier: Apache-2.0
set -u
cd "$(dirname "$0")/.." || exit 1
passed=0 failed=0 server=''
command -v curl >/dev/null || { echo "skip models: curl is not installed"; echo "0 passed, 0 failed, 1 skipped"; exit; }
dir=$(mktemp -d /tmp/brass-models.XXXXXX) || exit 1
trap 'kill $server 2>/dev/null; wait; rm -rf "$dir"' EXIT
trap 'exit 1' INT TERM
must() { name=$1; shift; if "$@" >"$dir/out" 2>&1; then passed=$((passed + 1)); echo "ok   $name"; else failed=$((failed + 1)); echo "FAIL $name"; cat "$dir/out" "$dir/log"; fi; }
await() { # COMMAND...: within 20 s
    i=0
    until "$@"; do
        i=$((i + 1))
        [ $i -lt 200 ] || return 1
        sleep 0.1
    done
}
for m in a b c; do ln -s "$PWD/models/demo.gguf" "$dir/$m.gguf"; done

start() { # ARGUMENT...
    [ -z "$server" ] || kill -9 "$server" 2>/dev/null
    : >"$dir/said"
    ./brass serve --port 0 -t 1 --ctx 256 --slots 1 "$@" >"$dir/said" 2>"$dir/log" &
    server=$!
    await grep -q 'on http' "$dir/said" || return 1
    url=$(sed -n 's/.* on \(http:[^ ]*\).*/\1/p' "$dir/said")
    await curl -sf -o /dev/null "$url/health"
}
stop() { kill "$server" && wait "$server"; }
ask() { # MODEL [TOKENS]: the status
    curl -s -o "$dir/answer" -w '%{http_code}' "$url/v1/completions" \
        -d "{\"model\":\"$1\",\"prompt\":\"A fox\",\"max_tokens\":${2:-2},\"ignore_eos\":true}"
}
says() { [ "$(ask "$1")" = "$2" ]; }
# Those that are loaded; all that are listed.
here() { [ "$(curl -s "$url/v1/models" | tr '{' '\n' | grep '"loaded":true' | grep -o '"id":"[a-z]*"' | tr -cd 'abc')" = "$1" ]; }
listed() { [ "$(curl -s "$url/v1/models" | grep -o '"id":"[a-z]*"' | tr -cd 'abc')" = "$1" ]; }

# A line is changed: that model is swapped, the other answers all the while.
swap() {
    printf '%s\n' "$dir/a.gguf" "$dir/b.gguf" >"$dir/list"
    start --model-list "$dir/list" && await here ab || return 1
    (n=0; while [ $n -lt 20 ]; do says a 200 || echo no; n=$((n + 1)); done) >"$dir/a" &
    asks=$!
    printf '%s\n' "$dir/a.gguf" "$dir/c.gguf" >"$dir/list"
    kill -HUP "$server"
    await here ac && listed ac && says c 200 && says b 404 && wait $asks && ! grep no "$dir/a" && stop
}
# Room for two: the one asked longest ago leaves, but not before it has answered.
budget() {
    start "$dir/a.gguf" "$dir/b.gguf" "$dir/c.gguf" --memory "$1" && await here ab && listed abc || return 1
    curl -sf "$url/v1/models/c" | grep -q '"loaded":false' && sleep 0.3 && here ab || return 1
    says a 200 && says b 200 || return 1
    (ask a 150) >"$dir/long" &
    long=$!
    sleep 0.1
    says b 200 && says c 503 && grep -q 'is being loaded' "$dir/answer" || return 1
    await says c 200 && wait $long && [ "$(cat "$dir/long")" = 200 ] && here bc || return 1
    says x 404 && await says a 200 && here ca && says c 200 && stop
}
too_small() {
    ! timeout 20 ./brass serve "$dir/a.gguf" --port 0 --memory 100k >"$dir/said" 2>"$dir/log" &&
        grep -q 'memory gives' "$dir/log"
}
must "a line of --model-list changes" swap
must "--memory: one that is asked for comes, the oldest leaves" budget 30m
must "--memory: too small for one" too_small
echo "$passed passed, $failed failed"
[ $failed = 0 ]
