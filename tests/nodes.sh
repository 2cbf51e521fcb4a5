#!/bin/sh
# nodes.sh - three servers behind nginx over one PostgreSQL, as deploy/ has
# them. Usage: tests/nodes.sh    after `make`; called by ./test
#
# A session keeps its server; a server that drains hands its sessions on and no
# request is lost; what they did adds up in one ledger. The last line counts.
# SPDX-License-Identifier: Apache-2.0
set -u
cd "$(dirname "$0")/.." || exit 1
dir=$(mktemp -d /tmp/brass-nodes.XXXXXX) || exit 1
chmod 755 "$dir" # PostgreSQL is another user's
passed=0 failed=0 pids='' PATH=$PATH:/usr/sbin
trap 'kill $pids 2>/dev/null; wait; rm -rf "$dir"' EXIT
trap 'exit 1' INT TERM

have() { command -v "$1" >/dev/null 2>&1; }
ok() { passed=$((passed + 1)); echo "ok   $1"; }
bad() { failed=$((failed + 1)); echo "FAIL $1"; tail -n 5 "$dir"/*.log 2>/dev/null; }
must() { name=$1; shift; if "$@" >"$dir/out" 2>&1; then ok "$name"; else bad "$name"; cat "$dir/out"; fi; }
end() { echo "$passed passed, $failed failed${1:-}"; [ $failed = 0 ]; exit; }
await() { # COMMAND...: within 20 s
    i=0
    until "$@" >/dev/null 2>&1; do
        i=$((i + 1))
        [ $i -lt 200 ] || return 1
        sleep 0.1
    done
}

# ---- the manifest and the flags it gives -------------------------------------
flags_exist() {
    ./brass serve --help >"$dir/help"
    for f in $(grep -oh -e '--[a-z][a-z-]*' deploy/kubernetes.yaml deploy/nginx.conf | sort -u); do
        case $f in --from-literal) continue ;; esac
        grep -q -e "$f" "$dir/help" || ./brass help serve | grep -q -e "$f" || { echo "no $f"; return 1; }
    done
}
# kubectl reads into the types of the API: what is no field is gone afterwards.
fields_exist() {
    kubectl kustomize deploy >/dev/null || return 1
    awk '/^kind: StatefulSet/ { on = 1 } /^---/ { on = 0 } on' deploy/kubernetes.yaml >"$dir/set"
    { echo 'apiVersion: apps/v1'; cat "$dir/set"; } >"$dir/set.yaml"
    kubectl set image --local -f "$dir/set.yaml" brass=x -o json >"$dir/set.json" || return 1
    for key in $(sed -n 's/ *#.*//; s/^[ -]*\([A-Za-z.\/]*\):.*/\1/p' "$dir/set" | sort -u); do
        grep -q "\"$key\":" "$dir/set.json" || { echo "$key: no such field"; return 1; }
    done
}
must "deploy/: the flags are there" flags_exist
if have kubectl; then must "kubectl: the manifest" fields_exist; else echo "skip kubectl: not installed"; fi
python3 tests/manifest.py >"$dir/out" 2>&1
if [ $? = 77 ]; then
    echo "skip the manifest's types: no python3-kubernetes"
else
    must "the manifest has the API's fields and types" python3 tests/manifest.py deploy/kubernetes.yaml
fi

skip=''
have nginx && have curl || skip="nginx or curl is not installed"
./brass tenant list --db postgres://127.0.0.1:1/x 2>&1 | grep -q libpq && skip="built without libpq"

# ---- start -------------------------------------------------------------------
# nginx; its servers have the next three, then PostgreSQL. Below the ports that
# the system gives connections (from 32768 on): one of those had taken ours.
taken() { # PORT: /proc/net/tcp and tcp6 have it as a local one, in hex
    grep -qi "^ *[0-9]*: [0-9A-F]*:$(printf %04X "$1") " /proc/net/tcp /proc/net/tcp6 2>/dev/null
}
port=$((10000 + $$ % 2500 * 8))
while taken $port || taken $((port + 1)) || taken $((port + 2)) || taken $((port + 3)) || taken $((port + 4)); do
    port=$((10000 + (port - 9992) % 20000))
done
export PGPASSWORD=secret
db=postgres://brass@127.0.0.1:$((port + 4))/postgres
if [ -z "$skip" ]; then
    tests/pg.sh "$dir/pg" $((port + 4)) $PGPASSWORD &
    pg=$!
    await ./brass tenant list --db "$db" || { wait $pg && skip="no PostgreSQL" || skip="PostgreSQL does not start"; }
    pids=$pg
fi
if [ -n "$skip" ]; then
    echo "skip nodes: $skip"
    end ", 1 skipped"
fi

node() { # N
    ./brass serve models/demo.gguf --port $((port + $1)) --db "$db" --responses "$db" --drain-delay 1 -t 1 \
        $([ "$1" = 2 ] && echo --slots 32) --log-level info >>"$dir/node$1" 2>>"$dir/node$1.log" &
    eval "node$1=$!"
    pids="$pids $!"
}
says() { # CODE N PATH [KEY]: server N answers that
    [ "$(curl -s -o /dev/null -w '%{http_code}' -H "x-api-key: ${4:-}" "http://127.0.0.1:$((port + $2))$3")" = "$1" ]
}
healthy() { says 200 "$1" /health; }
key=$(./brass tenant create alice --slots 32 --db "$db" 2>/dev/null)
for n in 1 2 3; do node $n; done
sed "s/127.0.0.1:808\\([0-9]\\)/127.0.0.1:$((port / 10))X\\1/; s|access_log off;|access_log off; client_body_temp_path $dir/body; proxy_temp_path $dir/proxy;|" \
    deploy/nginx.conf >"$dir/nginx.conf"
for n in 0 1 2 3; do sed -i "s/127.0.0.1:[0-9]*X$n/127.0.0.1:$((port + n))/" "$dir/nginx.conf"; done
nginx -p "$dir" -c "$dir/nginx.conf" -e "$dir/nginx.log" -g "daemon off; pid $dir/pid;" &
pids="$pids $!"
for n in 1 2 3; do must "server $n starts" await healthy $n; done
must "nginx starts" await healthy 0

ask() { # SESSION STREAM: which server answered; fails unless it did, in whole
    curl -sS -i -m 60 "http://127.0.0.1:$port/v1/chat/completions" -H "Authorization: Bearer $key" \
        -H "X-Session-Id: $1" -d "{\"messages\":[{\"role\":\"user\",\"content\":\"Hi $1\"}],\"max_tokens\":6,\"stream\":$2}" |
        tr -d '\r' | awk '
        /^HTTP/ { status = $2 }
        /^X-Brass-Node/ { node = $NF }
        /\[DONE\]|"finish_reason":"(length|stop)"/ { whole = 1 }
        END { print node; exit !(status == 200 && whole) }'
}
rounds=0
where() { # FILE: the server of each of 24 sessions
    rounds=$((rounds + 1))
    for s in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24; do
        echo "$s $(ask $s false)" || return 1
    done >"$1"
}
sessions_stay() {
    where "$dir/a" && where "$dir/b" && cmp "$dir/a" "$dir/b" &&
        [ "$(cut -d' ' -f2 "$dir/a" | sort -u | wc -l)" = 3 ]
}
must "a session keeps its server, and all three have some" sessions_stay
# The page behind nginx asks with the Origin it was fetched from, port and all.
from_page() { # ORIGIN: the status
    curl -s -o /dev/null -w '%{http_code}' "http://127.0.0.1:$port/tokenize" -H "Authorization: Bearer $key" \
        -H "Origin: $1" -d '{"prompt":"Hi"}'
}
page_may_ask() { [ "$(from_page "http://127.0.0.1:$port")" = 200 ] && [ "$(from_page http://evil.example)" = 403 ]; }
must "the page behind nginx may ask, others may not" page_may_ask

# ---- one leaves under load ---------------------------------------------------
# Four clients ask all the time, streamed or not, until there is a file `enough`.
client() { # N
    i=0
    until [ -e "$dir/enough" ]; do
        i=$((i + 1))
        ask $((i * 4 + $1)) "$([ $((i % 2)) = 0 ] && echo true || echo false)" >/dev/null && echo yes || echo "no $i"
    done >"$dir/client$1"
}
clients() {
    rm -f "$dir/enough"
    client 0 & c0=$!; client 1 & c1=$!; client 2 & c2=$!; client 3 & c3=$!
}
answered() { [ "$(cat "$dir"/client[0-3] | wc -l)" -ge 20 ]; }
enough() { # on a machine that is busy elsewhere they are slow to be so many
    await answered
    touch "$dir/enough"
    wait $c0 $c1 $c2 $c3
    cat "$dir"/client[0-3] >>"$dir/asked"
    ! grep no "$dir"/client[0-3] && answered
}
two_leaves() {
    clients
    sleep 1
    kill -TERM "$node2"
    await says 503 2 /health
    wait "$node2"
    code=$?
    sleep 1
    enough && [ $code = 0 ]
}
# Its sessions have moved, to both; the others have not.
only_its_own_move() {
    where "$dir/b"
    join "$dir/a" "$dir/b" | awk -v two=":$((port + 2))" '
        $3 ~ two "$" { exit 1 }
        $2 ~ two "$" { to[$3] = 1; next }
        $2 != $3 { exit 1 }
        END { for (t in to) n++; exit n < 1 }'
}
# nginx leaves one out for fail_timeout in whole seconds: 2 s are up to 3, and
# each of its workers counts for itself.
as_before() { where "$dir/b" && cmp "$dir/a" "$dir/b"; }
they_come_back() {
    node 2
    await healthy 2 && await as_before
}
must "a server leaves under load, nothing is lost" two_leaves
must "its sessions move, no other" only_its_own_move
must "they come back with it" they_come_back

# ---- one ledger --------------------------------------------------------------
adds_up() {
    asked=$(($(wc -l <"$dir/asked") + rounds * 24))
    await counts "$asked"
}
counts() { ./brass tenant usage alice --db "$db" --json | grep -q "\"requests_done\": *$1,"; }
# ---- responses are all servers' ------------------------------------------------
at() { # N PATH [BODY]: what server N answers
    curl -sS -m 60 "http://127.0.0.1:$((port + $1))/v1/responses$2" -H "Authorization: Bearer $key" ${3:+-d "$3"}
}
id_in() { sed -n 's/^{"id":"\([^"]*\)".*/\1/p'; }
has() { at "$1" "/$2" | grep -q "$3"; }
# What server 1 answers is told by 2, gone on from by 3, and deleted everywhere.
responses_are_shared() {
    at 1 "" '{"input":"Tell me of a fox.","max_output_tokens":6,"temperature":0}' >"$dir/first"
    id=$(id_in <"$dir/first")
    await has 2 "$id" '"status":"incomplete"' || return 1
    at 2 "/$id" | cmp - "$dir/first" || return 1
    at 3 "" "{\"input\":\"And then?\",\"max_output_tokens\":6,\"previous_response_id\":\"$id\"}" | grep -q '"object":"response"' || return 1
    curl -sS -m 60 -X DELETE "http://127.0.0.1:$((port + 2))/v1/responses/$id" -H "Authorization: Bearer $key" | grep -q '"deleted":true' || return 1
    await has 1 "$id" 'no response of that id'
}
idle() { # N: it makes nothing
    curl -sS "http://127.0.0.1:$((port + $1))/metrics" -H "Authorization: Bearer $key" |
        grep -q '^vllm:num_requests_running.* 0$'
}
# Server 1 makes it, 2 tells how far it is; 3 cancels one that 2 makes, which stops.
# Alone that one would be over before 2 looks for cancellations, once a second:
# 31 others make its steps long.
background_is_seen() {
    id=$(at 1 "" '{"input":"Tell me of a fox.","max_output_tokens":20,"background":true}' | id_in)
    await has 2 "$id" '"status":"incomplete"' || return 1
    id=$(at 2 "" '{"input":"Tell me of a fox.","max_output_tokens":900,"background":true,
        "text":{"format":{"type":"json_schema","name":"long","schema":{"type":"array","minItems":400,"items":{"type":"integer"}}}}}' | id_in)
    curl -sS -m 60 -o "$dir/busy" "http://127.0.0.1:$((port + 2))/v1/completions" -H "Authorization: Bearer $key" \
        -d '{"prompt":"Once","n":31,"max_tokens":1000,"ignore_eos":true}' &
    pids="$pids $!"
    await has 3 "$id" '"status":"queued"' || return 1
    at 3 "/$id/cancel" '{}' | grep -q '"status":"cancelled"' || return 1
    await has 1 "$id" '"status":"cancelled"' && await grep -q "$id.0 cancelled" "$dir/node2.log" || return 1
    kill $!
    await idle 2
}

# A stream that server 1 has sent is told again by 2, to the byte; one that 3 makes
# is told by 1 when it is over. A slow machine's may have comments in between.
events() { sed '/^: /{N;d;}'; }
streams_are_told_again() {
    at 1 "" '{"input":"Tell me of a fox.","max_output_tokens":12,"stream":true}' | events >"$dir/first"
    id=$(sed -n 's/.*"response":{"id":"\([^"]*\)".*/\1/p' "$dir/first" | head -n 1)
    await has 2 "$id" '"status":"incomplete"' || return 1
    at 2 "/$id?stream=true" | events | cmp - "$dir/first" || return 1
    id=$(at 3 "" '{"input":"Tell me of a fox.","max_output_tokens":60,"background":true,"stream":true}' |
        events | tee "$dir/first" | sed -n 's/.*"response":{"id":"\([^"]*\)".*/\1/p' | head -n 1)
    at 1 "/$id?stream=true&starting_after=6" | events >"$dir/second"
    grep -q 'event: response.incomplete' "$dir/second" &&
        tail -n "$(wc -l <"$dir/second")" "$dir/first" | cmp - "$dir/second"
}

keys_change_everywhere() {
    new=$(./brass tenant rotate alice --db "$db") || return 1
    for n in 1 2 3; do
        await says 401 $n /v1/models "$key" && says 200 $n /v1/models "$new" || return 1
    done
    key=$new
}
# One is killed: its sessions go on elsewhere, and a start tells what is lost.
one_dies() {
    kill -9 "$node3"
    where "$dir/b" && ! grep -q ":$((port + 3))" "$dir/b" || return 1
    node 3
    await healthy 3 && grep -q 'a server before did not end well\|books_lost' "$dir/node3.log"
}
# Without the database: who was here lately may ask, others are told to wait.
database_leaves() {
    kill -TERM "$pg"
    wait "$pg"
    ask 1 false || return 1
    stranger=br_0123456789abcdef_$(printf '%064d' 0)
    says 503 1 /v1/models "$stranger" || return 1
    tests/pg.sh "$dir/pg" $((port + 4)) $PGPASSWORD &
    pg=$! pids="$pids $!"
    await says 401 1 /v1/models "$stranger"
}
must "the ledger has every request of all servers" adds_up
must "a response of one server is the others', too" responses_are_shared
must "what one makes in background the others tell of" background_is_seen
must "a stream is told again by others" streams_are_told_again
must "a new key holds everywhere" keys_change_everywhere
must "a server dies, the others go on, its next start says so" one_dies
must "the database goes and comes back" database_leaves
no_password_is_logged() { ! grep -l "$PGPASSWORD\|$key" "$dir"/*.log; }
must "no log has a password or a key" no_password_is_logged
end
