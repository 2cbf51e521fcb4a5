#!/bin/sh
# pocl.sh DIR - kernels as machine code against the same in OpenCL C by pocl, in
# turn, with as many threads (THREADS, 2): time, ratio, and pocl's time over ours,
# for what the memory bounds and, as geometric means, for what has barriers or
# works in warps. FLAGS are those of OpenCL's compiler.
# SPDX-License-Identifier: Apache-2.0
set -eu
here=$(dirname "$0") dir=$1 threads=${THREADS:-2}
flags=${FLAGS:--cl-mad-enable}
mkdir -p "$dir"
if ! ${CC:-cc} -DPROBE "$here/opencl.c" -o "$dir/probe" -lOpenCL 2>"$dir/probe.log"; then
    echo "skipped: no OpenCL to build with (opencl-headers, ocl-icd-opencl-dev)"
    exit 0
fi
export POCL_MAX_PTHREAD_COUNT="$threads" POCL_AFFINITY=1
if ! "$dir/probe"; then
    echo "skipped: no OpenCL for this processor (pocl-opencl-icd)"
    exit 0
fi
for k in five more; do
    "$here"/../../brasscc -O3 -ptx "$here/$k.cu" -o "$dir/$k.ptx"
done
: >"$dir/pocl.txt"
bench() { # CLASS FILE ENTRY GRID BLOCK ARG...
    class=$1 file=$2 entry=$3 grid=$4 block=$5
    shift 5
    global=$(echo "$grid $block" | awk '{
        n = split($1, g, ","); split($2, b, ",")
        for (k = 1; k <= n; k++) printf "%s%d", (k > 1 ? "," : ""), g[k] * b[k] }')
    ${CC:-cc} -O2 -shared -fPIC -DNAME="$entry" -DGLOBAL="$global" -DLOCAL="$block" \
        -DSOURCE="\"$here/all.cl\"" -DFLAGS="\"$flags\"" -DARGS="\"$*\"" \
        "$here/opencl.c" -o "$dir/cl_$entry.so" -lOpenCL
    args=
    for a; do args="$args --arg $a"; done
    # shellcheck disable=SC2086
    "$here"/../../brass kernel bench "$dir/$file.ptx" --entry "$entry" --grid "$grid" \
        --block "$block" $args --against "$dir/cl_$entry.so" --threads "$threads" |
        sed "s/^/$class  /; s/   C /   pocl /" | tee -a "$dir/pocl.txt"
}
m=16777216 # more than caches hold
v=rand:67108864
bench memory five vadd 65536 256 $v $v $v u32:$m
bench memory five saxpy 65536 256 $v $v f32:0.001 u32:$m
bench memory more transpose 256,256 16,16 $v $v u32:4096
m=1048576
v=rand:4194304
bench barrier five sgemm 16,16 16,16 rand:262144 rand:262144 rand:262144 u32:256
bench barrier five softmax 64 256 rand:1048576 rand:1048576 u32:4096
bench barrier five nbody 8 256 rand:32768 rand:32768 u32:2048
bench barrier more reduce 2048 256 $v rand:8192
bench barrier more scan 4096 256 $v $v
bench barrier more blelloch 2048 256 $v $v
bench barrier more histogram 256 256 $v rand:262144
bench barrier more bitonic 2048 256 $v $v
bench barrier more stencil 4096 256 $v $v u32:$m
bench warp more warpsum 2048 256 $v rand:8192
bench warp more warpscan 4096 256 $v $v
bench warp more warpnorm 4096 256 $v $v
awk '{
    r = 1 / $NF
    c = ($1 == "memory" ? 1 : 2)
    sum[c] += log(r); n[c]++
    if (!(c in least) || r < least[c]) { least[c] = r; who[c] = $2 }
} END {
    split("memory,barriers and warps", name, ",")
    for (c = 1; c <= 2; c++)
        printf "%-18s x %.2f of pocl (geometric mean of %d), least %.2f (%s)\n",
            name[c], exp(sum[c] / n[c]), n[c], least[c], who[c]
}' "$dir/pocl.txt"
