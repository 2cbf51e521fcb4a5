/* test_gcn_file.c - assembly files to code objects and back.
 * SPDX-License-Identifier: Apache-2.0 */
#include "t.h"

#include "cg/gcn/gcn_file.h"

#include <string.h>
#include <unistd.h>

T_ONE_THREAD();

static br_str
assembled(const char *cpu, const char *text)
{
    br_str o = {0};
    br_status st = {0};

    if (br_gcn_assemble(&o, br_gcn_cpu_find(cpu), text, strlen(text), &st))
        ck_abort_msg("%s", st.msg);
    return o;
}

static br_gcn_co
loaded(const char *bytes, size_t n)
{
    br_gcn_co co;
    br_status st = {0};

    if (br_gcn_load(&co, bytes, n, &st) != BR_OK)
        ck_abort_msg("%s", st.msg);
    return co;
}

/* What a loader and a runtime see of both is the same. */
static void
same(const br_gcn_co *a, const br_gcn_co *b)
{
    ck_assert_uint_eq(a->text_bytes, b->text_bytes);
    ck_assert(a->isa.cpu == b->isa.cpu && a->isa.wave64 == b->isa.wave64);
    ck_assert_uint_eq(a->note.n, b->note.n);
    if (a->note.n)
        ck_assert_mem_eq(a->note.p, b->note.p, a->note.n);
    for (size_t i = 0; i < a->n_sym; i++) {
        const br_gcn_symbol *s = &a->sym[i], *t = b->sym;

        while (t < b->sym + b->n_sym && strcmp(s->name, t->name) != 0)
            t++;
        ck_assert_msg(t < b->sym + b->n_sym, "%s", s->name);
        ck_assert_uint_eq(s->bytes, t->bytes);
        ck_assert_uint_eq(s->place, t->place);
        if (s->place == BR_GCN_TEXT)
            ck_assert_uint_eq(s->at - a->text_at, t->at - b->text_at);
        if (s->entry) {
            uint8_t x[64], y[64];

            memcpy(x, a->image + s->at, 64);
            memcpy(y, b->image + t->at, 64);
            memset(x + 16, 0, 8); /* the way from it to the code */
            memset(y + 16, 0, 8);
            ck_assert_mem_eq(x, y, 64);
        }
    }
}

/* Words that hold a reference to constants may differ: those are elsewhere. */
static unsigned
words_apart(const br_gcn_co *a, const br_gcn_co *b)
{
    unsigned n = 0;

    for (uint64_t k = 0; k < a->text_bytes; k += 4)
        n += memcmp(a->image + a->text_at + k, b->image + b->text_at + k, 4) !=
             0;
    return n;
}

static void
against_clang(const char *cpu, unsigned references)
{
    const char *in = t_repo(t_printf("tests/data/gcn/two_%s.s", cpu));
    const char *to = t_printf("%s/two.co", t_tmpdir());
    const char *text = t_read(in, NULL), *bytes;
    br_str o = assembled(cpu, text), again, back = {0};
    br_gcn_co ours = loaded(o.at, o.n), theirs;
    size_t n;
    t_proc r;

    ck_assert_int_eq(br_gcn_disassemble(&back, &ours, NULL), BR_OK);
    again = assembled(cpu, back.at);
    theirs = loaded(again.at, again.n);
    same(&ours, &theirs);
    ck_assert_uint_eq(words_apart(&ours, &theirs), 0);
    br_gcn_unload(&theirs);
    br_str_fini(&again);
    br_str_fini(&back);
    if (t_have_program("clang-19") && t_have_program("ld.lld-19")) {
        t_exec(&r,
               (const char *[]){"clang-19", "--target=amdgcn-amd-amdhsa",
                                t_printf("-mcpu=%s", cpu), "-nogpulib",
                                "-mcode-object-version=5", in, "-o", to, NULL},
               NULL, 0);
        ck_assert_int_eq(r.exit, 0);
        bytes = t_read(to, &n);
        theirs = loaded(bytes, n);
        same(&theirs, &ours);
        ck_assert_uint_le(words_apart(&ours, &theirs), references);
        br_gcn_unload(&theirs);
    }
    br_gcn_unload(&ours);
    br_str_fini(&o);
}

TEST(gcn_assembly_of_clang_gives_clangs_code_object_gfx1100)
{
    against_clang("gfx1100", 1);
}

TEST(gcn_assembly_of_clang_gives_clangs_code_object_gfx1201)
{
    against_clang("gfx1201", 1);
}

#define KD                                         \
    ".amdhsa_kernel k\n.amdhsa_next_free_vgpr 9\n" \
    ".amdhsa_next_free_sgpr 1\n.end_amdhsa_kernel\n"

TEST(gcn_labels_branches_references_and_constants)
{
    br_str o = assembled(
        "gfx1100", "k: s_branch over // there\n"
                   "  .long 1, 0x7fffffff, -1\n"
                   "over: s_getpc_b64 s[0:1]\n"
                   "s_add_u32 s0, s0, t@rel32@lo+4\n"
                   "s_addc_u32 s1, s1, t@rel32@hi+12 ; high\n"
                   ".Lx: s_cbranch_scc1 .Lx\n"
                   "s_call_b64 s[4:5], over\n"
                   "s_endpgm\n .section .rodata,\"a\"\n.set six, 2+4\n"
                   ".globl t\nt: .byte six, .-t\n.asciz \"hi\"\n.p2align 2\n"
                   ".fill 2, 2, 7\n.size t, .-t\n" KD);
    br_gcn_co co = loaded(o.at, o.n);
    const uint32_t *w = (const void *)(co.image + co.text_at);
    const br_gcn_symbol *t = NULL;
    uint64_t pc = co.text_at + 20, at;

    for (size_t i = 0; i < co.n_sym; i++)
        if (strcmp(co.sym[i].name, "t") == 0)
            t = &co.sym[i];
    ck_assert(t && t->bytes == 12);
    ck_assert_mem_eq(co.image + t->at, "\6\1hi\0\0\0\0\7\0\7\0", 12);
    ck_assert_uint_eq(w[0], 0xbfa00003);
    ck_assert_uint_eq(w[3], 0xffffffff);
    at = pc + ((uint64_t)w[8] << 32 | w[6]);
    ck_assert_uint_eq(at, t->at);
    ck_assert_uint_eq(w[9], 0xbfa2ffff);
    ck_assert_uint_eq(w[10] & 0xffff, 0xfff9);
    ck_assert_uint_eq(w[12], 0xbf9f0000); /* what is fetched ahead */
    ck_assert_uint_ge(co.text_bytes, 4 * 12 + 256);
    ck_assert(br_gcn_kernel_find(&co, "k") != NULL);
    ck_assert(br_gcn_kernel_find(&co, "t") == NULL);
    br_gcn_unload(&co);
    br_str_fini(&o);
}

TEST(gcn_descriptor_directives_set_llvms_bits)
{
    static const struct {
        const char *cpu, *line;
        unsigned at;
        uint32_t bits;
    } want[] = {
        {"gfx1100", "", 48, 0x60ac0001},
        {"gfx1201", "", 48, 0x600c0001},
        {"gfx1100", "", 52, 0x80},
        {"gfx1100", ".amdhsa_user_sgpr_kernarg_segment_ptr 1", 52, 0x84},
        {"gfx1100", ".amdhsa_user_sgpr_kernarg_segment_ptr 1", 56, 0x408},
        {"gfx1100", ".amdhsa_user_sgpr_count 15", 52, 0x9e},
        {"gfx1100", ".amdhsa_float_denorm_mode_32 3", 48, 0x60af0001},
        {"gfx1100", ".amdhsa_workgroup_processor_mode 0", 48, 0x40ac0001},
        {"gfx1201", ".amdhsa_round_robin_scheduling 1", 48, 0x602c0001},
        {"gfx1100", ".amdhsa_system_vgpr_workitem_id 2", 52, 0x1080},
        {"gfx1100", ".amdhsa_wavefront_size32 0", 56, 0},
        {"gfx1100", ".amdhsa_wavefront_size32 0", 48, 0x60ac0002},
        {"gfx1100", ".amdhsa_group_segment_fixed_size 65535", 0, 65535},
        {"gfx1201", ".amdhsa_inst_pref_size 255", 44, 0xff0},
    };

    for (size_t i = 0; i < BR_COUNT(want); i++) {
        br_str o = assembled(
            want[i].cpu,
            t_printf("k: s_endpgm\n.amdhsa_kernel k\n%s\n"
                     ".amdhsa_next_free_vgpr 9\n.amdhsa_next_free_sgpr 1\n"
                     ".end_amdhsa_kernel",
                     want[i].line));
        br_gcn_co co = loaded(o.at, o.n);
        uint32_t v;

        memcpy(&v, co.image + br_gcn_kernel_find(&co, "k")->at + want[i].at, 4);
        ck_assert_msg(v == want[i].bits, "%s %s: %x", want[i].cpu, want[i].line,
                      v);
        br_gcn_unload(&co);
        br_str_fini(&o);
    }
}

TEST(gcn_assembly_errors_name_line_and_column)
{
    static const char *const bad[][2] = {
        {"s_nop 0\n  v_foo v0", "2:3: v_foo: no instruction of gfx1100"},
        {"v_mov_b32 v0, v256", "1:13: v_mov_b32: wrong operand"},
        {"v_mov_b32 v0", "1:13: v_mov_b32: an operand is missing"},
        {"v_fma_f32 v0, s1, s2, s3", "1:25: v_fma_f32: more scalar values"},
        {"v_dual_add_f32 v0, v1, v2 :: v_dual_add_f32 v1, v5, v3",
         "v_dual_add_f32: both halves read one bank"},
        {"global_atomic_add_u32 v0, v1, v2, s[0:1]",
         "glc and a result go together"},
        {"s_branch nowhere", "1:10: nowhere is nowhere"},
        {"x: s_nop 0\nx:", "2:1: x is there already"},
        {".foo 1", "1:1: .foo: no directive that is known"},
        {".byte 256", "1:10: a number of this size is expected"},
        {".byte y", "1:7: y is not there yet"},
        {"y: .byte y", "1:9: an address is no number here"},
        {".section .data\n.byte 1", "2:1: nothing goes into section .data"},
        {".section .data\nx: ", "2:1: a label in section .data"},
        {".section .rodata\ns_nop 0", "2:1: an instruction outside .text"},
        {".amdgcn_target \"amdgcn-amd-amdhsa--gfx1201\"",
         "this is for another processor than gfx1100"},
        {".amdhsa_kernel k\n.amdhsa_foo 1", "2:1: .amdhsa_foo: no directive"},
        {".amdhsa_kernel k\n.amdhsa_round_robin_scheduling 1", "2:1: "},
        {".amdhsa_kernel k\n.amdhsa_next_free_vgpr 257", "257 registers"},
        {".amdhsa_kernel k\n.amdhsa_next_free_vgpr 1\n.end_amdhsa_kernel",
         ".amdhsa_next_free_sgpr is missing"},
        {".amdhsa_kernel k\ns_nop 0", "2:1: "},
        {".amdhsa_kernel k", ".end_amdhsa_kernel is missing"},
        {"s_nop 0\nk: s_endpgm\n" KD, "3:1: kernel k does not begin at 256"},
        {KD, "kernel k does not begin at 256 bytes of .text"},
        {"k: s_endpgm\n" KD KD, "6:16: a descriptor twice"},
        {"k: s_endpgm\n.size k, 5000000", "past the section's end"},
        {".amdgpu_metadata\n- a\n", ".end_amdgpu_metadata is missing"},
        {".amdgpu_metadata\na: 'b\n.end_amdgpu_metadata", "does not end"},
        {".amdgpu_metadata\na:\nb: 1\n.end_amdgpu_metadata",
         "a key without a value"},
        {".amdgpu_metadata\na: 1\na: 2\n.end_amdgpu_metadata", "a key twice"},
        {"s_add_u32 s0, s0, s1, x@rel32@lo", "1:"},
        {"s_mov_b64 s[0:1], x@rel32@mid", "NAME@rel32@lo+N"},
        {"s_nop x@rel32@lo", "1:"},
        {".text 5", "1:7: nothing is expected here"},
        {".macro", "1:7: the name of a macro is expected"},
        {".macro a\ns_nop 0\n", "2:1: .endm is missing"},
        {".macro a\n.endm\n.macro a", "3:8: a macro twice"},
        {".macro a\n.macro b\n.endm", "2:1: a macro in a macro"},
        {".macro a\n.endm\na 1", "3:3: nothing is expected here"},
        {".macro a b\n.endm\n a", "3:3: a: \\b is missing"},
        {".macro a b\n.endm\na 1 2", "3:3: an argument with a space"},
        {".macro a\na\n.endm\na", "4:1: in a: macros within 16 macros"},
        {".macro a b\ns_nop \\c\n.endm\na 1", "4:1: in a: s_nop: wrong"},
        {".if 1", "1:1: .endif is missing"},
        {"s_nop 0\n.else", "2:1: no .if is before it"},
        {".if 0\n.else\n.else\n.endif", "3:1: .else twice"},
        {".macro a\n.endif\n.endm\n.if 1\na", "5:1: in a: no .if is before"},
        {".if x\n.endif", "1:5: x is not there yet"},
        {".if 1 2\n.endif", "1:7: nothing is expected here"},
        {"s_mov_b32 s[104+2], 0", "1:11: s_mov_b32: wrong operand"},
    };

    for (size_t i = 0; i < BR_COUNT(bad); i++) {
        br_str o = {0};
        br_status st = {0};
        br_code c = br_gcn_assemble(&o, br_gcn_cpu_find("gfx1100"), bad[i][0],
                                    strlen(bad[i][0]), &st);

        ck_assert_msg(c == BR_E_FORMAT && strstr(st.msg, bad[i][1]),
                      "%s\n-> %s, not %s", bad[i][0], st.msg, bad[i][1]);
        br_str_fini(&o);
    }
}

TEST(gcn_macros_and_conditions_choose_and_fill_in_lines)
{
    static const char text[] =
        ".macro two r, n=7, m\n.if \\n == 7\ns_nop 1\n.else\ns_nop 2\n"
        ".endif\ns_mov_b32 s[\\r+1], \\m\n.Lx\\@: s_branch .Lx\\@\n.endm\n"
        ".macro one n\n  two \\n, , \\n ; in another\n.endm\n"
        ".if .amdgcn.gfx_generation_number == 12\ns_nop 12\n"
        ".if 0\n.foo\n.else\ns_nop 13\n.endif\n"
        ".else\n.if 1\ns_nop 11\n.else\n.foo\n.endif\n.endif\n"
        "one 4\none 6\ns_nop 3\n";
    static const uint32_t want[] = {0xbf800001, 0xbe850084, 0xbfa0ffff,
                                    0xbf800001, 0xbe870086, 0xbfa0ffff};

    for (int gfx12 = 0; gfx12 < 2; gfx12++) {
        br_str o = assembled(gfx12 ? "gfx1201" : "gfx1100", text);
        br_gcn_co co = loaded(o.at, o.n);
        const uint32_t *w = (const void *)(co.image + co.text_at);

        ck_assert_uint_eq(w[0], gfx12 ? 0xbf80000c : 0xbf80000b);
        ck_assert(!gfx12 || w[1] == 0xbf80000d);
        ck_assert_mem_eq(w + 1 + gfx12, want, sizeof want);
        ck_assert_uint_eq(w[7 + gfx12], 0xbf800003);
        br_gcn_unload(&co);
        br_str_fini(&o);
    }
}

TEST(gcn_branch_too_far_is_refused)
{
    br_str text = {0}, o = {0};
    br_status st = {0};

    br_str_puts(&text, "s_branch x\n.fill 32768, 4, 0\nx: s_endpgm\n");
    ck_assert_int_eq(
        br_gcn_assemble(&o, br_gcn_cpu_find("gfx1201"), text.at, text.n, &st),
        BR_E_FORMAT);
    ck_assert(strstr(st.msg, "1:10: x: a branch does not reach it"));
    br_str_fini(&text);
    br_str_fini(&o);
}

TEST(gcn_metadata_is_sorted_and_written_as_it_was_read)
{
    static const char yaml[] = "a: [ 1, two, -3 ]\nb:\n  - x: 'it''s'\n"
                               "    y: 70000\n  - {}\n  - []\nc: true\n"
                               "d: -200\ne: 5000000000\nf: 'true'\n";
    static const char want[] = "a:\n  - 1\n  - two\n  - -3\nb:\n"
                               "  - x: 'it''s'\n    y: 70000\n  - {}\n  - []\n"
                               "c: true\nd: -200\ne: 5000000000\nf: 'true'\n";
    static const char shuffled[] = "f: 'true'\ne: 5000000000\nd: -200\n"
                                   "c: true\nb:\n- y: 70000\n  x: 'it''s'\n"
                                   "- {}\n- []\na: [1,two,-3]\n";
    br_str m = {0}, n = {0}, back = {0};

    ck_assert_int_eq(br_gcn_yaml_read(&m, yaml, sizeof yaml - 1, NULL), BR_OK);
    ck_assert_int_eq(br_gcn_yaml_read(&n, shuffled, sizeof shuffled - 1, NULL),
                     BR_OK);
    ck_assert_uint_eq(m.n, n.n);
    ck_assert_mem_eq(m.at, n.at, m.n);
    ck_assert_int_eq(br_gcn_yaml_write(&back, (br_text){m.at, m.n}, NULL),
                     BR_OK);
    ck_assert_str_eq(back.at, want);
    br_str_clear(&back);
    for (size_t k = 1; k < m.n; k++) /* torn anywhere: refused or shorter */
        if (br_gcn_yaml_write(&back, (br_text){m.at, k}, NULL) == BR_OK)
            ck_abort_msg("%zu bytes are taken", k);
    br_str_fini(&m);
    br_str_fini(&n);
    br_str_fini(&back);
}

static br_code
all(void *text, br_status *st)
{
    br_str o = {0}, back = {0};
    br_gcn_co co = {0};
    br_code c =
        br_gcn_assemble(&o, br_gcn_cpu_find("gfx1201"), text, strlen(text), st);

    if (c == BR_OK)
        c = br_gcn_load(&co, o.at, o.n, st);
    if (c == BR_OK)
        c = br_gcn_disassemble(&back, &co, st);
    br_gcn_unload(&co);
    br_str_fini(&o);
    br_str_fini(&back);
    return c;
}

TEST(gcn_files_survive_lack_of_memory)
{
    static char text[] = ".macro m\nk: s_branch k\n.endm\n m\n" KD
                         ".amdgpu_metadata\na: [1]\nb:\n"
                         "- 'c'\n.end_amdgpu_metadata\n";

    t_each_oom(all, text);
}

TEST(gcn_damaged_code_objects_are_refused_or_read_within_their_bytes)
{
    br_str o = assembled("gfx1100", "k: s_endpgm\n.globl k\n" KD);
    unsigned refused = 0;

    for (size_t k = 0; k < o.n; k += k < 700 ? 1 : 5) {
        char *copy = br_alloc(o.n), was = o.at[k];
        br_gcn_co co;

        o.at[k] = (char)(was ^ (k % 3 ? 0xff : 0x10));
        memcpy(copy, o.at, o.n);
        refused += br_gcn_load(&co, copy, o.n, NULL) != BR_OK;
        br_gcn_unload(&co);
        refused += br_gcn_load(&co, copy, k, NULL) != BR_OK;
        br_gcn_unload(&co);
        o.at[k] = was;
        br_free(copy);
    }
    ck_assert_uint_gt(refused, 700);
    br_str_fini(&o);
}

TEST(gcn_cli_assembles_and_disassembles)
{
    const char *s = t_printf("%s/a.s", t_tmpdir());
    const char *co = t_printf("%s/a.co", t_tmpdir());
    t_proc r;

    t_write(s, "k:s_endpgm\n" KD, strlen("k:s_endpgm\n" KD));
    t_run(&r, "gcn", "asm", s, "--cpu", "gfx1201", "-o", co);
    ck_assert_str_eq(r.err, "");
    ck_assert_int_eq(r.exit, 0);
    t_run(&r, "gcn", "disasm", co);
    ck_assert(strstr(r.out, "\ts_endpgm ") && strstr(r.out, "gfx1201"));
    t_run(&r, "gcn", "asm", s, "--cpu", "gfx1201", "-o", "-");
    ck_assert_int_eq(r.exit, 0);
    ck_assert(strncmp(r.out, "\177ELF", 4) == 0 && access("-", F_OK) != 0);
    t_run(&r, "gcn", "disasm", s);
    ck_assert_int_eq(r.exit, 3);
    t_run(&r, "gcn", "asm", s, "-o", co);
    ck_assert_int_eq(r.exit, 2);
    ck_assert(strstr(r.err, "gfx1100 "));
    t_write(s, "k: s_foo\n", 9);
    t_run(&r, "gcn", "asm", s, "--cpu", "gfx1201", "-o", co);
    ck_assert_int_eq(r.exit, 3);
    ck_assert(strstr(r.err, "a.s: 1:4: s_foo: no instruction of gfx1201"));
}
