/* test_gcn.c - AMD assembler and disassembler: every row, words to text to
 * words.
 *
 * Cases are drawn from a seed: a fresh instruction of the row, its operands
 * filled at random, kept when it decodes. CI compares a hash of the cases of
 * each row (words, text, words again) with tests/golden/gcn; where llvm-mc-19
 * is present another test feeds it the very same cases, so the golden hashes
 * stand for its output.
 * SPDX-License-Identifier: Apache-2.0 */
#include "t.h"

#include "base/hash.h"
#include "cg/gcn/gcn_kinds.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

T_ONE_THREAD();

enum { PER_ROW = 5, TRIES = 4000 };

static const char *const targets[] = {"gfx1100", "gfx1151", "gfx1200",
                                      "gfx1201"};

typedef struct one {
    const br_gcn_row *row;
    br_gcn_inst in;
    br_str text;
    br_gcn_inst back; /* text, parsed */
} one;

typedef void (*each_fn)(void *arg, const one *c);

/* A value of a field that is likely to be legal. */
static uint32_t
draw(uint64_t *seed, const br_gcn_inst *in, const br_gcn_opnd *o)
{
    static const uint8_t odd[] = {106, 107, 108, 124, 125, 126, 127, 128, 192,
                                  193, 208, 235, 238, 240, 247, 248, 253, 255};
    const br_gcn_kind *k = &br_gcn_kinds[o->kind];
    unsigned bits = br_gcn_width(in, (br_gcn_field)o->field);
    uint32_t r = (uint32_t)t_rand(seed), v = (uint32_t)t_rand(seed);

    if (bits < 32)
        v &= (1u << bits) - 1;
    if (k->allow && bits == 9 && r % 8 < 4)
        return 256 | (v & 255);
    if (k->allow && bits >= 7 && bits <= 9 && k->allow != BR_A_V && r % 8 < 6)
        return r % 8 == 4 ? odd[v % BR_COUNT(odd)] & ((1u << bits) - 1)
                          : v % 106 & ~3u;
    if (!k->allow && r % 8 < 3)
        return br_gcn_get(in, (br_gcn_field)o->field);
    if (bits == 7 && r % 2)
        return 124;
    return v;
}

static br_gcn_ext
draw_ext(uint64_t *seed, const br_gcn_row *row)
{
    unsigned r = (unsigned)t_rand(seed) % 6;

    for (const br_gcn_opnd *o = row->o; o->kind != BR_GK_END; o++)
        if (o->field == BR_GF_lit)
            return BR_EXT_LIT;
    if (r == 0 && row->flags & BR_RF_DPP8)
        return BR_EXT_DPP8;
    if (r == 1 && row->flags & BR_RF_DPP16)
        return BR_EXT_DPP16;
    return r == 2 ? BR_EXT_LIT : BR_EXT_NONE;
}

static void
fill(uint64_t *seed, br_gcn_inst *in, const br_gcn_row *row)
{
    for (const br_gcn_opnd *o = br_gcn_next(row, NULL); o;
         o = br_gcn_next(row, o)) {
        bool dpp = in->ext >= BR_EXT_DPP8 && o->field == BR_GF_src0;
        bool fixed = strncmp(br_gcn_kinds[o->kind].name, "fix", 3) == 0;

        if (o->field != BR_GF_none && o->field < BR_GF_lit && !dpp && !fixed)
            br_gcn_set(in, (br_gcn_field)o->field, draw(seed, in, o));
    }
}

/* Addresses in pieces: as many as dimension and row ask for, the rest is zero.
 * Masks of atomics and gathers are few of sixteen. */
static void
fill_image(uint64_t *seed, br_gcn_inst *in)
{
    static const uint8_t fields[] = {BR_GF_vaddr1, BR_GF_vaddr2, BR_GF_vaddr3,
                                     BR_GF_vaddr4};
    static const uint8_t masks[] = {0, 1, 2, 3, 4, 8, 15, 15};
    unsigned r = (unsigned)t_rand(seed);

    for (size_t k = r % 5; k < BR_COUNT(fields); k++)
        if (br_gcn_has(in, fields[k]))
            br_gcn_set(in, fields[k], 0);
    if (!(in->row->flags & BR_RF_NOMODS))
        br_gcn_set(in, BR_GF_dmask, masks[r / 5 % BR_COUNT(masks)]);
    in->words = (uint8_t)(in->words + br_gcn_more_words(in));
}

/* LLVM 19 reads an address of gfx12 whose later piece is v0 as one of fewer
 * pieces, and no data at v252 and behind that would not all be there if it were
 * five registers. */
static bool
llvm_misreads(const br_gcn_isa *isa, const br_gcn_inst *in)
{
    br_str text = {0};
    const char *list;
    bool odd;

    if (in->ext == BR_EXT_DPP16 && br_gcn_get(in, BR_GF_xabs1) &&
        strcmp(in->row->name, "v_cndmask_b32_e32") == 0)
        return true; /* "|v1, vcc_lo|" */
    if (isa->cpu->gen < 12 || !br_gcn_has(in, BR_GF_vaddr1))
        return false;
    if (br_gcn_get(in, BR_GF_vdata) > 251)
        return true;
    br_gcn_print(isa, in, &text);
    list = strchr(br_str_z(&text), '[');
    list = list ? list : "";
    odd = strstr(list, ", v0,") || strstr(list, ", v0]") ||
          strstr(list, ", v[0:");
    br_str_fini(&text);
    return odd;
}

/* One case of the row in *c; false: none was found. */
static bool
draw_case(uint64_t *seed, const br_gcn_isa *isa, const br_gcn_row *row, one *c)
{
    static const uint16_t ctrl[] = {0x101, 0x11f, 0x128, 0x140, 0x141, 0x157};
    const br_gcn_row *y = NULL;
    size_t n;
    const br_gcn_row *all = br_gcn_rows(isa->cpu, &n);

    for (int t = 0; t < TRIES; t++) {
        br_gcn_inst in;
        uint32_t x = (uint32_t)t_rand(seed);
        br_gcn_ext ext = draw_ext(seed, row);

        if (row->fmt == BR_FMT_VOPD)
            for (y = NULL; !y || y->fmt != BR_FMT_VOPDY;)
                y = &all[t_rand(seed) % n];
        br_gcn_fresh(&in, row, y, ext);
        fill(seed, &in, row);
        if (y)
            fill(seed, &in, y);
        if (ext == BR_EXT_LIT)
            in.w[in.words - 1] = x >> (x & 31);
        if (ext == BR_EXT_DPP8)
            in.w[in.words - 1] = x;
        if (ext == BR_EXT_DPP16) {
            in.w[in.words - 1] |= x & (x & 1 ? 0xff0c00ff : 0xfffc00ff);
            br_gcn_set(&in, BR_GF_xctrl,
                       x & 2 ? x >> 8 & 255 : ctrl[x % BR_COUNT(ctrl)]);
        }
        if (br_gcn_has(&in, BR_GF_vaddr0))
            fill_image(seed, &in);
        if (br_gcn_decode(isa, in.w, in.words, &c->in) == in.words &&
            c->in.row == row && !llvm_misreads(isa, &c->in))
            return true;
    }
    return false;
}

static void
each_case(const char *cpu, bool wave64, int per_row, each_fn fn, void *arg)
{
    br_gcn_isa isa = {br_gcn_cpu_find(cpu), wave64};
    size_t n;
    const br_gcn_row *rows = br_gcn_rows(isa.cpu, &n);
    br_status st;
    one c = {0};

    for (size_t k = 0; k < n; k++) {
        uint64_t seed = k * 977 + isa.cpu->gen;

        c.row = &rows[k];
        if (!br_gcn_row_here(isa.cpu, c.row) || c.row->fmt == BR_FMT_VOPDY ||
            (wave64 && c.row->fmt == BR_FMT_VOPD)) /* LLVM refuses those */
            continue;
        for (int i = 0; i < per_row; i++) {
            if (!draw_case(&seed, &isa, c.row, &c)) {
                if (i == 0)
                    ck_abort_msg("%s: no case of %s", cpu, c.row->name);
                break;
            }
            br_str_clear(&c.text);
            br_gcn_print(&isa, &c.in, &c.text);
            memset(&st, 0, sizeof st);
            if (br_gcn_parse(&isa, c.text.at, c.text.n, &c.back, &st) != BR_OK)
                ck_abort_msg("%s: %s: %s", cpu, c.text.at, st.msg);
            fn(arg, &c);
        }
    }
    br_str_fini(&c.text);
}

/* ---- golden hashes ---------------------------------------------------- */

typedef struct sums {
    br_str out;
    const br_gcn_row *row;
    uint64_t sum;
    unsigned cases, total;
} sums;

static void
flush(sums *s)
{
    if (s->row)
        br_str_printf(&s->out, "%s %s %u %08x\n",
                      br_gcn_formats[s->row->fmt].name, s->row->name, s->cases,
                      (unsigned)(s->sum ^ s->sum >> 32));
    s->total += s->cases;
    s->sum = s->cases = 0;
}

static void
mix(sums *s, const void *p, size_t n)
{
    const uint8_t *b = p;

    for (size_t k = 0; k < n; k++)
        s->sum = (s->sum ^ b[k]) * 0x100000001b3u + 0x9e3779b9;
}

static void
sum_case(void *arg, const one *c)
{
    sums *s = arg;

    if (s->row != c->row)
        flush(s);
    s->row = c->row;
    s->cases++;
    mix(s, c->in.w, c->in.words * 4u);
    mix(s, c->text.at, c->text.n);
    mix(s, c->back.w, c->back.words * 4u);
}

static void
golden(const char *cpu)
{
    sums s = {0};

    each_case(cpu, false, PER_ROW, sum_case, &s);
    flush(&s);
    ck_assert_uint_ge(s.total, 5000);
    t_golden_n(t_printf("tests/golden/gcn/%s.txt", cpu), s.out.at, s.out.n);
    br_str_fini(&s.out);
}

TEST(gcn_every_row_of_gfx1100_round_trips)
{
    golden("gfx1100");
}
TEST(gcn_every_row_of_gfx1151_round_trips)
{
    golden("gfx1151");
}
TEST(gcn_every_row_of_gfx1200_round_trips)
{
    golden("gfx1200");
}
TEST(gcn_every_row_of_gfx1201_round_trips)
{
    golden("gfx1201");
}

/* Fields of a line of comma-separated values, in place; the last may hold more. */
static unsigned
fields(char *line, char **f, unsigned most)
{
    unsigned n = 0;

    for (char *p = line; p && n < most; n++) {
        f[n] = p;
        p = strchr(p, ',');
        if (p)
            *p++ = 0;
    }
    return n;
}

/* Each row of AMD's tables that LLVM 19 has for the processor is one of ours:
 * format and opcode may be an encoding's of its own there, the name may not. */
TEST(gcn_has_every_row_that_llvm_accepts)
{
    static const struct {
        const char *cpu, *file;
        unsigned column, rows;
    } of[] = {{"gfx1100", "gfx11", 5, 1535},
              {"gfx1151", "gfx11", 6, 1593},
              {"gfx1201", "gfx12", 5, 1602}};
    const char *dir = t_vectors("amd");

    if (!dir)
        t_skip("no ../shared/vectors here");
    for (size_t k = 0; k < BR_COUNT(of); k++) {
        const br_gcn_cpu *cpu = br_gcn_cpu_find(of[k].cpu);
        char *save = NULL, *f[8];
        char *line = t_read(t_printf("%s/%s.csv", dir, of[k].file), NULL);
        unsigned seen = 0;
        size_t n;
        const br_gcn_row *rows = br_gcn_rows(cpu, &n);

        for (line = strtok_r(line, "\n", &save);
             (line = strtok_r(NULL, "\n", &save));) {
            size_t r = 0;

            if (fields(line, f, 8) < 8 || !*f[of[k].column])
                continue;
            while (r < n && (strcmp(rows[r].name, f[of[k].column]) != 0 ||
                             !br_gcn_row_here(cpu, &rows[r])))
                r++;
            ck_assert_msg(r < n, "%s has no row %s %s %s", cpu->name, f[0],
                          f[1], f[of[k].column]);
            seen++;
        }
        ck_assert_uint_eq(seen, of[k].rows);
    }
}

/* ---- LLVM's assembler and disassembler -------------------------------- */

typedef struct feed {
    br_str words, text, ours;
    unsigned cases;
} feed;

static void
feed_case(void *arg, const one *c)
{
    feed *f = arg;
    const uint8_t *b = (const uint8_t *)c->in.w;
    const uint8_t *back = (const uint8_t *)c->back.w;

    for (unsigned k = 0; k < c->in.words * 4u; k++)
        br_str_printf(&f->words, "%s0x%02x", k ? "," : "", b[k]);
    br_str_putc(&f->words, '\n');
    br_str_printf(&f->text, "%s\n", c->text.at);
    br_str_putc(&f->ours, '[');
    for (unsigned k = 0; k < c->back.words * 4u; k++)
        br_str_printf(&f->ours, "%s0x%02x", k ? "," : "", back[k]);
    br_str_puts(&f->ours, "]\n");
    f->cases++;
}

/* llvm-mc's instructions: their text, or their bytes where it shows them. */
static char *
clean(const char *out)
{
    char *to = t_keep(malloc(strlen(out) + 2)), *p = to;

    for (const char *l = out, *e; *l; l = e + (*e != 0)) {
        const char *bytes;

        e = l + strcspn(l, "\n");
        if (*l != '\t' || l[1] == '.')
            continue;
        bytes = memmem(l, (size_t)(e - l), "; encoding: ", 12);
        for (l = bytes ? bytes + 12 : l + 1; l < e; l++)
            *p++ = *l == '\t' ? ' ' : *l;
        while (p[-1] == ' ')
            p--;
        *p++ = '\n';
    }
    *p = 0;
    return to;
}

static char *
llvm(const char *cpu, bool wave64, bool dis, const br_str *in)
{
    char *mcpu = t_printf("-mcpu=%s", cpu);
    const char *argv[] = {"llvm-mc-19",
                          "-triple=amdgcn-amd-amdhsa",
                          mcpu,
                          wave64 ? "-mattr=-wavefrontsize32,+wavefrontsize64"
                                 : "-mattr=+wavefrontsize32",
                          dis ? "--disassemble" : "--show-encoding",
                          NULL};
    t_proc r;

    t_exec(&r, argv, in->at, in->n);
    if (*r.err)
        ck_abort_msg("%s: %.400s", cpu, r.err);
    return clean(r.out);
}

/* Both texts, line by line; stops at the first that differs. */
static void
same_lines(const char *what, const char *want, const char *got)
{
    unsigned n = 0;

    for (; *want && *got; n++) {
        size_t a = strcspn(want, "\n"), b = strcspn(got, "\n");

        if (a != b || memcmp(want, got, a) != 0)
            ck_abort_msg("%s, case %u:\nllvm %.*s\nours %.*s", what, n, (int)a,
                         want, (int)b, got);
        want += a + 1;
        got += b + 1;
    }
    ck_assert_msg(!*want && !*got, "%s: %u cases, then one side ends", what, n);
}

/* BRASS_TEST_LONG: ten times as many cases, and their numbers. */
TEST_WITHIN(gcn_agrees_with_llvm_both_ways, 300)
{
    bool more = getenv("BRASS_TEST_LONG") != NULL;

    if (!t_have_program("llvm-mc-19"))
        t_skip("no llvm-mc-19 here");
    if (t_sanitized())
        t_skip("the plain build compares with llvm-mc-19");
    for (size_t k = 0; k < 2 * BR_COUNT(targets); k++) {
        const char *cpu = targets[k / 2];
        bool w64 = k % 2;
        char *name = t_printf("%s wave%d", cpu, w64 ? 64 : 32);
        feed f = {0};

        each_case(cpu, w64, more ? 10 * PER_ROW : PER_ROW, feed_case, &f);
        same_lines(t_printf("%s disassembled", name),
                   llvm(cpu, w64, true, &f.words), f.text.at);
        same_lines(t_printf("%s assembled", name),
                   llvm(cpu, w64, false, &f.text), f.ours.at);
        if (more)
            printf("%s: %u of %u cases are llvm-mc-19's, read and written\n",
                   name, f.cases, f.cases);
        br_str_fini(&f.words);
        br_str_fini(&f.text);
        br_str_fini(&f.ours);
    }
}

/* A double's literal is its upper half: one that a constant says is the constant,
 * read from text and from words. */
TEST(gcn_literals_of_doubles_are_constants_where_they_can_be)
{
    static const struct {
        const char *line, *prints;
        unsigned words;
    } of[] = {{"v_add_f64_e64 v[0:1], 0x3ff00000, v[2:3]", "1.0", 2},
              {"v_add_f64_e64 v[0:1], 0xc0100000, v[2:3]", "-4.0", 2},
              {"v_add_f64_e64 v[0:1], 0x0, v[2:3]", "0", 2},
              {"v_add_f64_e64 v[0:1], 0x3fc45f30, v[2:3]", "0x3fc45f30", 3},
              {"v_cmp_eq_f64_e32 vcc_lo, 0x40000000, v[2:3]", "2.0", 1},
              {"v_cmp_eq_u64_e32 vcc_lo, 0x40000000, v[2:3]", "0x40000000", 2}};
    const uint32_t literal[] = {0x7c4404ff, 0xbff00000};
    br_gcn_isa isa = {br_gcn_cpu_find("gfx1201"), false};
    br_status st = {0};
    br_str s = {0};
    br_gcn_inst in;

    for (size_t k = 0; k < BR_COUNT(of); k++) {
        t_ok(br_gcn_parse(&isa, of[k].line, strlen(of[k].line), &in, &st), &st);
        ck_assert_uint_eq(in.words, of[k].words);
        br_str_clear(&s);
        br_gcn_print(&isa, &in, &s);
        ck_assert_msg(strstr(s.at, t_printf(", %s, v[2:3]", of[k].prints)),
                      "%s prints as %s", of[k].line, s.at);
    }
    ck_assert_uint_eq(br_gcn_decode(&isa, literal, 2, &in), 2);
    br_str_clear(&s);
    br_gcn_print(&isa, &in, &s);
    ck_assert_str_eq(s.at, "v_cmp_eq_f64_e32 vcc_lo, -1.0, v[2:3]");
    br_str_fini(&s);
}

/* A float beside instructions of two halves is a half, as LLVM 19 has it; words
 * are those of llvm-mc-19 for gfx1100. */
TEST(gcn_constants_beside_pairs_of_halves_are_halves)
{
    static const struct {
        const char *line, *prints;
        uint32_t w[3];
        unsigned words;
    } of[] = {
        {"v_pk_add_f16 v0, v1, 1.5",
         "0x3e00",
         {0xcc0f4000, 0x1801ff01, 0x3e00},
         3},
        {"v_pk_add_f16 v0, v1, 0x3c00", "1.0", {0xcc0f4000, 0x1801e501}, 2},
        {"v_pk_add_f16 v0, v1, 0x3f800000",
         "0x3f800000",
         {0xcc0f4000, 0x1801ff01, 0x3f800000},
         3},
        {"v_pk_add_f16 v0, v1, 0x3c003c00",
         "0x3c003c00",
         {0xcc0f4000, 0x1801ff01, 0x3c003c00},
         3},
        {"v_pk_add_f16 v0, v1, -1", "-1", {0xcc0f4000, 0x18018301}, 2},
        {"v_pk_fmac_f16 v0, 0.1, v1", "0x2e66", {0x780002ff, 0x2e66}, 2},
        {"v_dot2acc_f32_f16 v0, -0.0, v1", "0x8000", {0x040002ff, 0x8000}, 2},
        {"v_dot2_f32_f16 v0, v1, v2, 1.5",
         "0x3fc00000",
         {0xcc134000, 0x1bfe0501, 0x3fc00000},
         3},
        {"v_dot2_f32_bf16 v0, v1, 1.5, v2",
         "0x3fc0",
         {0xcc1a4000, 0x1c09ff01, 0x3fc0},
         3},
        {"v_dot2_f32_bf16 v0, v1, 0x3f80, v2",
         "1.0",
         {0xcc1a4000, 0x1c09e501},
         2},
        {"v_dot2_bf16_bf16 v0, v1, v2, 1.5",
         "0x3fc0",
         {0xd6670000, 0x03fe0501, 0x3fc0},
         3},
        {"v_dot2_f16_f16 v0, v1, 1.5, v2",
         "0x3e00",
         {0xd6660000, 0x0409ff01, 0x3e00},
         3},
        {"v_pk_add_u16 v0, v1, 1.5",
         "0x3fc00000",
         {0xcc0a4000, 0x1801ff01, 0x3fc00000},
         3},
    };
    br_gcn_isa isa = {br_gcn_cpu_find("gfx1100"), false};
    br_status st = {0};
    br_str s = {0};
    br_gcn_inst in, back;

    for (size_t k = 0; k < BR_COUNT(of); k++) {
        t_ok(br_gcn_parse(&isa, of[k].line, strlen(of[k].line), &in, &st), &st);
        ck_assert_msg(in.words == of[k].words &&
                          memcmp(in.w, of[k].w, 4 * in.words) == 0,
                      "%s: %u words, %08x %08x %08x", of[k].line, in.words,
                      in.w[0], in.w[1], in.w[2]);
        ck_assert_uint_eq(br_gcn_decode(&isa, in.w, in.words, &back), in.words);
        br_str_clear(&s);
        br_gcn_print(&isa, &back, &s);
        ck_assert_msg(strstr(s.at, t_printf(", %s", of[k].prints)),
                      "%s prints as %s", of[k].line, s.at);
    }
    br_str_fini(&s);
}

/* A text has the lower half alone, so that the words would not come back. */
TEST(gcn_literals_of_halves_have_no_upper_half)
{
    uint32_t w[] = {0x7c064cff, 0x1b6d}; /* v_cmp_le_f16_e32 */
    br_gcn_isa isa = {br_gcn_cpu_find("gfx1100"), false};
    br_gcn_inst in;

    ck_assert_uint_eq(br_gcn_decode(&isa, w, 2, &in), 2);
    w[1] |= 0x5d170000;
    ck_assert_uint_eq(br_gcn_decode(&isa, w, 2, &in), 0);
}

static void
refused(const char *const *lines, size_t n)
{
    br_gcn_isa isa = {br_gcn_cpu_find("gfx1100"), false};
    br_gcn_inst in;

    for (size_t k = 0; k < n; k++) {
        br_status st = {0};

        ck_assert_msg(
            br_gcn_parse(&isa, lines[k], strlen(lines[k]), &in, &st) != BR_OK,
            "%s is taken", lines[k]);
    }
}

/* Neither infinity nor nothing in its place. */
TEST(gcn_refuses_floats_out_of_range)
{
    static const char *const no[] = {"v_add_f32_e32 v0, 1e300, v1",
                                     "v_add_f32_e32 v0, 1e-300, v1",
                                     "v_pk_add_f16 v0, v1, 65520.0",
                                     "v_add_f16_e32 v0, 1e5, v1",
                                     "v_fmaak_f32 v0, v1, v2, 1e39",
                                     ("v_dual_mov_b32 v0, 1e39 :: "
                                      "v_dual_mov_b32 v1, v2"),
                                     "v_dot2_f32_bf16 v0, v1, 1e39, v2",
                                     "v_lshlrev_b64 v[0:1], 3, 1.5",
                                     "s_mov_b64 s[0:1], -0.0"};

    refused(no, BR_COUNT(no));
}

/* Not what is left of them. */
TEST(gcn_refuses_integers_out_of_range)
{
    static const char *const no[] = {
        "v_add_f16_e32 v0, -65535, v1", "v_add_f16_e32 v0, -2147483648, v1",
        "s_add_u32 s0, s1, -4294967295", "v_add_nc_u16 v0, -32769, v1"};
    static const char *const yes[] = {
        "v_add_f16_e32 v0, -32768, v1", "s_add_u32 s0, s1, -2147483648",
        "v_add_nc_u16 v0, 65535, v1", "s_add_u32 s0, s1, 4294967295"};
    br_gcn_isa isa = {br_gcn_cpu_find("gfx1100"), false};
    br_gcn_inst in;

    refused(no, BR_COUNT(no));
    for (size_t k = 0; k < BR_COUNT(yes); k++) {
        br_status st = {0};

        t_ok(br_gcn_parse(&isa, yes[k], strlen(yes[k]), &in, &st), &st);
    }
}

TEST(gcn_refuses_to_move_lanes_in_two_ways)
{
    static const char *const no[] = {
        "v_mov_b32_dpp v0, v1 row_shl:1 row_ror:2",
        "v_mov_b32_dpp v0, v1 quad_perm:[0,1,2,3] row_mirror",
        "v_mov_b32_dpp v0, v1 row_shl:1 row_mask:0x1 row_mask:0xf",
        "v_mov_b32_dpp v0, v1 dpp8:[0,1,2,3,4,5,6,7] dpp8:[7,6,5,4,3,2,1,0]",
        "v_mov_b32_dpp v0, v1 dpp8:[0,1,2,3,4,5,6,7] fi:0 fi:1"};

    refused(no, BR_COUNT(no));
}

/* What each row prints, under the old name, is the same words; with llvm-mc-19, too. */
TEST(gcn_reads_names_of_older_processors)
{
    static const struct {
        unsigned gens;
        const char *old, *now;
    } names[] = {
#define OLD(gens, old, now) {gens, #old, #now},
#include "cg/gcn/old.def"
#undef OLD
    };
    unsigned same = 0;

    for (size_t c = 0; c < BR_COUNT(targets); c++) {
        br_gcn_isa isa = {br_gcn_cpu_find(targets[c]), false};
        br_str lines = {0}, words = {0};
        size_t n;
        const br_gcn_row *rows = br_gcn_rows(isa.cpu, &n);

        for (size_t k = 0; k < BR_COUNT(names); k++)
            for (size_t r = 0; r < n; r++) {
                size_t at = strlen(names[k].now);
                br_gcn_inst in, back;
                br_status st = {0};
                br_str text = {0}, old = {0};

                if (!(names[k].gens & (isa.cpu->gen == 11 ? 1 : 2)) ||
                    strcmp(rows[r].name, names[k].now) != 0 ||
                    !br_gcn_row_here(isa.cpu, &rows[r]))
                    continue;
                br_gcn_fresh(&in, &rows[r], NULL, BR_EXT_NONE);
                if (!br_gcn_decode(&isa, in.w, in.words, &back))
                    continue;
                br_gcn_print(&isa, &back, &text);
                br_str_printf(&old, "%s%s", names[k].old, text.at + at);
                t_ok(br_gcn_parse(&isa, old.at, old.n, &in, &st), &st);
                ck_assert_mem_eq(in.w, back.w, 4 * back.words);
                same++;
                br_str_printf(&lines, "%s\n", old.at);
                br_str_printf(&words, "%s\n", text.at);
                br_str_fini(&text);
                br_str_fini(&old);
            }
        if (t_have_program("llvm-mc-19") && !t_sanitized())
            same_lines(targets[c], llvm(targets[c], false, false, &words),
                       llvm(targets[c], false, false, &lines));
        br_str_fini(&lines);
        br_str_fini(&words);
    }
    ck_assert_uint_ge(same, 500);
}

/* What lanes of a wave hold between them takes half the registers where there are
 * 64, and a mask of 32 lanes is the scalar of that number. */
TEST(gcn_registers_are_as_many_as_lanes_ask_for)
{
    static const struct {
        const char *cpu, *line, *other; /* other: of 32 lanes; NULL: none */
        bool wave64;
        uint32_t w[3];
    } of[] = {
        {"gfx1100",
         "v_wmma_f32_16x16x16_f16 v[0:3], v[8:15], v[16:23], v[0:3]",
         "v_wmma_f32_16x16x16_f16 v[0:7], v[8:15], v[16:23], v[0:7]",
         true,
         {0xcc404000, 0x1c022108}},
        {"gfx1201",
         "v_wmma_f32_16x16x16_f16 v[0:3], v[8:9], v[16:17], v[0:3]",
         "v_wmma_f32_16x16x16_f16 v[0:7], v[8:11], v[16:19], v[0:7]",
         true,
         {0xcc404000, 0x1c022108}},
        {"gfx1200",
         "global_load_tr_b64 v0, v0, s[0:1]",
         "global_load_tr_b64 v[0:1], v0, s[0:1]",
         true,
         {0xee160000, 0, 0}},
        {"gfx1100",
         "v_cndmask_b32_e64 v0, s4, s0, s0",
         NULL,
         false,
         {0xd5010000, 0x00000004}},
        {"gfx1100",
         "v_add_co_ci_u32_e64 v0, s0, s2, s0, s0",
         NULL,
         false,
         {0xd5200000, 0x00000002}},
    };

    for (size_t k = 0; k < BR_COUNT(of); k++) {
        br_gcn_isa isa = {br_gcn_cpu_find(of[k].cpu), of[k].wave64};
        br_status st = {0};
        br_gcn_inst in;
        br_str s = {0};

        t_ok(br_gcn_parse(&isa, of[k].line, strlen(of[k].line), &in, &st), &st);
        ck_assert_mem_eq(in.w, of[k].w, 4 * in.words);
        ck_assert_uint_eq(br_gcn_decode(&isa, of[k].w, 3, &in), in.words);
        br_gcn_print(&isa, &in, &s);
        ck_assert_str_eq(s.at, of[k].line);
        if (of[k].other) {
            ck_assert(br_gcn_parse(&isa, of[k].other, strlen(of[k].other), &in,
                                   &st) == BR_E_FORMAT);
            isa.wave64 = false;
            ck_assert_uint_gt(br_gcn_decode(&isa, of[k].w, 3, &in), 0);
            br_str_clear(&s);
            br_gcn_print(&isa, &in, &s);
            ck_assert_str_eq(s.at, of[k].other);
        }
        br_str_fini(&s);
    }
}

TEST(gcn_refuses_lines_that_are_no_instruction)
{
    static const char *const lines[] = {
        "",
        "v_nothing v0",
        "v_mov_b32",
        "v_mov_b32 v256, v0",
        "v_mov_b32 v0, v1 v2",
        "v_mov_b32 v0, v1,",
        "v_add_f64 v[0:1], v2, v[4:5]",
        "s_mov_b64 s[1:2], s[4:5]",
        "s_mov_b64 s[0:1], 0x1234567812345678",
        "s_mov_b32 s0, 0xfffffffffffffffff", /* -1 of 64 bits, once */
        "s_mov_b32 s0, 0x1.8",
        "s_mov_b32 s0, 1.5e",
        "v_add_f32_e32 v0, v1, s2",
        "v_add_f32_dpp v0, v1, v2",
        "v_add_f32 v0, v1, v2 quad_perm:[0,1,2,4]",
        "v_fma_f32 v0, s1, s2, s3",
        /* images: no dimension; data, address, mask that do not go together */
        "image_load v[0:3], v0, s[0:7] dmask:0xf",
        "image_load v[0:2], v0, s[0:7] dmask:0xf dim:SQ_RSRC_IMG_1D",
        "image_load v[0:3], v0, s[0:7] dmask:0xf dim:SQ_RSRC_IMG_1D tfe",
        "image_load v[0:3], v0, s[0:7] dmask:0xf dim:SQ_RSRC_IMG_1D d16",
        "image_load v[0:3], v0, s[0:7] dmask:0xf dim:SQ_RSRC_IMG_2D",
        "image_load v[0:3], [v0], s[0:7] dmask:0xf dim:SQ_RSRC_IMG_1D",
        "image_load v[0:3], [v0, v1, v2], s[0:7] dmask:0xf dim:SQ_RSRC_IMG_2D",
        "image_load v[0:3], [v0, v1], s[0:7] dmask:0xf dim:SQ_RSRC_IMG_2D a16",
        "image_load v[0:3], v0, s[2:9] dmask:0xf dim:SQ_RSRC_IMG_1D",
        "image_sample v[0:3], v0, s[0:7] dmask:0xf dim:SQ_RSRC_IMG_1D",
        "image_gather4_lz v[0:3], v0, s[0:7], s[8:11] dmask:0x3 "
        "dim:SQ_RSRC_IMG_1D",
        "image_msaa_load v[0:3], v0, s[0:7] dmask:0x1 dim:SQ_RSRC_IMG_1D",
        "image_atomic_swap v[0:2], v0, s[0:7] dmask:0x7 dim:SQ_RSRC_IMG_1D",
        "image_atomic_cmpswap v0, v0, s[0:7] dmask:0x1 dim:SQ_RSRC_IMG_1D",
        "image_bvh_intersect_ray v[0:3], [v0, v1, v[2:4], v[5:7]], s[4:7]",
        "image_bvh_intersect_ray v[0:3], [v[0:1], v1, v[2:4], v[5:7], "
        "v[8:10]], s[4:7]",
        "v_dual_mov_b32 v0, v1 :: v_dual_mov_b32 v2, v3",
        "v_dual_mov_b32 v0, v1 :: v_dual_nothing v1, v3",
        "v_dual_add_f32 v0, v1, v2 :: v_dual_add_f32 v1, v5, v3",
        "ds_load_b32 v0, v1 offset:65536",
        "global_load_b32 v0, v1, off",
        "global_load_b32 v0, v[1:2], s[2:3]",
        "buffer_load_b32 v0, v1, s[0:3], s4",
        "s_sendmsg sendmsg(MSG_NOTHING)",
        "s_delay_alu instid0(VALU_DEP_5)",
    };

    const br_gcn_cpu *cpu;

    for (size_t i = 0; (cpu = br_gcn_cpu_at(i)); i++)
        for (size_t k = 0; k < BR_COUNT(lines); k++) {
            br_gcn_isa isa = {cpu, false};
            br_gcn_inst in;
            br_status st = {0};

            if (br_gcn_parse(&isa, lines[k], strlen(lines[k]), &in, &st) ==
                BR_OK)
                ck_abort_msg("%s takes '%s'", cpu->name, lines[k]);
            ck_assert(st.msg[0] != 0);
        }
}
