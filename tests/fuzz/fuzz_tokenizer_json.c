/* fuzz_tokenizer_json.c - any bytes as tokenizer.json: refused with a reason,
 * or a tokenizer that encodes and decodes without a fault.
 *
 * What stands after a line "----" is tokenizer_config.json.
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/tokenizer.h"

#include <stdlib.h>
#include <string.h>

static void
must(bool c)
{
    if (!c)
        abort();
}

static void
use(const br_tok *t)
{
    static const char text[] =
        "Hello  w\xC3\xB6rld 123\n\n'll <s></s>[CLS]<unk>"
        "\xE4\xB8\xAD\xE6\x96\x87 \xFF\xC0\x80 abab \xEF\xBC\xA1";
    br_tok_work *w = br_tok_work_new();
    br_tok_ids ids = {0};
    br_status st = {0};
    br_str s = {0};

    must(w != NULL);
    for (int flags = 0; flags < 4; flags++) {
        br_code code = br_tok_encode(t, w, BR_TEXT(text), flags, &ids, &st);

        must(code == BR_OK || code == BR_E_LIMIT);
        st = (br_status){0};
    }
    for (size_t i = 0; i < ids.n; i++)
        must(ids.at[i] >= 0 && ids.at[i] < br_tok_count(t));
    must(br_tok_decode(t, ids.at, ids.n, BR_TOK_SHOW_SPECIAL, &s, &st) ==
         BR_OK);
    br_str_fini(&s);
    br_vec_fini(&ids);
    br_tok_work_free(w);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    br_text json = {(const char *)data, size}, config = {"", 0};
    br_status st = {0};
    const char *cut = size ? memmem(data, size, "\n----\n", 6) : NULL;
    br_tok *t;
    br_code code;

    if (cut) {
        json.n = (size_t)(cut - json.p);
        config = (br_text){cut + 6, size - json.n - 6};
    }
    code = br_tok_from_json(&t, json, config, &st);
    must((code == BR_OK) == (t != NULL));
    if (code == BR_OK)
        use(t);
    else
        must(*st.msg && code == st.code);
    br_tok_free(t);
    return 0;
}
