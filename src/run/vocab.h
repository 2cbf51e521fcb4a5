/* vocab.h - the texts of all tokens as a tree, for walks that leave out what
 * cannot be.
 *
 *   i      0   1   2   3   4         tokens: a, an, and, b
 *   byte   .   a   n   d   b         in preorder: children follow their parent
 *   depth  0   1   2   3   1         and the next node that is not below i is
 *   skip   5   4   4   4   5         skip[i]
 *
 * Tokens that are control, that end an answer, or of over BR_VOCAB_DEEPEST
 * bytes are not in it. Constant once made: any thread.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_VOCAB_H
#define BR_VOCAB_H

#include "model/tokenizer.h"

enum {
    BR_VOCAB_DEEPEST = 255,
    BR_VOCAB_MORE = 1 << 30, /* other tokens have the same text: see same */
};

typedef struct br_vocab {
    const br_tok *tok;
    uint32_t n_tokens, n_nodes;
    uint8_t *byte, *depth; /* [n_nodes] */
    uint32_t *skip;        /* [n_nodes] */
    int32_t *token;        /* [n_nodes] what ends here, | MORE; or -1 */
    int32_t *same;         /* [n_tokens] the next with this text, as token */
} br_vocab;

typedef struct br_tool_syntax br_tool_syntax; /* toolcall.h */
/* With the control tokens that tools are called with, if any. tok outlives it.
 */
br_code br_vocab_new(br_vocab **out, const br_tok *tok,
                     const br_tool_syntax *tools, br_status *st) BR_MUST_USE;
void br_vocab_free(br_vocab *v);

#endif
