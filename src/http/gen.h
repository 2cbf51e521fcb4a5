/* gen.h - one request that makes text, from its prompt to its last event.
 *
 *   br_ask --tokens--> n choices --submit--> engine
 *                                              |  output(): token, END
 *   connection <-- events or one document <-- wire (how an API writes it)
 *
 * A gen lives until every choice has had its END and its connection has the
 * answer or is gone.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_GEN_H
#define BR_GEN_H

#include "http/srv.h"
#include "run/think_cap.h"

typedef struct br_tool_call {
    bool ended;
    uint32_t number;   /* as the model wrote it, where it numbers them */
    br_str name, args; /* args: in a stream only where text is kept */
} br_tool_call;

typedef struct br_choice {
    br_gen *gen;
    uint32_t index;
    br_request_id id;
    br_matcher *matcher; /* of the answer's grammar, or NULL */
    br_think_cap *cap;   /* of its thoughts, or NULL */
    br_timeline line;
    br_think_reader think;
    br_tool_reader tools; /* where tools may be called */
    br_str thought;       /* kept as text is */
    uint32_t n_thought;   /* tokens of it */
    BR_VEC(br_tool_call) calls;
    bool ended;
    br_str text;           /* all of it; in a stream only where text is kept */
    BR_VEC(br_logprob) lp; /* rows of gen->lp_row, not yet written (or kept) */
    size_t lp_sent;        /* of those that are kept */
    size_t lp_text;        /* with tools: those of lp that no call is made of */
    size_t text_offset;    /* completions: characters before the first of lp */
    uint8_t text_inside;   /* bytes that the last of these still lacks */
    BR_VEC(int32_t) made;  /* its tokens, where it may go on after a restart */
    br_usage usage;        /* once ended; with timings as it is so far */
    int64_t first_ns;      /* with timings: when the first token came */
    br_code code;          /* of a failure */
    char error[160];
} br_choice;

typedef struct br_wire br_wire;

struct br_gen {
    br_http *h;
    br_served *model;
    br_http_conn *c;      /* NULL: gone */
    struct br_tale *tale; /* in background, where a stream was asked for */
    const br_wire *wire;
    br_ask ask;
    char id[40];
    uint32_t tenant;
    int64_t created;
    br_resumed *resumed;     /* it began before a restart; c is NULL */
    bool kept;               /* it goes on after the next one */
    bool cancelled, dropped; /* in background: by its owner; and deleted */
    int64_t beat_ns;         /* likewise: when it was said last that it lives */
    br_str body;             /* as it was asked, where that may be */
    br_str cuts;             /* how its stream was cut into pieces (retell.h) */
    int64_t deadline_ns;     /* 0: none */
    const br_tool_syntax *tools; /* NULL: none are to be called */
    const br_think *think;       /* NULL: thoughts are not told apart */
    bool thinks;                 /* the prompt has begun one */
    br_grammar *grammar;         /* of the answers, until they are submitted */
    uint32_t n_prompt;           /* tokens, each prompt once */
    uint32_t lp_row;   /* logprobs of a token: chosen and alternatives */
    uint32_t n_open;   /* choices that wait for their END */
    uint32_t n_begun;  /* that were submitted */
    uint32_t sequence; /* of events, where the API counts them */
    bool held, failed;
    uint8_t block;     /* what is open, where the API has blocks; 0: none */
    uint32_t n_blocks; /* opened so far */
    br_str head;       /* what each chunk of a stream begins with */
    br_str text;       /* what the template made of its messages */
    /* A long prompt is the reader's from br_gen_read to br_gen_was_read, but
     * for unwanted: its client is gone. */
    bool reading;
    atomic_bool unwanted;
    br_tok_ids *read; /* of each prompt; NULL: they were not long */
    br_status read_st;
    br_gen *next_read;
    br_gen *prev, *next;
    uint32_t n_choices;
    br_choice choices[];
};

/* How an API writes an answer: into h->scratch, sent by the caller. */
struct br_wire {
    const char *id; /* prefix */
    br_api api;
    void (*begin)(br_gen *g, br_str *out); /* a stream begins */
    void (*text)(br_gen *g, br_choice *c, br_text t, br_str *out);
    /* what the model thinks; NULL: this API does not tell it apart */
    void (*thought)(br_gen *g, br_choice *c, br_text t, br_str *out);
    /* how far the prompt was read; NULL: this API does not tell */
    void (*progress)(br_gen *g, br_choice *c, const br_reading *p, br_str *out);
    /* of the latest of c->calls; NULL: this API has no tools */
    void (*call)(br_gen *g, br_choice *c, br_tool_event e, br_text piece,
                 br_str *out);
    void (*end)(br_gen *g, br_choice *c, br_str *out);
    void (*done)(br_gen *g, br_str *out); /* all choices have ended */
    void (*error)(br_gen *g, const br_error *e, br_str *out);
    void (*preempted)(br_gen *g, br_choice *c, br_str *out);
    void (*whole)(br_gen *g, br_str *out); /* the answer as one document */
    /* what there is to say of the tokens in h->ids, instead of an answer */
    void (*prompt)(br_gen *g, br_str *out);
    /* each event of the engine, before what is made of it; or NULL */
    void (*event)(br_gen *g, br_choice *c, const br_output *o, br_str *out);
    /* an embedding is there, in c->text; NULL: it stays there as it is */
    void (*embedded)(br_gen *g, br_choice *c);
    bool embeds;     /* choices are embeddings: text has their floats */
    bool streams;    /* there are no documents */
    bool keeps_text; /* streams repeat the whole text at their end */
};

/* The answer's items, as a list, and the whole of it (wire_responses.c): as it
 * is, once it has ended, or failed, where there is an error. */
void br_responses_whole(const br_gen *g, bool ended, const br_error *e,
                        br_str *items, br_str *all);
/* Its tokens end, and nobody hears of it. */
void br_gen_stop(br_gen *g);
extern const br_wire br_wire_chat, br_wire_text, br_wire_messages,
    br_wire_responses, br_wire_ws, br_wire_embed;

/* Whether the model makes embeddings, and so long ones (wire_embed.c). */
br_code br_embed_check(const br_gen *g, br_ask *a, br_status *st) BR_MUST_USE;
/* Reads, submits and begins to answer. */
void br_gen_start(br_http *h, br_http_conn *c, const br_wire *wire);
/* The same with an ask that was read already, of h->model; it is freed. */
void br_gen_answer(br_http *h, br_http_conn *c, const br_wire *wire, br_ask *a);
/* The field that the client wrote the prompt in (gen_prompt.c). */
const char *br_gen_prompt_field(const br_gen *g);
/* USAGE: more answers than the tenant may have waiting, whenever it asks. */
br_code br_gen_check_queue(br_gen *g, br_status *st) BR_MUST_USE;
/* Of several prompts the one begun last does not fit: which it is. */
br_code br_gen_which(const br_gen *g, br_code code, br_status *st) BR_MUST_USE;
/* The texts of all prompts, and how many bytes they have. */
br_code br_gen_texts(br_gen *g, size_t *bytes, br_status *st) BR_MUST_USE;
/* Then prompt i as tokens; any thread. */
br_code br_gen_encode(const br_gen *g, size_t i, br_tok_work *w,
                      br_tok_ids *ids, br_status *st) BR_MUST_USE;
/* The same into h->ids, where they were not read yet. */
br_code br_gen_prompt(br_gen *g, size_t i, br_status *st) BR_MUST_USE;
/* Tokens that were read beside the loop go from read to h->ids, or back. */
void br_gen_swap_read(br_gen *g, size_t i);
/* X-Deadline-Ms: the answer is of no use after it. 0: not said. */
br_code br_deadline_of(const br_http_conn *c, int64_t *ns,
                       br_status *st) BR_MUST_USE;
/* X-Session-Id; 0: it has none. */
uint64_t br_gen_session(const br_gen *g);
/* The prompt in h->ids as the beginning of the answer, where it is wanted. */
br_code br_gen_echo(br_gen *g, br_choice *c, br_status *st) BR_MUST_USE;
/* The same with what the model thinks of it, when it has read it. */
void br_gen_put_prompt(br_choice *c, const br_output *o);
/* Text of an answer (gen.c). */
void br_gen_put_text(br_choice *c, br_text t);
/* One that began in the run before, on h->model. */
typedef struct br_gen_again {
    br_resumed *r;
    const br_wire *wire;
    const char *id;
    uint32_t tenant;
    int64_t created;
    uint64_t seed;
    const br_json *turn; /* NULL: br_stored_again has nothing to do */
    br_text body, cuts;
} br_gen_again;
br_code br_gen_resume(br_http *h, const br_gen_again *again,
                      br_status *st) BR_MUST_USE;
/* Whether it can go on after a restart; notes that it shall. */
bool br_resume_may(const br_gen *g);
void br_resume_note(br_gen *g);
/* Appends the tokens that the choice has already, and says so. False: out of
 * memory. */
bool br_resume_choice(const br_resumed *r, uint32_t choice, br_tok_ids *ids,
                      br_request_desc *d) BR_MUST_USE;
void br_resume_over(br_gen *g, const br_error *e); /* NULL: all is well */
/* What its tokens have to keep to (gen_grammar.c). */
br_code br_gen_hook(br_gen *g, br_choice *c, br_logit_hook *hook,
                    br_status *st) BR_MUST_USE;
/* Has all prompts read by the reader's thread (gen_read.c), which is followed
 * by br_gen_was_read in this one (gen.c). */
br_code br_gen_read(br_gen *g, br_status *st) BR_MUST_USE;
void br_gen_was_read(br_gen *g);
/* One that failed by itself, before those that were cancelled for it; or NULL
 * (gen_fail.c). */
br_choice *br_gen_failed(br_gen *g);
/* What its client is told of that. */
br_error br_gen_error(br_choice *bad);
/* Of all choices together. */
br_usage br_gen_usage(const br_gen *g);
uint32_t br_gen_thought_tokens(const br_gen *g);
/* "queue_ms" and so on, into an object that is open. */
void br_gen_put_times(br_json_writer *w, const br_usage *u);

/* With timings: a token came. */
void br_gen_note_time(br_choice *c, const br_output *o);

/* "call_..." of call i, the same each time. */
void br_gen_put_call_id(const br_gen *g, const br_choice *c, size_t i,
                        br_str *out);
/* The list of tokens in c->lp from row `from` on. */
void br_gen_put_logprobs(const br_gen *g, const br_choice *c, size_t from,
                         br_str *out);
/* Small pieces for wires. */
void br_put_json(br_str *out, br_text t); /* quoted, with escapes */
void br_put_jsonz(br_str *out, const char *z);
void br_put_u64(br_str *out, uint64_t v);

#endif
