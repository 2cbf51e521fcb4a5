/* jinja.h - chat templates: the Jinja language as model files use it.
 *
 * Compile once, render often. The rules are Jinja2's with the settings that
 * chat templates expect: trim_blocks and lstrip_blocks on, break and continue
 * allowed, no autoescape, tojson as plain JSON. A template is a stranger's
 * program: it can neither loop for ever nor take unlimited memory nor see
 * anything but the context it is given.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_JINJA_H
#define BR_JINJA_H

#include "base/base.h"
#include "base/json.h"

enum { /* limits, each named in the error that it causes */
       BR_JINJA_MAX_SOURCE_BYTES = 1 << 20,
       BR_JINJA_MAX_DEPTH = 160,      /* nesting of blocks and expressions */
       BR_JINJA_MAX_CALLS = 64,       /* macros inside macros */
       BR_JINJA_MAX_STEPS = 20000000, /* nodes evaluated, values compared */
       BR_JINJA_MAX_OUTPUT_BYTES = 32 << 20,
       BR_JINJA_MAX_MEMORY_BYTES = 256 << 20, /* values of one rendering */
       BR_JINJA_MAX_RANGE = 100000,
       BR_JINJA_MAX_INDENT = 1000,
};

/* Two characters (U+FDD0, U+FDD1) are the caller's, who marks with them where
 * something begins in a text of the context, and where it has ended. They have
 * no width: no length counts them, a slice takes each along with the character
 * behind or before it; and they are printed as they are, in repr and JSON too. */
#define BR_JINJA_MARK       "\xef\xb7\x90"
#define BR_JINJA_ENDS       "\xef\xb7\x91"
#define BR_JINJA_MARK_BYTES 3

typedef struct br_jinja br_jinja;

/* Syntax errors say "line N: what". Unknown filters and tests are refused
 * here, not in the middle of a conversation. */
br_code br_jinja_compile(br_jinja **out, const char *source, size_t n,
                         br_status *st) BR_MUST_USE;
void br_jinja_free(br_jinja *t);

/* context: an object, its members are the variables. now: seconds since 1970
 * for strftime_now (UTC). A template that calls raise_exception(text) fails
 * with BR_E_REJECTED and exactly that text; every other failure is
 * BR_E_FORMAT ("line N: ..."), LIMIT or OOM. */
br_code br_jinja_render(const br_jinja *t, const br_json *context, int64_t now,
                        br_str *out, br_status *st) BR_MUST_USE;

#endif
