/* test_prog_run.c - brass prog run, the whole command.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/half.h"
#include "logits_kit.h"
#include "mega_kit.h"
#include "model/gguf_write.h"
#include "model/quant.h"
#include "t.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { F32 = BR_MDT_F32 };

#define MANIFEST                                                         \
    "{\"buffers\": [{\"id\": 0, \"dtype\": \"F32\", \"shape\": [1, 2], " \
    "\"file\": \"x.bin\"}, {\"id\": 1, \"dtype\": \"F32\", \"shape\": "  \
    "[2], \"file\": \"w.bin\"}]}"

/* y = (x + w) in BF16, and a copy of it. */
static const char *
make(const char *manifest, const char *wait)
{
    static const float x[] = {1, 2}, w[] = {0.5f, 1};
    const char *dir = t_tmpdir(), *text;
    kit k = {0};
    int a = kit_buf(&k, BR_MBK_IO_INPUT, F32, "1, 2");
    int b = kit_buf(&k, BR_MBK_WEIGHT, F32, "2");
    int c = kit_buf(&k, BR_MBK_ACTIVATION, F32, "1, 2");
    int y = kit_buf(&k, BR_MBK_IO_OUTPUT, BR_MDT_BF16, "1, 2");

    kit_task(&k, "COPY", t_printf("%d", c), t_printf("%d", y), "", wait);
    kit_task(&k, "ADD", t_printf("%d, %d", a, b), t_printf("%d", c), "", "");
    text = kit_text(&k);
    t_write(t_printf("%s/p.json", dir), text, strlen(text));
    t_write(t_printf("%s/x.bin", dir), x, sizeof x);
    t_write(t_printf("%s/w.bin", dir), w, sizeof w);
    t_write(t_printf("%s/manifest.json", dir), manifest, strlen(manifest));
    kit_end(&k);
    return dir;
}

static void
result_is(const char *dir, const char *order, int sweeps)
{
    static const uint16_t y[] = {0x3fc0, 0x4040}; /* 1.5, 3 */
    size_t n;
    char *got = t_read(t_printf("%s/out/3.bin", dir), &n);

    ck_assert_uint_eq(n, sizeof y);
    ck_assert_mem_eq(got, y, n);
    got = t_read(t_printf("%s/out/manifest.json", dir), NULL);
    ck_assert_str_eq(got, t_printf("{\"buffers\": [{\"id\": 3, \"dtype\": "
                                   "\"BF16\", \"shape\": [1, 2], \"file\": "
                                   "\"3.bin\"}], \"exec_order\": %s, "
                                   "\"sweeps\": %d}\n",
                                   order, sweeps));
}

TEST(prog_run_binds_runs_and_writes)
{
    const char *dir = make(MANIFEST, "1>=1"), *p, *out;
    t_proc r;

    p = t_printf("%s/p.json", dir);
    out = t_printf("%s/out", dir);
    t_run(&r, "prog", "run", p, "--bind", dir, "-o", out);
    ck_assert_msg(r.exit == 0, "%s", r.err);
    ck_assert_str_eq(r.out, "");
    ck_assert_str_eq(r.err, "");
    result_is(dir, "[1, 0]", 2);
    t_run(&r, "prog", "run", p, "--bind", dir, "-o", out, "--tier", "ref",
          "--seed", "7");
    ck_assert_msg(r.exit == 0, "%s", r.err);
    result_is(dir, "[1, 0]", 0);
    t_run(&r, "prog", "run", p, "--bind", dir, "-o", out, "--adversarial", "5");
    ck_assert_msg(r.exit == 0, "%s", r.err);
    result_is(dir, "[1, 0]", 2);
    t_run(&r, "prog", "run", p, "--bind", dir, "-o", out, "--tier", "cpu", "-t",
          "3");
    ck_assert_msg(r.exit == 0, "%s", r.err);
    result_is(dir, "[1, 0]", 0);
}

static void
fails(int code, const char *says, const char *const *args)
{
    t_proc r;

    t_exec(&r, args, NULL, 0);
    ck_assert_msg(r.exit == code, "exit %d: %s", r.exit, r.err);
    ck_assert_msg(strstr(r.err, says) != NULL, "says: %s", r.err);
    ck_assert_str_eq(r.out, "");
    ck_assert_msg(code == 2 || strchr(r.err, '\n') == r.err + r.n_err - 1,
                  "one line: %s", r.err);
}
#define FAILS(code, says, ...) \
    fails((code), (says),      \
          (const char *[]){t_brass(), "prog", "run", __VA_ARGS__, NULL})

TEST(prog_run_says_what_is_wrong)
{
    const char *dir = make(MANIFEST, "1>=1"), *p, *out;

    p = t_printf("%s/p.json", dir);
    out = t_printf("%s/out", dir);
    FAILS(2, "--bind DIR is missing", p, "-o", out);
    FAILS(2, "-o DIR is missing", p, "--bind", dir);
    FAILS(5, "tier amd runs no programs in this build; here are: ref cpu cuda",
          p, "--bind", dir, "-o", out, "--tier", "amd");
    FAILS(2, "--seed and --adversarial are for tier ref", p, "--bind", dir,
          "-o", out, "--tier", "cpu", "--seed", "1");
    FAILS(3, "m.gguf: cannot map", p, "--bind", dir, "-o", out, "--model",
          "m.gguf");
    FAILS(3, "manifest.json", p, "--bind", t_printf("%s/no", dir), "-o", out);
    FAILS(3, "no.json", t_printf("%s/no.json", dir), "--bind", dir, "-o", out);
    FAILS(1, "cannot make the folder", p, "--bind", dir, "-o",
          t_printf("%s/a/b", dir));
    make("{\"buffers\": []}", "1>=1");
    FAILS(3, "manifest.json: no entry for buffer #0 ('b0'), IO_INPUT", p,
          "--bind", dir, "-o", out);
    make("{\"buffers\": [{\"id\": 0, \"dtype\": \"F32\", \"file\": "
         "\"../x.bin\"}]}",
         "1>=1");
    FAILS(3, "inside the folder", p, "--bind", dir, "-o", out);
    /* a pipe, to which nobody will write */
    p = t_printf("%s/manifest.json", dir);
    ck_assert_int_eq(unlink(p), 0);
    ck_assert_int_eq(mkfifo(p, 0600), 0);
    FAILS(3, "it is a pipe or device", t_printf("%s/p.json", dir), "--bind",
          dir, "-o", out);
}

/* ---- --model ------------------------------------------------------------- */

/* The weights of examples/mlp.json; rows: of gate.weight. */
static const char *
write_model(const char *gate, uint64_t rows)
{
    const struct {
        const char *name;
        uint64_t rows, cols;
    } w[] = {{"norm.weight", 1, 16},
             {gate, rows, 16},
             {"up.weight", 32, 16},
             {"down.weight", 16, 32}};
    const char *path = t_printf("%s/m.gguf", t_tmpdir());
    br_gguf_writer *m = br_gguf_w_new();
    br_status st = {0};
    uint64_t seed = 7;

    for (size_t i = 0; i < BR_COUNT(w); i++)
        br_gguf_w_tensor(m, &(br_gguf_w_info){br_text_z(w[i].name),
                                              i == 3 ? BR_Q_F16 : BR_Q_F32,
                                              w[i].rows > 1 ? 2 : 1,
                                              {w[i].cols, w[i].rows}});
    t_ok(br_gguf_w_begin(m, path, &st), &st);
    for (size_t i = 0; i < BR_COUNT(w); i++) {
        size_t n = w[i].rows * w[i].cols;
        float *f = t_keep(calloc(n, sizeof *f));
        uint16_t *h = t_keep(calloc(n, sizeof *h));

        for (size_t k = 0; k < n; k++) {
            f[k] = (float)(t_rand(&seed) % 64) / 64 - 0.5F;
            h[k] = br_f32_to_f16(f[k]); /* exact */
        }
        t_ok(br_gguf_w_data(m, i == 3 ? (void *)h : f, n * (i == 3 ? 2 : 4),
                            &st),
             &st);
        /* The same for a manifest, all as F32. */
        t_write(t_printf("%s/w%zu.bin", t_tmpdir(), i), f, n * sizeof *f);
    }
    t_ok(br_gguf_w_end(m, &st), &st);
    br_gguf_w_free(m);
    return path;
}

#define ENTRY(id, shape, file)                                \
    "{\"id\":" id ",\"dtype\":\"F32\",\"shape\":[" shape "]," \
    "\"file\":\"" file "\"}"

TEST(prog_run_binds_the_weights_of_a_model)
{
    static const char input[] =
        "{\"buffers\":[" ENTRY("0", "1,16", "x.bin") "]}";
    static const char all[] =
        "{\"buffers\":[" ENTRY("0", "1,16", "x.bin") "," ENTRY(
            "1", "16",
            "w0.bin") "," ENTRY("2", "32,16",
                                "w1.bin") "," ENTRY("3", "32,16",
                                                    "w2.bin") "," ENTRY("4",
                                                                        "16,32",
                                                                        "w3."
                                                                        "bin") "]}";
    const char *dir = t_tmpdir(), *p = t_repo("examples/mlp.json");
    const char *model = write_model("gate.weight", 32), *out[2];
    float x[16];
    size_t n, m;
    t_proc r;

    for (int i = 0; i < 16; i++)
        x[i] = (float)i / 16;
    t_write(t_printf("%s/x.bin", dir), x, sizeof x);
    for (int i = 0; i < 2; i++) {
        t_write(t_printf("%s/manifest.json", dir), i ? all : input,
                strlen(i ? all : input));
        out[i] = t_printf("%s/out%d", dir, i);
        if (i)
            t_run(&r, "prog", "run", p, "--bind", dir, "-o", out[i]);
        else
            t_run(&r, "prog", "run", p, "--bind", dir, "-o", out[i], "--model",
                  model);
        ck_assert_str_eq(r.err, "");
    }
    out[0] = t_read(t_printf("%s/%s", out[0], t_ls(out[0], ".bin")[0]), &n);
    out[1] = t_read(t_printf("%s/%s", out[1], t_ls(out[1], ".bin")[0]), &m);
    ck_assert_uint_eq(n, m);
    ck_assert_uint_eq(n, 64);
    ck_assert_mem_eq(out[0], out[1], n);
    t_write(t_printf("%s/manifest.json", dir), input, strlen(input));
    model = write_model("other", 32);
    FAILS(3, "no entry for buffer #2 ('gate.weight'), WEIGHT of source", p,
          "--bind", dir, "-o", dir, "--model", model);
    model = write_model("gate.weight", 31);
    FAILS(3, "tensor 'gate.weight' for buffer #2", p, "--bind", dir, "-o", dir,
          "--model", model);
}

/* No flag runs what the check rejects. */
TEST(prog_run_refuses_what_the_check_rejects)
{
    const char *dir = make(MANIFEST, ""), *p = t_printf("%s/p.json", dir);
    const char *out = t_printf("%s/out", dir);

    FAILS(4, "p.json: ", p, "--bind", dir, "-o", out);
    FAILS(4, "NOT ordered before it", p, "--bind", dir, "-o", out,
          "--adversarial", "3");
    FAILS(4, "NOT ordered before it", p, "--bind", dir, "-o", out, "--tier",
          "cuda"); /* before it looks for a device */
}

/* A recorded program, from the shell's side. */
TEST(prog_run_reproduces_a_vector)
{
    static const char *const blobs[] = {
        "d7b9fc932e5bbd4e5f8b", "66f03b2ea66108357fd7", "33dc977b3069e5acdd4a"};
    static const char *const shapes[] = {"1, 16", "16", "16, 16"};
    const char *vec = t_vectors("amk"), *dir = t_tmpdir(), *out;
    br_str man = {0};
    float got[16], want[16];
    t_proc r;
    char *data;
    size_t n;

    if (!vec)
        t_skip("no ../shared/vectors/amk here");
    br_str_puts(&man, "{\"buffers\": [");
    for (int i = 0; i < 3; i++) {
        data = t_read(t_printf("%s/blobs/%s.f32.bin", vec, blobs[i]), &n);
        t_write(t_printf("%s/b%d.bin", dir, i), data, n);
        br_str_printf(&man,
                      "%s{\"id\": %d, \"dtype\": \"F32\", \"shape\": [%s], "
                      "\"file\": \"b%d.bin\"}",
                      i ? ", " : "", i, shapes[i], i);
    }
    br_str_puts(&man, "]}");
    t_write(t_printf("%s/manifest.json", dir), man.at, man.n);
    br_str_fini(&man);
    out = t_printf("%s/out", dir);
    t_run(&r, "prog", "run", t_printf("%s/valid/v004_dag3.json", vec), "--bind",
          dir, "-o", out);
    ck_assert_msg(r.exit == 0, "%s", r.err);
    data = t_read(t_printf("%s/5.bin", out), &n);
    ck_assert_uint_eq(n, sizeof got);
    memcpy(got, data, n);
    data = t_read(t_printf("%s/blobs/c63ae0810bba3dd08481.f32.bin", vec), &n);
    memcpy(want, data, sizeof want);
    for (int i = 0; i < 16; i++)
        ck_assert(got[i] - want[i] < 1e-5f && want[i] - got[i] < 1e-5f);
}

/* ---- programs of models -------------------------------------------------- */

/* dir/manifest.json and its files: n tokens from position `from` on; with
 * caches of that many positions, which are there as a run has left them. */
static void
bind_step(const br_mega_prog *p, const char *dir, const lk_case *c,
          int32_t from, int32_t n)
{
    static const char *const name[] = {"step.token", "step.position",
                                       "step.want"};
    br_str man = {0};
    int32_t v[3][8];

    br_str_puts(&man, "{\"buffers\": [");
    for (int32_t i = 0; i < n; i++) {
        v[0][i] = c->tokens[from + i];
        v[1][i] = from + i;
        v[2][i] = 1;
    }
    for (size_t b = 0; b < p->n_buffers; b++) {
        const br_mega_buffer *x = &p->buffers[b];

        for (int k = 0; k < 3; k++)
            if (strcmp(x->name, name[k]) == 0) {
                t_write(t_printf("%s/%s", dir, name[k]), v[k], (size_t)n * 4);
                br_str_printf(&man,
                              "%s{\"id\": %zu, \"dtype\": \"I32\", \"shape\": "
                              "[%d], \"file\": \"%s\"}",
                              k ? ", " : "", b, n, name[k]);
            }
        if (from && x->kind == BR_MBK_KV_CACHE &&
            p->graph->values[b].dim[0] == BR_DIM_POS)
            br_str_printf(&man,
                          ", {\"id\": %zu, \"dtype\": \"F32\", \"shape\": "
                          "[%d, %d], \"file\": \"%zu.bin\"}",
                          b, from, (int)br_ir_cols(&p->graph->values[b]), b);
        else if (from && x->kind == BR_MBK_KV_CACHE)
            br_str_printf(&man,
                          ", {\"id\": %zu, \"dtype\": \"F32\", \"file\": "
                          "\"%zu.bin\"}",
                          b, b);
    }
    br_str_puts(&man, "]}");
    t_write(t_printf("%s/manifest.json", dir), man.at, man.n);
    br_str_fini(&man);
}

/* Two steps of a case's model through files; the second binds what the first
 * has written, where it has written it. The bits are those of brass logits. */
static void
two_steps(const lk_case *c, const char *act, const char *const *extra)
{
    const char *dir = t_printf("%s/%s", t_tmpdir(), c->name), *model, *prog;
    size_t row = c->n_vocab * sizeof(float), n;
    br_mega_prog *p;
    br_status st = {0};
    char *want;
    t_proc r;

    t_exec(&r, (const char *[]){"mkdir", "-p", dir, NULL}, NULL, 0);
    model = t_printf("%s/m.gguf", dir);
    prog = t_printf("%s/p.json", dir);
    t_write(model, c->file, c->file_n);
    t_run(&r, "logits", model, "--tokens",
          t_printf("%d,%d,%d,%d,%d", c->tokens[0], c->tokens[1], c->tokens[2],
                   c->tokens[3], c->tokens[4]),
          "-o", t_printf("%s/want", dir), "--act", act);
    ck_assert_msg(r.exit == 0, "%s", r.err);
    want = t_read(t_printf("%s/want", dir), &n);
    t_run(&r, "prog", "lower", model, "--stage", "prefill", "--rows", "3",
          "--workers", "4", "-o", prog);
    ck_assert_msg(r.exit == 0, "%s", r.err);
    t_ok(br_mega_load_file(&p, prog, &st), &st);
    for (int32_t at = 0, k = 3; at < 5; at += k, k = 2) {
        bind_step(p, dir, c, at, k);
        t_exec(&r,
               (const char *[]){t_brass(), "prog", "run", prog, "--model",
                                model, "--bind", dir, "-o", dir, extra[0],
                                extra[1], extra[2], extra[3], extra[4],
                                extra[5], NULL},
               NULL, 0);
        ck_assert_msg(r.exit == 0 && !*r.err, "%s", r.err);
        for (size_t b = 0; b < p->n_buffers; b++)
            if (p->buffers[b].kind == BR_MBK_IO_OUTPUT) {
                const char *got = t_read(t_printf("%s/%zu.bin", dir, b), &n);

                ck_assert_uint_eq(n, (size_t)k * row);
                ck_assert_msg(memcmp(got, want + (size_t)at * row, n) == 0,
                              "%s from %d", c->name, at);
            }
    }
    br_mega_free(p);
}

/* On the CPU tier weights of integers and BF16 ask for --arith exact. */
TEST_WITHIN(prog_run_steps_a_model_as_logits_does, 60)
{
    static const struct {
        const char *model, *act, *how[6];
    } run[] = {
        {"gpt-oss", "f32", {"--seed", "3", "--adversarial", "2"}},
        {"mamba2", "f32", {"--tier", "cpu", "-t", "3", "--arith", "exact"}},
        {"qwen3-q-Q4_K_M",
         "quantised",
         {"--tier", "cpu", "-t", "3", "--arith", "exact"}},
        {"qwen3-q-Q8_0", "quantised", {"--tier", "ref", "--arith", "exact"}},
    };

    for (size_t i = 0; i < BR_COUNT(run); i++) {
        size_t at = lk_find(run[i].model);
        lk_case c;

        if (at == lk_count())
            continue; /* without ../shared */
        c = lk_get(at);
        two_steps(&c, run[i].act, run[i].how);
    }
    lk_end();
}

TEST(prog_run_says_what_a_model_lacks)
{
    const char *dir = t_tmpdir(), *p, *m, *other, *man;
    lk_case c = lk_get(lk_find("gpt-oss")), d = lk_get(lk_find("phi3-long"));
    br_mega_prog *prog;
    br_status st = {0};
    t_proc r;

    p = t_printf("%s/p.json", dir);
    m = t_printf("%s/m.gguf", dir);
    other = t_printf("%s/other.gguf", dir);
    man = t_printf("%s/manifest.json", dir);
    t_write(m, c.file, c.file_n);
    t_write(other, d.file, d.file_n);
    t_run(&r, "prog", "lower", m, "--rows", "2", "-o", p);
    ck_assert_msg(r.exit == 0, "%s", r.err);
    t_ok(br_mega_load_file(&prog, p, &st), &st);
    bind_step(prog, dir, &c, 0, 2);
    FAILS(2, "is a model's program: --model M.gguf is missing", p, "--bind",
          dir, "-o", dir);
    FAILS(3, "the model has no such weight", p, "--bind", dir, "-o", dir,
          "--model", other);
    FAILS(3, "no.gguf: cannot map", p, "--bind", dir, "-o", dir, "--model",
          "no.gguf");
    bind_step(prog, dir, &c, 0, 3);
    FAILS(3, "3 rows; the program takes 1 to 2", p, "--bind", dir, "-o", dir,
          "--model", m);
    bind_step(prog, dir, &c, 1, 1);
    FAILS(3, ".bin", p, "--bind", dir, "-o", dir, "--model", m);
    t_write(man, "{\"buffers\": []}", 15);
    FAILS(3, "no entry for buffer #0 ('step.token'), IO_INPUT", p, "--bind",
          dir, "-o", dir, "--model", m);
    br_mega_free(prog);
    lk_end();
}
