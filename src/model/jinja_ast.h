/* jinja_ast.h - the tree of a template, and the values of a rendering; shared
 * by jinja_lex.c, jinja_expr.c, jinja_parse.c, jinja_value.c, jinja_lib.c,
 * jinja_eval.c.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_JINJA_AST_H
#define BR_JINJA_AST_H

#include "model/jinja.h"

/* ---- tokens (jinja_lex.c) ------------------------------------------------ */

typedef enum jj_tok {
    JT_END,
    JT_TEXT,      /* between tags, whitespace rules applied */
    JT_OUT_OPEN,  /* {{ */
    JT_OUT_CLOSE, /* }} */
    JT_TAG_OPEN,  /* {% */
    JT_TAG_CLOSE, /* %} */
    JT_NAME,
    JT_STR, /* decoded */
    JT_INT,
    JT_FLOAT,
    JT_OP, /* text: one of the operators */
} jj_tok;

typedef struct jj_token {
    uint8_t kind;
    uint32_t line;
    br_text text;
} jj_token;

typedef struct jj_tokens {
    jj_token *at;
    size_t n;
} jj_tokens;

br_code jj_lex(jj_tokens *out, br_arena *a, br_text source, br_status *st);

/* ---- values (jinja_value.c) ---------------------------------------------- */

typedef enum jj_type {
    JV_UNDEF, /* s: the name that was not there */
    JV_NONE,
    JV_BOOL,
    JV_INT,
    JV_FLOAT,
    JV_STR,
    JV_LIST,
    JV_TUPLE,
    JV_DICT,
    JV_NS,   /* namespace(): a dict whose members can be set */
    JV_LOOP, /* the loop variable */
    JV_RING, /* joiner() or cycler() */
    JV_MACRO,
    JV_FN,     /* a global function: i is its row */
    JV_METHOD, /* a method bound to a value */
} jj_type;

typedef struct jj_val {
    uint8_t type;
    bool safe;
    uint32_t n; /* bytes of s */
    union {
        bool b;
        int64_t i;
        double f;
        const char *s;
        struct jj_list *list;
        struct jj_dict *dict;
        struct jj_loop *loop;
        struct jj_ring *ring;
        struct jj_macro *macro;
        struct jj_method *method;
    };
} jj_val;

typedef struct jj_list {
    jj_val *at;
    size_t n, cap;
    bool group; /* of groupby: a tuple with the names grouper and list */
} jj_list;

typedef struct jj_dict { /* insertion order; few keys, so a scan finds them */
    jj_val *key, *val;
    size_t n, cap;
} jj_dict;

typedef struct jj_loop {
    const jj_list *items;
    size_t i;
    int depth;
    const struct jj_node *node; /* the for, and where it stands: loop(x) */
    struct jj_scope *scope;
    jj_val last_changed;
    bool has_changed;
} jj_loop;

typedef struct jj_ring {
    const jj_list *items; /* a joiner's: "" and what joins, which stays */
    size_t i;
    bool joins;
} jj_ring;

typedef struct jj_method {
    jj_val self;
    int row;
} jj_method;

/* ---- tree (jinja_parse.c) ----------------------------------------------- */

typedef enum jj_kind {
    JN_CONST,
    JN_NAME,
    JN_LIST,
    JN_TUPLE,
    JN_DICT,
    JN_BIN,
    JN_NEG,
    JN_POS,
    JN_NOT,
    JN_AND,
    JN_OR,
    JN_CMP,
    JN_COND,
    JN_ATTR,
    JN_ITEM,
    JN_SLICE,
    JN_CALL,
    JN_FILTER,
    JN_TEST,
    JN_TEXT,
    JN_OUT,
    JN_IF,
    JN_FOR,
    JN_SET,
    JN_SET_BLOCK,
    JN_WITH,
    JN_MACRO,
    JN_CALL_BLOCK,
    JN_FILTER_BLOCK,
    JN_BREAK,
    JN_CONTINUE,
    JN_BODY,
} jj_kind;

typedef enum jj_op {
    JO_ADD,
    JO_SUB,
    JO_MUL,
    JO_DIV,
    JO_FLOOR,
    JO_MOD,
    JO_POW,
    JO_CAT,
    JO_EQ,
    JO_NE,
    JO_LT,
    JO_LE,
    JO_GT,
    JO_GE,
    JO_IN,
    JO_NOT_IN,
} jj_op;

/* What else a macro takes, or a call gives: *args, **kwargs. */
enum { JM_VARARGS = 1, JM_KWARGS = 2 };

/* kid[]: operands in source order. Where a node needs named places:
 *   IF    cond, body, else body (or NULL)
 *   FOR   target, iterable, filter or NULL, body, else body or NULL;
 *         op: is it recursive?
 *   SET   target, value; SET_BLOCK target, body, filter chain or NULL
 *   MACRO names in kid[0..n_pos) with default values (or NULL) at
 *         kid[n_pos..2 n_pos), body last; op: JM_* that the body names
 *   WITH  target, value, target, value .., body last
 *   CALL  function, then n_pos positional, then keyword values; key[] names;
 *         then, by op, what * and ** stand before
 *   FILTER, TEST base first, then like CALL; row: of the table
 *   COND  value, condition, else value or NULL
 *   SLICE base, start, stop, step, each or NULL                            */
typedef struct jj_node {
    uint8_t kind;
    uint8_t op;
    bool negate;
    uint16_t n_pos, n_key;
    int16_t row;
    uint32_t line;
    uint32_t n_kid;
    br_text text; /* NAME, ATTR, TEXT, MACRO: the name or the text */
    jj_val value; /* CONST */
    struct jj_node **kid;
    br_text *key;
} jj_node;

struct br_jinja {
    br_arena arena;
    jj_node *root;
};

br_code jj_parse(br_jinja *t, const jj_tokens *toks, br_status *st);

/* ---- a rendering (jinja_eval.c) ----------------------------------------- */

typedef struct jj_scope {
    struct jj_scope *parent;
    br_text *name;
    jj_val *val;
    size_t n, cap;
} jj_scope;

typedef struct jj_macro {
    const jj_node *node;
    jj_scope *scope; /* where it was defined */
} jj_macro;

typedef struct jj_args {
    const jj_val *pos;
    size_t n_pos;
    const br_text *key;
    const jj_val *kw;
    size_t n_kw;
} jj_args;

typedef struct jj_run {
    br_arena arena; /* every value; freed with the rendering */
    br_status *st;
    int64_t now;
    uint64_t steps;
    int depth, calls;
    uint32_t line; /* of the node being evaluated: for errors */
    bool breaking, continuing;
    bool too_deep; /* values to compare */
} jj_run;

br_code jj_err(jj_run *r, const char *fmt, ...) BR_PRINTF(2, 3);
br_code jj_oom(jj_run *r);
br_code jj_within(jj_run *r); /* are the limits kept? */
br_code jj_call(jj_run *r, const jj_val *fn, const jj_args *a, jj_val *out);

/* value.c */
jj_val jj_none(void);
jj_val jj_bool(bool b);
jj_val jj_int(int64_t i);
jj_val jj_float(double f);
jj_val jj_str(br_text t);
jj_val jj_undef(br_text name);
br_text jj_text(const jj_val *v); /* of a JV_STR */
br_code jj_str_copy(jj_run *r, br_text t, jj_val *out);
br_code jj_list_new(jj_run *r, uint8_t type, jj_val *out);
br_code jj_push(jj_run *r, jj_list *l, jj_val v);
br_code jj_dict_new(jj_run *r, uint8_t type, jj_val *out);
br_code jj_dict_set(jj_run *r, jj_dict *d, jj_val key, jj_val v);
const jj_val *jj_dict_get(jj_run *r, const jj_dict *d, const jj_val *key);
const jj_val *jj_dict_get_text(const jj_dict *d, br_text key);
br_code jj_from_json(jj_run *r, const br_json *j, jj_val *out);
bool jj_truth(const jj_val *v);
/* Counts steps; what it says holds if jj_within() does afterwards. */
bool jj_equal(jj_run *r, const jj_val *a, const jj_val *b);
/* -1, 0, 1; fails for kinds that have no order */
br_code jj_compare(jj_run *r, const jj_val *a, const jj_val *b, int *out);
br_code jj_contains(jj_run *r, const jj_val *in, const jj_val *what, bool *out);
void jj_put_str(br_str *s, const jj_val *v);  /* as str() */
void jj_put_repr(br_str *s, const jj_val *v); /* as repr() */
br_code jj_to_str(jj_run *r, const jj_val *v, jj_val *out);
const char *jj_type_name(const jj_val *v);
/* Elements as a list: of a list, the keys of a dict, characters of a string */
br_code jj_iterate(jj_run *r, const jj_val *v, jj_list **out);
br_code jj_binary(jj_run *r, int op, const jj_val *a, const jj_val *b,
                  jj_val *out);
br_code jj_get_attr(jj_run *r, const jj_val *v, br_text name, jj_val *out);
br_code jj_get_item(jj_run *r, const jj_val *v, const jj_val *key, jj_val *out);

/* char.c */
bool jj_is_mark(br_text t, size_t at);      /* of the caller's, jinja.h */
size_t jj_char_bytes(br_text t, size_t at); /* with its marks */
size_t jj_utf8_len(br_text t);              /* characters */
br_text jj_utf8_sub(br_text t, size_t from, size_t to); /* by characters */

/* lib.c: rows of jinja.def by name; -1: none */
int jj_filter_find(br_text name);
int jj_test_find(br_text name);
int jj_global_find(br_text name);
br_code jj_ring_call(jj_run *r, jj_ring *g, const jj_args *a, jj_val *out);
int jj_method_find(const jj_val *self, br_text name);
br_code jj_filter_call(jj_run *r, int row, const jj_val *base, const jj_args *a,
                       jj_val *out);
br_code jj_test_call(jj_run *r, int row, const jj_val *base, const jj_args *a,
                     bool *out);
br_code jj_global_call(jj_run *r, int row, const jj_args *a, jj_val *out);
br_code jj_method_call(jj_run *r, int row, const jj_val *self, const jj_args *a,
                       jj_val *out);

#endif
