/* schema_int.h - what the files of schemas share.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_SCHEMA_INT_H
#define BR_SCHEMA_INT_H

#include "run/grammar.h"

typedef const br_json json;

typedef struct target { /* of $ref */
    json *schema;
    const char *pointer;
} target;

typedef struct maker {
    json *root;
    const char *prefix; /* of the names of its rules */
    br_str *rules;
    br_str path; /* where in the schema */
    BR_VEC(target) refs;
    uint32_t n_rules, n_pairs;
    int depth;
    br_status *st;
} maker;

/* schema.c */
br_code br_schema_refuse(maker *k, const char *keyword, const char *why);
br_code br_schema_oom(maker *k);
/* A count; *out stays where the keyword is missing. */
br_code br_schema_count(maker *k, json *s, const char *key,
                        int64_t *out) BR_MUST_USE;
size_t br_schema_enter(maker *k, const char *a, const char *b);
void br_schema_leave(maker *k, size_t was);
/* "rN-more ::= text", which is freed. */
void br_schema_put_rule(maker *k, uint32_t n, const char *more, br_str *text);
/* A schema in a rule of its own. */
br_code br_schema_rule(maker *k, json *s, uint32_t *out) BR_MUST_USE;
void br_schema_put_json(br_str *to, json *v);
bool br_schema_requires(json *s, const char *key);
br_code br_schema_expr(maker *k, json *s, br_str *to) BR_MUST_USE;
/* schema_both.c: what several keywords say of a text, as the grammar of its
 * body. */
enum { BR_SCHEMA_PARTS = 8 };
typedef struct br_schema_part {
    const char *keyword;
    br_str text; /* a grammar of bodies of JSON strings */
    bool never;  /* which they are none of */
} br_schema_part;
br_code br_schema_both(maker *k, br_schema_part *parts, uint32_t n,
                       br_str *to) BR_MUST_USE;
/* Are all of them of so many characters anyway? max negative: no end. */
bool br_schema_fits(maker *k, br_schema_part *parts, uint32_t n, int64_t min,
                    int64_t max);
/* schema_text.c */
br_code br_schema_string(maker *k, json *s, br_str *to) BR_MUST_USE;
/* schema_number.c */
br_code br_schema_number(maker *k, json *s, bool real, br_str *to) BR_MUST_USE;
/* schema_list.c */
br_code br_schema_array(maker *k, json *s, br_str *to) BR_MUST_USE;
br_code br_schema_object(maker *k, json *s, br_str *to) BR_MUST_USE;

#endif
