/* tok_json.h - inside the reader of tokenizer.json.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_TOK_JSON_H
#define BR_TOK_JSON_H

#include "base/json.h"
#include "model/tok_int.h"

typedef struct br_tj_piece {
    br_text text;
    int64_t id; /* Unigram: the place in the list */
    double score;
} br_tj_piece;

typedef struct br_tj_merge {
    br_text left, right;
} br_tj_merge;

typedef struct br_tj {
    br_tok *t;
    br_arena arena; /* of the document; gone after the load */
    br_status *st;
    const char *type; /* model.type, or NULL */
    bool has_scores;  /* model.vocab is a list */
    BR_VEC(br_tj_piece) pieces;
    BR_VEC(br_tj_merge) merges;
    /* sections; NULL where the document has none, or null */
    const br_json *added, *normalizer, *pre_tokenizer, *post_processor;
    const br_json *model; /* the small members of "model", as an object */
    const br_json *config;
    br_json *more; /* as `added`, what only the config has; NULL: nothing */
} br_tj;

/* tok_json_parts.c: what the sections say about the tokenizer, or a failure
 * that names the part that is not supported. */
br_code br_tj_kind(br_tj *x);
br_code br_tj_normalizer(br_tj *x);
br_code br_tj_pre_tokenizer(br_tj *x);
br_code br_tj_post_processor(br_tj *x);

/* A member as text or bool; the default when it is absent or null. */
const char *br_tj_str(const br_json *obj, const char *key);
bool br_tj_bool(const br_json *obj, const char *key, bool dflt);
bool br_tj_is(const br_json *obj, const char *type); /* obj.type == type */

#endif
