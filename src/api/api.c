/* api.c - the C library: errors, and loading and saving of programs.
 * SPDX-License-Identifier: Apache-2.0 */
#include "api/api.h"

#include <string.h>

#define X(name, text, exit_code, http, retry)               \
    _Static_assert((int)BRASS_E_##name == (int)BR_E_##name, \
                   "brass_code in brass.h repeats errors.def in order");
#include "base/errors.def"
#undef X

#define STRING(x)  #x
#define VERSION(x) STRING(x)
_Static_assert(sizeof BRASS_VERSION_STRING ==
                   sizeof VERSION(BRASS_VERSION_MAJOR) "." VERSION(
                       BRASS_VERSION_MINOR) "." VERSION(BRASS_VERSION_PATCH),
               "the version is written twice in brass.h");

const char *
br_version(void)
{
    return BRASS_VERSION_STRING;
}

/* ---- errors -------------------------------------------------------------- */

br_error *
br_error_new(void)
{
    return br_try_calloc(1, sizeof(br_error));
}

void
br_error_free(br_error *e)
{
    br_free(e);
}

brass_code
br_error_code(const br_error *e)
{
    return (brass_code)e->st.code;
}

const char *
br_error_text(const br_error *e)
{
    return e->st.msg;
}

const char *
br_code_word(brass_code code)
{
    return br_code_name((br_code)code);
}

br_status *
br_api_begin(br_error *e, br_status *spare)
{
    br_status *st = e ? &e->st : spare;

    memset(st, 0, sizeof *st);
    return st;
}

void *
br_api_handle(size_t size, br_status *st)
{
    void *h = br_try_calloc(1, size);

    if (!h)
        br_fail(st, BR_E_OOM, "no memory for a handle");
    return h;
}

/* ---- task programs ------------------------------------------------------- */

br_program *
br_program_load(const char *text, size_t n, br_error *e)
{
    br_status spare, *st = br_api_begin(e, &spare);
    br_program *p = br_api_handle(sizeof *p, st);

    if (p && br_mega_load(&p->mega, text, n, st) != BR_OK) {
        br_free(p);
        p = NULL;
    }
    return p;
}

br_program *
br_program_load_file(const char *path, br_error *e)
{
    br_status spare, *st = br_api_begin(e, &spare);
    br_program *p = br_api_handle(sizeof *p, st);

    if (p && br_mega_load_file(&p->mega, path, st) != BR_OK) {
        br_free(p);
        p = NULL;
    }
    return p;
}

void
br_program_free(br_program *p)
{
    if (!p)
        return;
    br_mega_free(p->mega);
    br_free(p);
}

char *
br_program_save(const br_program *p, size_t *n, br_error *e)
{
    br_status spare, *st = br_api_begin(e, &spare);
    br_str out = {0};

    if (br_mega_save(p->mega, &out, st) != BR_OK) {
        br_str_fini(&out);
        return NULL;
    }
    if (n)
        *n = out.n;
    return out.at;
}

void
br_string_free(char *s)
{
    br_free(s);
}

size_t
br_program_tasks(const br_program *p)
{
    return p->mega->n_tasks;
}

size_t
br_program_counters(const br_program *p)
{
    return p->mega->n_counters;
}

size_t
br_program_buffers(const br_program *p)
{
    return p->mega->n_buffers;
}

size_t
br_program_pages(const br_program *p)
{
    return p->mega->n_pages;
}

int64_t
br_program_weight_bytes(const br_program *p)
{
    return br_mega_weight_bytes(p->mega);
}

const char *
br_program_task_op(const br_program *p, size_t i)
{
    return i < p->mega->n_tasks ? br_mega_op_name(p->mega->tasks[i].op) : NULL;
}

const char *
br_program_task_label(const br_program *p, size_t i)
{
    return i < p->mega->n_tasks ? p->mega->tasks[i].label : NULL;
}
