/* options.h - one table of knobs: flags, environment, help and man page.
 *
 *   rows (a .def of the program)      argv, environ
 *          |                                |
 *          +--> br_options_init --> _argv --+--> _env --> _defaults --> values
 *          +--> br_options_help, _man
 *
 * A row is the only place that knows a knob: its flags, its variable, its
 * type, range, default and text. Precedence: flag, environment, default. The
 * first source to set a value wins, so the three calls come in that order.
 *
 * Flags are GNU's: --opt=value, --opt value, -n5, -n 5, -jq for two switches,
 * --no-opt, and -- ends them. A lone - is an argument. There are no
 * abbreviations: a script must not change its meaning when a knob is added.
 *
 * Everything here borrows argv and the environment: both outlive br_options.
 * Not for several threads.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_OPTIONS_H
#define BR_OPTIONS_H

#include "base/base.h"

typedef enum br_option_type {
    BR_OPTION_BOOL,  /* --x, --no-x; text: yes no true false on off 1 0 */
    BR_OPTION_INT,   /* lo..hi; decimal or 0x */
    BR_OPTION_BYTES, /* lo..hi; suffix k m g t: powers of 1024 */
    BR_OPTION_FLOAT, /* flo..fhi; finite */
    BR_OPTION_STR,
    BR_OPTION_PATH, /* a STR that names a file; never empty */
    BR_OPTION_ENUM, /* one of choices */
    BR_OPTION_LIST, /* repeatable STR; the variable separates by ';' */
} br_option_type;

typedef struct br_option {
    const char *name;    /* long flag without the dashes: "log-level" */
    const char *value;   /* what the value is called: "FILE"; NULL: a BOOL */
    const char *def;     /* as a user would write it; NULL: none */
    const char *choices; /* "text|json" */
    const char *help;
    int64_t lo, hi;
    double flo, fhi;
    br_option_type type;
    char letter; /* short flag or 0 */
    bool global; /* every command takes it */
    bool last;   /* a switch that ends all parsing: --help */
    bool rare;   /* the short help names it only */
} br_option;

typedef enum br_option_from {
    BR_FROM_NOWHERE, /* no default either */
    BR_FROM_FLAG,
    BR_FROM_ENV,
    BR_FROM_DEFAULT,
} br_option_from;

typedef struct br_option_value {
    br_option_from from;
    union {
        bool b;
        int64_t i; /* INT, BYTES; ENUM: place in choices */
        double f;
    };
    const char *s; /* the text, of every type */
    BR_VEC(const char *) list;
} br_option_value;

typedef struct br_options {
    const br_option *rows;
    size_t n_rows;
    const char *env_prefix;    /* "BRASS_" */
    bool *taken;               /* [n_rows]: rows that this command takes */
    br_option_value *values;   /* [n_rows] */
    BR_VEC(const char *) args; /* what is no option, in order */
    bool stopped;              /* a `last` switch was met */
    br_arena arena;            /* pieces of environment lists */
} br_options;

/* Takes the global rows only; br_options_take adds one. OOM only. */
br_code br_options_init(br_options *o, const br_option *rows, size_t n_rows,
                        const char *env_prefix, br_status *st) BR_MUST_USE;
void br_options_fini(br_options *o);
void br_options_take(br_options *o, size_t row);

/* Reads argv[*at..n). With only_leading it stops at the first argument that is
 * no option (or after "--"), and *at is left there; else everything is read.
 * Fails with USAGE and a sentence that names the flag. */
br_code br_options_argv(br_options *o, int n, char *const *argv, int *at,
                        bool only_leading, br_status *st) BR_MUST_USE;
/* Sets what no flag has set. USAGE names the variable. An empty variable is
 * as good as none. */
br_code br_options_env(br_options *o, char *const *env,
                       br_status *st) BR_MUST_USE;
br_code br_options_defaults(br_options *o, br_status *st) BR_MUST_USE;
/* Next variable that has the prefix but no row, from *at on (start at 0);
 * false when there is none. Writes "BRASS_TEIR is not known; did you ...". */
bool br_options_env_typo(const br_options *o, char *const *env, size_t *at,
                         char *out, size_t out_size);

/* "BRASS_LOG_LEVEL"; out is always terminated. */
void br_option_env_name(const br_option *r, const char *prefix, char *out,
                        size_t out_size);

/* ---- texts (options_text.c) -------------------------------------------- */

enum { BR_OPTION_COLUMNS = 80 };

/* The rows that are taken, a line or more each, wrapped at 80 columns, and one
 * line that names the global ones. `longer` explains those as well, and adds
 * the variables. */
void br_options_help(const br_options *o, bool longer, br_str *out);
/* As man(7) source, with variables and defaults: the global rows, or those
 * that are not. */
void br_options_man(const br_options *o, bool global, br_str *out);
/* Text that troff prints as it is; _lines wraps it and ends with a newline. */
void br_man_text(br_str *out, const char *text);
void br_man_lines(br_str *out, const char *text);
/* Words of text, wrapped; the first line begins at column `at`, others are
 * indented by `indent`. Ends with a newline. */
void br_text_wrap(br_str *out, const char *text, int at, int indent);

/* ---- typos (suggest.c) -------------------------------------------------- */

/* Insertions, deletions, changes and swaps of neighbours that lead from a to
 * b. More than 64 characters: a large number. */
int br_edit_distance(br_text a, br_text b);
/* Remembers the nearest of several names; best.p is NULL when none is near. */
typedef struct br_suggest {
    br_text want, best;
    int distance;
} br_suggest;
void br_suggest_begin(br_suggest *s, br_text want);
void br_suggest_offer(br_suggest *s, br_text name);
/* Writes "; did you mean 'PREFIXbest'?", or nothing when none is near. */
void br_suggest_text(const br_suggest *s, const char *prefix, char *out,
                     size_t out_size);

#endif
