/* toolcall.h - calls of tools, as models write them and as APIs carry them.
 *
 *   tools --grammar--> answer: text, and calls in the family's form
 *   answer --reader--> text, name, pieces of the arguments
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_TOOLCALL_H
#define BR_TOOLCALL_H

#include "run/grammar.h"

enum { BR_TOOL_MAX = 128, BR_TOOL_MAX_NAME = 64 };

struct br_tool_syntax { /* a row of toolcall.def; NULL is "", but for sep */
    const char *needle, *and, *open, *once, *first, *mid, *last, *sep, *close;
    const char *key, *val, *end;
    const char *text, *before, *answer;
    bool numbered;
};

/* By the chat template; NULL: none is known, or not supported. */
const br_tool_syntax *br_tool_syntax_of(br_text template);
/* Control tokens that are part of it: for br_vocab_new. */
bool br_tool_syntax_has(const br_tool_syntax *s, br_text token);

typedef struct br_tool {
    const char *name;      /* letters, digits, - and _ */
    const br_json *schema; /* of an object, or NULL: any object */
    bool strict;           /* refused where the schema cannot be enforced */
} br_tool;

typedef enum br_tool_choice {
    BR_TOOL_NONE,
    BR_TOOL_AUTO,     /* text, then calls or none */
    BR_TOOL_REQUIRED, /* calls */
} br_tool_choice;

/* The grammar of such an answer. several: more than one call. */
br_code br_tool_grammar(const br_tool_syntax *s, const br_tool *tools, size_t n,
                        br_tool_choice choice, bool several, br_str *out,
                        br_status *st) BR_MUST_USE;

/* Whether a named argument is written as the text that it is, not as JSON. */
bool br_tool_is_text(const br_tool *t, br_text key);

/* ---- the reader (toolread.c) --------------------------------------------- */

typedef enum br_tool_event {
    BR_TOOL_TEXT,  /* of the answer */
    BR_TOOL_BEGIN, /* a call; the piece is its name */
    BR_TOOL_ARGS,  /* a piece of its arguments */
    BR_TOOL_END,
} br_tool_event;
typedef void (*br_tool_fn)(void *ctx, br_tool_event e, br_text piece);

typedef struct br_tool_reader {
    const br_tool_syntax *s;
    const br_tool *tools; /* that may be called */
    size_t n_tools;
    br_str held;  /* not understood yet */
    br_text stop; /* at the last piece: what ended the answer, if known */
    uint8_t stage;
    bool quoted, escaped, raw;
    uint32_t depth, n_calls, n_keys;
    uint32_t number;   /* of the latest call, where they are numbered */
    const br_tool *at; /* the latest, or NULL */
} br_tool_reader;

/* A piece of the answer; last: there are no more. False: it is in no form
 * that is known, or there is no memory. */
bool br_tool_read(br_tool_reader *r, br_text piece, bool last, br_tool_fn fn,
                  void *ctx) BR_MUST_USE;
void br_tool_reader_fini(br_tool_reader *r);

#endif
