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
    await grep -q '^serving .* on http' "$dir/said" || return 1
    url=$(sed -n 's/^serving .* on \(http:[^ ]*\).*/\1/p' "$dir/said")
    await curl -sf -o /dev/null "$url/health"
}
stop() { kill "$server" && wait "$server"; }
ask() { # MODEL [TOKENS]: the status
    curl -s -o "$dir/answer" -w '%{http_code}' "$url/v1/completions" -H "x-api-key: $(cat "$dir/me" 2>/dev/null)" \
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
# What is wrong with a list is said, and those that are there go on answering.
mistakes() {
    printf '%s\n' "$dir/a.gguf" "$dir/b.gguf" >"$dir/list"
    start --model-list "$dir/list" && await here ab || return 1
    mkdir -p "$dir/other" && ln -sf "$PWD/models/demo.gguf" "$dir/other/b.gguf"
    unheard nosuchname "$dir/a.gguf" "$dir/b.gguf" && await said 'no such model' || return 1
    unheard "$dir/c.gguf" "$dir/b.gguf" "$dir/other/b.gguf" && await said "both are called 'b'" || return 1
    unheard '#' && await said 'names no model' || return 1
    sleep 0.3 && here ab && listed ab && says a 200 && says b 200 || return 1
    # The same name from elsewhere: one answers all the while.
    (n=0; while [ $n -lt 30 ]; do says b 200 || echo no; n=$((n + 1)); done) >"$dir/b" &
    asks=$!
    unheard "$dir/a.gguf" "$dir/other/b.gguf" "$dir/c.gguf" && await here abc && says b 200 || return 1
    wait $asks && ! grep no "$dir/b" && ! said 'other/b.gguf' && stop
}
# Away and back while it answers its last requests: the other one of its name answers
# until it is there again, and leaves then. Nobody rests who was told to come.
back() {
    printf '%s\n' "$dir/b.gguf" >"$dir/list"
    start --model-list "$dir/list" --log-level info --unload-idle 600 && await here b || return 1
    mkdir -p "$dir/other" && ln -sf "$PWD/models/demo.gguf" "$dir/other/b.gguf"
    for i in 1 2; do
        curl -s -o /dev/null "$url/v1/completions" \
            -d '{"model":"b","prompt":"A fox","n":16,"max_tokens":240,"ignore_eos":true}' &
    done
    await answers || return 1
    unheard "$dir/other/b.gguf" && await said 'b on cpu' || return 1
    printf '%s\n' "$dir/b.gguf" >"$dir/list"
    kill -HUP "$server"
    (n=0; until twice ready || [ $n = 2000 ]; do says b 200 || echo no; n=$((n + 1)); done) >"$dir/b"
    ! grep no "$dir/b" && twice ready && await twice left && says b 200 && here b && stop
}
asked() { [ -s "$dir/long" ] || answers; }
answers() { curl -s "$url/metrics" | grep -q '^vllm:num_requests_running{.*} [1-9]'; }
twice() { [ "$(grep -ac "http_$1" "$dir/log")" = 2 ]; } # in any order: threads say it
unheard() { printf '%s\n' "$@" >"$dir/list"; : >"$dir/log"; kill -HUP "$server"; }
said() { grep -q "$1" "$dir/log"; }
# Room for two: the one asked longest ago leaves, but not before it has answered.
budget() {
    : >"$dir/long"
    start "$dir/a.gguf" "$dir/b.gguf" "$dir/c.gguf" --memory "$1" && await here ab && listed abc || return 1
    curl -sf "$url/v1/models/c" | grep -q '"loaded":false' && sleep 0.3 && here ab || return 1
    says a 200 && says b 200 || return 1
    (ask a 150) >"$dir/long" &
    long=$!
    await asked || return 1
    says b 200 && says c 200 && wait $long && [ "$(cat "$dir/long")" = 200 ] && here bc || return 1
    says x 404 && says a 200 && here ca && says c 200 || return 1
    # Room for two, asked for three at once: each has its turn.
    for m in a b c; do
        (n=0; while [ $n -lt 6 ]; do says $m 200 || echo no; n=$((n + 1)); done) >"$dir/turns$m" &
        eval "turn$m=$!"
    done
    wait $turna $turnb $turnc && ! cat "$dir"/turns? | grep no && stop
}
too_small() {
    ! timeout 20 ./brass serve "$dir/a.gguf" --port 0 --memory 100k >"$dir/said" 2>"$dir/log" &&
        grep -q 'memory gives' "$dir/log"
}
# The admin loads, swaps and unloads; a and b answer all the while.
admin() {
    echo a-line-of-twenty-characters >"$dir/key"
    start "$dir/a.gguf" "$dir/b.gguf" --db "$dir/t.db" --admin-key-file "$dir/key" && await here2 ab || return 1
    ./brass tenant create alice --db "$dir/t.db" >"$dir/me" 2>/dev/null
    await says a 200 && await says b 200 || return 1 # heard of within a second
    (n=0; while [ $n -lt 30 ]; do says a 200 && says b 200 || echo no; n=$((n + 1)); done) >"$dir/asks" &
    asks=$!
    [ "$(put c "{\"model\":\"$dir/a.gguf\"}")" = 202 ] && await here2 abc && says c 200 || return 1
    [ "$(put b "{\"model\":\"$dir/c.gguf\"}")" = 202 ] && await here2 acb || return 1
    wait $asks && ! grep no "$dir/asks" || return 1
    [ "$(put x '{"model":"/nowhere.gguf"}')" = 400 ] && [ "$(put x "{\"model\":\"$dir/key\"}")" = 202 ] || return 1
    await broken x false && says x 404 && [ "$(put x '' DELETE)" = 202 ] || return 1
    # Who has a name keeps it where the next one does not come.
    [ "$(put a "{\"model\":\"$dir/key\"}")" = 202 ] && await broken a true && says a 200 || return 1
    [ "$(put a "{\"model\":\"$dir/a.gguf\"}")" = 202 ] && await mended a && says a 200 || return 1
    await gone x && [ "$(put c '' DELETE)" = 202 ] && await here2 ab && says c 404 && [ "$(put c '' DELETE)" = 404 ] && stop
}
# Until SIGHUP: then the list holds, whatever names its files were given.
until_hup() {
    echo a-line-of-twenty-characters >"$dir/key"
    printf '%s\n' "$dir/a.gguf" "$dir/b.gguf" >"$dir/list"
    start --model-list "$dir/list" --admin-key-file "$dir/key" && await here2 ab || return 1
    [ "$(put b "{\"model\":\"$dir/a.gguf\"}")" = 202 ] && [ "$(put a '' DELETE)" = 202 ] && await here2 b || return 1
    kill -HUP "$server"
    await here2 ab || await here2 ba || return 1
    says a 200 && says b 200 && stop
}
# One that nobody asks leaves, though it is the only one, and comes when it is asked.
idle() {
    start "$dir/a.gguf" --unload-idle 1 && await here '' && listed a || return 1
    curl -sf "$url/health" | grep -q idle && says a 200 || return 1
    await here '' && unnamed 200 && await here '' || return 1
    # Its file is not there for a while: that is told, and it may come the next time.
    mv "$dir/a.gguf" "$dir/away.gguf"
    says a 500 && grep -q "'a' could not be loaded: .*a.gguf: .*No such file" "$dir/answer" && listed a || return 1
    curl -s "$url/v1/models" | grep -q '"error":"' && curl -sf "$url/health" | grep -q idle || return 1
    mv "$dir/away.gguf" "$dir/a.gguf"
    says a 200 && ! curl -s "$url/v1/models" | grep '"error":"' && stop
}
unnamed() { [ "$(curl -s -o /dev/null -w '%{http_code}' "$url/v1/completions" -d '{"prompt":"A fox","max_tokens":2}')" = "$1" ]; }
put() { curl -s -o "$dir/answer" -w '%{http_code}' -X "${3:-PUT}" -H "x-api-key: $(cat "$dir/key")" "$url/v1/models/$1" -d "$2"; }
models() { curl -s -H "x-api-key: $(cat "$dir/key")" "$url/v1/models"; }
here2() { [ "$(models | tr '{' '\n' | grep '"loaded":true' | grep -o '"id":"[a-z]*"' | tr -cd 'abc')" = "$1" ]; }
broken() { models | tr '{' '\n' | grep -q "\"id\":\"$1\".*\"loaded\":$2,.*\"error\":\""; }
mended() { ! broken "$1" true; }
gone() { ! models | grep -q "\"id\":\"$1\""; }
must "a line of --model-list changes" swap
must "a mistake in --model-list changes nothing" mistakes
must "a model goes and comes back while it answers" back
must "models are loaded, swapped and unloaded by the admin" admin
must "what the admin does holds until SIGHUP" until_hup
must "--memory: one that is asked for comes, the oldest leaves" budget 30m
must "--unload-idle: one that nobody asks leaves until it is asked" idle
must "--memory: too small for one" too_small
echo "$passed passed, $failed failed"
[ $failed = 0 ]
