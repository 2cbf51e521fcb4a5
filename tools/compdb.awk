# compdb.awk - `make -Bn V=1` in, compile_commands.json out.
# SPDX-License-Identifier: Apache-2.0
BEGIN { print "[" }
/ -c [^ ]+\.c -o / {
    file = $0
    sub(/.* -c /, "", file)
    sub(/ .*/, "", file)
    gsub(/\\/, "\\\\")
    gsub(/"/, "\\\"")
    printf "%s{\"directory\": \"%s\", \"file\": \"%s\", \"command\": \"%s\"}", sep, dir, file, $0
    sep = ",\n"
}
END { print "\n]" }
