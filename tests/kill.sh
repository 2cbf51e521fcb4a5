#!/bin/sh
# kill.sh - a server under load is killed at random moments, again and again.
# Usage: tests/kill.sh [ROUNDS]    after `make`; called by ./test and make soak
#
# After each kill: every tenant and key that was answered is there, keys that
# were replaced open nothing, counters lack a second at most, and the next start
# says that they may. The last line counts rounds.
# SPDX-License-Identifier: Apache-2.0
set -u
cd "$(dirname "$0")/.." || exit 1
rounds=${1:-4} passed=0 failed=0 server='' asking=''
command -v curl >/dev/null || { echo "skip kill: curl is not installed"; echo "0 passed, 0 failed, 1 skipped"; exit; }
dir=$(mktemp -d /tmp/brass-kill.XXXXXX) || exit 1
trap 'kill -9 $server 2>/dev/null; kill $asking 2>/dev/null; wait; rm -rf "$dir"' EXIT
./brass tenant list --db "$dir/none.db" 2>&1 | grep -q SQLite && { echo "skip kill: built without SQLite"; echo "0 passed, 0 failed, 1 skipped"; exit; }
trap 'exit 1' INT TERM
db=$dir/t.db admin=an-admin-whom-nobody-guesses
echo $admin >"$dir/admin"

start() {
    : >"$dir/said"
    ./brass serve models/demo.gguf --port 0 -t 1 --db "$db" --admin-key-file "$dir/admin" >"$dir/said" 2>"$dir/log" &
    server=$!
    i=0
    until url=$(sed -n 's/^serving .* on \(http:[^ ]*\).*/\1/p' "$dir/said" | grep .) && curl -sf -o /dev/null "$url/health"; do
        i=$((i + 1))
        [ $i -lt 200 ] || { echo "FAIL the server starts"; cat "$dir/log"; exit 1; }
        sleep 0.1
    done
}
now() { date +%s%3N; }
post() { curl -s -H "x-api-key: $1" "$url$2" -d "$3"; }
key_in() { sed -n 's/.*"key":"\([^"]*\)".*/\1/p'; }
opens() { [ "$(curl -s -o /dev/null -w '%{http_code}' -H "x-api-key: $1" "$url/v1/models")" = 200 ]; }

# Until the server is gone: tenants made, every third given a new key. What was
# answered is written down; a new key that was asked for may be there or not.
changes() { # ROUND
    for i in $(seq 40); do
        name=r$1-$i
        key=$(post $admin /v1/tenants "{\"name\":\"$name\"}" | key_in)
        [ -n "$key" ] || return
        echo "$name $key" >>"$dir/made"
        [ $((i % 3)) = 0 ] || continue
        echo "$name" >"$dir/asked"
        new=$(post $admin "/v1/tenants/$name/rotate" '' | key_in)
        [ -n "$new" ] || return
        : >"$dir/asked"
        echo "$key" >>"$dir/old"
        sed -i "\$s/.*/$name $new/" "$dir/made"
    done
}
chats() {
    : >"$dir/shown"
    while curl -s -H "x-api-key: $load" "$url/v1/tenants/me/requests" | grep -o 'cmpl-[0-9a-f.]*' | head -n 40 >"$dir/seen" &&
        mv "$dir/seen" "$dir/shown" && post "$load" /v1/completions '{"prompt":"A fox","max_tokens":3}' | grep -q '"usage"'; do now >>"$dir/done"; done
}
fail() { echo "  $1"; bad=1; }
check() {
    grep -q 'books_lost: .*did not end well' "$dir/log" || fail "the start does not tell"
    ./brass tenant list --json --db "$db" >"$dir/list" || fail "no list"
    while read -r name key; do
        grep -q "\"name\": *\"$name\"" "$dir/list" || fail "$name was made and is not there"
    done <"$dir/made"
    tail -n 6 "$dir/made" >"$dir/last"
    while read -r name key; do
        grep -qx "$name" "$dir/asked" || opens "$key" || fail "the key of $name opens nothing"
    done <"$dir/last"
    for key in $(tail -n 4 "$dir/old"); do ! opens "$key" || fail "an old key opens"; done
    least=$((before + $(awk -v t="$killed" '$1 < t - 1500' "$dir/done" | wc -l)))
    has=$(./brass tenant usage load --json --db "$db" | sed -n 's/.*"requests_done": *\([0-9]*\).*/\1/p')
    [ "$has" -ge "$least" ] || fail "$has requests are counted, of $least that had ended in time"
    # What the log has shown to anybody stays shown.
    curl -s -H "x-api-key: $load" "$url/v1/tenants/me/requests" >"$dir/log-now"
    while read -r id; do
        grep -q "\"$id\"" "$dir/log-now" || fail "request $id was in the log and is not"
    done <"$dir/shown"
    [ "$has" -le $((before + $(wc -l <"$dir/done") + 1)) ] || fail "$has requests are counted, more than were asked"
}

has=0 answered=0
load=$(./brass tenant create load --db "$db" 2>/dev/null)
: >"$dir/made" && : >"$dir/old" && : >"$dir/asked" && : >"$dir/done"
start
for round in $(seq "$rounds"); do
    bad=0 before=$has
    : >"$dir/done"
    changes "$round" & one=$!
    chats & two=$!
    asking="$one $two"
    pause=$(od -An -N2 -tu2 /dev/urandom)
    sleep "$(printf '%d.%03d' $((pause % 3)) $((pause % 1000)))"
    killed=$(now)
    kill -9 $server
    wait $server 2>/dev/null
    wait $asking
    start
    check
    answered=$((answered + $(wc -l <"$dir/done")))
    if [ $bad = 0 ]; then passed=$((passed + 1)); else failed=$((failed + 1)) && echo "FAIL round $round"; fi
done
echo "$(wc -l <"$dir/made") tenants made, $answered requests answered, killed $rounds times"
echo "$passed passed, $failed failed"
[ $failed = 0 ] && [ $passed -gt 0 ]
