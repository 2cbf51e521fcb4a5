/* target.c - the registry of machines, and a target to and from a program.
 * SPDX-License-Identifier: Apache-2.0 */
#include "mega/target.h"

#include <string.h>
#include <unistd.h>

/* clang-format off */
static const br_mega_target rows[] = {
#define T(name_, arch, sms, smem, block, regs, thr, rpt, l2, hbm, bw, tf, ghz, \
          coop, wddm, meas, task, share, note_)                                \
    {.name = name_, .sm_arch = arch, .num_sms = sms,                           \
     .smem_bytes_per_sm = smem, .smem_bytes_per_block_optin = block,           \
     .regs_per_sm = regs, .max_threads_per_sm = thr,                           \
     .max_regs_per_thread = rpt, .l2_bytes = l2, .hbm_bytes = hbm,             \
     .hbm_bandwidth_gbs = bw, .fp16_tflops = tf, .clock_ghz = ghz,             \
     .supports_cooperative = coop, .wddm_tdr = wddm, .measured_bw_gbs = meas,  \
     .task_us = task, .share_x = share, .note = note_},
#include "mega/targets.def"
#undef T
};
/* clang-format on */

#define DEFAULT_TASK_US 2.0
#define DEFAULT_SHARE_X 2.5

size_t
br_mega_target_count(void)
{
    return BR_COUNT(rows);
}

const br_mega_target *
br_mega_target_at(size_t i)
{
    br_assert(i < BR_COUNT(rows) && "index below br_mega_target_count");
    return &rows[i];
}

const br_mega_target *
br_mega_target_find(br_text name)
{
    for (size_t i = 0; i < BR_COUNT(rows); i++)
        if (br_text_is(name, rows[i].name))
            return &rows[i];
    return NULL;
}

void
br_mega_target_names(br_str *out)
{
    for (size_t i = 0; i < BR_COUNT(rows); i++)
        br_str_printf(out, "%s, ", rows[i].name);
    br_str_puts(out, "host");
}

br_code
br_mega_target_get(br_mega_target *out, br_text name, br_status *st)
{
    const br_mega_target *t = br_mega_target_find(name);
    br_str list = {0};
    br_code code;

    if (t) {
        *out = *t;
        return BR_OK;
    }
    if (br_text_is(name, "host")) {
        br_mega_target_host(out);
        return BR_OK;
    }
    br_mega_target_names(&list);
    code = br_fail(st, BR_E_NOT_FOUND, "target '%.*s': not known; there are %s",
                   (int)BR_MIN(name.n, (size_t)64), name.p, br_str_z(&list));
    br_str_fini(&list);
    return code;
}

static int64_t
sys_or(int what, int64_t unknown)
{
    long v = sysconf(what);

    return v > 0 ? v : unknown;
}

void
br_mega_target_host(br_mega_target *out)
{
    const br_mega_target *cpu = br_mega_target_find(BR_TEXT("cpu"));
    int64_t pages = sys_or(_SC_PHYS_PAGES, 0);
    int64_t page = sys_or(_SC_PAGESIZE, 4096);

    br_assert(cpu && "targets.def has a row named cpu");
    *out = *cpu;
    out->name = "host";
    out->note = "this machine: cores, caches and memory as the system reports "
                "them, speed as of the row cpu";
    out->num_sms = sys_or(_SC_NPROCESSORS_ONLN, cpu->num_sms);
    if (pages > 0 && pages < INT64_MAX / page)
        out->hbm_bytes = pages * page;
#if defined(_SC_LEVEL2_CACHE_SIZE) && defined(_SC_LEVEL3_CACHE_SIZE)
    out->smem_bytes_per_sm =
        sys_or(_SC_LEVEL2_CACHE_SIZE, cpu->smem_bytes_per_sm);
    out->smem_bytes_per_block_optin = out->smem_bytes_per_sm;
    out->l2_bytes = sys_or(_SC_LEVEL3_CACHE_SIZE, cpu->l2_bytes);
#endif
    out->fp16_tflops =
        cpu->fp16_tflops * (double)out->num_sms / (double)cpu->num_sms;
}

/* ---- to a program -------------------------------------------------------- */

static br_json *
new_bool(br_arena *a, bool v)
{
    br_json *j = br_json_new(a, BR_J_BOOL);

    if (j)
        j->b = v;
    return j;
}

const br_json *const *
br_mega_target_fields(const br_mega_target *t, br_arena *a)
{
    const br_json **f = br_arena_new(a, const br_json *, BR_MT_COUNT);

    if (!f)
        return NULL;
    f[BR_MT_name] = br_json_new_str(a, br_text_z(t->name));
    f[BR_MT_sm_arch] = br_json_new_i64(a, t->sm_arch);
    f[BR_MT_num_sms] = br_json_new_i64(a, t->num_sms);
    f[BR_MT_smem_bytes_per_sm] = br_json_new_i64(a, t->smem_bytes_per_sm);
    f[BR_MT_smem_bytes_per_block_optin] =
        br_json_new_i64(a, t->smem_bytes_per_block_optin);
    f[BR_MT_regs_per_sm] = br_json_new_i64(a, t->regs_per_sm);
    f[BR_MT_max_threads_per_sm] = br_json_new_i64(a, t->max_threads_per_sm);
    f[BR_MT_max_regs_per_thread] = br_json_new_i64(a, t->max_regs_per_thread);
    f[BR_MT_l2_bytes] = br_json_new_i64(a, t->l2_bytes);
    f[BR_MT_hbm_bytes] = br_json_new_i64(a, t->hbm_bytes);
    f[BR_MT_hbm_bandwidth_gbs] = br_json_new_f64(a, t->hbm_bandwidth_gbs);
    f[BR_MT_fp16_tflops] = br_json_new_f64(a, t->fp16_tflops);
    f[BR_MT_clock_ghz] = br_json_new_f64(a, t->clock_ghz);
    f[BR_MT_supports_cooperative] = new_bool(a, t->supports_cooperative);
    f[BR_MT_wddm_tdr] = new_bool(a, t->wddm_tdr);
    f[BR_MT_measured_bw_gbs] = br_json_new_f64(a, t->measured_bw_gbs);
    f[BR_MT_note] = br_json_new_str(a, br_text_z(t->note));
    for (int i = 0; i < BR_MT_COUNT; i++)
        if (!f[i])
            return NULL;
    return f;
}

/* ---- from a program ------------------------------------------------------ */

/* A number the cost of a program rests on: present, finite, above zero. */
static br_code
positive(const br_json *v, const char *name, double *out, br_status *st)
{
    if (v && v->kind == BR_J_INT)
        *out = (double)v->i;
    else if (v && v->kind == BR_J_FLOAT)
        *out = v->f;
    else
        return br_fail(st, BR_E_FORMAT, "target.%s: not a number", name);
    if (!(*out >= 1e-6 && *out <= 1e15))
        return br_fail(st, BR_E_FORMAT,
                       "target.%s: %g is not in the range of a machine", name,
                       *out);
    return BR_OK;
}

static br_code
whole(const br_json *v, const char *name, int64_t *out, br_status *st)
{
    double d = 0;

    BR_TRY(positive(v, name, &d, st));
    *out = (int64_t)d;
    if (*out < 1)
        return br_fail(st, BR_E_FORMAT, "target.%s: below one", name);
    return BR_OK;
}

br_code
br_mega_target_of(const br_mega_prog *p, br_mega_target *out, br_status *st)
{
    const br_json *const *f = p->target;
    const br_mega_target *row = NULL;
    const br_json *name, *m;

    if (!f)
        return br_fail(st, BR_E_FORMAT,
                       "target: the program has none; name one with --target");
    name = f[BR_MT_name];
    if (name && name->kind == BR_J_STR)
        row = br_mega_target_find((br_text){name->s, name->n});
    *out = row ? *row
               : (br_mega_target){.name = "custom",
                                  .note = "",
                                  .task_us = DEFAULT_TASK_US,
                                  .share_x = DEFAULT_SHARE_X};
    BR_TRY(whole(f[BR_MT_num_sms], "num_sms", &out->num_sms, st));
    BR_TRY(whole(f[BR_MT_l2_bytes], "l2_bytes", &out->l2_bytes, st));
    BR_TRY(whole(f[BR_MT_smem_bytes_per_block_optin],
                 "smem_bytes_per_block_optin", &out->smem_bytes_per_block_optin,
                 st));
    BR_TRY(whole(f[BR_MT_max_threads_per_sm], "max_threads_per_sm",
                 &out->max_threads_per_sm, st));
    BR_TRY(positive(f[BR_MT_hbm_bandwidth_gbs], "hbm_bandwidth_gbs",
                    &out->hbm_bandwidth_gbs, st));
    BR_TRY(
        positive(f[BR_MT_fp16_tflops], "fp16_tflops", &out->fp16_tflops, st));
    m = f[BR_MT_measured_bw_gbs];
    out->measured_bw_gbs = !m                      ? 0
                           : m->kind == BR_J_FLOAT ? m->f
                           : m->kind == BR_J_INT   ? (double)m->i
                                                   : 0;
    if (!(out->measured_bw_gbs > 0))
        out->measured_bw_gbs = 0;
    return BR_OK;
}
