#!/bin/sh
# run.sh DIR - five kernels as machine code against loops of C by clang, one
# thread each: time and ratio. FLAGS are the C compiler's, MAX fails above it.
# SPDX-License-Identifier: Apache-2.0
set -eu
here=$(dirname "$0") dir=$1
clang=${BRASS_CLANG:-$(command -v clang-19 || command -v clang)}
mkdir -p "$dir"
"$here"/../../brasscc -O3 -ptx "$here/five.cu" -o "$dir/five.ptx"
# shellcheck disable=SC2086
"$clang" ${FLAGS:--O3 -march=native} -fno-math-errno -shared -fPIC "$here/loops.c" -o "$dir/loops.so" -lm
bad=0
bench() {
    "$here"/../../brass kernel bench "$dir/five.ptx" --against "$dir/loops.so" \
        ${MAX:+--max-ratio "$MAX"} ${THREADS:+--threads "$THREADS"} "$@" || bad=1
}
m=1048576
v=rand:4194304
bench --entry vadd --grid 4096 --block 256 --arg $v --arg $v --arg $v --arg u32:$m
bench --entry saxpy --grid 4096 --block 256 --arg $v --arg $v --arg f32:0.001 --arg u32:$m
v=rand:262144
bench --entry sgemm --grid 16,16 --block 16,16 --arg $v --arg $v --arg $v --arg u32:256
v=rand:1048576
bench --entry softmax --grid 64 --block 256 --arg $v --arg $v --arg u32:4096
v=rand:32768
bench --entry nbody --grid 8 --block 256 --arg $v --arg $v --arg u32:2048
exit $bad
