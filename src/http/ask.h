/* ask.h - what a request asks of the model, in the words of any API.
 *
 *   JSON --field.def--> br_ask: knobs, messages or prompts, how to answer
 *
 * Every field of a request is honoured, known to change nothing, or refused
 * with a message that begins with its name. There are no others: a field that
 * nobody knows is refused, too.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_ASK_H
#define BR_ASK_H

#include "base/json.h"
#include "run/sample.h"
#include "run/toolcall.h"

enum {
    BR_ASK_MAX_CHOICES = 128,
    BR_ASK_MAX_PROMPTS = 128,
    BR_ASK_MAX_INPUTS = 2048, /* of /v1/embeddings */
    BR_ASK_MAX_STOPS = 16,
    BR_ASK_MAX_LOGPROBS = 20, /* as OpenAI's chats and vLLM have it */
    BR_ASK_MAX_VARS = 16,     /* of the template */
    BR_ASK_TREE_FACTOR = 24,  /* bytes of a JSON tree for one of its text */
    BR_ASK_MAX_TREE = 256 << 20,
};

typedef enum br_api {
    BR_API_CHAT = 1,       /* /v1/chat/completions */
    BR_API_TEXT = 2,       /* /v1/completions */
    BR_API_MESSAGES = 4,   /* /v1/messages */
    BR_API_COUNT = 8,      /* /v1/messages/count_tokens */
    BR_API_RESPONSES = 16, /* /v1/responses */
    BR_API_TEMPLATE = 32,  /* /apply-template */
    BR_API_EMBED = 64,     /* /v1/embeddings */
    BR_API_RERANK = 128,   /* /v1/rerank */
} br_api;

typedef struct br_ask_message {
    const char *role;
    br_text content;
    const br_json *json; /* the whole message instead of content, or NULL */
} br_ask_message;

typedef struct br_ask_prompt { /* a text, or tokens where text.p is NULL */
    br_text text;
    const int32_t *tokens;
    size_t n_tokens;
    int flags; /* of the tokenizer's, for the text */
} br_ask_prompt;

typedef struct br_ask {
    br_api api;
    br_arena arena;    /* of all that it points to */
    const char *param; /* the field that was refused, or NULL */
    const char *form;  /* the one that grammar is of, or NULL */
    const char *model;
    br_sample_params sample;
    bool seeded;      /* the request said a seed */
    bool repeat_said; /* and how to punish what comes again */
    bool stream, include_usage, echo, ignore_eog;
    bool progress;  /* of reading the prompt, in a stream, as llama-server */
    bool goes_on;   /* the last message is the beginning of the answer */
    bool no_prompt; /* the template is not to begin one */
    bool timings;   /* in each chunk, and in whole answers, as llama-server */
    BR_VEC(br_tool) tools;
    const br_json *root;      /* all of it */
    const char *previous;     /* the response that it goes on from, or NULL */
    const char *conversation; /* or the one whose part it is, or NULL */
    int store;                /* 1: yes, -1: no, 0: not said */
    bool background;          /* it is made while nobody waits */
    bool kept;                /* the response is to be */
    br_str items;             /* then what it asks; in a conversation, too */
    br_str after;             /* the response before it; empty: none */
    br_str talk;              /* its conversation; empty: none */
    const br_json *tool_list; /* as the template sees them; NULL: none */
    br_json *turn; /* input items: the assistant's message that they add to */
    const char *effort;      /* how much to think: "none"...; NULL: not said */
    const char *effort_from; /* the field that did */
    const char *wish;        /* the same, where the template knows of it */
    bool may_think;          /* effort allows thoughts, asks for none */
    bool hide_thoughts;      /* they are not wanted in the answer */
    int64_t think_most;      /* tokens of thoughts; negative: no matter */
    const br_json *vars;     /* of the template, an object, or NULL */
    br_tool_choice tool_choice;
    bool tool_choice_said, serial; /* serial: one call at most */
    const br_json *tool_choice_as; /* as it was said, where that is an object */
    br_str grammar; /* what the answer has to be one of; empty: any text */
    int64_t n, max_tokens; /* max_tokens negative: as many as fit */
    bool base64;           /* embeddings, of so many numbers (0: all) */
    int32_t dimensions;
    int64_t top_n; /* documents of the answer; 0: all */
    br_text query; /* to rank them by; the last of prompts in the end */
    bool bare;     /* the answer is that list alone, in TEI's words */
    const char **stop;
    size_t n_stop;
    const int32_t *stop_tokens;
    size_t n_stop_tokens;
    BR_VEC(br_ask_message) messages;
    BR_VEC(br_ask_prompt) prompts;
} br_ask;

/* sample: what holds where the request says nothing. Fails with USAGE, LIMIT,
 * FORMAT (no JSON) or OOM; br_ask_fini either way. */
br_code br_ask_read(br_ask *a, br_api api, const br_sample_params *sample,
                    br_text body, br_status *st) BR_MUST_USE;
void br_ask_fini(br_ask *a);

/* ---- readers of single fields (ask_text.c), for field.def ---------------- */

typedef br_code (*br_ask_fn)(br_ask *a, const br_json *v, const char *name,
                             br_status *st);
br_code br_ask_messages(br_ask *a, const br_json *v, const char *name,
                        br_status *st) BR_MUST_USE;
br_code br_ask_prompts(br_ask *a, const br_json *v, const char *name,
                       br_status *st) BR_MUST_USE;
br_code br_ask_documents(br_ask *a, const br_json *v, const char *name,
                         br_status *st) BR_MUST_USE;
br_code br_ask_texts(br_ask *a, const br_json *v, const char *name,
                     br_status *st) BR_MUST_USE;
br_code br_ask_query(br_ask *a, const br_json *v, const char *name,
                     br_status *st) BR_MUST_USE;
/* When all is read. */
br_code br_ask_rank(br_ask *a, br_status *st) BR_MUST_USE;
br_code br_ask_system(br_ask *a, const br_json *v, const char *name,
                      br_status *st) BR_MUST_USE;
br_code br_ask_input(br_ask *a, const br_json *v, const char *name,
                     br_status *st) BR_MUST_USE;
/* ask_tools.c */
br_code br_ask_tools(br_ask *a, const br_json *v, const char *name,
                     br_status *st) BR_MUST_USE;
br_code br_ask_tool_choice(br_ask *a, const br_json *v, const char *name,
                           br_status *st) BR_MUST_USE;
br_code br_ask_parallel(br_ask *a, const br_json *v, const char *name,
                        br_status *st) BR_MUST_USE;
br_code br_ask_tool_message(br_ask *a, const br_json *v, const char *place,
                            bool *is_one, br_status *st) BR_MUST_USE;
/* ask_items.c */
br_code br_ask_item(br_ask *a, const br_json *v, const char *place,
                    bool *is_one, br_status *st) BR_MUST_USE;
/* A message that belongs to the thought just before it. */
br_code br_ask_turn_says(br_ask *a, const char *role, br_text content,
                         bool *is_one, br_status *st) BR_MUST_USE;
br_code br_ask_effort(br_ask *a, const br_json *v, const char *name,
                      br_status *st) BR_MUST_USE;
br_code br_ask_thinking(br_ask *a, const br_json *v, const char *name,
                        br_status *st) BR_MUST_USE;
br_code br_ask_output(br_ask *a, const br_json *v, const char *name,
                      br_status *st) BR_MUST_USE;
br_code br_ask_edits(br_ask *a, const br_json *v, const char *name,
                     br_status *st) BR_MUST_USE;
br_code br_ask_vars(br_ask *a, const br_json *v, const char *name,
                    br_status *st) BR_MUST_USE;
/* Making trees, false or NULL when memory ran out (ask_tools.c): a member (key
 * NULL: an element) that shares v's children, nothing where v is NULL; */
bool br_ask_share(br_ask *a, br_json *to, const char *key, const br_json *v);
/* an empty one; a text. */
br_json *br_ask_object(br_ask *a, br_json *to, const char *key,
                       br_json_kind kind);
bool br_ask_word(br_ask *a, br_json *to, const char *key, const char *z);
/* A string, or a list of parts that are text, as one text in the arena. */
br_code br_ask_content(br_ask *a, const br_json *v, const char *place,
                       br_text *out, br_status *st) BR_MUST_USE;
bool br_ask_is_type(const br_json *v, const char *what);
/* A member of a message beside role and content that says nothing: servers have it
 * in their answers, and it comes back with them. */
bool br_ask_says_nothing(const br_json *m);
br_code br_ask_tool_name(const br_json *v, const char *place,
                         br_status *st) BR_MUST_USE;
/* ask_shape.c */
br_code br_ask_format(br_ask *a, const br_json *v, const char *name,
                      br_status *st) BR_MUST_USE;
br_code br_ask_text_format(br_ask *a, const br_json *v, const char *name,
                           br_status *st) BR_MUST_USE;
br_code br_ask_structured(br_ask *a, const br_json *v, const char *name,
                          br_status *st) BR_MUST_USE;
br_code br_ask_choice(br_ask *a, const br_json *v, const char *name,
                      br_status *st) BR_MUST_USE;
br_code br_ask_regex(br_ask *a, const br_json *v, const char *name,
                     br_status *st) BR_MUST_USE;
br_code br_ask_schema(br_ask *a, const br_json *v, const char *name,
                      br_status *st) BR_MUST_USE;
br_code br_ask_grammar(br_ask *a, const br_json *v, const char *name,
                       br_status *st) BR_MUST_USE;

#endif
