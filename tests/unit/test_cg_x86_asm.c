/* test_cg_x86_asm.c - each row of x86.def with random operands: the text of our
 * printer is that of LLVM's disassembler for the bytes of our encoder.
 * SPDX-License-Identifier: Apache-2.0 */
#include "t.h"

#include "cg/x86/x86_asm.h"

#include <stdlib.h>
#include <string.h>

enum { EACH = 60, BASE = 0x1000 };

static br_x86_arg
random_memory(uint64_t *rng, bool zmm)
{
    static const int32_t disps[] = {0,    1,     -1,   127,   -128, 128,
                                    -129, 70000, 8128, -8192, 8192, -64};
    br_x86_arg m = br_x86_mem(t_rand(rng) % 16, disps[t_rand(rng) % 12]);

    if (zmm) {
        m.index = (uint8_t)(t_rand(rng) % 32);
        m.scale = (uint8_t)(1u << t_rand(rng) % 4);
    } else if (t_rand(rng) % 2) {
        m.index = (uint8_t)(t_rand(rng) % 16);
        m.scale = (uint8_t)(1u << t_rand(rng) % 4);
        m.index = m.index == RSP ? RAX : m.index;
    }
    return m;
}

/* Operands by the letters of the row. */
static void
random_args(br_x86_op op, br_x86_arg *args, uint64_t *rng, uint32_t label)
{
    unsigned n = 0;

    for (const char *s = br_x86_ops(op); *s; n++) {
        bool mem =
            s[1] == 'M' || s[1] == 'G' || (s[1] == 'm' && t_rand(rng) % 2);
        bool many = br_x86_ops(op)[0] == 'z' || strstr(br_x86_ops(op), " z");

        if (mem)
            args[n] = random_memory(rng, s[1] == 'G');
        else if (s[0] == 'j')
            args[n] = br_x86_lab(label);
        else if (s[1] == '.')
            args[n] =
                br_x86_imm(s[0] == 'L'   ? (int64_t)t_rand(rng)
                           : s[0] == 'i' ? (int64_t)(32 + t_rand(rng) % 96)
                                         : (int64_t)(t_rand(rng) & INT32_MAX));
        else
            args[n] = br_x86_reg(s[0] == 'k' ? 1 + (unsigned)(t_rand(rng) % 7)
                                 : many && strchr("xyz", s[0])
                                     ? (unsigned)(t_rand(rng) % 32)
                                     : (unsigned)(t_rand(rng) % 16));
        s += 2;
        s += *s && *s != ' ';
        s += *s == ' ';
    }
}

/* LLVM names jumps by distance and prints a comment after some. */
static void
tidy(char *line)
{
    char *hash = strstr(line, "#");

    if (hash)
        *hash = 0;
    for (char *c = line; *c; c++)
        if (*c == '\t')
            *c = ' ';
    for (size_t n = strlen(line); n && line[n - 1] == ' '; n--)
        line[n - 1] = 0;
}

TEST_WITHIN(x86_bytes_are_those_of_llvm, 120)
{
    const char *argv[] = {"llvm-mc-19",
                          "--disassemble",
                          "-triple=x86_64",
                          "-mattr=+avx2,+fma,+f16c,+bmi,+avx512f,+avx512bw,"
                          "+avx512dq,+avx512vl",
                          "-output-asm-variant=1",
                          NULL};
    br_x86_asm a = {0};
    br_str hex = {0}, ours = {0};
    uint64_t rng = 7;
    char *want, *save = NULL, *mine, *mine_save = NULL;
    t_proc p;
    int n = 0;

    if (!t_have_program("llvm-mc-19"))
        t_skip("no llvm-mc-19 here");
    for (unsigned k = 0; k < EACH * BR_X_COUNT; k++) {
        br_x86_op op = (br_x86_op)(k / EACH);
        br_x86_arg args[5];
        size_t from = a.code.n;

        if (br_x86_ops(op)[0] == 'j')
            continue; /* x86_jumps_reach_their_labels */
        random_args(op, args, &rng, 0);
        br_x86_put(&a, op, args);
        for (size_t b = from; b < a.code.n; b++)
            br_str_printf(&hex, "0x%02x ", a.code.at[b]);
        br_str_putc(&hex, '\n');
        ck_assert_msg(br_x86_text(a.code.at + from, a.code.n - from, BASE,
                                  &ours) == a.code.n - from,
                      "row %u %s", op, br_x86_name(op));
        br_str_putc(&ours, '\n');
    }
    t_exec(&p, argv, hex.at, hex.n);
    ck_assert_msg(p.exit == 0, "%s", p.err);
    mine = strtok_r(ours.at, "\n", &mine_save);
    for (want = strtok_r(p.out, "\n", &save); want;
         want = strtok_r(NULL, "\n", &save)) {
        tidy(want);
        while (*want == ' ')
            want++;
        if (!*want || *want == '.')
            continue;
        ck_assert(mine != NULL);
        if (strcmp(want, mine) != 0)
            ck_abort_msg("LLVM: %s\nours: %s", want, mine);
        mine = strtok_r(NULL, "\n", &mine_save);
        n++;
    }
    ck_assert(mine == NULL);
    ck_assert_int_gt(n, EACH * (BR_X_COUNT - 20));
    br_str_fini(&hex);
    br_str_fini(&ours);
    br_x86_fini(&a);
}

TEST(x86_jumps_reach_their_labels)
{
    br_x86_asm a = {0};
    uint32_t back = br_x86_label(&a), on = br_x86_label(&a);
    br_str s = {0};
    br_x86_arg load[] = {br_x86_reg(3), br_x86_at(on), br_x86_imm(7)};
    size_t at = 0;

    br_x86_bind(&a, back);
    br_x86_put(&a, BR_X_JE, (br_x86_arg[]){br_x86_lab(on)});
    br_x86_put(&a, BR_X_PSHUFD, load); /* an immediate after it */
    br_x86_put(&a, BR_X_JMP, (br_x86_arg[]){br_x86_lab(back)});
    br_x86_bind(&a, on);
    br_x86_put(&a, BR_X_RET, NULL);
    br_x86_patch(&a);
    while (at < a.code.n) {
        size_t n = br_x86_text(a.code.at + at, a.code.n - at, at, &s);

        ck_assert_uint_ne(n, 0);
        at += n;
        br_str_putc(&s, '\n');
    }
    ck_assert_str_eq(s.at, "je 0x14\n"
                           "vpshufd ymm3, ymmword ptr [rip + 5], 7\n"
                           "jmp 0x0\nret\n");
    br_str_fini(&s);
    br_x86_fini(&a);
}
