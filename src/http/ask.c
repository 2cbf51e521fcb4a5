/* ask.c - see ask.h: the table of fields, and the knobs.
 * SPDX-License-Identifier: Apache-2.0 */
#include "http/ask.h"

#include "base/options.h"
#include "run/textout.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

static br_code
oom(br_status *st)
{
    return br_fail(st, BR_E_OOM, "out of memory");
}

/* ---- readers ------------------------------------------------------------- */

static br_code
number(const br_json *v, const char *name, double lo, double hi, double *out,
       br_status *st)
{
    *out = v->kind == BR_J_INT ? (double)v->i : v->f;
    if ((v->kind != BR_J_INT && v->kind != BR_J_FLOAT) ||
        !(*out >= lo && *out <= hi))
        return br_fail(st, BR_E_USAGE, "%s: must be a number from %g to %g",
                       name, lo, hi);
    return BR_OK;
}

/* 4.0 is one, as JSON has it: some clients' languages know no other numbers. From
 * here on those may have rounded it. */
static const double whole_most = 9007199254740992.0; /* 2^53 */

static bool
is_whole(const br_json *v, int64_t *out)
{
    if (v->kind == BR_J_FLOAT && v->f == floor(v->f) &&
        fabs(v->f) <= whole_most) {
        *out = (int64_t)v->f;
        return true;
    }
    *out = v->kind == BR_J_INT ? v->i : 0;
    return v->kind == BR_J_INT;
}

static br_code
whole(const br_json *v, const char *name, int64_t lo, int64_t hi, int64_t *out,
      br_status *st)
{
    if (v->kind == BR_J_FLOAT && fabs(v->f) > whole_most &&
        v->f >= (double)lo && v->f <= (double)hi)
        return br_fail(
            st, BR_E_USAGE,
            "%s: beyond 2^53 a whole number must be written with all "
            "of its digits, not as %g",
            name, v->f);
    if (!is_whole(v, out) || *out < lo || *out > hi)
        return br_fail(st, BR_E_USAGE,
                       "%s: must be a whole number from %lld to %lld", name,
                       (long long)lo, (long long)hi);
    return BR_OK;
}

static br_code
read_model(br_ask *a, const br_json *v, const char *name, br_status *st)
{
    if (v->kind != BR_J_STR)
        return br_fail(st, BR_E_USAGE, "%s: must be a string", name);
    if (v->n && !br_json_is_word(v))
        return br_fail(st, BR_E_USAGE, "%s: holds a NUL", name);
    a->model = v->s;
    return BR_OK;
}

static br_code
read_max_tokens(br_ask *a, const br_json *v, const char *name, br_status *st)
{
    int64_t before = a->max_tokens, n;
    int64_t lo = a->api == BR_API_TEXT ? 0 : 1;

    if (v->kind == BR_J_INT && v->i == -1 && a->api != BR_API_MESSAGES)
        return BR_OK; /* as many as fit, as some clients say it */
    BR_TRY(whole(v, name, lo, INT32_MAX, &n, st));
    if (before >= 0 && before != n)
        return br_fail(st, BR_E_USAGE,
                       "%s: %lld differs from %lld, which another name of it "
                       "says",
                       name, (long long)n, (long long)before);
    a->max_tokens = n;
    return BR_OK;
}

/* Below .001 the sampler has none (sample.h). */
static br_code
read_temperature(br_ask *a, const br_json *v, const char *name, br_status *st)
{
    double x;

    BR_TRY(number(v, name, 0, a->api == BR_API_MESSAGES ? 1 : 2, &x, st));
    if (x > 0 && x < 0.001)
        return br_fail(st, BR_E_USAGE,
                       "%s: %g is below 0.001; 0 takes the likeliest token",
                       name, x);
    a->sample.temperature = (float)x;
    return BR_OK;
}

/* -1, too, is none. */
static br_code
read_top_k(br_ask *a, const br_json *v, const char *name, br_status *st)
{
    int64_t n;

    BR_TRY(whole(v, name, -1, INT32_MAX, &n, st));
    a->sample.top_k = (int32_t)BR_MAX(n, 0);
    return BR_OK;
}

static br_code
read_stream_options(br_ask *a, const br_json *v, const char *name,
                    br_status *st)
{
    if (v->kind != BR_J_OBJ)
        return br_fail(st, BR_E_USAGE, "%s: must be an object", name);
    for (const br_json *m = v->child; m; m = m->next) {
        if (m->kind != BR_J_BOOL)
            return br_fail(st, BR_E_USAGE, "%s.%s: must be true or false", name,
                           m->key);
        if (br_json_key_is(m, "include_usage"))
            a->include_usage = m->b;
        else if (!br_json_key_is(m, "include_obfuscation"))
            return br_fail(st, BR_E_USAGE, "%s.%s: not known", name, m->key);
    }
    return BR_OK;
}

static br_code
read_best_of(br_ask *a, const br_json *v, const char *name, br_status *st)
{
    int64_t n;

    BR_TRY(whole(v, name, 1, BR_ASK_MAX_CHOICES, &n, st));
    if (n != a->n) /* n stands before best_of in the table, so is read */
        return br_fail(st, BR_E_USAGE, "%s: must be n", name);
    return BR_OK;
}

static br_code
add_stop(br_ask *a, const br_json *v, const char *name, br_status *st)
{
    if (v->kind != BR_J_STR || !v->n)
        return br_fail(st, BR_E_USAGE, "%s: must be text that is not empty",
                       name);
    if (!br_json_is_word(v))
        return br_fail(st, BR_E_USAGE, "%s: holds a NUL", name);
    if (v->n > BR_GEN_MAX_STOP_BYTES)
        return br_fail(st, BR_E_USAGE, "%s: a text of over %d bytes", name,
                       BR_GEN_MAX_STOP_BYTES);
    a->stop[a->n_stop++] = v->s;
    return BR_OK;
}

static br_code
read_stop(br_ask *a, const br_json *v, const char *name, br_status *st)
{
    size_t n = v->kind == BR_J_ARR ? v->n : 1;

    if (n > BR_ASK_MAX_STOPS)
        return br_fail(st, BR_E_USAGE, "%s: over %d texts", name,
                       BR_ASK_MAX_STOPS);
    a->stop = br_arena_new(&a->arena, const char *, n + 1);
    if (!a->stop)
        return oom(st);
    if (v->kind != BR_J_ARR)
        return add_stop(a, v, name, st);
    for (const br_json *e = v->child; e; e = e->next)
        BR_TRY(add_stop(a, e, name, st));
    return BR_OK;
}

static br_code
read_stop_tokens(br_ask *a, const br_json *v, const char *name, br_status *st)
{
    int32_t *ids;

    if (v->kind != BR_J_ARR || v->n > BR_ASK_MAX_STOPS / 2)
        return br_fail(st, BR_E_USAGE, "%s: must be a list of at most %d ids",
                       name, BR_ASK_MAX_STOPS / 2);
    ids = br_arena_new(&a->arena, int32_t, v->n + 1);
    if (!ids)
        return oom(st);
    for (const br_json *e = v->child; e; e = e->next) {
        int64_t id;

        BR_TRY(whole(e, name, 0, INT32_MAX, &id, st));
        ids[a->n_stop_tokens++] = (int32_t)id;
    }
    a->stop_tokens = ids;
    return BR_OK;
}

/* These two speak of the whole text so far, unless the request says less. */
static br_code
read_penalty(br_ask *a, const br_json *v, const char *name, float *out,
             br_status *st)
{
    double x;

    BR_TRY(number(v, name, -2, 2, &x, st));
    *out = (float)x;
    if (x != 0)
        a->sample.penalty_last_n = -1;
    return BR_OK;
}

static br_code
read_repeat(br_ask *a, const br_json *v, const char *name, br_status *st)
{
    float before = a->sample.repeat;
    double x;

    BR_TRY(number(v, name, 0.01, 100, &x, st));
    a->sample.repeat = (float)x;
    if (a->repeat_said && before != a->sample.repeat)
        return br_fail(st, BR_E_USAGE,
                       "%s: %g differs from %g, which another name of it says",
                       name, x, (double)before);
    a->repeat_said = true;
    return BR_OK;
}

static br_code
read_presence(br_ask *a, const br_json *v, const char *name, br_status *st)
{
    return read_penalty(a, v, name, &a->sample.presence, st);
}

static br_code
read_frequency(br_ask *a, const br_json *v, const char *name, br_status *st)
{
    return read_penalty(a, v, name, &a->sample.frequency, st);
}

static br_code
read_bias(br_ask *a, const br_json *v, const char *name, br_status *st)
{
    br_logit_bias *rows;

    if (v->kind != BR_J_OBJ || v->n > BR_SAMPLE_MAX_BIAS)
        return br_fail(st, BR_E_USAGE,
                       "%s: must be an object of at most %d token ids", name,
                       BR_SAMPLE_MAX_BIAS);
    rows = br_arena_new(&a->arena, br_logit_bias, v->n + 1);
    if (!rows)
        return oom(st);
    a->sample.bias = rows;
    for (const br_json *m = v->child; m; m = m->next) {
        double x;
        int64_t id;

        if (!br_json_to_i64((br_text){m->key, m->key_n}, &id) || id < 0 ||
            id > INT32_MAX)
            return br_fail(st, BR_E_USAGE, "%s: '%.40s' is not a token id",
                           name, m->key);
        BR_TRY(number(m, name, -100, 100, &x, st));
        rows[a->sample.n_bias++] = (br_logit_bias){(int32_t)id, (float)x};
    }
    return BR_OK;
}

static br_code
read_seed(br_ask *a, const br_json *v, const char *name, br_status *st)
{
    int64_t n;

    BR_TRY(whole(v, name, INT64_MIN, INT64_MAX, &n, st));
    a->sample.seed = (uint64_t)n;
    a->seeded = true;
    return BR_OK;
}

static br_code
read_generation(br_ask *a, const br_json *v, const char *name, br_status *st)
{
    if (v->kind != BR_J_BOOL)
        return br_fail(st, BR_E_USAGE, "%s: must be true or false", name);
    a->no_prompt = !v->b;
    return BR_OK;
}

static br_code
read_previous(br_ask *a, const br_json *v, const char *name, br_status *st)
{
    if (!br_json_is_word(v))
        return br_fail(st, BR_E_USAGE, "%s: must be the id of a response",
                       name);
    a->previous = v->s;
    return BR_OK;
}

/* Its id, or {"id":..}. */
static br_code
read_conversation(br_ask *a, const br_json *v, const char *name, br_status *st)
{
    if (v->kind == BR_J_OBJ && v->n == 1 && br_json_get(v, "id"))
        v = v->child;
    if (!br_json_is_word(v))
        return br_fail(st, BR_E_USAGE, "%s: must be the id of a conversation",
                       name);
    if (a->previous)
        return br_fail(st, BR_E_USAGE,
                       "%s: not together with previous_response_id", name);
    a->conversation = v->s;
    return BR_OK;
}

static br_code
read_store(br_ask *a, const br_json *v, const char *name, br_status *st)
{
    if (v->kind != BR_J_BOOL)
        return br_fail(st, BR_E_USAGE, "%s: must be true or false", name);
    a->store = v->b ? 1 : -1;
    return BR_OK;
}

static br_code
read_include(br_ask *a, const br_json *v, const char *name, br_status *st)
{
    /* The second: thoughts can be sent back, as they are. */
    static const char *const what[] = {"message.output_text.logprobs",
                                       "reasoning.encrypted_content"};

    for (const br_json *e = v->kind == BR_J_ARR ? v->child : v; e;
         e = e->next) {
        size_t i = 0;

        while (i < BR_COUNT(what) && (!br_json_is(e, what[i])))
            i++;
        if (v->kind != BR_J_ARR || i == BR_COUNT(what))
            return br_fail(st, BR_E_USAGE, "%s: only [\"%s\", \"%s\"]", name,
                           what[0], what[1]);
        a->sample.logprobs |= i == 0;
    }
    return BR_OK;
}

static br_code
read_encoding(br_ask *a, const br_json *v, const char *name, br_status *st)
{
    a->base64 = br_json_is(v, "base64");
    if (!a->base64 && (!br_json_is(v, "float")))
        return br_fail(st, BR_E_USAGE, "%s: must be float or base64", name);
    return BR_OK;
}

static br_code
read_text_logprobs(br_ask *a, const br_json *v, const char *name, br_status *st)
{
    int64_t n;

    BR_TRY(whole(v, name, 0, BR_ASK_MAX_LOGPROBS, &n, st));
    a->sample.logprobs = true;
    a->sample.n_logprobs = (int32_t)n;
    return BR_OK;
}

/* ---- the table ----------------------------------------------------------- */

typedef enum how {
    HOW_NUM,
    HOW_INT,
    HOW_FLAG,
    HOW_CALL,
    HOW_ONLY,
    HOW_FREE
} how;

typedef struct field {
    const char *name;
    uint8_t apis, how, size;
    uint16_t at;
    double lo, hi;
    br_ask_fn fn;
    const char *only;
} field;

enum {
    C = BR_API_CHAT,
    T = BR_API_TEXT,
    M = BR_API_MESSAGES,
    K = BR_API_COUNT,
    R = BR_API_RESPONSES,
    P = BR_API_TEMPLATE,
    E = BR_API_EMBED,
    Z = BR_API_RERANK,
};

/* clang-format off */
#define NUM(m, l, h) HOW_NUM, 4, offsetof(br_ask, m), l, h, NULL, NULL
#define INT(m, t, l, h) HOW_INT, sizeof(t), offsetof(br_ask, m), l, h, NULL, NULL
#define FLAG(m) HOW_FLAG, 1, offsetof(br_ask, m), 0, 0, NULL, NULL
#define CALL(f) HOW_CALL, 0, 0, 0, 0, f, NULL
#define ONLY(z) HOW_ONLY, 0, 0, 0, 0, NULL, z
#define FREE HOW_FREE, 0, 0, 0, 0, NULL, NULL
#define X(name, apis, ...) {name, apis, __VA_ARGS__},
static const field fields[] = {
#include "http/field.def"
};
#undef X
/* clang-format on */

/* Two values that say the same: objects in any order of their keys. */
static bool
same(const br_json *a, const br_json *b)
{
    const br_json *x = a->child, *y;

    if (a->kind != b->kind)
        return false;
    if (a->kind == BR_J_STR)
        return a->n == b->n && memcmp(a->s, b->s, a->n) == 0;
    if (a->kind == BR_J_BOOL)
        return a->b == b->b;
    if (a->kind != BR_J_OBJ && a->kind != BR_J_ARR)
        return a->kind == BR_J_NULL;
    if (a->n != b->n)
        return false;
    for (y = b->child; x && y; x = x->next, y = y->next)
        if (a->kind == BR_J_OBJ
                ? !br_json_get(b, x->key) || !same(x, br_json_get(b, x->key))
                : !same(x, y))
            return false;
    return true;
}

static br_code
check_only(br_ask *a, const field *f, const br_json *v, br_status *st)
{
    br_json *want;

    BR_TRY(br_json_parse(&want, &a->arena, f->only, strlen(f->only), 0, st));
    if (same(v, want))
        return BR_OK;
    /* An object that leaves out what it may: {} for {"type":"text"}. */
    if (v->kind == BR_J_OBJ && v->n == 0 && want->kind == BR_J_OBJ)
        return BR_OK;
    return br_fail(st, BR_E_USAGE,
                   "%s: only %s is supported by this server and model", f->name,
                   f->only);
}

static br_code
read_field(br_ask *a, const field *f, const br_json *v, br_status *st)
{
    void *to = (char *)a + f->at;
    int64_t i;
    double x;

    switch ((how)f->how) {
    case HOW_NUM:
        BR_TRY(number(v, f->name, f->lo, f->hi, &x, st));
        *(float *)to = (float)x;
        return BR_OK;
    case HOW_INT:
        BR_TRY(whole(v, f->name, (int64_t)f->lo, (int64_t)f->hi, &i, st));
        if (f->size == 8)
            *(int64_t *)to = i;
        else
            *(int32_t *)to = (int32_t)i;
        return BR_OK;
    case HOW_FLAG:
        if (v->kind != BR_J_BOOL)
            return br_fail(st, BR_E_USAGE, "%s: must be true or false",
                           f->name);
        *(bool *)to = v->b;
        return BR_OK;
    case HOW_CALL: return f->fn(a, v, f->name, st);
    case HOW_ONLY: return check_only(a, f, v, st);
    case HOW_FREE: return BR_OK;
    }
    br_unreachable("no such reader");
}

static const field *
find(br_api api, br_text name)
{
    for (size_t i = 0; i < BR_COUNT(fields); i++)
        if ((fields[i].apis & api) && br_text_is(name, fields[i].name))
            return &fields[i];
    return NULL;
}

/* ---- the whole ----------------------------------------------------------- */

/* A message of the assistant's at the end is where the answer begins: so
 * Anthropic's clients have it anyway, others where they say so. */
static br_code
check_goes_on(br_ask *a, br_status *st)
{
    const br_ask_message *m =
        a->messages.n ? &a->messages.at[a->messages.n - 1] : NULL;
    bool can =
        m && !m->json && m->content.n && strcmp(m->role, "assistant") == 0;

    if (a->api == BR_API_MESSAGES || a->api == BR_API_COUNT)
        a->goes_on = can;
    if (a->goes_on && !can) {
        a->param = "continue_final_message";
        return br_fail(st, BR_E_USAGE,
                       "%s: the last message is no text of the assistant's",
                       a->param);
    }
    if (a->no_prompt && !a->goes_on) {
        a->param = "add_generation_prompt";
        return br_fail(st, BR_E_USAGE,
                       "%s: false only beside continue_final_message",
                       a->param);
    }
    return BR_OK;
}

static br_code
check_whole(br_ask *a, br_status *st)
{
    bool text = a->api == BR_API_TEXT, rank = a->api == BR_API_RERANK;
    bool embed = a->api == BR_API_EMBED || rank;

    if (a->sample.n_logprobs && !a->sample.logprobs) {
        a->param = "top_logprobs";
        return br_fail(st, BR_E_USAGE, "top_logprobs: needs %s",
                       a->api == BR_API_RESPONSES
                           ? "message.output_text.logprobs in include"
                           : "logprobs true");
    }
    if (a->grammar.n && a->ignore_eog) {
        a->param = "ignore_eos";
        return br_fail(st, BR_E_USAGE,
                       "ignore_eos: not together with a form of the answer");
    }
    if (a->tools.n && !a->tool_choice_said)
        a->tool_choice = BR_TOOL_AUTO;
    if (a->tools.n && a->tool_choice != BR_TOOL_NONE &&
        (a->grammar.n || a->ignore_eog)) {
        a->param = "tools";
        return br_fail(st, BR_E_USAGE, "tools: not together with %s",
                       a->grammar.n ? "another form of the answer"
                                    : "ignore_eos");
    }
    if (a->include_usage && !a->stream) {
        a->param = "stream_options";
        return br_fail(st, BR_E_USAGE, "stream_options: needs stream true");
    }
    if (a->api == BR_API_MESSAGES && a->max_tokens < 0) {
        a->param = "max_tokens";
        return br_fail(st, BR_E_USAGE, "max_tokens: missing");
    }
    if (text || embed ? !a->prompts.n : !a->messages.n) {
        a->param = text                                  ? "prompt"
                   : rank                                ? "documents"
                   : embed || a->api == BR_API_RESPONSES ? "input"
                                                         : "messages";
        return br_fail(st, BR_E_USAGE, "%s: missing or empty", a->param);
    }
    if (rank)
        return br_ask_rank(a, st);
    BR_TRY(check_goes_on(a, st));
    if (text && (int64_t)a->prompts.n * a->n > BR_ASK_MAX_CHOICES) {
        a->param = "n";
        return br_fail(st, BR_E_USAGE, "n: prompts times n are over %d",
                       BR_ASK_MAX_CHOICES);
    }
    if (text && a->max_tokens < 0)
        a->max_tokens = 16; /* as that API has it */
    return BR_OK;
}

static br_code
unknown_field(br_ask *a, const br_json *v, br_status *st)
{
    br_suggest near;
    char hint[80];

    br_suggest_begin(&near, (br_text){v->key, v->key_n});
    for (size_t i = 0; i < BR_COUNT(fields); i++)
        if (fields[i].apis & a->api)
            br_suggest_offer(&near, br_text_z(fields[i].name));
    br_suggest_text(&near, "", hint, sizeof hint);
    a->param = v->key;
    return br_fail(st, BR_E_USAGE,
                   "%.60s: this server does not know the field%s", v->key,
                   hint);
}

static br_code
read_fields(br_ask *a, const br_json *root, br_status *st)
{
    /* In the order of the table, so that n is known before best_of. */
    for (size_t i = 0; i < BR_COUNT(fields); i++) {
        const field *f = &fields[i];
        const br_json *v =
            (f->apis & a->api) ? br_json_get(root, f->name) : NULL;

        if (!v || v->kind == BR_J_NULL)
            continue;
        a->param = f->name;
        BR_TRY(read_field(a, f, v, st));
        if (a->grammar.n && !a->form)
            a->form = f->name;
    }
    for (const br_json *v = root->child; v; v = v->next)
        if (!find(a->api, (br_text){v->key, v->key_n}))
            return unknown_field(a, v, st);
    a->param = NULL;
    return BR_OK;
}

br_code
br_ask_read(br_ask *a, br_api api, const br_sample_params *sample, br_text body,
            br_status *st)
{
    size_t tree =
        BR_MIN((size_t)BR_ASK_MAX_TREE, body.n * BR_ASK_TREE_FACTOR + 65536);
    br_json *root;

    *a = (br_ask){.api = api,
                  .sample = *sample,
                  .n = 1,
                  .max_tokens = -1,
                  .think_most = -1};
    br_arena_init(&a->arena, tree);
    BR_TRY(
        br_json_parse(&root, &a->arena, body.p ? body.p : "", body.n, 0, st));
    if (root->kind != BR_J_OBJ)
        return br_fail(st, BR_E_FORMAT, "the body is not a JSON object");
    a->root = root;
    BR_TRY(read_fields(a, root, st));
    return check_whole(a, st);
}

void
br_ask_fini(br_ask *a)
{
    br_vec_fini(&a->messages);
    br_vec_fini(&a->prompts);
    br_vec_fini(&a->tools);
    br_str_fini(&a->grammar);
    br_str_fini(&a->items);
    br_str_fini(&a->after);
    br_str_fini(&a->talk);
    br_arena_fini(&a->arena);
}
