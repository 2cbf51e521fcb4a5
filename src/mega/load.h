/* load.h - shared by load.c, load_tree.c and load_int.c; nobody else.
 *
 * A file is read by two readers that must agree:
 *
 *   load.c       pull reader, one pass, for what our writer (or the
 *                reference's) makes: known keys once, ints where ints belong
 *   load_tree.c  document tree, exact for everything else: duplicate keys,
 *                misfits, lists given as strings, and every error text
 *
 * The fast reader never judges. At the first surprise it gives the object up,
 * the reader goes back to the object's brace, and the tree decides.
 *
 * Failures come in two sorts. Hard ones (syntax, memory, limits) end the load
 * at once, in st. Soft ones (what the reference would refuse in a section)
 * wait in bad: a later section of the same name replaces this one.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_MEGA_LOAD_H
#define BR_MEGA_LOAD_H

#include "mega/mega.h"

/* In the order the reference reads them: the first bad one is reported. */
typedef enum br_load_section {
    BR_LS_ir_version,
    BR_LS_abi_version,
    BR_LS_target,
    BR_LS_buffers,
    BR_LS_counters,
    BR_LS_tasks,
    BR_LS_pages,
    BR_LS_config,
    BR_LS_meta,
    BR_LS_COUNT
} br_load_section;

/* Keys of the records, in file order. */
enum {
    BR_LB_id,
    BR_LB_name,
    BR_LB_kind,
    BR_LB_dtype,
    BR_LB_shape,
    BR_LB_space,
    BR_LB_source,
    BR_LB_COUNT
};
enum { BR_LC_id, BR_LC_init, BR_LC_note, BR_LC_COUNT };
enum {
    BR_LT_id,
    BR_LT_op,
    BR_LT_inputs,
    BR_LT_outputs,
    BR_LT_out_counter,
    BR_LT_waits,
    BR_LT_params,
    BR_LT_sm,
    BR_LT_est_bytes,
    BR_LT_est_flops,
    BR_LT_label,
    BR_LT_COUNT
};
enum { BR_LW_counter, BR_LW_threshold, BR_LW_COUNT };
extern const br_text br_load_buffer_keys[BR_LB_COUNT];
extern const br_text br_load_counter_keys[BR_LC_COUNT];
extern const br_text br_load_task_keys[BR_LT_COUNT];
extern const br_text br_load_wait_keys[BR_LW_COUNT];

/* Misfits by section, so that a replaced section takes its own with it. */
enum { BR_LM_BUFFERS, BR_LM_COUNTERS, BR_LM_TASKS, BR_LM_PAGES, BR_LM_COUNT };

typedef struct br_load {
    br_mega_prog *p;
    br_arena *a; /* the program's */
    br_json_reader r;
    bool exact;    /* every record through its tree */
    br_status *st; /* hard failures */
    br_status bad; /* soft failure of the section being read */
    BR_VEC(br_mega_buffer) buffers;
    BR_VEC(br_mega_counter) counters;
    BR_VEC(br_mega_task) tasks;
    BR_VEC(br_mega_page) pages;
    BR_VEC(br_mega_bind) binds;
    BR_VEC(br_mega_misfit) misfits[BR_LM_COUNT];
    /* scratch of one record */
    BR_VEC(int64_t) ints;
    BR_VEC(br_mega_wait) waits;
    BR_VEC(const br_json *) nodes;
    const br_json *ascii[128]; /* one-character strings, made when needed */
    br_text recipe;            /* the latest, in the file's bytes; n 0: none */
    br_json *recipe_tree;
} br_load;

#define BR_LOAD_BAD(l, ...) br_fail(&(l)->bad, BR_E_FORMAT, __VA_ARGS__)

static inline br_code
br_load_oom(br_load *l)
{
    return br_fail(l->st, BR_E_OOM, "task program: out of memory");
}

/* br_mega_load, with the fast reader or without it: the two must give one
 * program, or one error, for every text. */
br_code br_load_text(br_mega_prog **out, br_text text, bool exact,
                     br_status *st);

/* load_tree.c: v is a whole value; records are appended to the lists. */
br_code br_load_buffer(br_load *l, br_json *v);
br_code br_load_counter(br_load *l, br_json *v);
br_code br_load_task(br_load *l, br_json *v);
br_code br_load_pages(br_load *l, br_json *v);
br_code br_load_target(br_load *l, br_json *v);
br_code br_load_config(br_load *l, br_json *v);
br_code br_load_version(br_load *l, const br_json *v, br_load_section which);
/* The tags of a task's parameters; returns the mask of the known ones. */
uint32_t br_load_tag_params(br_json *params);

/* Text of a file for an error: 32 printable characters at most. */
const char *br_load_quote(char buf[40], br_text t);

/* load_int.c */
enum { BR_LOAD_MAX_DIGITS = 4300 }; /* of one integer, as in CPython 3.11 */
/* Renames the members of obj to the decimal form of Python's int(key) and
 * merges those that become equal: first place, last value. where names the
 * object in an error. */
br_code br_load_int_keys(br_load *l, br_json *obj, const char *where);
/* Appends the canonical digits of int(t); false when int() would raise. */
bool br_load_py_int(br_text t, br_str *out);

#endif
