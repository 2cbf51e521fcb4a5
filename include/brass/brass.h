/* brass.h - the C library: everything a program outside Brass may use.
 *
 *     br_error *e = br_error_new();
 *     br_program *p = br_program_load_file("prog.json", e);
 *     if (!p)
 *         fprintf(stderr, "%s\n", br_error_text(e));
 *
 * Handles are opaque; each says who frees it. A function that can fail takes a
 * br_error, which may be NULL, and returns NULL or a code that is not
 * BRASS_OK. No global state: two threads may use two handles at once, and
 * const functions of one handle. Link with `pkg-config --libs brass`.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_BRASS_H
#define BRASS_BRASS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The header's version; br_version() is the library's. Within one MAJOR a
 * program that was built with an older library runs with a newer one; while
 * MAJOR is 0, within one MINOR. */
#define BRASS_VERSION_MAJOR  0
#define BRASS_VERSION_MINOR  1
#define BRASS_VERSION_PATCH  0
#define BRASS_VERSION_STRING "0.1.0"

#if defined(__GNUC__)
#    define BRASS_API __attribute__((visibility("default")))
#else
#    define BRASS_API
#endif

BRASS_API const char *br_version(void); /* "0.1.0" */

/* ---- errors -------------------------------------------------------------- */

typedef enum brass_code {
    BRASS_OK = 0,
    BRASS_E_USAGE,       /* wrong usage */
    BRASS_E_NOT_FOUND,   /* not found */
    BRASS_E_FORMAT,      /* malformed input */
    BRASS_E_VERSION,     /* version not supported */
    BRASS_E_LIMIT,       /* over a stated limit */
    BRASS_E_REJECTED,    /* refused by the verifier */
    BRASS_E_NO_DEVICE,   /* device or tier not available */
    BRASS_E_UNSUPPORTED, /* not supported */
    BRASS_E_IO,          /* input or output failed */
    BRASS_E_OOM,         /* out of memory */
    BRASS_E_TIMEOUT,     /* timed out */
    BRASS_E_CANCELLED,   /* cancelled */
    BRASS_E_INTERNAL,    /* internal error */
    BRASS_E_BUSY,        /* overloaded */
    BRASS_E_QUOTA,       /* over the tenant's quota */
    BRASS_E_FAULT        /* the kernel stopped with an error */
} brass_code;

/* Holds the last failure of the calls it was given to. */
typedef struct br_error br_error;
BRASS_API br_error *br_error_new(void); /* NULL when there is no memory */
BRASS_API void br_error_free(br_error *e);
BRASS_API brass_code br_error_code(const br_error *e);
/* One sentence: "prog.json: tasks[3].waits[0]: missing 'threshold'". "" when
 * nothing failed. Valid until e is used again or freed. */
BRASS_API const char *br_error_text(const br_error *e);
BRASS_API const char *br_code_word(brass_code code); /* "FORMAT" */

/* ---- task programs ------------------------------------------------------- */

/* Tasks on workers, ordered by counters: docs/mega.md. Never changes. */
typedef struct br_program br_program;

/* From JSON of n bytes. The text is not needed afterwards. */
BRASS_API br_program *br_program_load(const char *text, size_t n, br_error *e);
BRASS_API br_program *br_program_load_file(const char *path, br_error *e);
BRASS_API void br_program_free(br_program *p);

/* Canonical JSON, NUL-terminated; *n (may be NULL) gets its length. Free it
 * with br_string_free. */
BRASS_API char *br_program_save(const br_program *p, size_t *n, br_error *e);
BRASS_API void br_string_free(char *s);

BRASS_API size_t br_program_tasks(const br_program *p);
BRASS_API size_t br_program_counters(const br_program *p);
BRASS_API size_t br_program_buffers(const br_program *p);
BRASS_API size_t br_program_pages(const br_program *p);
BRASS_API int64_t br_program_weight_bytes(const br_program *p);
/* The operation of task i, "GEMV_TILE", and its label, "" when it has none.
 * NULL when there is no task i. Valid while p lives. */
BRASS_API const char *br_program_task_op(const br_program *p, size_t i);
BRASS_API const char *br_program_task_label(const br_program *p, size_t i);

/* ---- the verdict --------------------------------------------------------- */

typedef enum brass_check {
    BRASS_CHECK_SOUND,     /* rejects everything that can go wrong */
    BRASS_CHECK_COMPAT_0_2 /* the verdict of the AMK 0.2 reference */
} brass_check;

/* What a check found. Independent of the program it came from. */
typedef struct br_report br_report;

/* NULL only when the check itself could not be made (no memory); a program
 * that is refused gives a report that says why. */
BRASS_API br_report *br_program_check(const br_program *p, brass_check mode,
                                      br_error *e);
BRASS_API void br_report_free(br_report *r);
BRASS_API int br_report_ok(const br_report *r); /* 1: accepted, 0: refused */
BRASS_API size_t br_report_errors(const br_report *r);
BRASS_API size_t br_report_warnings(const br_report *r);
/* The i-th text; NULL when there are not as many. A NUL in a label is told as
 * the bytes C0 80. */
BRASS_API const char *br_report_error(const br_report *r, size_t i);
BRASS_API const char *br_report_warning(const br_report *r, size_t i);
/* {"ok":..,"errors":[..],"warnings":[..],"stats":{..}}, all counts included.
 * Valid while r lives. */
BRASS_API const char *br_report_json(const br_report *r);

/* ---- a walk without computing ------------------------------------------- */

/* Which tasks run when only the counters decide. */
typedef struct br_walk br_walk;

/* seeds 0: in the order of the list. seeds n: in n unkind orders as well, each
 * looking for a task that reads before anybody wrote; these are violations.
 * A walk shows that a fault is there; that none is, only a check proves. */
BRASS_API br_walk *br_program_walk(const br_program *p, int seeds, br_error *e);
BRASS_API void br_walk_free(br_walk *w);
/* How many tasks ran, and the i-th of them; (size_t)-1 past the end. */
BRASS_API size_t br_walk_tasks(const br_walk *w);
BRASS_API size_t br_walk_task(const br_walk *w, size_t i);
/* Those that never could. */
BRASS_API size_t br_walk_stuck(const br_walk *w);
BRASS_API size_t br_walk_stuck_task(const br_walk *w, size_t i);
BRASS_API size_t br_walk_violations(const br_walk *w);
BRASS_API const char *br_walk_violation(const br_walk *w, size_t i);

/* ---- language models ----------------------------------------------------- */

/* A model file ready to answer: its tokenizer, and memory for some sequences.
 * One thread at a time, its sequences included. */
typedef struct br_llm br_llm;

/* path: GGUF. context: tokens of a sequence, no more than the model was made
 * for; 0: that, but at most 4096. sequences: how many there may be at once, at
 * least 1. */
BRASS_API br_llm *br_llm_open(const char *path, uint32_t context,
                              uint32_t sequences, br_error *e);
BRASS_API void br_llm_close(br_llm *m); /* after its sequences */
BRASS_API uint32_t br_llm_context(const br_llm *m);
BRASS_API int32_t br_llm_vocabulary(const br_llm *m);

enum {
    BRASS_ADD_SPECIAL = 1,  /* what the model wants around a text */
    BRASS_PARSE_SPECIAL = 2 /* control tokens spelled in the text count */
};
/* How many tokens the text has; the first `most` of them are written to ids.
 * (size_t)-1: failed. */
BRASS_API size_t br_llm_tokenize(br_llm *m, const char *text, size_t n,
                                 int flags, int32_t *ids, size_t most,
                                 br_error *e);
/* The bytes of tokens, NUL-terminated; *n (may be NULL) gets their number. Free
 * it with br_string_free. */
BRASS_API char *br_llm_detokenize(const br_llm *m, const int32_t *ids,
                                  size_t count, size_t *n, br_error *e);

/* How to choose tokens: docs/sampling.md. Begin with br_sampling_init. */
typedef struct br_sampling {
    uint64_t seed;
    int64_t max_tokens; /* negative: until the end */
    float temperature;  /* 0: the likeliest, always */
    float top_p, min_p, typical;
    float repeat_penalty, presence_penalty, frequency_penalty;
    int32_t top_k, penalty_last_n;
    const char *const *stop; /* texts that end the answer before them */
    size_t n_stop;
} br_sampling;
BRASS_API void br_sampling_init(br_sampling *s);

/* Gets the answer in pieces: whole characters of UTF-8, n > 0 bytes, no NUL
 * after them. 0 ends the answer. */
typedef int (*br_text_fn)(void *ctx, const char *text, size_t n);

/* A text, or a talk, that the model remembers. */
typedef struct br_seq br_seq;
/* LIMIT when as many as br_llm_open was told are there. */
BRASS_API br_seq *br_seq_new(br_llm *m, br_error *e);
BRASS_API void br_seq_free(br_seq *s);

/* Continues a text. how NULL: as br_sampling_init. A prompt that begins like
 * the last one costs only what is new of it. */
BRASS_API brass_code br_seq_continue(br_seq *s, const char *prompt,
                                     const br_sampling *how, br_text_fn fn,
                                     void *ctx, br_error *e);
/* Answers a message of a talk in the model's chat form. UNSUPPORTED: it has
 * none. A message whose answer failed is not part of the talk. */
BRASS_API brass_code br_seq_say(br_seq *s, const char *message,
                                const br_sampling *how, br_text_fn fn,
                                void *ctx, br_error *e);
/* What the talk begins with; "": nothing. */
BRASS_API brass_code br_seq_system(br_seq *s, const char *text, br_error *e);
BRASS_API void br_seq_reset(br_seq *s); /* forgets all */
/* Ends the answer under way; the one function that any thread, and a signal
 * handler, may call. */
BRASS_API void br_seq_cancel(br_seq *s);

/* Of the latest answer: "eog" "stop" "length" "context" "cancelled" "sink";
 * its tokens; tokens a second. */
BRASS_API const char *br_seq_end(const br_seq *s);
BRASS_API uint32_t br_seq_tokens(const br_seq *s);
BRASS_API double br_seq_rate(const br_seq *s);

/* ---- many answers at once ------------------------------------------------ */

/* Requests that share the steps of a model: as many answer at once as it has
 * sequences, the others wait. */
typedef struct br_batch br_batch;
/* Takes all sequences until it is freed. LIMIT: one is in use. */
BRASS_API br_batch *br_batch_new(br_llm *m, br_error *e);
/* Answers under way end without a word. */
BRASS_API void br_batch_free(br_batch *b);

/* What is told of an answer: first what a binary message of /v1/stream has
 * too. Valid during the call. */
typedef struct br_output_event {
    uint32_t slot, tenant;
    uint32_t token, generated_pos; /* the latest; 0: the first of the answer */
    uint8_t eot;                   /* 1: the answer is over */
    uint8_t preempted;             /* 1: lost its slot, goes on by itself */
    uint16_t n_logprobs;
    const float *logprobs; /* the token's, then those of the likeliest */
    const char *text;      /* whole characters of UTF-8, no NUL; may be none */
    size_t n_text;
    const char *end;   /* with eot: "eog" "stop" "length" "context" "cancelled"
                        * "failed", else NULL */
    const char *error; /* with "failed": why, else "" */
} br_output_event;
/* 0 ends the answer: one more event comes, with eot. */
typedef int (*br_event_fn)(void *ctx, const br_output_event *ev);

typedef struct br_request { /* what it points at is copied, but for ctx */
    const int32_t *ids;     /* the prompt, at least 1 token */
    size_t n_ids;
    const br_sampling *how; /* NULL: as br_sampling_init */
    uint32_t n_logprobs;    /* at most 101; 1: the token's alone */
    br_event_fn fn;
    void *ctx;
} br_request;
/* A number for it; 0: failed, and fn hears nothing. */
BRASS_API uint64_t br_batch_submit(br_batch *b, const br_request *r,
                                   br_error *e);
/* Tells what happened, here and now, and before that waits until something
 * has, for at most timeout_ms (negative: for as long as it takes). Functions
 * that are called may submit and cancel. Returns how many answers are not over.
 */
BRASS_API size_t br_batch_wait(br_batch *b, int64_t timeout_ms);
/* Any thread; a number whose answer is over is nobody's. */
BRASS_API void br_batch_cancel(br_batch *b, uint64_t request);

#ifdef __cplusplus
}
#endif

#endif
