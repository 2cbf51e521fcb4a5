/* tok_regex.c - patterns that no scanner of pre.def is written for: PCRE2.
 *
 * A pattern comes from a file, so it is compiled with a limit on its length,
 * and matched with limits on steps, depth and memory. `(?i:...)`, \p{..} and
 * look-ahead mean in PCRE2 what they mean in the library that made the file;
 * set operations (&&) it does not have, and says so.
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/tok_int.h"

#ifdef BR_HAVE_PCRE2

#    define PCRE2_CODE_UNIT_WIDTH 8
#    include <pcre2.h>

enum {                       /* limits on a pattern and on one match of it */
       MAX_PATTERN = 16384,  /* bytes */
       MAX_STEPS = 10000000, /* PCRE2's match limit */
       MAX_DEPTH = 100000,   /* of backtracking, where there is no JIT */
       MAX_HEAP_KB = 65536,
};

struct br_tok_regex {
    pcre2_general_context *memory;
    pcre2_match_context *limits;
    pcre2_code *code;
};

static void *
take(size_t n, void *ctx)
{
    (void)ctx;
    return br_try_alloc(n);
}

static void
give(void *p, void *ctx)
{
    (void)ctx;
    br_free(p);
}

static br_code
bad_pattern(br_status *st, br_text pattern, int error, size_t at)
{
    char text[128] = "";

    pcre2_get_error_message(error, (PCRE2_UCHAR *)text, sizeof text);
    return br_fail(st,
                   error == PCRE2_ERROR_HEAP_FAILED ? BR_E_OOM : BR_E_FORMAT,
                   "pre_tokenizer: the pattern '%.*s': %s at %zu",
                   (int)BR_MIN(pattern.n, 120), pattern.p, text, at);
}

static br_code
compile(br_tok_regex *r, br_text pattern, br_status *st)
{
    pcre2_compile_context *how;
    int error = 0;
    size_t at = 0;

    r->memory = pcre2_general_context_create(take, give, NULL);
    if (!r->memory)
        return br_tok_oom(st);
    r->limits = pcre2_match_context_create(r->memory);
    how = pcre2_compile_context_create(r->memory);
    if (!r->limits || !how) {
        pcre2_compile_context_free(how);
        return br_tok_oom(st);
    }
    pcre2_set_match_limit(r->limits, MAX_STEPS);
    pcre2_set_depth_limit(r->limits, MAX_DEPTH);
    pcre2_set_heap_limit(r->limits, MAX_HEAP_KB);
    pcre2_set_max_pattern_length(how, MAX_PATTERN);
    r->code = pcre2_compile((PCRE2_SPTR)pattern.p, pattern.n,
                            PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C,
                            &error, &at, how);
    pcre2_compile_context_free(how);
    if (!r->code)
        return error == PCRE2_ERROR_HEAP_FAILED
                   ? br_tok_oom(st)
                   : bad_pattern(st, pattern, error, at);
    /* where the processor has no JIT, pcre2_match interprets */
    if (pcre2_jit_compile(r->code, PCRE2_JIT_COMPLETE) == PCRE2_ERROR_NOMEMORY)
        return br_tok_oom(st);
    return BR_OK;
}

br_code
br_tok_regex_new(br_tok_regex **out, br_text pattern, br_status *st)
{
    br_tok_regex *r = br_try_calloc(1, sizeof *r);
    br_code code;

    *out = NULL;
    if (!r)
        return br_tok_oom(st);
    code = compile(r, pattern, st);
    if (code != BR_OK) {
        br_tok_regex_free(r);
        return code;
    }
    *out = r;
    return BR_OK;
}

void
br_tok_regex_free(br_tok_regex *r)
{
    if (!r)
        return;
    pcre2_code_free(r->code);
    pcre2_match_context_free(r->limits);
    pcre2_general_context_free(r->memory);
    br_free(r);
}

br_tok_match *
br_tok_match_new(const br_tok_regex *r)
{
    return (br_tok_match *)pcre2_match_data_create(1, r->memory);
}

void
br_tok_match_free(br_tok_match *m)
{
    pcre2_match_data_free((pcre2_match_data *)m);
}

int
br_tok_regex_find(const br_tok_regex *r, br_tok_match *m, const uint8_t *p,
                  const uint8_t *end, const uint8_t **from, const uint8_t **to)
{
    pcre2_match_data *data = (pcre2_match_data *)m;
    const size_t n = (size_t)(end - p);

    for (size_t at = 0; at < n;) {
        /* the text is valid: UTF-8 was checked, or made so */
        int found =
            pcre2_match(r->code, p, n, at, PCRE2_NO_UTF_CHECK, data, r->limits);
        const size_t *v;

        if (found == PCRE2_ERROR_NOMATCH)
            return 0;
        if (found < 0)
            return -1;
        v = pcre2_get_ovector_pointer(data);
        if (v[1] > v[0] && v[0] >= at) {
            *from = p + v[0];
            *to = p + v[1];
            return 1;
        }
        at = BR_MAX(v[1], at); /* it matched nothing: on by a character */
        do
            at++;
        while (at < n && (p[at] & 0xC0) == 0x80);
    }
    return 0;
}

#else

br_code
br_tok_regex_new(br_tok_regex **out, br_text pattern, br_status *st)
{
    *out = NULL;
    return br_fail(st, BR_E_UNSUPPORTED,
                   "pre_tokenizer: the pattern '%.*s' needs the library "
                   "pcre2-8, which this brass was built without",
                   (int)BR_MIN(pattern.n, 120), pattern.p);
}

void
br_tok_regex_free(br_tok_regex *r)
{
    br_assert(!r && "none was made");
}

br_tok_match *
br_tok_match_new(const br_tok_regex *r)
{
    (void)r;
    return NULL;
}

void
br_tok_match_free(br_tok_match *m)
{
    br_assert(!m && "none was made");
}

int
br_tok_regex_find(const br_tok_regex *r, br_tok_match *m, const uint8_t *p,
                  const uint8_t *end, const uint8_t **from, const uint8_t **to)
{
    (void)r, (void)m, (void)p;
    *from = *to = end;
    return 0;
}

#endif
