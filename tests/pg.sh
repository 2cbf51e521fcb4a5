#!/bin/sh
# pg.sh - a PostgreSQL server of a test's own, until SIGTERM or until the test
# ends. Usage: tests/pg.sh DIR PORT PASSWORD
#
# DIR is made if it is not there and has the database, so the next call with
# it goes on with the same data; the user is called brass. PostgreSQL does not
# run as root, so there it is nobody, who must be able to reach DIR.
# SPDX-License-Identifier: Apache-2.0
set -u
dir=$1 port=$2 pg=''
for bin in /usr/lib/postgresql/*/bin; do PATH=$PATH:$bin; done
command -v initdb >/dev/null && command -v setpriv >/dev/null || exit 77

drop='' # what makes a command an ordinary user's
[ "$(id -u)" != 0 ] || drop='--reuid=nobody --regid=nogroup --clear-groups'
end() {
    [ -z "$pg" ] || { kill -INT "$pg" && wait "$pg"; } 2>/dev/null
    kill -0 "$PPID" 2>/dev/null || rm -rf "$dir"
    exit 0
}
trap end TERM INT
mkdir -p "$dir" || exit 1
cd "$dir" || exit 1
# shellcheck disable=SC2086
if [ ! -d data ]; then
    printf '%s\n' "$3" >password
    [ -z "$drop" ] || chown nobody . password
    setpriv $drop initdb -D data -U brass -A scram-sha-256 --pwfile=password \
        --locale=C -E UTF8 --no-sync >log 2>&1 || exit 1
fi
# shellcheck disable=SC2086
setpriv $drop --pdeathsig INT postgres -D data -p "$port" -h 127.0.0.1 -F \
    -c unix_socket_directories= -c shared_buffers=4MB -c max_connections=20 \
    >>log 2>&1 &
pg=$!
wait $pg
end
