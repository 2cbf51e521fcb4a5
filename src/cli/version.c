/* version.c - what this binary is: version, commit, compiler, features.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/cli.h"

#include "base/json.h"

#include "brass/brass.h"

#ifndef BR_COMMIT
#    define BR_COMMIT "unknown"
#endif

#ifndef BR_DATE
#    define BR_DATE "unknown"
#endif

#if defined __clang__
#    define COMPILER "clang " __clang_version__
#elif defined __GNUC__
#    define COMPILER "gcc " __VERSION__
#else
#    define COMPILER "unknown"
#endif

#ifndef __has_feature /* clang's; gcc has macros */
#    define __has_feature(x) 0
#endif

/* What a build may have or lack. */
static const char *const features[] = {
#ifdef NDEBUG
    "no-asserts",
#else
    "asserts",
#endif
#ifdef BR_HAVE_CURL
    "libcurl",
#endif
#ifdef BR_HAVE_LIBEDIT
    "libedit",
#endif
#ifdef BR_HAVE_PCRE2
    "pcre2",
#endif
#ifdef BR_HAVE_SQLITE
    "sqlite",
#endif
#ifdef BR_HAVE_PQ
    "libpq",
#endif
#ifdef BR_HAVE_OPENSSL
    "openssl",
#endif
#ifdef BR_HAVE_NGHTTP2
    "nghttp2",
#endif
#ifdef BR_HAVE_ZSTD
    "zstd",
#endif
#ifdef BR_HAVE_LZ4
    "lz4",
#endif
#if defined __SANITIZE_ADDRESS__ || __has_feature(address_sanitizer)
    "asan",
#endif
#if defined __SANITIZE_THREAD__ || __has_feature(thread_sanitizer)
    "tsan",
#endif
};

const char *
br_cli_date(void)
{
    return BR_DATE;
}

static int
version_json(br_cli *cli)
{
    br_str doc = {0};
    br_json_writer w;
    int code;

    br_json_w_begin(&w, &doc, 0);
    br_json_w_obj(&w);
    br_json_w_key_strz(&w, "version", BRASS_VERSION_STRING);
    br_json_w_key_strz(&w, "commit", BR_COMMIT);
    br_json_w_key_strz(&w, "compiler", COMPILER);
    br_json_w_key(&w, "features");
    br_json_w_arr(&w);
    for (size_t i = 0; i < BR_COUNT(features); i++)
        br_json_w_strz(&w, features[i]);
    br_json_w_arr_end(&w);
    br_json_w_obj_end(&w);
    code = br_cli_json_out(cli, &doc);
    br_str_fini(&doc);
    return code;
}

int
br_cmd_version(br_cli *cli)
{
    if (br_opt_bool(cli, BR_OPT_json))
        return version_json(cli);
    fprintf(cli->out, "brass %s\ncommit %s\ncompiler %s\nfeatures",
            BRASS_VERSION_STRING, BR_COMMIT, COMPILER);
    for (size_t i = 0; i < BR_COUNT(features); i++)
        fprintf(cli->out, " %s", features[i]);
    fputc('\n', cli->out);
    return 0;
}
