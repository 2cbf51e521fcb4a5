/* tok_int.h - inside the tokenizers: the vocabulary and its indices.
 *
 *   br_tok                      constant after br_tok_finish
 *     text[id], bytes[id]       as spelled, and what they stand for
 *     index   spelling -> id    open addressing, keyed hash
 *     pairs   (id, id) -> rank  what a merge makes of two neighbours
 *     special, words            sorted spellings: longest match
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_TOK_INT_H
#define BR_TOK_INT_H

#include "base/hash.h"
#include "model/tokenizer.h"

#define BR_TOK_BLANK "\xE2\x96\x81" /* U+2581 stands for a space */
enum { BR_TOK_BLANK_BYTES = 3 };

/* ---- indices (tok_index.c) --------------------------------------------- */

typedef struct br_tok_slot {
    uint32_t hash, id1; /* id + 1; 0: free */
} br_tok_slot;

typedef struct br_tok_index {
    br_tok_slot *slots;
    uint32_t mask; /* slots - 1; 0: none */
} br_tok_index;

typedef struct br_tok_pair {
    uint32_t left, right;
    uint32_t rank, made; /* rank UINT32_MAX: free */
} br_tok_pair;

typedef struct br_tok_pairs {
    br_tok_pair *slots;
    uint32_t mask, n;
    uint64_t k0, k1;
} br_tok_pairs;

/* Spellings in order of their bytes; starts[] is indexed by the first two. */
typedef struct br_tok_sorted {
    uint32_t *id; /* [n] */
    uint32_t n;
    uint32_t *starts; /* [65537], NULL when n is 0 */
    int32_t one[256]; /* spelling of one byte; or NONE */
} br_tok_sorted;

/* ---- pre-tokenizers (tok_pre.c, pre.def) ------------------------------- */

enum {                    /* flags of a row of pre.def */
       BR_PRE_MERGED = 1, /* a word that is a token needs no merges */
       BR_PRE_BOS = 2,    /* add BOS unless the file says otherwise */
       BR_PRE_DIRTY = 4,  /* do not clean up spaces when decoding */
       BR_PRE_NO_BOS = 8, /* the default BOS id does not hold */
       BR_PRE_SEP = 16,   /* add SEP */
       BR_PRE_BLANK = 32, /* spaces are U+2581, text is not byte-encoded */
};

enum { BR_TOK_MAX_PASSES = 8 };

typedef struct br_pre_pass br_pre_pass;   /* tok_pre.c */
typedef struct br_tok_regex br_tok_regex; /* tok_regex.c */
typedef struct br_tok_match br_tok_match;

typedef struct br_tok_pass {
    const br_pre_pass *scan; /* or: */
    br_tok_regex *regex;
    bool drop_matches, drop_gaps; /* what does not become words */
} br_tok_pass;

typedef struct br_pre {
    const char *name;
    uint32_t flags;
    const br_pre_pass *passes[BR_TOK_MAX_PASSES]; /* NULL after the last */
} br_pre;

const br_pre *br_pre_find(br_text name);           /* or NULL */
const br_pre_pass *br_pre_of_regex(br_text regex); /* or NULL: unknown */
const br_pre_pass *br_pre_gpt2(void);
const br_pre_pass *br_pre_digits(bool one_by_one);
/* What public GGUF engines run in place of a pattern of tokenizer.json. */
const br_pre_pass *br_pre_near(const br_pre_pass *p);

/* Whoever takes words: returns false to stop. */
typedef bool (*br_word_fn)(void *ctx, const uint8_t *p, size_t n);
/* Cuts valid UTF-8 into words, all of it, in order. False when fn stopped;
 * *code is OK then, LIMIT when a pattern gave up, OOM when memory did. */
bool br_pre_split(const br_tok *t, br_text text, br_word_fn fn, void *ctx,
                  br_code *code);

/* ---- regular expressions (tok_regex.c; PCRE2 where it was found) ------- */

br_code br_tok_regex_new(br_tok_regex **out, br_text pattern, br_status *st);
void br_tok_regex_free(br_tok_regex *r);
/* What a match needs; one thread's. NULL: out of memory. */
br_tok_match *br_tok_match_new(const br_tok_regex *r);
void br_tok_match_free(br_tok_match *m);
/* First match in [p, end) that is not empty: 1 found, 0 none, -1 gave up. */
int br_tok_regex_find(const br_tok_regex *r, br_tok_match *m, const uint8_t *p,
                      const uint8_t *end, const uint8_t **from,
                      const uint8_t **to);

/* ---- the tokenizer ----------------------------------------------------- */

enum { /* of one token */
       BR_TOK_LSTRIP = 1,
       BR_TOK_RSTRIP = 2,
};
enum { BR_TOK_LEADS = 4 };

struct br_tok {
    br_arena arena;
    uint64_t serial; /* no two in one process have the same */
    br_tok_kind kind;
    char pre_name[64];
    br_tok_pass pass[BR_TOK_MAX_PASSES];
    size_t n_pass;

    uint32_t n;
    br_text *text;
    br_text *bytes;
    uint8_t *type;
    uint8_t *strip;
    float *score;
    uint32_t *prio;     /* SPM: the smaller merges first; UINT32_MAX: never */
    uint32_t max_bytes; /* longest spelling */
    float unk_score;    /* UGM */

    br_tok_index index;
    br_tok_pairs pairs;
    br_tok_sorted special; /* control, unknown, user */
    br_tok_sorted words;   /* WPM, UGM */
    bool special_any, user_any;

    int32_t byte_id[256]; /* token of one byte, or NONE */
    int32_t role[BR_TOK_ROLE_COUNT];
    int32_t *eog;
    size_t n_eog;

    const uint8_t *charsmap; /* UGM: see tok_ugm.c */
    size_t map_nodes, map_text_at, map_bytes;

    bool add_bos, add_eos, add_sep;
    int32_t lead[BR_TOK_LEADS]; /* what goes with BOS, behind it */
    uint32_t n_lead;
    bool space_prefix; /* a blank before the text */
    bool prefix_once;  /* not again after a special token */
    bool prefix_lacks; /* only where the text begins with none */
    bool blank_each;   /* each U+2581 begins a word, also of several */
    bool blanks;       /* spaces become U+2581 */
    bool fuse_unk;     /* unknown characters side by side are one token */
    bool clean_spaces;
    bool ignore_merges;
    bool lower, strip_accents; /* WPM */
    bool squeeze_spaces;       /* UGM */
    bool space_suffix;         /* UGM: the blank after, not before */
    uint32_t word_chars;       /* WPM: longer words are unknown; 0: none is */
    bool split_at_blank; /* no merge crosses into a word that begins there */
    bool nfc;
};

br_code br_tok_new(br_tok **out, br_status *st);
/* Arrays for n tokens. */
br_code br_tok_room(br_tok *t, uint64_t n, br_status *st);
/* After texts, types, scores and roles are in: checks, spellings to bytes,
 * index. Merges may be added then. */
br_code br_tok_index_all(br_tok *t, br_status *st);
br_code br_tok_add_merge(br_tok *t, uint64_t rank, br_text left, br_text right,
                         br_status *st);
/* What rests: roles by name, ends, special tokens, tables of the kind. */
br_code br_tok_finish(br_tok *t, br_status *st);
/* Passes and flags of a named pre-tokenizer. */
br_code br_tok_set_pre(br_tok *t, br_text name, br_status *st);
br_code br_tok_set_charsmap(br_tok *t, const uint8_t *p, size_t n,
                            br_status *st);

br_code br_tok_oom(br_status *st);

bool br_index_room(br_tok_index *x, br_arena *a, uint64_t n);
int32_t br_index_find(const br_tok *t, const void *p, size_t n);
/* False when the spelling is there already; *id is then its owner. */
bool br_index_add(br_tok *t, uint32_t id, uint32_t *owner);

bool br_pairs_room(br_tok_pairs *x, br_arena *a, uint64_t n);
/* NULL: the two do not merge. */
const br_tok_pair *br_pairs_find(const br_tok_pairs *x, uint32_t left,
                                 uint32_t right);
bool br_pairs_add(br_tok_pairs *x, br_tok_pair p); /* false: is there */

/* Takes the tokens for which want() holds. */
bool br_sorted_make(br_tok_sorted *s, const br_tok *t, br_arena *a,
                    bool (*want)(const br_tok *t, uint32_t id));

/* Walks the spellings that are a prefix of [p, end), shortest first. */
typedef struct br_tok_walk {
    const br_tok_sorted *s;
    const br_tok *t;
    const uint8_t *p, *end;
    uint32_t lo, hi;
    size_t depth;
} br_tok_walk;

void br_walk_begin(br_tok_walk *w, const br_tok *t, const br_tok_sorted *s,
                   const uint8_t *p, const uint8_t *end);
/* The next longer one: its id, and its bytes in *n; NONE at the end. */
int32_t br_walk_next(br_tok_walk *w, size_t *n);

/* ---- encoders ---------------------------------------------------------- */

enum { BR_CACHE_TEXT = 26, BR_CACHE_IDS = 8, BR_CACHE_SLOTS = 1 << 15 };

typedef struct br_tok_cached {
    uint32_t hash;
    uint8_t n, n_ids;
    char text[BR_CACHE_TEXT];
    int32_t ids[BR_CACHE_IDS];
} br_tok_cached;

typedef struct br_tok_sym {
    uint32_t at;         /* first byte; the next symbol's is where it ends */
    uint32_t prev, next; /* symbols; next of the last is the end mark */
    int32_t id;          /* NONE: a character that is no token */
} br_tok_sym;

typedef struct br_tok_cand {
    uint64_t key; /* prio << 32 | symbol: what merges first */
    uint32_t end; /* where the merged symbol would end */
    uint32_t made;
} br_tok_cand;

typedef struct br_tok_best {
    double score;
    uint32_t from;
    int32_t id;
} br_tok_best;

typedef struct br_tok_bench {
    BR_VEC(br_tok_sym) syms;
    BR_VEC(br_tok_cand) heap;
} br_tok_bench;

struct br_tok_work {
    uint64_t serial; /* of the br_tok whose words the cache holds */
    br_tok_cached *cache;
    br_tok_bench bench[2]; /* a window's, and a seam's */
    BR_VEC(br_tok_best) best;
    BR_VEC(uint32_t) starts;
    br_str text;  /* the piece, normalised */
    br_str text2; /* a word, spelled */
    br_tok_ids *ids;
    br_code code;
};

/* Each appends the ids of one piece of text between special tokens and
 * returns false with w->code set. */
bool br_tok_word(const br_tok *t, br_tok_work *w, const uint8_t *p, size_t n);
bool br_tok_merge(const br_tok *t, br_tok_work *w, const uint8_t *p, size_t n);
bool br_tok_wpm(const br_tok *t, br_tok_work *w, br_text piece);
bool br_tok_ugm(const br_tok *t, br_tok_work *w, br_text piece);
bool br_tok_push(br_tok_work *w, int32_t id);

/* ---- GPT-2's letters for bytes ----------------------------------------- */

uint32_t br_gpt2_letter(uint8_t byte);
int br_gpt2_byte(uint32_t letter); /* -1: stands for none */

#endif
