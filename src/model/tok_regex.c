/* tok_regex.c - patterns that no scanner of pre.def is written for: PCRE2.
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/tok_int.h"

#ifdef BR_HAVE_PCRE2

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

int
br_tok_regex_find(const br_tok_regex *r, const uint8_t *p, const uint8_t *end,
                  const uint8_t **from, const uint8_t **to)
{
    (void)r, (void)p;
    *from = *to = end;
    return 0;
}

#endif
