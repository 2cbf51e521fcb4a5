/* jinja_parse.h - what the two halves of the parser share: jinja_expr.c reads
 * expressions, jinja_parse.c the statements around them.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_JINJA_PARSE_H
#define BR_JINJA_PARSE_H

#include "model/jinja_ast.h"

typedef struct jj_parser {
    br_jinja *t;
    br_status *st;
    const jj_token *p; /* the next one */
    int depth;
    uint8_t rest; /* JM_* named so far in the macro being read */
} jj_parser;

typedef BR_VEC(jj_node *) jj_nodes;
typedef BR_VEC(br_text) jj_texts;

/* ---- tokens and nodes (jinja_expr.c) ------------------------------------ */

br_code jp_fail(jj_parser *p, const char *what);
br_code jp_oom(jj_parser *p);
/* Counts a level; who calls it takes one off p->depth at the end. */
br_code jp_deeper(jj_parser *p);
bool jp_is_op(const jj_parser *p, const char *s);
bool jp_is_name(const jj_parser *p, const char *s);
bool jp_take_op(jj_parser *p, const char *s);
bool jp_take_name(jj_parser *p, const char *s);
br_code jp_need_op(jj_parser *p, const char *s);
br_code jp_need_name(jj_parser *p, br_text *out);
br_code jp_node(jj_parser *p, jj_node **out, jj_kind kind);
br_code jp_set_kids(jj_parser *p, jj_node *n, jj_node *const *kid,
                    size_t n_kid);
/* A node with up to four kids, in one go. */
br_code jp_make(jj_parser *p, jj_node **out, jj_kind kind, size_t n,
                jj_node *const *kid);

/* ---- expressions (jinja_expr.c) ----------------------------------------- */

br_code jp_expr(jj_parser *p, jj_node **out);
/* The same, and tuples without brackets. */
br_code jp_expr_or_tuple(jj_parser *p, jj_node **out);
/* Without the "if" of a conditional: what a for loops over. */
br_code jp_logic(jj_parser *p, jj_node **out, const char *word);
br_code jp_postfix(jj_parser *p, jj_node **out, bool filters);
/* What follows "|"; *base is what it is applied to. */
br_code jp_filter(jj_parser *p, jj_node **base);
br_code jp_constant(jj_parser *p, jj_node **out, jj_val v);

#endif
