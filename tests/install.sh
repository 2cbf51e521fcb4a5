#!/bin/sh
# install.sh - installs into a scratch folder and uses what is there, as a
# program outside would. The last line is `N passed, M failed`.
# SPDX-License-Identifier: Apache-2.0
set -u
cd "$(dirname "$0")/.." || exit 1
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
root=$tmp/root usr=$tmp/root/usr
passed=0 failed=0

try() { # WHAT COMMAND...
    what=$1
    shift
    if "$@" >"$tmp/log" 2>&1; then
        passed=$((passed + 1))
        echo "ok   $what"
    else
        failed=$((failed + 1))
        echo "FAIL $what"
        sed 's/^/     /' "$tmp/log"
    fi
}
pc() { PKG_CONFIG_PATH=$usr/lib/pkgconfig pkg-config --define-prefix "$@" brass; }
compile() { # NAME LINK-FLAGS...
    src=examples/$1.c
    shift
    # shellcheck disable=SC2046
    cc -std=c99 -Wall -Wextra -Werror $(pc --cflags) "$src" "$@" -o "$tmp/prog"
}
compile_shared() { # shellcheck disable=SC2046
    compile "$1" $(pc --libs)
}
compile_static() { # shellcheck disable=SC2046
    compile "$1" "$usr/lib/libbrass.a" $(pc --static --libs-only-l | sed 's/-lbrass //')
}
# What an example prints of the program beside it is a golden text. A processor of
# AMD that multiplies BF16 takes attention in it, and rounds on its own.
grep -q '^vendor_id.*AuthenticAMD' /proc/cpuinfo &&
    grep -q '^flags.* avx512_bf16' /proc/cpuinfo && pairs=bf16/
same() { # GOLDEN COMMAND...
    golden=$(dirname "$1")/${pairs:-}$(basename "$1")
    [ -e "$golden" ] || golden=$1
    shift
    "$@" >"$tmp/out" 2>&1 || { cat "$tmp/out"; return 1; }
    # Which slot answers, and between whose lines, is a matter of time.
    sed 's/^slot [01]/slot -/' "$tmp/out" | LC_ALL=C sort -s -k 3,4 >"$tmp/sorted"
    case $golden in *stream_events.txt) mv "$tmp/sorted" "$tmp/out" ;; esac
    [ "${T_GOLDEN_UPDATE:-}" != 1 ] || cp "$tmp/out" "$golden"
    diff -u "$golden" "$tmp/out"
}
refuses() { # COMMAND... : ends with 1 to 5 and one line on stderr
    "$@" >"$tmp/out" 2>"$tmp/err"
    code=$?
    cat "$tmp/err"
    [ $code -ge 1 ] && [ $code -le 5 ] && [ "$(wc -l <"$tmp/err")" -eq 1 ]
}
refuses_racy() { # COMMAND...
    "$@" >"$tmp/out" 2>&1
    [ $? = 4 ] && grep -q 'RACE' "$tmp/out" && grep -qx refused "$tmp/out"
}
holds_no_path() { ! grep -l "$PWD" "$@"; }
short() { [ "$(wc -l <"$1")" -lt 100 ]; }
empty() { [ -z "$(find "$1" ! -type d | tee /dev/stderr)" ]; }

try "make install" make CC="${CC:-cc}" install DESTDIR="$root" PREFIX=/usr
for f in bin/brass lib/libbrass.a lib/libbrass.so include/brass/brass.h \
    lib/pkgconfig/brass.pc share/man/man1/brass.1 share/man/man1/brass-test-pm4.1 \
    share/bash-completion/completions/brass; do
    try "$f is there" test -s "$usr/$f"
done
try "brass runs" "$usr/bin/brass" version
try "version of brass.pc" test "$(pc --modversion)" = "$("$usr/bin/brass" version | sed -n '1s/brass //p')"
config_names_all() { # that brass says it was built with
    make -s config >"$tmp/config"
    for lib in $("$usr/bin/brass" version | sed -n 's/^features [^ ]*//p'); do
        grep -qE "^(lib)?$lib" "$tmp/config" || { echo "no line of $lib"; return 1; }
    done
}
try "make config names all libraries" config_names_all
try "no path of this machine inside" holds_no_path "$usr/bin/brass" \
    "$usr/lib/libbrass.a" "$usr"/lib/libbrass.so.*.* "$usr/lib/pkgconfig/brass.pc"
for src in examples/*.c; do
    name=$(basename "$src" .c)
    case $name in
        *_program) input=examples/mlp.json ;;
        *) input=models/demo.gguf ;;
    esac
    try "$name is under 100 lines" short "$src"
    try "$name builds against the shared library" compile_shared "$name"
    try "$name runs" same "tests/golden/examples/$name.txt" \
        env LD_LIBRARY_PATH="$usr/lib" "$tmp/prog" $input
    try "$name refuses a missing file" refuses env LD_LIBRARY_PATH="$usr/lib" \
        "$tmp/prog" no/such/file.json
    try "$name builds against the static library" compile_static "$name"
    try "$name runs alone" same "tests/golden/examples/$name.txt" "$tmp/prog" $input
done
sed 's/"threshold": 2/"threshold": 1/' examples/mlp.json >"$tmp/racy.json"
compile_static check_program
try "check_program refuses what races" refuses_racy "$tmp/prog" "$tmp/racy.json"
cuda_program() { "$usr/bin/brasscc" tests/cuda/vector_add.cu -o "$tmp/cu" && "$tmp/cu"; }
if command -v clang++-19 clang++ >"$tmp/log"; then
    try "brasscc compiles a program that runs" cuda_program
fi
no_alias() { [ -z "$(find "$1" -name 'libcuda*')" ]; }
try "no alias of CUDA's libraries unless it is asked for" no_alias "$root"
alias_of_driver() {
    make CC="${CC:-cc}" BINARY_SHIM=1 install DESTDIR="$root" PREFIX=/usr &&
        echo '#include <dlfcn.h>
int main(void) {
    void *l = dlopen("libcuda.so.1", RTLD_NOW);
    int (*init)(unsigned), (*count)(int *), n = 0;
    if (!l) return 2;
    *(void **)&init = dlsym(l, "cuInit");
    *(void **)&count = dlsym(l, "cuDeviceGetCount");
    return !init || !count || init(0) || count(&n) || n != 1;
}' | cc -xc - -ldl -o "$tmp/shim" && LD_LIBRARY_PATH="$usr/lib/cuda-shim" "$tmp/shim"
}
try "BINARY_SHIM=1 answers as libcuda.so.1" alias_of_driver
nvcc_program() {
    "$nvcc" -cudart shared -gencode arch=compute_80,code=compute_80 tests/cuda/vector_add.cu -o "$tmp/nv" &&
        LD_LIBRARY_PATH="$usr/lib/cuda-shim" "$tmp/nv"
}
nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)
if [ -x "$nvcc" ]; then
    try "BINARY_SHIM=1 runs a program that nvcc linked" nvcc_program
else
    echo "skip a program that nvcc linked: no nvcc"
fi
try "make uninstall" make CC="${CC:-cc}" uninstall DESTDIR="$root" PREFIX=/usr
try "nothing is left behind" empty "$root"

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
