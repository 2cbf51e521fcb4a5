#!/bin/sh
# arm.sh - Brass for 64-bit Arm, run by qemu: the same model in every number
# format says the same bits there, in NEON, as the reference tier says here.
# The last line is `N passed, M failed[, K skipped]`. `build` compiles and no more.
# SPDX-License-Identifier: Apache-2.0
set -u
cd "$(dirname "$0")/.." || exit 1
passed=0 failed=0
cross=aarch64-linux-gnu
for tool in $cross-gcc qemu-aarch64-static; do
    command -v $tool >/dev/null && continue
    echo "skip arm: no $tool here"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
done
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT

arm() { qemu-aarch64-static -L /usr/$cross "build/$cross-gcc-release/brass" "$@"; }
here() { ./build/release/brass "$@"; }
try() { # WHAT COMMAND...
    what=$1
    shift
    if "$@" >"$tmp/log" 2>&1; then
        passed=$((passed + 1))
        echo "ok   $what"
    else
        failed=$((failed + 1))
        echo "FAIL $what"
        sed 's/^/     /' "$tmp/log" | tail -n 20
    fi
}
# 9 tokens in chunks of 7: tiles of four, two and one row.
logits() { # arm|here TIER OUT
    "$1" logits "$tmp/model.gguf" --tier "$2" --arith exact --chunk 7 \
        --kv-type "${kv:-f32}" --tokens 1,300,7,42,9,1000,5,77,12 -o "$3"
}
same_bits() { # TYPE
    if [ "$1" = asis ]; then
        cp models/demo.gguf "$tmp/model.gguf"
    else
        here quantize models/demo.gguf "$tmp/model.gguf" "$1" || return 1
    fi
    logits here ref "$tmp/here" && logits arm cpu "$tmp/arm" &&
        cmp "$tmp/here" "$tmp/arm"
}
uses_neon() {
    arm bench models/demo.gguf -p 4 -n 1 -r 1 --json | tee /dev/stderr |
        grep -q '"isa": "neon".*"correct": true'
}
# Fast attention is another one on AMD's processors with BF16.
says_the_same() {
    say="run models/demo.gguf --temp 0 -n 12 --arith exact"
    # shellcheck disable=SC2086
    here $say -p 'Once upon a time' >"$tmp/here" &&
        arm $say -p 'Once upon a time' >"$tmp/arm" && cmp "$tmp/here" "$tmp/arm"
}

# Bits are the same at -O1, which takes two thirds of the time.
build() {
    make -j"$(nproc)" CC=$cross-gcc CFLAGS='-O1 -g0 -Wno-format-truncation'
}
if [ "${1-}" = build ]; then
    build
    exit
fi
try "make CC=$cross-gcc" build
try "make" make -j"$(nproc)" CC=gcc
for type in asis Q8_0 Q4_0 Q4_1 Q5_0 Q5_1 Q4_K_M Q5_K_M Q6_K F16 BF16 F32; do
    try "$type" same_bits $type
done
for kv in f16 q8_0; do
    try "Q8_0, keys and values $kv" same_bits Q8_0
done
kv=
try "the same words" says_the_same
try "NEON kernels" uses_neon
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
