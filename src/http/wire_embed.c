/* wire_embed.c - answers of /v1/embeddings.
 *
 * A choice is the embedding of one input. Its numbers are written when they come,
 * not all at the end: one takes .3 us, 2048 times 4096 of them more than two
 * seconds for which nobody else would be served. Fewer `dimensions` are the first
 * ones, brought to length 1 again: what models trained for that expect.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "http/gen.h"

#include <math.h>
#include <string.h>

static void
put_numbers(br_str *out, const float *x, size_t n)
{
    br_str_putc(out, '[');
    for (size_t i = 0; i < n; i++)
        br_str_printf(out, i ? ",%.9g" : "%.9g", (double)x[i]);
    br_str_putc(out, ']');
}

/* In place: the first n of them, of length 1. */
static void
cut(float *x, size_t n)
{
    double square = 0;

    for (size_t i = 0; i < n; i++)
        square += (double)x[i] * (double)x[i];
    for (size_t i = 0; i < n && square > 0; i++)
        x[i] = (float)((double)x[i] / sqrt(square));
}

/* The choice's text, numbers as they stand in memory, becomes what is sent. */
static void
embedded(br_gen *g, br_choice *c)
{
    float *x = (float *)(void *)c->text.at;
    size_t n = c->text.n / sizeof *x;
    br_str s = {.oom = c->text.oom};

    if (g->ask.dimensions && (size_t)g->ask.dimensions < n) {
        n = (size_t)g->ask.dimensions;
        cut(x, n);
    }
    br_str_printf(
        &s, "{\"object\":\"embedding\",\"index\":%u,\"embedding\":", c->index);
    if (g->ask.base64) {
        br_str_putc(&s, '"');
        br_str_put_base64(&s, x, n * sizeof *x);
        br_str_putc(&s, '"');
    } else {
        put_numbers(&s, x, n);
    }
    br_str_putc(&s, '}');
    br_str_fini(&c->text);
    c->text = s;
}

static void
whole(br_gen *g, br_str *out)
{
    br_str_puts(out, "{\"object\":\"list\",\"data\":[");
    for (uint32_t i = 0; i < g->n_choices; i++) {
        br_str *s = &g->choices[i].text;

        if (i)
            br_str_putc(out, ',');
        br_str_put(out, br_str_z(s), s->n);
        out->oom |= s->oom;
        br_str_fini(s);
    }
    br_str_puts(out, "],\"model\":");
    br_put_jsonz(out, g->model->m.name);
    br_str_printf(out, ",\"usage\":{\"prompt_tokens\":%u,\"total_tokens\":%u}}",
                  g->n_prompt, g->n_prompt);
}

br_code
br_embed_check(const br_gen *g, br_ask *a, br_status *st)
{
    uint32_t n = br_engine_n_embd(g->model->m.engine);

    a->param = n ? "dimensions" : "model";
    if (!n)
        return br_fail(st, BR_E_USAGE, "model: it makes no embeddings");
    if ((uint32_t)a->dimensions > n)
        return br_fail(st, BR_E_USAGE,
                       "dimensions: the model's embeddings have %u", n);
    a->param = NULL;
    return BR_OK;
}

const br_wire br_wire_embed = {
    .id = "embd-",
    .api = BR_API_EMBED,
    .embedded = embedded,
    .whole = whole,
    .embeds = true,
};

void
br_on_embeddings(br_http *h, br_http_conn *c)
{
    br_gen_start(h, c, &br_wire_embed);
}
