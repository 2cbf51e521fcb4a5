/* json.h - one strict JSON reader for programs, tokenizers and requests, a
 * document tree made with it, and a streaming writer.
 *
 * Strict is RFC 8259. Lax (BR_JSON_LAX) adds what Python's json module writes
 * and reads: NaN, Infinity, -Infinity; lone surrogates in \u escapes survive,
 * kept as three-byte WTF-8. Neither accepts a byte-order mark, comments,
 * trailing commas, leading zeros or data after the document.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_JSON_H
#define BR_JSON_H

#include "base/base.h"

enum {
    BR_JSON_MAX_DEPTH = 256, /* nesting of arrays and objects */
    BR_JSON_LAX = 1,
};

/* ---- pull reader (json_read.c) ---------------------------------------- */

typedef enum br_json_tok {
    BR_JSON_ERROR, /* r->st says what and where ("line 3 column 7") */
    BR_JSON_END,   /* the document is complete and nothing follows */
    BR_JSON_OBJ_OPEN,
    BR_JSON_OBJ_CLOSE,
    BR_JSON_ARR_OPEN,
    BR_JSON_ARR_CLOSE,
    BR_JSON_KEY,    /* r->text, decoded */
    BR_JSON_STRING, /* r->text, decoded */
    BR_JSON_INT,    /* r->text as written; see br_json_to_i64 */
    BR_JSON_FLOAT,  /* r->text as written (or NaN, Infinity, -Infinity) */
    BR_JSON_TRUE,
    BR_JSON_FALSE,
    BR_JSON_NULL,
} br_json_tok;

/* The input is not copied: r->text points into it where no escape forced a
 * decode, else into r->scratch, and holds until the next call. */
typedef struct br_json_reader {
    const char *begin, *p, *end;
    const char *at; /* where the latest token begins, or what was wrong */
    int flags;
    int depth;
    uint32_t state; /* private to json_read.c */
    uint64_t is_obj[BR_JSON_MAX_DEPTH / 64];
    br_text text;
    br_str scratch;
    br_status *st;
} br_json_reader;

void br_json_open(br_json_reader *r, const char *p, size_t n, int flags,
                  br_status *st);
void br_json_close(br_json_reader *r);
br_json_tok br_json_next(br_json_reader *r);
/* Reads and drops the value that starts at the next token. */
br_code br_json_skip(br_json_reader *r) BR_MUST_USE;
/* Line and column, from 1, of r->at: for the caller's own error messages. A
 * column counts characters, not bytes. Costs a walk from the beginning. */
void br_json_where(const br_json_reader *r, int *line, int *column);

/* False when the text is not an integer that fits. "-0" is 0. */
bool br_json_to_i64(br_text t, int64_t *out);
/* Correctly rounded; 1e400 is inf. False when malformed. */
bool br_json_to_f64(br_text t, double *out);

/* ---- document tree in an arena (json_tree.c) -------------------------- */

typedef enum br_json_kind {
    BR_J_NULL,
    BR_J_BOOL,
    BR_J_INT,    /* fits i64 */
    BR_J_BIGINT, /* text in s, n: sign and digits as Python would print it */
    BR_J_FLOAT,
    BR_J_STR,
    BR_J_ARR,
    BR_J_OBJ,
} br_json_kind;

/* Children form a list in document order; a key that comes twice keeps its
 * first place and its last value, as a Python dict does. */
typedef struct br_json {
    uint8_t kind;
    uint8_t tag;     /* free for the owner of the tree, e.g. a known-key code */
    uint32_t key_n;  /* members of an object */
    uint32_t n;      /* bytes of s, or number of children */
    const char *key; /* NUL-terminated as well */
    struct br_json *next;
    union {
        bool b;
        int64_t i;
        double f;
        const char *s; /* NUL-terminated as well */
        struct {
            struct br_json *child, *last; /* NULL when empty */
        };
    };
} br_json;

/* Parses a whole document; strictly, of numbers that a double holds, as others
 * could not be written again. Every byte of the tree is in the arena: up to 24
 * for a byte of text ([1,1,1]), so a stranger's text wants a limit there. */
br_code br_json_parse(br_json **out, br_arena *a, const char *p, size_t n,
                      int flags, br_status *st) BR_MUST_USE;
/* Parses the one value that begins at the reader's next token (or at tok,
 * when the caller has already taken it: pass BR_JSON_ERROR if not). */
br_code br_json_value(br_json **out, br_arena *a, br_json_reader *r,
                      br_json_tok tok) BR_MUST_USE;
const br_json *br_json_get(const br_json *obj, const char *key); /* or NULL */
/* A member that is a string; p is NULL where there is none. word: nor one that
 * holds a NUL byte, as what is compared or copied to the first of them. */
br_text br_json_get_text(const br_json *obj, const char *key);
br_text br_json_get_word(const br_json *obj, const char *key);
/* Is it this string, to its last byte; has the member this name? strcmp would
 * stop at a NUL and take "type\0x" for "type". */
bool br_json_is(const br_json *v, const char *z); /* v may be NULL */
bool br_json_key_is(const br_json *member, const char *z);
bool br_json_is_word(const br_json *v); /* a string, not empty, without NUL */
const br_json *br_json_at(const br_json *arr, size_t i); /* or NULL */
/* Builders; NULL when out of memory. Members are appended unchecked. */
br_json *br_json_new(br_arena *a, br_json_kind k);
br_json *br_json_new_i64(br_arena *a, int64_t v);
br_json *br_json_new_f64(br_arena *a, double v);
br_json *br_json_new_str(br_arena *a, br_text t);
bool br_json_put(br_arena *a, br_json *obj, const char *key, br_json *v);
bool br_json_append(br_json *arr, br_json *v);
/* The names of kinds as people say them: "an object", "a string". */
const char *br_json_kind_name(br_json_kind k);

/* ---- writer (json_write.c) -------------------------------------------- */

/* Python's json.dumps, byte for byte: indent 0 gives one line with ", " and
 * ": " (compact: "," and ":"), indent 2 puts every element on its own line.
 * Non-ASCII is escaped unless utf8 is set. */
typedef struct br_json_writer {
    br_str *out;
    int indent;
    bool compact;
    bool utf8;
    int depth;
    bool after_key, first;
    bool replaced; /* some text was not UTF-8: U+FFFD stands for its bytes */
} br_json_writer;

void br_json_w_begin(br_json_writer *w, br_str *out, int indent);
void br_json_w_obj(br_json_writer *w);
void br_json_w_obj_end(br_json_writer *w);
void br_json_w_arr(br_json_writer *w);
void br_json_w_arr_end(br_json_writer *w);
void br_json_w_key(br_json_writer *w, const char *key);
void br_json_w_key_n(br_json_writer *w, br_text key);
void br_json_w_str(br_json_writer *w, br_text t);
void br_json_w_strz(br_json_writer *w, const char *z);
void br_json_w_i64(br_json_writer *w, int64_t v);
void br_json_w_u64(br_json_writer *w, uint64_t v);
void br_json_w_f64(br_json_writer *w, double v); /* shortest, as repr() */
void br_json_w_bool(br_json_writer *w, bool v);
void br_json_w_null(br_json_writer *w);
void br_json_w_raw(br_json_writer *w, br_text t); /* trusted text */
void br_json_w_tree(br_json_writer *w, const br_json *v);
/* A member: key and value. */
void br_json_w_key_i64(br_json_writer *w, const char *key, int64_t v);
void br_json_w_key_u64(br_json_writer *w, const char *key, uint64_t v);
void br_json_w_key_f64(br_json_writer *w, const char *key, double v);
void br_json_w_key_bool(br_json_writer *w, const char *key, bool v);
void br_json_w_key_strz(br_json_writer *w, const char *key, const char *z);

/* repr(float): shortest digits that read back equal; exponent form when the
 * decimal exponent is < -4 or >= 16; "nan", "inf" as Python's repr. Returns
 * the length; out holds at least 32 bytes. */
size_t br_f64_repr(char out[32], double v);

/* Other texts of doubles (f64.c, f64_hex.c), whatever the program's locale is;
 * lint wants them for strtod() and %a. All of t: what strtod() reads, but no space
 * and no nan(...): 1.5, .5, +3., 2e3, 0x1.8p3, inf, nan. 1e400 is inf. */
bool br_f64_read(br_text t, double *out);
bool br_f64_read_hex(br_text t, double *out); /* 0x1.8p3 */
size_t br_f64_hex(char out[32], double v);    /* as %a; inf, nan as above */
/* To so many decimals, of the exact value: 2.675 lies below its half. */
double br_f64_round(double v, int digits);

#endif
