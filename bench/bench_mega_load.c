/* bench_mega_load.c - speed of reading and writing task programs.
 *
 *   bench_mega_load [file.json...]     without a file: made-up programs of
 *                                      12,738 tasks (as many as Llama-3-8B at
 *                                      default tiles) and of 100,000
 *
 * Prints the best of REPEATS runs: on a shared machine the fastest run is the
 * one least disturbed. "exact" is the slow reader, which every record that is
 * not ordinary takes (load.h).
 * SPDX-License-Identifier: Apache-2.0 */
#include "kit.h"
#include "mega/load.h"

#include <stdio.h>
#include <stdlib.h>

enum { REPEATS = 10, TILES = 64 };

/* ---- the text ----------------------------------------------------------- */

static void
put_buffers(br_str *s, int layers)
{
    br_str_puts(s, "\"buffers\":[{\"id\":0,\"name\":\"h\",\"kind\":"
                   "\"IO_INPUT\",\"dtype\":\"BF16\",\"shape\":[1,4096],"
                   "\"space\":\"HBM\",\"source\":null}");
    for (int l = 0; l < layers; l++)
        br_str_printf(
            s,
            ",{\"id\":%d,\"name\":\"L%d.q\",\"kind\":\"ACTIVATION\",\"dtype\":"
            "\"BF16\",\"shape\":[1,4096],\"space\":\"GLOBAL_SCRATCH\","
            "\"source\":null},{\"id\":%d,\"name\":\"model.layers.%d.q_proj."
            "weight\",\"kind\":\"WEIGHT\",\"dtype\":\"BF16\",\"shape\":[4096,"
            "4096],\"space\":\"HBM\",\"source\":\"model.layers.%d.self_attn."
            "q_proj.weight\"}",
            2 * l + 1, l, 2 * l + 2, l, l);
    br_str_puts(s, "],\"counters\":[{\"id\":0,\"note\":\"\"}");
    for (int l = 1; l < layers; l++)
        br_str_printf(s, ",{\"id\":%d,\"note\":\"L%d.q_proj (64 tiles)\"}", l,
                      l);
    br_str_puts(s, "],");
}

static void
put_task(br_str *s, int i)
{
    int l = i / TILES;

    br_str_printf(s,
                  "%s{\"id\":%d,\"op\":\"GEMV_TILE\",\"inputs\":[%d,%d],"
                  "\"outputs\":[%d],\"out_counter\":%d,\"waits\":[",
                  i ? "," : "", i, l ? 2 * l - 1 : 0, 2 * l + 2, 2 * l + 1, l);
    if (l)
        br_str_printf(s, "{\"counter\":%d,\"threshold\":%d}", l - 1, TILES);
    br_str_printf(s,
                  "],\"params\":{\"K\":4096,\"N_tile\":64,\"n_off\":%d},"
                  "\"sm\":null,\"est_bytes\":524288,\"est_flops\":524288,"
                  "\"label\":\"L%d.q_proj[t%d]\"}",
                  i % TILES * 64, l, i % TILES);
}

/* A program of n tasks in canonical form. */
static br_str
make_text(int n)
{
    br_status st = {0};
    br_str s = {0}, out = {0};
    br_mega_prog *p;

    br_str_puts(&s, "{\"meta\":{\"model\":\"made up\"},");
    put_buffers(&s, (n + TILES - 1) / TILES);
    br_str_puts(&s, "\"tasks\":[");
    for (int i = 0; i < n; i++)
        put_task(&s, i);
    br_str_puts(&s, "]}");
    must(br_mega_load(&p, s.at, s.n, &st), &st);
    must(br_mega_save(p, &out, &st), &st);
    br_mega_free(p);
    br_str_fini(&s);
    return out;
}

/* ---- what is measured --------------------------------------------------- */

static void
measure(const char *what, br_text text)
{
    double load = 1e9, exact = 1e9, save = 1e9, t0, t1;
    br_status st = {0};
    br_mega_prog *p = NULL;
    size_t used = 0, n_tasks = 0;

    for (int i = 0; i < REPEATS; i++) {
        br_str out = {0};

        t0 = kit_ms();
        must(br_load_text(&p, text, true, &st), &st);
        exact = BR_MIN(exact, kit_ms() - t0);
        br_mega_free(p);
        t0 = kit_ms();
        must(br_mega_load(&p, text.p, text.n, &st), &st);
        t1 = kit_ms();
        load = BR_MIN(load, t1 - t0);
        must(br_mega_save(p, &out, &st), &st);
        save = BR_MIN(save, kit_ms() - t1);
        used = p->arena.used;
        n_tasks = p->n_tasks;
        br_str_fini(&out);
        br_mega_free(p);
    }
    printf("%s: %zu tasks, %.2f MB\n", what, n_tasks, (double)text.n * 1e-6);
    printf("  load   %8.2f ms  %5.0f MB/s, %.2f bytes for each of the file\n",
           load, (double)text.n * 1e-3 / load, (double)used / (double)text.n);
    printf("  exact  %8.2f ms  %5.0f MB/s\n", exact,
           (double)text.n * 1e-3 / exact);
    printf("  save   %8.2f ms  %5.0f MB/s\n", save,
           (double)text.n * 1e-3 / save);
}

int
main(int argc, char **argv)
{
    static const int sizes[] = {12738, 100000};

    for (int i = 1; i < argc; i++) {
        br_status st = {0};
        char *text;
        size_t n;

        must(br_file_read(argv[i], BR_MEGA_MAX_FILE_BYTES, &text, &n, &st),
             &st);
        measure(argv[i], (br_text){text, n});
        br_free(text);
    }
    for (size_t i = 0; argc == 1 && i < BR_COUNT(sizes); i++) {
        br_str s = make_text(sizes[i]);

        measure("made up", (br_text){s.at, s.n});
        br_str_fini(&s);
    }
    return 0;
}
