/* base.h - the ground every room stands on: types, asserts, errors, memory.
 *
 * Nothing here knows of models. Other parts of base have headers of their own
 * (json.h options.h thread.h map.h log.h hash.h); this one is included by all.
 *
 *   need                       use
 *   programmer's invariant     br_assert(c && "why")   debug and sanitizer runs
 *   guards memory or a device  br_check(c && "why")    always on
 *   bad input                  return br_fail(st, BR_E_FORMAT, "...", ...)
 *   bytes an outsider chose    br_try_* (NULL when there is none)
 *   small internal bytes       br_alloc (aborts when there is none)
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_BASE_H
#define BR_BASE_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- words ---------------------------------------------------------- */

#define BR_COUNT(a)  (sizeof(a) / sizeof((a)[0]))
#define BR_MIN(a, b) ((a) < (b) ? (a) : (b))
#define BR_MAX(a, b) ((a) > (b) ? (a) : (b))
#define br_container_of(p, type, field) \
    ((type *)(void *)((char *)(p)-offsetof(type, field)))

#define BR_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#define BR_NORETURN          __attribute__((noreturn))
#define BR_MUST_USE          __attribute__((warn_unused_result))

BR_NORETURN void br_panic_at(const char *file, int line, const char *what);

#define br_check(c) \
    ((c) ? (void)0 : br_panic_at(__FILE__, __LINE__, "check failed: " #c))
#ifdef NDEBUG
#    define br_assert(c) ((void)(0 && (c))) /* c stays used, never run */
#else
#    define br_assert(c) \
        ((c) ? (void)0 : br_panic_at(__FILE__, __LINE__, "assert failed: " #c))
#endif
#define br_unreachable(why) br_panic_at(__FILE__, __LINE__, "unreachable: " why)

/* ---- status: what went wrong with the input (status.c) --------------- */

/* One row of errors.def: code, text, exit code of the CLI, HTTP status. */
typedef enum br_code {
    BR_OK = 0,
#define X(name, text, exit_code, http, retry) BR_E_##name,
#include "base/errors.def"
#undef X
    BR_E_COUNT
} br_code;

/* Owned by the caller, usually on its stack. The first failure wins: a later
 * br_fail on a status that already holds an error leaves it as it is. */
typedef struct br_status {
    br_code code;
    int sys; /* errno, or 0 */
    const char *file;
    int line;
    char msg[480];
} br_status;

br_code br_fail_at(br_status *st, const char *file, int line, br_code code,
                   const char *fmt, ...) BR_PRINTF(5, 6);
/* st may be NULL where the caller wants only the code. Returns the code. */
#define br_fail(st, code, ...) \
    br_fail_at((st), __FILE__, __LINE__, (code), __VA_ARGS__)
/* Puts "text: " before the message of a failed status. Returns its code. */
br_code br_prefix(br_status *st, const char *fmt, ...) BR_PRINTF(2, 3);
#define BR_TRY(expr)                   \
    do {                               \
        br_code br_try_code_ = (expr); \
        if (br_try_code_ != BR_OK)     \
            return br_try_code_;       \
    } while (0)

const char *br_code_name(br_code c); /* "FORMAT" */
const char *br_code_text(br_code c); /* "malformed input" */
int br_code_exit(br_code c);         /* exit code of the CLI */
int br_code_http(br_code c);
bool br_code_retryable(br_code c);

/* ---- memory: every byte comes through one hook (mem.c) ---------------- */

/* realloc-shaped: p NULL allocates, size 0 frees, else resizes. The test build
 * installs one that fails the n-th call; the default is the C library's. */
typedef void *(*br_mem_fn)(void *ctx, void *p, size_t size);
void br_mem_hook(br_mem_fn fn, void *ctx); /* NULL restores the default */

void *br_try_alloc(size_t size) BR_MUST_USE;
void *br_try_calloc(size_t n, size_t size) BR_MUST_USE; /* zeroed, checked */
/* The same for much memory of which little may be used: zeros come when they
 * are touched, as huge pages where the kernel has them. */
void *br_try_pages(size_t n, size_t size) BR_MUST_USE;
void *br_try_realloc(void *p, size_t size) BR_MUST_USE;
void *br_alloc(size_t size) BR_MUST_USE; /* aborts when there is none */
void br_free(void *p);
bool br_mul_overflows(size_t a, size_t b, size_t *out);

/* ---- arena: a lifetime, not an object (arena.c) ----------------------- */

/* Bump allocator in growing chunks. limit bounds the sum of what it hands
 * out, so that a hostile file cannot choose our memory. */
typedef struct br_arena {
    struct br_chunk *head;
    char *at, *end;
    size_t used;  /* bytes handed out, padding included */
    size_t limit; /* 0: none */
} br_arena;

void br_arena_init(br_arena *a, size_t limit_bytes);
void br_arena_fini(br_arena *a);
void br_arena_reset(br_arena *a); /* keeps the newest chunk */
/* Uninitialised bytes, 16-aligned; NULL when out of memory or over the limit */
void *br_arena_get(br_arena *a, size_t size) BR_MUST_USE;
void *br_arena_zero(br_arena *a, size_t n, size_t size) BR_MUST_USE;
void *br_arena_dup(br_arena *a, const void *p, size_t size) BR_MUST_USE;
char *br_arena_str(br_arena *a, const char *s, size_t n) BR_MUST_USE; /* +\0 */
#define br_arena_new(a, type, n) ((type *)br_arena_zero((a), (n), sizeof(type)))

/* ---- vec: a growing array of one type (vec.c) ------------------------- */

/* struct { BR_VEC(int) xs; }; zero it to start, br_vec_fini to end. Growth
 * may fail: br_vec_push returns false and leaves the vector as it was. */
#define BR_VEC(type)   \
    struct {           \
        type *at;      \
        size_t n, cap; \
    }
bool br_vec_grow(void *vec, size_t elem, size_t need);
#define br_vec_reserve(v, need) \
    ((need) <= (v)->cap || br_vec_grow((v), sizeof *(v)->at, (need)))
#define br_vec_push(v, x) \
    (br_vec_reserve((v), (v)->n + 1) && ((v)->at[(v)->n++] = (x), true))
#define br_vec_fini(v) (br_free((v)->at), (v)->at = NULL, (v)->n = (v)->cap = 0)

/* ---- str: a string builder (str.c) ------------------------------------ */

/* Sticky failure: after an allocation fails, oom is set and later puts do
 * nothing; check once, at the end. at is always NUL-terminated once n > 0. */
typedef struct br_str {
    char *at;
    size_t n, cap;
    bool oom;
} br_str;

void br_str_put(br_str *s, const char *p, size_t n);
void br_str_puts(br_str *s, const char *z);
void br_str_putc(br_str *s, char c);
void br_str_printf(br_str *s, const char *fmt, ...) BR_PRINTF(2, 3);
void br_str_vprintf(br_str *s, const char *fmt, va_list ap) BR_PRINTF(2, 0);
const char *br_str_z(br_str *s); /* never NULL: "" when empty */
/* In base64, with padding. */
void br_str_put_base64(br_str *s, const void *p, size_t n);
void br_str_clear(br_str *s);
void br_str_fini(br_str *s);

/* A piece of text that somebody else owns. */
typedef struct br_text {
    const char *p;
    size_t n;
} br_text;
#define BR_TEXT(lit) ((br_text){(lit), sizeof(lit) - 1})
br_text br_text_z(const char *z);
bool br_text_eq(br_text a, br_text b);
bool br_text_is(br_text a, const char *z);
/* n bytes as 2 n hexadecimal digits, small letters, and a NUL (str.c). */
void br_hex(const void *p, size_t n, char *out);
/* What a hexadecimal digit stands for; -1: it is none. */
int br_hex_digit(char c);

/* ---- files (file.c) --------------------------------------------------- */

/* Whole file into memory. Fails with NOT_FOUND, IO, LIMIT (more than
 * max_bytes) or OOM, naming the path. path "-" is standard input. */
br_code br_file_read(const char *path, size_t max_bytes, char **out, size_t *n,
                     br_status *st) BR_MUST_USE;
/* The same of a file that the user's folder has, not the user named: a pipe or
 * a device is a FORMAT, since nobody would write to it. "-" is a name. */
br_code br_file_read_disk(const char *path, size_t max_bytes, char **out,
                          size_t *n, br_status *st) BR_MUST_USE;
/* Writes beside the target, syncs, renames: a crash leaves old or new. */
br_code br_file_write(const char *path, const void *p, size_t n,
                      br_status *st) BR_MUST_USE;

/* The same in pieces: begin, put ..., then end, or drop to leave the target as
 * it was. Begin that failed and end, failed or not, need no drop after them. A
 * device or a pipe is written in place. */
typedef struct br_out {
    int fd;
    int mode; /* to give the file, or -1 */
    bool in_place, mapped, part;
    br_str temp, path;
} br_out;
br_code br_out_begin(br_out *o, const char *path, br_status *st) BR_MUST_USE;
/* It is called PATH.part until its end, and is its owner's alone: for what takes
 * so long that somebody may look meanwhile, or find what a killed process left,
 * which the next to write it replaces. BUSY: another process is at it. */
br_code br_out_begin_part(br_out *o, const char *path,
                          br_status *st) BR_MUST_USE;
br_code br_out_put(br_out *o, const void *p, size_t n,
                   br_status *st) BR_MUST_USE;
br_code br_out_end(br_out *o, br_status *st) BR_MUST_USE;
void br_out_drop(br_out *o);
/* Instead of end, where not all could be put: PATH.part stays. */
void br_out_leave(br_out *o);
/* What was put so far, to be read before it has its name; br_file_unmap ends it.
 * *p is NULL where it went to a pipe or a device. */
br_code br_out_look(const br_out *o, uint8_t **p, size_t *n,
                    br_status *st) BR_MUST_USE;
/* Instead of put: room for n bytes on the disk, as memory that outlives o
 * (br_file_unmap). End does not sync then; br_file_settle does, later: a crash
 * of the machine before leaves the name with any bytes. */
br_code br_out_map(br_out *o, size_t n, uint8_t **p, br_status *st) BR_MUST_USE;

/* Whether br_out_begin made a file of this name in a process that is gone. */
bool br_out_is_left_over(const char *name);

/* mkdir -p, for the user alone (folder.c). Not 0: errno, why it is not there;
 * who only looks for a file in it notices by itself. */
int br_folder_make(br_str *path);
/* A variable of that environment that is not empty, or NULL. */
const char *br_env_find(char *const *env, const char *name);
/* Appends what the variable `xdg` names or else HOME/HOME_PATH, and /brass.
 * False: the environment has neither. */
bool br_folder_user(char *const *env, const char *xdg, const char *home_path,
                    br_str *out);
/* Of the files in a folder whose names end so, removes those that were written
 * or touched longest ago until the rest has at most so many bytes; and what
 * killed processes left. Says what stays. A judge, unless it is NULL, says of
 * each such file whether it counts, is to be left alone or is of no use. */
typedef struct br_folder_sum {
    uint64_t files, bytes;
} br_folder_sum;
typedef enum br_verdict { BR_IT_COUNTS, BR_IT_IS_LEFT, BR_IT_GOES } br_verdict;
typedef br_verdict br_folder_judge(void *arg, const char *path,
                                   const char *name);
br_folder_sum br_folder_trim(const char *folder, const char *ending,
                             uint64_t most, br_folder_judge *judge, void *arg);

/* A file as memory, read page by page as it is touched (file_map.c). Read
 * only. Whoever cuts the file while it is mapped makes a touch of what was cut
 * off a SIGBUS. An empty file is n 0 and p not NULL. */
typedef struct br_file_map {
    const uint8_t *p;
    size_t n;
    uint64_t device, inode; /* of the file, as stat says */
    int64_t written_ns;
} br_file_map;
br_code br_file_map_open(br_file_map *m, const char *path,
                         br_status *st) BR_MUST_USE;
void br_file_map_close(br_file_map *m);
/* Pages touched so far leave memory; the next touch reads them again. */
void br_file_map_forget(const br_file_map *m);
void br_file_unmap(uint8_t *p, size_t n);
/* Brings a file to the disk, 8 MB at a time, then sets its byte at `mark` to 1
 * and syncs that. False: *stop was set, or the disk failed. */
bool br_file_settle(const char *path, size_t mark, const _Atomic bool *stop);
/* Whether a path names the file that is mapped, by whatever name. */
bool br_file_map_is(const br_file_map *m, const char *path);

#endif
