/* tok_kit.h - vocabularies made for a test.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_KIT_H
#define TOK_KIT_H

#include "t.h"

#include "model/gguf_write.h"
#include "model/tokenizer.h"

/* A vocabulary as a GGUF file would give it. */
typedef struct tk_vocab {
    const char *model, *pre;
    size_t n;
    br_text text[600];
    int32_t type[600];
    float score[600];
    bool scores;
    size_t n_merges;
    br_text merge[600];
} tk_vocab;

int32_t tk_add(tk_vocab *v, const char *text, br_tok_type type, float score);
void tk_merge(tk_vocab *v, const char *merge);
/* GPT-2's letters of all bytes: ids 0..255. Or <0x00>.. for SPM. */
void tk_add_letters(tk_vocab *v);
void tk_add_bytes(tk_vocab *v);
/* Keys of the vocabulary, then those that `more` sets, as a file in memory. */
typedef void (*tk_more)(br_gguf_writer *w);
void tk_file(const tk_vocab *v, tk_more more, br_str *out);
br_code tk_load(br_tok **t, const br_str *file, const char *pre, br_status *st);
br_tok *tk_open(const tk_vocab *v, tk_more more); /* must load */
br_tok *tk_data(const char *name);                /* tests/data/tok/NAME */
/* Ids as "1 2 3"; text as it comes back. Kept until the test ends. */
const char *tk_ids(const br_tok *t, const char *text, int flags);
const char *tk_ids_n(const br_tok *t, br_text text, int flags);
const char *tk_text(const br_tok *t, const char *ids, int flags);

#endif
