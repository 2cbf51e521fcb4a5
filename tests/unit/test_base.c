/* test_base.c - status, arena, vec and str: what every room stands on.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/thread.h"
#include "t.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- status -------------------------------------------------------------- */

TEST(status_keeps_the_first_failure)
{
    br_status st = {0};

    ck_assert_int_eq(br_fail(&st, BR_E_FORMAT, "line %d", 3), BR_E_FORMAT);
    ck_assert_int_eq(br_fail(&st, BR_E_OOM, "later"), BR_E_FORMAT);
    ck_assert_str_eq(st.msg, "line 3");
    ck_assert_str_eq(st.file, "tests/unit/test_base.c");
    ck_assert_int_eq(br_fail(NULL, BR_E_OOM, "nobody asks"), BR_E_OOM);
}

TEST(status_prefix_says_where)
{
    br_status st = {0};

    ck_assert_int_eq(br_prefix(&st, "ok stays ok"), BR_OK);
    ck_assert_str_eq(st.msg, "");
    br_fail(&st, BR_E_FORMAT, "missing 'id'");
    ck_assert_int_eq(br_prefix(&st, "tasks[%d]", 3), BR_E_FORMAT);
    br_prefix(&st, "a.json");
    ck_assert_str_eq(st.msg, "a.json: tasks[3]: missing 'id'");
}

/* Whatever the lengths, the text ends inside its buffer and begins right. */
TEST(status_prefix_cuts_what_does_not_fit)
{
    br_status st = {0};

    for (int n = 0; n < 600; n += 17)
        for (int m = 0; m < 600; m += 17) {
            size_t want = (size_t)(n + 2 + m);

            memset(&st, 0, sizeof st);
            br_fail(&st, BR_E_FORMAT, "%0*d", m, 0);
            br_prefix(&st, "%0*d", n, 0);
            ck_assert_ptr_nonnull(memchr(st.msg, 0, sizeof st.msg));
            if (n > 0 && m > 0 && want < sizeof st.msg)
                ck_assert_uint_eq(strlen(st.msg), want);
        }
}

/* A name of any length does not hide what is said of it. */
TEST(messages_keep_their_reason_beside_a_long_name)
{
    char *name = t_keep(calloc(1, 5001));
    br_status st = {0};

    memset(name, 'a', 5000);
    br_fail(&st, BR_E_IO, "/b/%s: cannot open: %s", name, "File name too long");
    ck_assert_uint_eq(strlen(st.msg), sizeof st.msg - 1);
    ck_assert_int_eq(strncmp(st.msg, "/b/aaa", 6), 0);
    ck_assert_ptr_nonnull(strstr(st.msg, "aaa...aaa"));
    ck_assert_ptr_nonnull(
        strstr(st.msg, "aaa: cannot open: File name too long"));
    br_prefix(&st, "line 7 of %s", name);
    ck_assert_int_eq(strncmp(st.msg, "line 7 of aaa", 13), 0);
    st = (br_status){0};
    br_fail(&st, BR_E_USAGE, "why");
    br_prefix(&st, "%s", name);
    ck_assert_ptr_nonnull(strstr(st.msg, "aaa...aaa"));
    ck_assert_str_eq(st.msg + strlen(st.msg) - 5, ": why");
    /* no half characters, and words alone are cut in the middle */
    for (size_t k = 0; k + 2 < 5000; k += 2)
        memcpy(name + k, "\xc3\xa4", 2);
    st = (br_status){0};
    br_fail(&st, BR_E_IO, "%s: no", name);
    for (const char *p = st.msg; *p; p++)
        ck_assert((unsigned char)*p != 0xc3 || (unsigned char)p[1] == 0xa4);
    memset(name, ' ', 5000);
    st = (br_status){0};
    br_fail(&st, BR_E_IO, "begin%send", name);
    ck_assert_uint_eq(strlen(st.msg), sizeof st.msg - 1);
    ck_assert_ptr_nonnull(strstr(st.msg, " ... "));
    ck_assert_str_eq(st.msg + strlen(st.msg) - 3, "end");
}

TEST(codes_have_names_texts_and_exits)
{
    for (int c = BR_OK; c < BR_E_COUNT; c++) {
        ck_assert_str_ne(br_code_name((br_code)c), "UNKNOWN");
        ck_assert_str_ne(br_code_text((br_code)c), "");
        ck_assert_int_ge(br_code_http((br_code)c), 200);
    }
    ck_assert_int_eq(br_code_exit(BR_OK), 0);
    ck_assert_int_eq(br_code_exit(BR_E_USAGE), 2);
    ck_assert_int_eq(br_code_exit(BR_E_FORMAT), 3);
    ck_assert_int_eq(br_code_exit(BR_E_REJECTED), 4);
    ck_assert_int_eq(br_code_exit(BR_E_NO_DEVICE), 5);
    ck_assert(br_code_retryable(BR_E_OOM) && !br_code_retryable(BR_E_FORMAT));
    ck_assert_str_eq(br_code_name((br_code)999), "UNKNOWN");
}

/* ---- memory -------------------------------------------------------------- */

TEST(sizes_that_overflow_are_no_memory)
{
    br_arena a;

    ck_assert_ptr_null(br_try_calloc(SIZE_MAX / 2, 3));
    br_arena_init(&a, 0);
    ck_assert_ptr_null(br_arena_get(&a, SIZE_MAX));
    ck_assert_ptr_null(br_arena_get(&a, SIZE_MAX - 8));
    ck_assert_ptr_null(br_arena_zero(&a, SIZE_MAX / 2, 3));
    br_arena_fini(&a);
}

static size_t
resident_bytes(void)
{
    char text[256];
    unsigned long pages = 0;

    ck_assert(br_os_read("/proc/self/statm", text, sizeof text));
    ck_assert_int_eq(sscanf(text, "%*s %lu", &pages), 1);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

TEST(pages_are_zeros_that_cost_nothing_until_they_are_touched)
{
    enum { MANY = 64 << 20 };
    static const size_t sizes[] = {1, 100, 4095, 4097, 12289, 1 << 20, MANY};
    size_t before, after;
    uint8_t *p;

    ck_assert_ptr_null(br_try_pages(SIZE_MAX / 2, 3));
    for (size_t i = 0; i < BR_COUNT(sizes); i++) {
        p = br_try_pages(sizes[i], 1);
        ck_assert_ptr_nonnull(p);
        for (size_t k = 0; k < sizes[i]; k += k < 9000 ? 1 : 4093)
            ck_assert_msg(p[k] == 0, "byte %zu of %zu", k, sizes[i]);
        ck_assert(p[sizes[i] - 1] == 0);
        br_free(p);
    }
    before = resident_bytes();
    p = br_try_pages(MANY / 4096, 4096);
    after = resident_bytes();
    ck_assert_ptr_nonnull(p);
    if (!t_sanitized()) /* those keep books beside it */
        ck_assert_msg(after < before + MANY / 8, "%zu, then %zu bytes", before,
                      after);
    br_free(p);
}

TEST(arena_hands_out_aligned_separate_blocks)
{
    uint64_t seed = 1;
    br_arena a;
    struct {
        unsigned char *p;
        size_t n;
    } got[300];

    br_arena_init(&a, 0);
    for (size_t i = 0; i < BR_COUNT(got); i++) {
        got[i].n = t_rand(&seed) % (i % 50 == 0 ? 200000 : 300);
        got[i].p = br_arena_get(&a, got[i].n);
        ck_assert_ptr_nonnull(got[i].p);
        ck_assert_uint_eq((uintptr_t)got[i].p % 16, 0);
        memset(got[i].p, (int)(i & 255), got[i].n);
    }
    for (size_t i = 0; i < BR_COUNT(got); i++) {
        size_t same = 0;

        for (size_t k = 0; k < got[i].n; k++)
            same += got[i].p[k] == (i & 255);
        ck_assert_uint_eq(same, got[i].n);
    }
    br_arena_fini(&a);
}

TEST(arena_limit_bounds_what_it_hands_out)
{
    size_t sum = 0;
    br_arena a;

    br_arena_init(&a, 10000);
    while (br_arena_get(&a, 100))
        sum += 100;
    ck_assert_uint_le(sum, 10000);
    ck_assert_uint_ge(sum, 8000); /* padding to 16 costs 12 % of 100 bytes */
    ck_assert_ptr_null(br_arena_get(&a, 20000));
    br_arena_fini(&a);
}

TEST(arena_reset_starts_over)
{
    br_arena a;
    size_t before;

    br_arena_init(&a, 0);
    for (int i = 0; i < 100; i++)
        ck_assert_ptr_nonnull(br_arena_get(&a, 10000));
    br_arena_reset(&a);
    ck_assert_uint_eq(a.used, 0);
    before = t_mem_count();
    ck_assert_ptr_nonnull(br_arena_get(&a, 1000));
    ck_assert_uint_eq(t_mem_count(), before); /* from the chunk it kept */
    br_arena_fini(&a);
}

TEST(arena_copies_end_in_nul_and_zeros_are_zero)
{
    br_arena a;
    char *s, *z;

    br_arena_init(&a, 0);
    s = br_arena_str(&a, "abcdef", 3);
    ck_assert_str_eq(s, "abc");
    z = br_arena_zero(&a, 33, 3);
    for (int i = 0; i < 99; i++)
        ck_assert_int_eq(z[i], 0);
    ck_assert_mem_eq(br_arena_dup(&a, "x\0y", 3), "x\0y", 3);
    br_arena_fini(&a);
}

TEST(arena_zeros_of_many_pages_cost_nothing_until_they_are_touched)
{
    enum { MANY = 64 << 20 };
    size_t before = resident_bytes();
    br_arena a;
    char *p;

    br_arena_init(&a, 0);
    p = br_arena_zero(&a, MANY / 4, 4);
    ck_assert_ptr_nonnull(p);
    if (!t_sanitized())
        ck_assert(resident_bytes() < before + MANY / 8);
    ck_assert(p[0] == 0 && p[MANY / 2] == 0 && p[MANY - 1] == 0);
    br_arena_fini(&a);
}

/* ---- vec ----------------------------------------------------------------- */

typedef struct ints {
    BR_VEC(int);
} ints;

TEST(vec_grows_and_keeps_its_elements)
{
    ints v = {0};

    for (int i = 0; i < 1000; i++)
        ck_assert(br_vec_push(&v, i));
    ck_assert_uint_eq(v.n, 1000);
    for (int i = 0; i < 1000; i++)
        ck_assert_int_eq(v.at[i], i);
    br_vec_fini(&v);
    ck_assert_ptr_null(v.at);
}

TEST(vec_is_unchanged_when_growing_fails)
{
    ints v = {0};

    ck_assert(br_vec_push(&v, 7));
    t_mem_fail_at(1);
    while (v.n < v.cap)
        ck_assert(br_vec_push(&v, 7));
    ck_assert(!br_vec_push(&v, 8));
    ck_assert(t_mem_failed());
    ck_assert_uint_eq(v.n, v.cap);
    for (size_t i = 0; i < v.n; i++)
        ck_assert_int_eq(v.at[i], 7);
    ck_assert(!br_vec_reserve(&v, SIZE_MAX / 2));
    br_vec_fini(&v);
}

/* ---- str ----------------------------------------------------------------- */

TEST(str_builds_text)
{
    br_str s = {0};

    ck_assert_str_eq(br_str_z(&s), "");
    br_str_puts(&s, "a");
    br_str_putc(&s, 'b');
    br_str_put(&s, "cdef", 2);
    br_str_printf(&s, "%d %s", 42, "x");
    ck_assert_str_eq(br_str_z(&s), "abcd42 x");
    ck_assert_uint_eq(s.n, 8);
    for (int i = 0; i < 1000; i++)
        br_str_printf(&s, "%0200d", i);
    ck_assert_uint_eq(s.n, 8 + 200000);
    br_str_clear(&s);
    ck_assert_str_eq(br_str_z(&s), "");
    br_str_fini(&s);
}

TEST(str_remembers_that_memory_was_short)
{
    br_str s = {0};

    t_mem_fail_at(1);
    br_str_puts(&s, "lost");
    ck_assert(s.oom);
    br_str_puts(&s, "later");
    br_str_printf(&s, "%d", 1);
    ck_assert(s.oom);
    ck_assert_str_eq(br_str_z(&s), "");
    br_str_fini(&s);
}

TEST(hex_is_two_digits_a_byte)
{
    static const uint8_t bytes[] = {0x00, 0x9a, 0xa9, 0xff};
    char out[10] = "#########";

    br_hex(bytes, 4, out);
    ck_assert_str_eq(out, "009aa9ff");
    ck_assert_int_eq(out[9], 0);
    br_hex(bytes + 1, 1, out);
    ck_assert_str_eq(out, "9a");
    ck_assert_int_eq(out[3], 'a'); /* and not more */
    br_hex(bytes, 0, out);
    ck_assert_str_eq(out, "");
}

TEST(hex_digits_have_values_and_nothing_else_has)
{
    static const char digits[] = "0123456789abcdefABCDEF";

    for (int c = CHAR_MIN; c <= CHAR_MAX; c++) {
        const char *at = c ? strchr(digits, c) : NULL;
        int want = at ? (int)(at - digits) : -1;

        ck_assert_int_eq(br_hex_digit((char)c), want > 15 ? want - 6 : want);
    }
}

TEST(text_compares_by_content)
{
    ck_assert(br_text_eq(BR_TEXT("ab"), br_text_z("ab")));
    ck_assert(!br_text_eq(BR_TEXT("ab"), BR_TEXT("abc")));
    ck_assert(br_text_is(BR_TEXT("ab"), "ab"));
    ck_assert(!br_text_is(BR_TEXT("ab"), "abc"));
    ck_assert(!br_text_is(BR_TEXT("abc"), "ab"));
    ck_assert(!br_text_is(BR_TEXT("a\0b"), "a"));
    ck_assert(br_text_is((br_text){NULL, 0}, ""));
}
