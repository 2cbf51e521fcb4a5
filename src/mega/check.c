/* check.c - the door to the checker: one program, one verdict.
 *
 *   br_mega_check --+-- sound      ours: accepts what is safe, and only that
 *                   '-- compatible the reference's verdict, text for text
 *
 * The rules and their proof are told in docs/mega.md. Whatever a program
 * holds, the result is a report; a code comes back only when memory ran out.
 *
 * Cost      sound: O(records) for programs as lowered; the bound for hostile
 *           ones is in check_region.c and check_hb.c. Scratch: ~80 bytes per
 *           task. Compatible: as the reference, quadratic up to 8000 tasks.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mega/check_int.h"

typedef BR_VEC(char *) lines;

/* ---- messages ----------------------------------------------------------- */

bool
br_chk_full(const br_chk *k)
{
    size_t max =
        k->mode == BR_MEGA_SOUND ? BR_CHK_MAX_SOUND : BR_CHK_MAX_COMPAT;

    return k->r->errors.n >= max || k->kept >= BR_CHK_MAX_TEXT;
}

/* The text of k->text as a string of its own; NULL once memory is out. A NUL
 * of some label is kept as C0 80, so that the text does not end there. */
static char *
take(br_chk *k)
{
    size_t n = 0, nuls = 0;
    char *copy = NULL;

    for (size_t i = 0; i < k->text.n; i++)
        nuls += k->text.at[i] == '\0';
    if (!k->text.oom)
        copy = br_try_alloc(k->text.n + nuls + 1);
    if (!copy)
        k->oom = true;
    for (size_t i = 0; copy && i < k->text.n; i++) {
        if (k->text.at[i] == '\0')
            copy[n++] = '\xc0';
        copy[n++] = (char)(k->text.at[i] ? k->text.at[i] : '\x80');
    }
    if (copy)
        copy[n] = '\0';
    k->kept += n;
    br_str_clear(&k->text);
    return copy;
}

void
br_chk_take_error(br_chk *k)
{
    char *text;

    if (br_chk_full(k)) {
        k->r->more_errors++;
        br_str_clear(&k->text);
        return;
    }
    text = take(k);
    if (text && !br_vec_push(&k->r->errors, text)) {
        br_free(text);
        k->oom = true;
    }
}

void
br_chk_take_warning(br_chk *k)
{
    char *text;

    if (k->r->warnings.n >= BR_CHK_MAX_COMPAT || k->kept >= BR_CHK_MAX_TEXT) {
        br_str_clear(&k->text);
        return;
    }
    text = take(k);
    if (text && !br_vec_push(&k->r->warnings, text)) {
        br_free(text);
        k->oom = true;
    }
}

void
br_chk_error(br_chk *k, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    br_str_vprintf(&k->text, fmt, ap);
    va_end(ap);
    br_chk_take_error(k);
}

void
br_chk_warn(br_chk *k, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    br_str_vprintf(&k->text, fmt, ap);
    va_end(ap);
    br_chk_take_warning(k);
}

br_code
br_chk_oom(br_chk *k)
{
    return br_fail(k->st, BR_E_OOM, "no memory to check %zu tasks",
                   k->p->n_tasks);
}

void *
br_chk_get(br_chk *k, size_t n, size_t size)
{
    size_t bytes;

    if (br_mul_overflows(BR_MAX(n, (size_t)1), size, &bytes))
        return NULL;
    return br_arena_get(&k->tmp, bytes);
}

void *
br_chk_zero(br_chk *k, size_t n, size_t size)
{
    void *p = br_chk_get(k, n, size);

    if (p)
        memset(p, 0, n * size);
    return p;
}

/* ---- entry -------------------------------------------------------------- */

br_code
br_mega_check(const br_mega_prog *p, br_mega_mode mode, br_mega_report *r,
              br_status *st)
{
    br_chk k = {.p = p, .r = r, .mode = mode, .st = st};
    br_code code;

    *r = (br_mega_report){.weight_bytes = br_mega_weight_bytes(p)};
    r->weight_mb = br_f64_round((double)r->weight_bytes / 1e6, 2);
    br_arena_init(&k.tmp, 0);
    code = mode == BR_MEGA_SOUND ? br_chk_sound(&k) : br_chk_compat(&k);
    if (code == BR_OK && (k.oom || k.text.oom))
        code = br_chk_oom(&k);
    br_arena_fini(&k.tmp);
    br_str_fini(&k.text);
    r->ok = r->errors.n == 0 && r->more_errors == 0;
    if (code != BR_OK)
        br_mega_report_fini(r);
    return code;
}

br_code
br_mega_accept(const br_mega_prog *p, br_status *st)
{
    br_mega_report r = {.ok = false};
    br_code code = br_mega_check(p, BR_MEGA_SOUND, &r, st);

    if (code == BR_OK && !r.ok)
        code = br_fail(st, BR_E_REJECTED, "%s (%zu errors in all)",
                       r.errors.n ? r.errors.at[0] : "rejected",
                       r.errors.n + r.more_errors);
    br_mega_report_fini(&r);
    return code;
}

void
br_mega_report_fini(br_mega_report *r)
{
    for (size_t i = 0; i < r->errors.n; i++)
        br_free(r->errors.at[i]);
    for (size_t i = 0; i < r->warnings.n; i++)
        br_free(r->warnings.at[i]);
    br_vec_fini(&r->errors);
    br_vec_fini(&r->warnings);
    *r = (br_mega_report){0};
}

static void
list_json(br_json_writer *w, const char *key, char *const *at, size_t n)
{
    br_str s = {0};

    br_json_w_key(w, key);
    br_json_w_arr(w);
    for (size_t i = 0; i < n; i++) {
        const char *z = at[i], *nul;

        for (; (nul = strstr(z, "\xc0\x80")); z = nul + 2) {
            br_str_put(&s, z, (size_t)(nul - z));
            br_str_put(&s, "", 1);
        }
        br_str_puts(&s, z);
        br_json_w_str(w, (br_text){br_str_z(&s), s.n});
        w->out->oom |= s.oom; /* before it is forgotten */
        br_str_clear(&s);
    }
    br_json_w_arr_end(w);
    br_str_fini(&s);
}

void
br_mega_report_json(const br_mega_prog *p, const br_mega_report *r, br_str *out)
{
    br_json_writer w;

    br_json_w_begin(&w, out, 0);
    br_json_w_obj(&w);
    br_json_w_key_bool(&w, "ok", r->ok);
    list_json(&w, "errors", r->errors.at, r->errors.n);
    list_json(&w, "warnings", r->warnings.at, r->warnings.n);
    if (r->more_errors) {
        br_json_w_key_u64(&w, "more_errors", r->more_errors);
    }
    br_json_w_key(&w, "stats");
    br_json_w_obj(&w);
    br_json_w_key_u64(&w, "tasks", p->n_tasks);
    br_json_w_key_u64(&w, "buffers", p->n_buffers);
    br_json_w_key_u64(&w, "counters", p->n_counters);
    br_json_w_key_i64(&w, "edges", r->n_edges);
    br_json_w_key_bool(&w, "acyclic", r->acyclic);
    br_json_w_key_f64(&w, "weight_MB", r->weight_mb);
    br_json_w_key_bool(&w, "sm_assigned", r->sm_assigned);
    br_json_w_obj_end(&w);
    br_json_w_obj_end(&w);
}
