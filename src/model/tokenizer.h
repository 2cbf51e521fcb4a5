/* tokenizer.h - text to token ids and back.
 *
 *   text --special tokens cut out--> pieces --pre-tokenizer--> words
 *        --merges / Viterbi / longest match--> ids
 *
 * Kinds: byte-level BPE (gpt2), SentencePiece BPE (llama; gemma4 with merges),
 * WordPiece (bert), Unigram (t5). The vocabulary comes from a GGUF file or
 * from a Hugging Face tokenizer.json, and is checked as it is read: whatever
 * file was accepted, no text makes these functions fail but for memory, a text
 * over BR_TOK_MAX_TEXT, or (PCRE2 patterns) a match limit.
 *
 * A br_tok is constant once loaded: any number of threads may use it, each
 * with a br_tok_work of its own.
 *
 * Special tokens are found in text only with BR_TOK_PARSE_SPECIAL, leftmost
 * and longest first. Without it, text that spells one stays plain text, so
 * that what a user wrote cannot pose as <|im_start|>; encode messages so.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_TOKENIZER_H
#define BR_TOKENIZER_H

#include "base/base.h"
#include "model/gguf.h"

enum { /* limits, each named in the error that it causes */
       BR_TOK_MAX_TOKENS = 1 << 22,
       BR_TOK_MAX_MERGES = 1 << 23,
       BR_TOK_MAX_TOKEN_BYTES = 65535,
       BR_TOK_MAX_VOCAB_BYTES = 1 << 28, /* texts of all tokens */
       BR_TOK_MAX_CHARSMAP = 1 << 26,    /* bytes */
       BR_TOK_MAX_JSON = 1 << 28,        /* bytes of tokenizer.json */
       BR_TOK_MAX_TEXT = 1 << 29,        /* bytes in one call */
};

typedef enum br_tok_kind {
    BR_TOK_BPE, /* byte-level: GPT-2, Llama 3, Qwen ... */
    BR_TOK_SPM, /* SentencePiece BPE by scores: Llama 2, Gemma 3 */
    BR_TOK_MPE, /* SentencePiece BPE by merges: Gemma 4 */
    BR_TOK_WPM, /* WordPiece: BERT */
    BR_TOK_UGM, /* Unigram: T5 */
} br_tok_kind;

/* What a token is; the numbers of tokenizer.ggml.token_type. */
typedef enum br_tok_type {
    BR_TOK_UNDEFINED,
    BR_TOK_NORMAL,
    BR_TOK_UNKNOWN,
    BR_TOK_CONTROL,
    BR_TOK_USER, /* user defined: found in any text */
    BR_TOK_UNUSED,
    BR_TOK_BYTE,
    BR_TOK_TYPE_COUNT
} br_tok_type;

/* Tokens with a role; rows of tok_role.def. */
typedef enum br_tok_role {
#define X(name, key, key_old, what) BR_TOK_##name,
#include "model/tok_role.def"
#undef X
    BR_TOK_ROLE_COUNT
} br_tok_role;

enum { BR_TOK_NONE = -1 };

typedef struct br_tok br_tok;
typedef struct br_tok_work br_tok_work;
typedef BR_VEC(int32_t) br_tok_ids;

/* ---- loading (tok_gguf.c, tok_json.c) ---------------------------------- */

/* pre overrides the file's name of the pre-tokenizer, or supplies it where it
 * is missing; NULL: as the file says. The file may be closed afterwards. */
br_code br_tok_from_gguf(br_tok **out, const br_gguf *g, const char *pre,
                         br_status *st) BR_MUST_USE;
/* tokenizer.json; config is tokenizer_config.json or empty. */
br_code br_tok_from_json(br_tok **out, br_text json, br_text config,
                         br_status *st) BR_MUST_USE;
/* A .gguf file, a tokenizer.json, or a folder with one. */
br_code br_tok_open(br_tok **out, const char *path, const char *pre,
                    br_status *st) BR_MUST_USE;
void br_tok_free(br_tok *t);

/* ---- text to ids (tok_encode.c) ---------------------------------------- */

br_tok_work *br_tok_work_new(void) BR_MUST_USE; /* NULL: out of memory */
void br_tok_work_free(br_tok_work *w);

enum {
    BR_TOK_ADD_SPECIAL = 1,   /* BOS before and EOS after, as the model wants */
    BR_TOK_PARSE_SPECIAL = 2, /* control tokens spelled in the text count */
    BR_TOK_GOES_ON = 4, /* what ids ends with is before it in the same text */
};
/* Appends to ids. text may be any bytes; what is not UTF-8 counts as U+FFFD
 * in all kinds but SPM, which has tokens for bytes. On failure ids is as it
 * was. */
br_code br_tok_encode(const br_tok *t, br_tok_work *w, br_text text, int flags,
                      br_tok_ids *ids, br_status *st) BR_MUST_USE;

/* ---- ids to text (tok_decode.c) ---------------------------------------- */

enum {
    BR_TOK_STRIP_SPECIAL = 1, /* drop BOS and EOS that encode would add */
    BR_TOK_SHOW_SPECIAL = 2,  /* print control tokens, else they are nothing */
    BR_TOK_KEEP_SPACES = 4,   /* what was encoded, not what looks well */
};
/* Appends the bytes of the text. Fails when an id is out of range. */
br_code br_tok_decode(const br_tok *t, const int32_t *ids, size_t n, int flags,
                      br_str *out, br_status *st) BR_MUST_USE;

/* Text while it is made. What comes out is always whole characters of valid
 * UTF-8: bytes that may still become a character are held back, bytes that
 * cannot are U+FFFD. No spaces are cleaned up and none is stripped. */
typedef struct br_tok_stream {
    const br_tok *tok;
    bool show_special;
    uint8_t n;
    uint8_t held[4];
} br_tok_stream;

void br_tok_stream_begin(br_tok_stream *s, const br_tok *t, bool show_special);
void br_tok_stream_put(br_tok_stream *s, int32_t id, br_str *out);
void br_tok_stream_end(br_tok_stream *s, br_str *out); /* what is held */
/* The same for bytes from elsewhere. */
void br_tok_stream_bytes(br_tok_stream *s, br_text bytes, br_str *out);

/* ---- questions --------------------------------------------------------- */

br_tok_kind br_tok_kind_of(const br_tok *t);
const char *br_tok_kind_name(br_tok_kind k);  /* "byte-level BPE" */
const char *br_tok_pre_name(const br_tok *t); /* "qwen2"; "" where none */
int32_t br_tok_count(const br_tok *t);
uint32_t br_tok_longest(const br_tok *t); /* most bytes of a token */
/* As the vocabulary spells it: "Ġthe", "<0x0A>". Empty when out of range. */
br_text br_tok_text(const br_tok *t, int32_t id);
/* The bytes it stands for: " the", "\n". Control tokens: their text. */
br_text br_tok_bytes(const br_tok *t, int32_t id);
br_tok_type br_tok_type_of(const br_tok *t, int32_t id);
bool br_tok_is_special(const br_tok *t, int32_t id); /* control or unknown */
bool br_tok_is_eog(const br_tok *t, int32_t id);     /* ends a generation */
/* The tokens for which is_eog holds, ascending. */
const int32_t *br_tok_eog(const br_tok *t, size_t *n);
int32_t br_tok_find(const br_tok *t, br_text text); /* by spelling; or NONE */
int32_t br_tok_role_id(const br_tok *t, br_tok_role role); /* or NONE */
bool br_tok_adds_bos(const br_tok *t);
bool br_tok_adds_eos(const br_tok *t); /* or SEP, in WPM */
/* Names of known pre-tokenizers, in the order of pre.def; NULL: no more. */
const char *br_tok_pre_at(size_t i);

#endif
