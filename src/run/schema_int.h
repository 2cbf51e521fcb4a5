/* schema_int.h - what the files of schemas share.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_SCHEMA_INT_H
#define BR_SCHEMA_INT_H

#include "base/map.h"
#include "run/grammar.h"

typedef const br_json json;

/* What a keyword is, schema.def. */
enum {
    BR_SG_NOTE = 1,
    BR_SG_DEFS = 2,
    BR_SG_REF = 4,
    BR_SG_TYPE = 8,
    BR_SG_ENUM = 16,
    BR_SG_CONST = 32,
    BR_SG_ANYOF = 64,
    BR_SG_ONEOF = 128,
    BR_SG_ALLOF = 256,
    BR_SG_STR = 512,
    BR_SG_NUM = 1024,
    BR_SG_OBJ = 2048,
    BR_SG_ARR = 4096,
    BR_SG_NOT = 8192,
    /* beside others these are joined to them (schema_all.c) */
    BR_SG_JOINS =
        BR_SG_REF | BR_SG_ANYOF | BR_SG_ONEOF | BR_SG_ALLOF | BR_SG_NOT,
};

enum { BR_SCHEMA_DEPTH = 64 }; /* of schemas in schemas */

typedef struct target { /* of $ref */
    json *schema;
    const char *pointer;
} target;

/* How long a text of one format may be, schema_both.c. */
typedef struct span {
    const char *text; /* of its grammar, in the arena */
    bool known;       /* false: of any length, as far as one can tell */
    bool empty;
    uint32_t longest;
} span;

enum { BR_SCHEMA_SPANS = 16 };

typedef struct maker {
    json *root;
    const char *prefix; /* of the names of its rules */
    br_str *rules;
    br_str path; /* where in the schema */
    BR_VEC(target) refs;
    uint32_t n_rules, n_pairs, n_added;
    uint64_t n_work, n_steps;
    span spans[BR_SCHEMA_SPANS]; /* those found last */
    uint32_t n_spans;
    int depth;
    br_arena arena; /* of schemas that were joined */
    br_status *st;
} maker;

/* schema.c */
/* n more members, values or the like were held against each other. Refused when it
 * was too much in all: nobody is served meanwhile. */
br_code br_schema_work(maker *k, const char *keyword, uint64_t n) BR_MUST_USE;
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
/* Puts the texts of a list into a map, each once. */
br_code br_schema_put_names(maker *k, json *list, br_map *to) BR_MUST_USE;
br_code br_schema_expr(maker *k, json *s, br_str *to) BR_MUST_USE;
/* One without $ref, anyOf and their like. */
br_code br_schema_plain(maker *k, json *s, br_str *to) BR_MUST_USE;
/* The group of a keyword; 0: it is none. */
unsigned br_schema_group(const char *keyword);
br_code br_schema_groups(maker *k, json *s, unsigned *out) BR_MUST_USE;
/* Bits of what "type" says; a list of those; those of both. */
br_code br_schema_types(maker *k, json *s, unsigned *out) BR_MUST_USE;
br_code br_schema_type_list(maker *k, unsigned types,
                            br_json **out) BR_MUST_USE;
unsigned br_schema_both_types(unsigned a, unsigned b);
bool br_schema_has_type(json *v, unsigned types);
json *br_schema_pointed(maker *k, json *ref); /* or NULL */
/* Where $ref after $ref leads. */
json *br_schema_resolved(maker *k, json *s);
/* Where there is no memory to tell, the rules have none either. */
bool br_schema_same(maker *k, json *a, json *b);
bool br_schema_never(json *s); /* says that no value is valid */
/* Surely no value is valid under both. */
bool br_schema_apart(maker *k, json *a, json *b);
br_code br_schema_overlap(maker *k); /* of two in oneOf: refused */
br_code br_schema_check_list(maker *k, json *list, const char *key) BR_MUST_USE;
/* schema_all.c: one that has to be joined from several. */
br_code br_schema_all(maker *k, json *s, br_str *to) BR_MUST_USE;
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
/* What matches both of two patterns, as one. */
br_code br_schema_patterns(maker *k, json *a, json *b,
                           br_json **out) BR_MUST_USE;
/* schema_number.c */
bool br_schema_width(json *s, int64_t *lo, int64_t *hi);
br_code br_schema_number(maker *k, json *s, bool real, br_str *to) BR_MUST_USE;
/* schema_list.c */
br_code br_schema_array(maker *k, json *s, br_str *to) BR_MUST_USE;
br_code br_schema_object(maker *k, json *s, br_str *to) BR_MUST_USE;

#endif
