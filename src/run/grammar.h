/* grammar.h - what an answer may look like, enforced token by token.
 *
 *   JSON schema --schema.c--> grammar text --grammar.c--> states over bytes
 *                                              |
 *   logits <--mask-- which tokens the stack of states allows <--gmatch.c
 *
 * The text is GBNF as llama.cpp's users know it:
 *
 *   root  ::= "yes" | "no" | item (", " item)*      # a comment
 *   item  ::= [a-z]+ "!"? | [^"\\] . | "x"{2,4}
 *
 * Escapes in texts and classes: \n \r \t \\ \" \[ \] \- \^ \xHH \uHHHH
 * \UHHHHHHHH. Names are letters, digits, - and _; a rule ends where the next
 * begins. Refused: a name that no rule has, a rule that calls itself before it
 * reads anything, one that never ends, and whatever is over a limit.
 *
 * A token is allowed when the text so far and it can still become a text of
 * the grammar; the end when the text is one. Tokens may cross any border of
 * the grammar, and may hold parts of characters.
 *
 * A br_grammar may serve many answers, one thread at a time for their masks,
 * one (another) for new, ref and free. What its masks cost: decisions/.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_GRAMMAR_H
#define BR_GRAMMAR_H

#include "base/json.h"
#include "run/sample.h"
#include "run/vocab.h"

enum {
    BR_GRAMMAR_MAX_TEXT = 1 << 20, /* bytes */
    BR_GRAMMAR_MAX_RULES = 1 << 16,
    BR_GRAMMAR_MAX_DEPTH = 64,       /* of ( in a rule */
    BR_GRAMMAR_MAX_STATES = 1 << 18, /* repetitions written out */
    BR_GRAMMAR_MAX_REPEAT = 1 << 16,
    BR_GRAMMAR_MAX_WORK = 1 << 22, /* steps for the mask of one token */
    BR_GRAMMAR_MAX_STACKS = 1024,  /* that one text may have led to */
    BR_GRAMMAR_CACHE_BYTES = 32 << 20,
};

typedef struct br_grammar br_grammar;

/* FORMAT, LIMIT: the message says where. UNSUPPORTED: the vocabulary has no
 * token that ends an answer. The vocabulary outlives it; without one (NULL) it
 * makes no masks. */
br_code br_grammar_new(br_grammar **out, br_text text, const br_vocab *v,
                       br_status *st) BR_MUST_USE;
br_grammar *br_grammar_ref(br_grammar *g);
void br_grammar_free(br_grammar *g);

/* The grammar, as text, of the JSON documents that a schema allows; or of some
 * of them: members come in the schema's order, and none that it does not name
 * unless it names none. What cannot be enforced is UNSUPPORTED, with the
 * keyword and its place. A schema of NULL: any object. */
br_code br_schema_grammar(const br_json *schema, br_str *out,
                          br_status *st) BR_MUST_USE;
/* The same as rules whose names begin with prefix; the grammar needs
 * br_schema_common's once. */
typedef struct br_schema_spent { /* on the schemas of one request so far */
    uint64_t work, steps;
} br_schema_spent;
br_code br_schema_rules(const br_json *schema, const char *prefix,
                        br_schema_spent *spent, br_str *out,
                        br_status *st) BR_MUST_USE;
void br_schema_common(br_str *out);
/* A regular expression's texts as the body of a JSON string. */
br_code br_pattern_grammar(br_text pattern, br_str *out,
                           br_status *st) BR_MUST_USE;
/* The grammar, as text, of the texts that a regular expression is all of. */
br_code br_regex_grammar(br_text pattern, br_str *out,
                         br_status *st) BR_MUST_USE;
/* A text as a literal of the grammar, quotes and all. */
void br_grammar_quote(br_str *out, br_text t);

/* ---- one answer (gmatch.c) ----------------------------------------------- */

typedef struct br_matcher br_matcher;

/* Takes a reference of its own. */
br_code br_matcher_new(br_matcher **out, br_grammar *g,
                       br_status *st) BR_MUST_USE;
void br_matcher_free(br_matcher *m);
/* A thought, from begin to end, goes before and is free. open: the prompt has
 * begun it; else it comes where the answer begins with `begin` and the grammar
 * allows that much. Both texts outlive m. */
void br_matcher_after(br_matcher *m, const char *begin, const char *end,
                      bool open);
/* For requests and br_gen_params. */
br_logit_hook br_matcher_hook(br_matcher *m);
/* False, with m's error: too much work, or out of memory. */
bool br_matcher_mask(br_matcher *m, float *logits, int32_t n_vocab);
bool br_matcher_accept(br_matcher *m, int32_t token);
/* The text so far is one of the grammar's. */
bool br_matcher_done(const br_matcher *m);
/* Work of the latest mask: nodes of the vocabulary looked at. */
uint64_t br_matcher_visited(const br_matcher *m);

#endif
