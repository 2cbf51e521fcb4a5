#!/bin/sh
# clients.sh - the server and the clients that people use, over loopback.
# Usage: tests/clients.sh [fetch|fetched]    after `make`; called by ./test
#
# Programs that are missing, and clients that npm cannot fetch or that this
# Node cannot run, are skipped and say so. The last line counts. `fetch` lets
# npm fetch them and no more: where there is no network npm needs 300 s to say
# so, and ./test does that beside its first steps. `fetched`: not once more.
# SPDX-License-Identifier: Apache-2.0
set -u
cd "$(dirname "$0")/.." || exit 1
dir=build/clients passed=0 failed=0 skipped=0 server=''
mkdir -p $dir
have() { command -v "$1" >/dev/null 2>&1; }
fetch() {
    cmp -s tests/clients/package.json $dir/installed && return
    cp tests/clients/* $dir/
    have node && have npm &&
        (cd $dir && timeout 300 npm install --no-audit --no-fund --omit=dev) >$dir/npm.log 2>&1 &&
        cp $dir/package.json $dir/installed
}
if [ "${1-}" = fetch ]; then
    fetch
    exit
fi
trap '[ -z "$server" ] || kill "$server" 2>/dev/null' EXIT INT TERM

ok() { passed=$((passed + 1)); echo "ok   $1"; }
bad() { failed=$((failed + 1)); echo "FAIL $1"; }
skip() { skipped=$((skipped + 1)); echo "skip $1: $2"; }
must() { name=$1; shift; if "$@" >$dir/out 2>&1; then ok "$name"; else bad "$name"; tail -n 20 $dir/out; fi; }

start() { # ARGUMENT...
    ./brass serve models/demo.gguf --port 0 --trace $dir/trace "$@" >$dir/said 2>$dir/log &
    server=$!
    i=0
    while ! url=$(sed -n 's/^serving .* on \(https*:[^ ]*\).*/\1/p' $dir/said | grep .) ||
        ! curl -skf "$url/health" >/dev/null; do
        i=$((i + 1))
        if [ $i -gt 300 ] || ! kill -0 $server 2>/dev/null; then
            bad "the server starts"
            cat $dir/said $dir/log
            exit 1
        fi
        sleep 0.1
    done
}
# The server ends well: exit code 0 and nothing logged as an error.
stop() {
    kill -TERM "$server"
    wait "$server"
    code=$?
    server=''
    if [ $code = 0 ] && ! grep -E ' (error|warn) ' $dir/log; then ok "the server ends"; else bad "the server ends: exit $code"; fi
}

# ---- curl --------------------------------------------------------------------
chat='{"messages":[{"role":"user","content":"Tell me a story about a fox."}],"max_tokens":6,"stream":true,"seed":1}'
curl_streams() {
    curl -sN "$@" "$url/v1/chat/completions" -d "$chat" >$dir/stream &&
        [ "$(grep -c '^data: {' $dir/stream)" -ge 4 ] && tail -n 2 $dir/stream | grep -q 'DONE'
}
curl_sends_a_large_body() { # over 1 MB: curl asks first (100-continue)
    { printf '{"prompt":"'; yes fox | head -n 400000 | tr '\n' ' '; printf '"}'; } >$dir/body
    curl -s "$url/tokenize" --data-binary @$dir/body | grep -q '"count":400'
}
curl_speaks_to_a_socket() {
    curl -s --unix-socket $dir/socket http://localhost/v1/models | grep -q '"id":"demo"'
}

# ---- tools -------------------------------------------------------------------
h2_is_h2() { # URL CURL-OPTION...
    to=$1; shift
    curl -skN "$@" "$to/v1/chat/completions" -d "$chat" -w 'v%{http_version}' >$dir/h2 &&
        grep -q 'DONE' $dir/h2 && tail -n 1 $dir/h2 | grep -q '^v2$'
}
h2load_streams_are_clean() { # 100 at a time on each connection
    h2load -n 20000 -c 10 -m 100 "$1/health" >$dir/h2load 2>&1
    grep -q '20000 succeeded, 0 failed, 0 errored, 0 timeout' $dir/h2load ||
        { cat $dir/h2load; return 1; }
}
s_client_sees_h2() {
    echo Q | openssl s_client -connect "${1#https://}" -alpn h2,http/1.1 >$dir/tls 2>&1
    grep -q 'ALPN protocol: h2' $dir/tls && grep -qE 'Protocol *: TLSv1\.3|New, TLSv1\.3' $dir/tls
}
old_tls_is_refused() { ! curl -sk --tls-max 1.1 "$1/health"; }
h2load_is_clean() {
    h2load --h1 -n 20000 -c 100 "$url/health" >$dir/h2load 2>&1
    grep -q '20000 succeeded, 0 failed, 0 errored, 0 timeout' $dir/h2load ||
        { cat $dir/h2load; return 1; }
}
wrk_is_clean() {
    wrk -t1 -c64 -d2 --latency "$url/v1/models" >$dir/wrk 2>&1
    cat $dir/wrk
    grep -q 'Requests/sec' $dir/wrk && ! grep -qE 'Non-2xx|Socket errors' $dir/wrk
}
# Slow headers and slow bodies on 200 connections, for 8 s: others are served by then.
slow_clients_harm_nobody() { # -H | -B
    slowhttptest "$1" -c 200 -r 200 -i 2 -l 8 -u "$url/tokenize" >$dir/slow 2>&1 &
    slow=$!
    sleep 2
    curl -sf -m 4 "$url/health"
    code=$?
    wait $slow
    return $code
}

start --unix $dir/socket --host 127.0.0.1
must "curl: a stream" curl_streams
must "curl: 1.6 MB after 100-continue" curl_sends_a_large_body
must "curl: a unix socket" curl_speaks_to_a_socket
if have h2load; then must "h2load: 20,000 requests" h2load_is_clean; else skip h2load "not installed (nghttp2-client)"; fi
if have wrk; then must "wrk: two seconds" wrk_is_clean; else skip wrk "not installed"; fi
if have slowhttptest; then
    must "slowhttptest: headers" slow_clients_harm_nobody -H
    must "slowhttptest: bodies" slow_clients_harm_nobody -B
else
    skip slowhttptest "not installed"
fi

# ---- Prometheus --------------------------------------------------------------
# Names with a colon are vLLM's: read they can be, but not liked.
metrics_are_liked() {
    curl -s "$url/metrics" >$dir/metrics
    promtool check metrics <$dir/metrics >$dir/liked 2>&1
    [ $? != 1 ] || { cat $dir/liked; return 1; }
    grep -v vllm: $dir/metrics | promtool check metrics
}
# Each question of the dashboard as a rule: promtool reads the language.
dashboard_asks_well() {
    { echo 'groups: [{name: x, rules: ['
    sed -n 's/^ *"expr": "\(.*\)",$/{record: "a:b", expr: "\1", labels: {n: "N"}},/p' docs/grafana.json |
        sed 's/\$__rate_interval/5m/g; s/\$model/.*/g' | awk '{ sub(/"N"/, "\"" NR "\""); print }'
    echo ']}]'; } >$dir/rules.yml
    promtool check rules $dir/rules.yml && [ "$(grep -c record $dir/rules.yml)" -ge 20 ]
}
if have promtool; then
    must "promtool: the metrics" metrics_are_liked
    must "promtool: the dashboard" dashboard_asks_well
else
    skip promtool "not installed (prometheus)"
fi

# ---- HTTP/2 and TLS ----------------------------------------------------------
said_no() { make config 2>/dev/null | grep -q "^$1 .*not found"; }
if said_no libnghttp2; then
    skip "HTTP/2" "built without nghttp2"
else
    must "curl: HTTP/2, known before" h2_is_h2 "$url" --http2-prior-knowledge
    if have h2load; then must "h2load: 20,000 over HTTP/2" h2load_streams_are_clean "$url"; fi
fi
if said_no openssl || ! openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes \
    -keyout $dir/key.pem -out $dir/cert.pem -days 2 -subj /CN=localhost >/dev/null 2>&1; then
    skip "TLS" "built without OpenSSL, or openssl is not installed"
else
    stop
    start --host 127.0.0.1 --tls-cert $dir/cert.pem --tls-key $dir/key.pem
    must "curl: TLS" curl_streams -k
    must "curl: TLS 1.1 is refused" old_tls_is_refused "$url"
    if ! said_no libnghttp2; then
        must "curl: HTTP/2 over TLS" h2_is_h2 "$url" --http2
        must "openssl: ALPN" s_client_sees_h2 "$url"
        if have h2load; then must "h2load: 20,000 over TLS" h2load_streams_are_clean "$url"; fi
    fi
    stop
    start --unix $dir/socket --host 127.0.0.1 --responses $dir/responses.db
fi
export BRASS_URL="$url"

# ---- clients of npm ----------------------------------------------------------
run_node() { # SCRIPT
    if (cd $dir && timeout 120 node "$1.mjs") >$dir/out 2>&1; then code=0; else code=1; fi
    sed -n "s/^ok   /ok   $1: /p; s/^FAIL /FAIL $1: /p" $dir/out
    counts=$(sed -n 's/^\([0-9]*\) passed, \([0-9]*\) failed$/\1 \2/p' $dir/out)
    if [ -z "$counts" ]; then
        if grep -qE 'ERR_(UNSUPPORTED|REQUIRE)|SyntaxError|requires Node' $dir/out; then
            skip "$1" "Node $(node --version) does not run it"
        else
            bad "$1"
            tail -n 20 $dir/out
        fi
        return
    fi
    passed=$((passed + ${counts% *})) failed=$((failed + ${counts#* }))
    [ $code = 0 ] || cat $dir/out
}
cp tests/clients/* $dir/
[ "${1-}" = fetched ] || fetch
if ! have node || ! have npm; then
    skip "npm clients" "node or npm is not installed"
elif ! cmp -s $dir/package.json $dir/installed; then
    skip "npm clients" "npm could not fetch them"
else
    run_node openai
    run_node ai-sdk
    run_node anthropic
    if CHROMIUM=$(command -v chromium || command -v google-chrome); then
        export CHROMIUM
        mkdir -p $dir/shots
        SHOTS=shots run_node browser
    else
        skip browser "chromium is not installed"
    fi
    stop
    unset BRASS_URL # brass would wonder
    start --chat-template tests/clients/tools.jinja
    export BRASS_URL="$url"
    run_node tools
fi
stop
must "the server's trace, asked again" ./brass replay $dir/trace

printf '%d passed, %d failed' $passed $failed
[ $skipped -eq 0 ] || printf ', %d skipped' $skipped
echo
[ $failed -eq 0 ]
