/* grammar_kit.h - grammars over the demo's tokenizer, and draws from them.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GRAMMAR_KIT_H
#define GRAMMAR_KIT_H

#include "run/grammar.h"

#include "t.h"

/* Between gk_open and gk_close. */
extern br_tok *gk_tok;
extern br_vocab *gk_vocab;
void gk_open(void);
void gk_close(void);
br_grammar *gk_grammar(const char *text);
br_matcher *gk_matcher(br_grammar *g);
bool gk_allowed(br_matcher *m, float *logits, int32_t id);
/* Whether the text, fed byte by byte, is one of the grammar's. */
bool gk_matches(br_grammar *g, const char *text);
/* The grammar of a schema, kept; or st says why it has none. */
char *gk_schema(const char *schema, br_code want, br_status *st);
/* Any of those allowed, or the end; once it is long, what ends it soon. */
int32_t gk_draw(const float *logits, uint64_t *seed, size_t n_out);

#endif
