/* tune.c - brass tune: which numbers of the CPU tier are better on this machine.
 *
 *   open      the model as run opens it, with its packed weights
 *   search    run/tune_search.h; every look is a line of the TSV at once, so that what
 *             ends the process leaves those before
 *   keep      tuned.json of the cache folder, which run, chat, serve, bench read
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"
#include "base/thread.h"
#include "cli/bench.h"
#include "cli/interrupt.h"
#include "cli/progress.h"
#include "cli/tiers.h"
#include "run/lm_model.h"
#include "run/tune_meter.h"
#include "run/tuned.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* What a knob's best other value came to. */
typedef struct best_row {
    br_tune_row row;
    bool is;
} best_row;

typedef struct tune {
    br_cli *cli;
    br_str file; /* a shape's */
    br_model *m;
    br_cpu_pool *pool;
    br_tune_model *model;
    br_tuned_key key;
    br_str folder, database, tsv_path;
    FILE *tsv;
    br_progress progress;
    int64_t budget_ns, begun_ns;
    char load[16]; /* of the last minute, before */
    BR_VEC(br_tune_row) rows;
    best_row best[BR_CPU_KNOBS];
    br_tune_result result;
    bool saved;
} tune;

/* ---- values, as bench says them too -------------------------------------- */

void
br_bench_values(br_json_writer *w, const char *name, const br_cpu_tune *t,
                uint32_t n_threads)
{
    br_cpu_tune def;

    br_cpu_tune_default(&def, n_threads);
    br_json_w_key(w, name);
    br_json_w_obj(w);
    for (br_cpu_knob k = 0; (k = br_cpu_tune_next(t, &def, k)) < BR_CPU_KNOBS;
         k++)
        br_json_w_key_u64(w, br_cpu_knob_name(k), t->at[k]);
    br_json_w_obj_end(w);
}

void
br_bench_say_values(FILE *f, const char *what, const br_cpu_tune *t,
                    uint32_t n_threads)
{
    const char *between = ":";
    br_cpu_tune def;

    br_cpu_tune_default(&def, n_threads);
    fputs(what, f);
    for (br_cpu_knob k = 0; (k = br_cpu_tune_next(t, &def, k)) < BR_CPU_KNOBS;
         k++) {
        fprintf(f, "%s %s %u (%u untuned)", between, br_cpu_knob_name(k),
                t->at[k], def.at[k]);
        between = ",";
    }
    fputc('\n', f);
}

/* ---- the TSV ------------------------------------------------------------- */

static void
now_text(char out[32])
{
    time_t now = (time_t)(br_wall_ns() / 1000000000);
    struct tm t;

    out[0] = 0;
    if (gmtime_r(&now, &t))
        (void)strftime(out, 32, "%Y-%m-%dT%H:%M:%SZ", &t);
}

static br_code
open_tsv(tune *t, br_status *st)
{
    const char *path = br_opt_str(t->cli, BR_OPT_tsv);

    if (path)
        br_str_puts(&t->tsv_path, path);
    else if (t->folder.n)
        br_str_printf(&t->tsv_path, "%s/tune.tsv", t->folder.at);
    else
        return BR_OK;
    if (t->tsv_path.oom)
        return br_fail(st, BR_E_OOM, "out of memory");
    t->tsv = fopen(t->tsv_path.at, "a");
    if (!t->tsv)
        return br_fail(st, BR_E_IO, "%s: cannot open: %s", t->tsv_path.at,
                       strerror(errno));
    (void)fseek(t->tsv, 0, SEEK_END);
    if (ftell(t->tsv) == 0)
        fputs("time\tprocessor\tisa\tthreads\tmodel\tround\tstep\tknob\tvalue\t"
              "than\tratio\tpairs\twon\tverdict\n",
              t->tsv);
    return BR_OK;
}

/* Looks that were lost on the way are not forgotten: the stream keeps that. */
static void
close_tsv(tune *t, br_status *st)
{
    bool lost = t->tsv && ferror(t->tsv);

    if (t->tsv && fclose(t->tsv) != 0)
        lost = true;
    t->tsv = NULL;
    if (lost && st->code == BR_OK)
        (void)br_fail(st, BR_E_IO, "%s: not all looks could be written",
                      t->tsv_path.at);
}

static void
write_tsv(const tune *t, const br_tune_row *r)
{
    bool knob = r->knob < BR_CPU_KNOBS;
    char when[32];

    if (!t->tsv)
        return;
    now_text(when);
    fprintf(t->tsv, "%s\t%s\t%s\t%u\t%s\t%s\t%s\t%s\t", when, t->key.processor,
            t->key.isa, br_cpu_pool_threads(t->pool), t->key.shape,
            br_tune_round_name(r->round), br_tune_kind_name(r->kind),
            knob ? br_cpu_knob_name(r->knob) : "all");
    if (knob)
        fprintf(t->tsv, "%u\t%u", r->value, r->than);
    else
        fputs("kept\tdefaults", t->tsv);
    fprintf(t->tsv, "\t%.4f\t%u\t%u\t%s\n", r->ratio, r->pairs, r->won,
            br_tune_verdict_name(r->verdict));
    fflush(t->tsv);
}

/* ---- while it looks ------------------------------------------------------ */

static void
told(void *ctx, const br_tune_row *r)
{
    tune *t = ctx;
    int64_t now = br_now_ns();
    best_row *b = r->knob < BR_CPU_KNOBS ? &t->best[r->knob] : NULL;

    write_tsv(t, r);
    (void)br_vec_push(&t->rows, *r);
    /* A second round says more than any first; then the shortest time. */
    if (b && r->pairs > 0 &&
        (!b->is || r->round > b->row.round ||
         (r->round == b->row.round && r->ratio < b->row.ratio)))
        *b = (best_row){.row = *r, .is = true};
    t->progress.what = b ? br_cpu_knob_name(r->knob) : "what was kept";
    br_progress_at(&t->progress, (uint64_t)(now - t->begun_ns) / 1000000000,
                   now);
}

static br_code
search(tune *t, br_status *st)
{
    struct sigaction before;
    br_tune_meter meter = br_tune_model_meter(t->model);
    br_tune_config c = {.isa = br_tune_model_isa(t->model),
                        .n_threads = br_cpu_pool_threads(t->pool),
                        .keep_threads = t->key.threads > 0,
                        .budget_ns = t->budget_ns,
                        .told = told,
                        .ctx = t};
    br_code code;

    br_interrupt_begin(&before, "\nthe look that has begun ends first; Ctrl-C "
                                "once more ends at once\n");
    t->begun_ns = br_now_ns();
    br_progress_begin(&t->progress, t->cli, "tuning",
                      (uint64_t)(t->budget_ns / 1000000000));
    code = br_tune_search(&t->result, &meter, &c, st);
    br_progress_end(&t->progress);
    br_interrupt_end(&before);
    return code;
}

/* A search that was broken off and has found nothing says nothing. */
static br_code
keep(tune *t, br_status *st)
{
    char when[32];

    if (!t->folder.n || (t->result.n_kept == 0 && t->result.left > 0))
        return BR_OK;
    now_text(when);
    BR_TRY(br_tuned_put(t->database.at, &t->key, &t->result.best,
                        &t->result.def, when, st));
    t->saved = true;
    return BR_OK;
}

/* ---- telling ------------------------------------------------------------- */

static void
print_look(br_json_writer *w, const br_tune_row *r)
{
    br_json_w_obj(w);
    br_json_w_key_strz(w, "round", br_tune_round_name(r->round));
    br_json_w_key_strz(w, "step", br_tune_kind_name(r->kind));
    if (r->knob < BR_CPU_KNOBS) {
        br_json_w_key_strz(w, "knob", br_cpu_knob_name(r->knob));
        br_json_w_key_u64(w, "value", r->value);
        br_json_w_key_u64(w, "than", r->than);
    }
    br_json_w_key_f64(w, "ratio", r->ratio);
    br_json_w_key_u64(w, "pairs", r->pairs);
    br_json_w_key_u64(w, "won", r->won);
    br_json_w_key_strz(w, "verdict", br_tune_verdict_name(r->verdict));
    br_json_w_obj_end(w);
}

static int
print_json(const tune *t)
{
    const br_tune_result *r = &t->result;
    br_str doc = {0};
    br_json_writer w;
    int code;

    br_json_w_begin(&w, &doc, 0);
    br_json_w_obj(&w);
    br_json_w_key_strz(&w, "tier", "cpu");
    br_json_w_key_strz(&w, "processor", t->key.processor);
    br_json_w_key_strz(&w, "isa", t->key.isa);
    br_json_w_key_u64(&w, "threads", br_cpu_pool_threads(t->pool));
    br_json_w_key_strz(&w, "shape", t->key.shape);
    br_json_w_key_strz(&w, "load", t->load);
    br_bench_values(&w, "values", &r->best, br_cpu_pool_threads(t->pool));
    br_json_w_key_u64(&w, "kept", r->n_kept);
    br_json_w_key_u64(&w, "tried", r->tried);
    br_json_w_key_u64(&w, "left", r->left);
    br_json_w_key_u64(&w, "dropped", r->dropped);
    br_json_w_key_bool(&w, "stopped", r->stopped);
    br_json_w_key(&w, "steps");
    br_json_w_obj(&w);
    for (int k = 0; k < BR_TUNE_KINDS; k++)
        if (r->ratio[k] > 0)
            br_json_w_key_f64(&w, br_tune_kind_name(k), r->ratio[k]);
    br_json_w_obj_end(&w);
    if (t->saved)
        br_json_w_key_strz(&w, "database", t->database.at);
    if (t->tsv)
        br_json_w_key_strz(&w, "tsv", t->tsv_path.at);
    br_json_w_key(&w, "looks");
    br_json_w_arr(&w);
    for (size_t i = 0; i < t->rows.n; i++)
        print_look(&w, &t->rows.at[i]);
    br_json_w_arr_end(&w);
    br_json_w_obj_end(&w);
    code = br_cli_json_out(t->cli, &doc);
    br_str_fini(&doc);
    return code;
}

/* A line for each knob: what came nearest to a gain, or is one. */
static void
print_table(const tune *t)
{
    FILE *f = t->cli->out;

    fprintf(f, "knob            default    tried  step     time       won  \n");
    for (br_cpu_knob k = 0; k < BR_CPU_KNOBS; k++) {
        const br_tune_row *r = &t->best[k].row;
        uint32_t best = t->result.best.at[k], def = t->result.def.at[k];
        const char *end = br_tune_verdict_name(r->verdict);

        if (!t->best[k].is)
            continue;
        if (best != def)
            end = "kept";
        else if (r->verdict == BR_TUNE_FASTER)
            end = r->round == BR_TUNE_FIRST ? "faster once"
                                            : "not beside the defaults";
        else if (r->round == BR_TUNE_AGAIN)
            end = "faster, but not again";
        fprintf(f, "%-15s %7u  %7u  %-7s %6.3f  %2u of %-2u  %s\n",
                br_cpu_knob_name(k), def, best != def ? best : r->value,
                br_tune_kind_name(r->kind), r->ratio, r->won, r->pairs, end);
    }
}

static void
print_end(const tune *t)
{
    const br_tune_result *r = &t->result;
    FILE *f = t->cli->out;

    fprintf(f, "%u values tried", r->tried);
    if (r->left > 0 || r->stopped)
        fprintf(f,
                r->stopped ? ", %u left when it was stopped"
                           : ", %u left for want of time (--minutes)",
                r->left);
    fputs("; every step had the bits of the defaults\n", f);
    for (int k = 0; k < BR_TUNE_KINDS; k++)
        if (r->ratio[k] > 0)
            fprintf(f, "%-7s %.3f of the time of the defaults\n",
                    br_tune_kind_name(k), r->ratio[k]);
    for (br_cpu_knob k = 0;
         (k = br_cpu_tune_next(&r->best, &r->def, k)) < BR_CPU_KNOBS; k++)
        fprintf(f, "kept    %s %u, not %u: %s\n", br_cpu_knob_name(k),
                r->best.at[k], r->def.at[k], br_cpu_knob_help(k));
    if (r->dropped)
        fprintf(f,
                "%u of what was faster on the way was not beside the "
                "defaults\n",
                r->dropped);
    if (r->n_kept == 0)
        fputs("nothing to gain: the defaults are kept\n", f);
    if (t->saved)
        fprintf(f, "written to %s\n", t->database.at);
}

static int
print_text(const tune *t)
{
    fprintf(t->cli->out, "%s, %s, %u threads, load before %s; %s\n",
            t->key.processor, t->key.isa, br_cpu_pool_threads(t->pool), t->load,
            t->key.shape);
    print_table(t);
    print_end(t);
    return 0;
}

/* ---- all of it ----------------------------------------------------------- */

static br_code
check_tier(const tune *t, br_status *st)
{
    const char *tier = br_cli_tier_said(t->cli, BR_OPT_on_tier);

    if (!tier || strcmp(tier, "cpu") == 0)
        return BR_OK;
    return br_fail(st, BR_E_NO_DEVICE,
                   "tier %s cannot be tuned: the sizes of its kernels are "
                   "compiled in, and what it chooses at load is no knob; cpu "
                   "can",
                   tier);
}

static br_code
open_all(tune *t, br_status *st)
{
    const char *folder = br_cli_cache(t->cli, &t->folder);
    br_progress p;
    br_tune_model_config c = {
        .cache = {folder, BR_LM_CACHE_FROM,
                  (uint64_t)br_opt_int(t->cli, BR_OPT_cache_bytes)},
        .stop = br_interrupted(),
        .progress = br_progress_advance,
        .ctx = &p};
    uint32_t threads = (uint32_t)br_opt_int(t->cli, BR_OPT_threads);
    br_code code;

    BR_TRY(check_tier(t, st));
    (void)br_os_read("/proc/loadavg", t->load, sizeof t->load);
    t->load[strcspn(t->load, " ")] = 0;
    if (folder)
        br_tuned_path(&t->database, folder);
    if (t->database.oom)
        return br_fail(st, BR_E_OOM, "out of memory");
    t->budget_ns = (int64_t)(br_opt_f64(t->cli, BR_OPT_minutes) * 60e9);
    BR_TRY(br_bench_open(t->cli, t->cli->args[0], &t->file, &t->m, st));
    BR_TRY(br_cpu_pool_new(&t->pool, threads, st));
    c.pool = t->pool;
    br_progress_begin(&p, t->cli, "packing weights", 0);
    code = br_tune_model_open(&t->model, t->m, &c, st);
    br_progress_end(&p);
    BR_TRY(code);
    br_tuned_key_of(&t->key, t->m, br_tune_model_isa(t->model), threads);
    return open_tsv(t, st);
}

int
br_cmd_tune(br_cli *cli)
{
    tune t = {.cli = cli};
    br_status st = {0};
    int code = 0;

    if (open_all(&t, &st) == BR_OK && search(&t, &st) == BR_OK &&
        keep(&t, &st) == BR_OK)
        code = br_opt_bool(cli, BR_OPT_json) ? print_json(&t) : print_text(&t);
    close_tsv(&t, &st);
    br_tune_model_close(t.model);
    br_cpu_pool_free(t.pool);
    br_model_close(t.m);
    br_vec_fini(&t.rows);
    br_str_fini(&t.file);
    br_str_fini(&t.folder);
    br_str_fini(&t.database);
    br_str_fini(&t.tsv_path);
    return st.code == BR_OK ? code : br_cli_fail(cli, &st);
}
