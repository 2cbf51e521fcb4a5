/* tok_write.h - a tokenizer as the tokenizer.ggml keys of a GGUF file.
 *
 * For byte-level BPE (model gpt2) and SentencePiece BPE with merges, which
 * becomes a model with scores (llama): the score of a token is minus the rank
 * of the first merge that makes it, which orders merges as before.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_TOK_WRITE_H
#define BR_TOK_WRITE_H

#include "model/gguf_write.h"
#include "model/tokenizer.h"

/* rows: of the embedding table; missing tokens are added as unused ones, too
 * many are refused. UNSUPPORTED when GGUF has no name for how it cuts words. */
br_code br_tok_write(const br_tok *t, uint64_t rows, br_gguf_writer *w,
                     br_status *st) BR_MUST_USE;
/* The name of a pre-tokenizer that cuts words as t does; NULL: none. */
const char *br_tok_pre_like(const br_tok *t);

#endif
