/* hf_kit.h - Hugging Face folders for tests, and a look at what comes of them.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_KIT_H
#define HF_KIT_H

#include "model/gguf.h"
#include "model/hf.h"
#include "st_make.h"
#include "tok_kit.h"

void hfk_put(const char *dir, const char *name, const char *text);
/* "text":id,... of a vocabulary. */
void hfk_json_vocab(br_str *s, const tk_vocab *v);
/* Byte-level BPE of 258 tokens and <s>, </s>; pattern: of its Split. */
void hfk_put_bpe(const char *dir, const char *pattern, const char *more);
/* Numbers in -.5 .. .5; a vector (cols 0): ones. */
void hfk_add_bf16(st_make *m, const char *name, uint64_t rows, uint64_t cols);
void hfk_put_tensors(const char *dir, st_make *m);

#define HFK_QWEN2                                                            \
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?\\\\p{L}+|"  \
    "\\\\p{N}| ?[^\\\\s\\\\p{L}\\\\p{N}]+[\\\\r\\\\n]*|\\\\s*[\\\\r\\\\n]+|" \
    "\\\\s+(?!\\\\S)|\\\\s+"
#define HFK_LLAMA3                                                          \
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?\\\\p{L}+|" \
    "\\\\p{N}{1,3}| ?[^\\\\s\\\\p{L}\\\\p{N}]+[\\\\r\\\\n]*|\\\\s*"         \
    "[\\\\r\\\\n]+|\\\\s+(?!\\\\S)|\\\\s+"

/* DIR/out.gguf, of DIR; what br_hf_convert said of it. */
extern br_hf_stats hfk_stats;
br_gguf *hfk_convert_ok(const char *dir);
double hfk_number(const br_gguf *g, const char *key);
const char *hfk_text(const br_gguf *g, const char *key);

#endif
