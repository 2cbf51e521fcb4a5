/* show_names.c - colours, letters, numbers, and a file's texts made harmless.
 *
 * A label may hold anything JSON can: control characters, lone surrogates,
 * quotes, a megabyte. Each picture gets its own escape, and a cut.
 * SPDX-License-Identifier: Apache-2.0 */
#include "mega/show_int.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *color;
    char letter;
} palette[BR_MOP_LIMIT] = {
#define C(name, color, letter) [BR_MOP_##name] = {color, letter},
#include "mega/show_palette.def"
#undef C
};

const char *
br_show_color(int op)
{
    const char *z = op >= 0 && op < BR_MOP_LIMIT ? palette[op].color : NULL;

    return z ? z : "#a5a5c8";
}

char
br_show_letter(int op)
{
    char c = op >= 0 && op < BR_MOP_LIMIT ? palette[op].letter : 0;

    return c ? c : 'o';
}

br_text
br_show_op(int op)
{
    const char *z = br_mega_op_name(op);

    return br_text_z(z ? z : "?");
}

br_text
br_show_label(const br_mega_task *t)
{
    return t->label_n ? (br_text){t->label, t->label_n} : br_show_op(t->op);
}

br_text
br_show_model(const br_show *s)
{
    const br_json *m = s->p->meta;

    m = m && m->kind == BR_J_OBJ ? br_json_get(m, "model") : NULL;
    return m && m->kind == BR_J_STR ? (br_text){m->s, m->n} : (br_text){"", 0};
}

/* ---- text -------------------------------------------------------------- */

enum { BAD = 0xfffd };

/* The next code point; BAD for what UTF-8 or XML does not know. */
static uint32_t
next_char(const char **p, const char *end)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    uint8_t c = (uint8_t) * (*p)++;
    int n = c < 0x80 ? 1 : c < 0xc0 ? 0 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
    uint32_t v = n == 1 ? c : c & (0x7fu >> n);

    for (int i = 1; i < n; i++) {
        if (*p == end || ((uint8_t) * *p & 0xc0) != 0x80)
            return BAD;
        v = v << 6 | ((uint8_t) * (*p)++ & 0x3f);
    }
    if (n == 0 || c >= 0xf8 || v < least[n] || v > 0x10ffff ||
        (v >= 0xd800 && v < 0xe000) || (v & 0xfffe) == 0xfffe || v < 0x20 ||
        (v >= 0x7f && v < 0xa0))
        return BAD;
    return v;
}

static void
put_char(br_str *out, uint32_t c)
{
    if (c < 0x80) {
        br_str_putc(out, (char)c);
        return;
    }
    if (c < 0x800) {
        br_str_putc(out, (char)(0xc0 | c >> 6));
    } else {
        if (c < 0x10000) {
            br_str_putc(out, (char)(0xe0 | c >> 12));
        } else {
            br_str_putc(out, (char)(0xf0 | c >> 18));
            br_str_putc(out, (char)(0x80 | (c >> 12 & 0x3f)));
        }
        br_str_putc(out, (char)(0x80 | (c >> 6 & 0x3f)));
    }
    br_str_putc(out, (char)(0x80 | (c & 0x3f)));
}

static void
xml_char(br_str *out, uint32_t c)
{
    switch (c) {
    case '&': br_str_puts(out, "&amp;"); return;
    case '<': br_str_puts(out, "&lt;"); return;
    case '>': br_str_puts(out, "&gt;"); return;
    case '"': br_str_puts(out, "&quot;"); return;
    default: put_char(out, c); return;
    }
}

static void
quoted_char(br_str *out, uint32_t c)
{
    if (c == '"' || c == '\\')
        br_str_putc(out, '\\');
    put_char(out, c);
}

static void
ascii_char(br_str *out, uint32_t c)
{
    br_str_putc(out, c < 0x7f ? (char)c : '?');
}

static void
put_text(br_str *out, br_text t, size_t max,
         void (*put)(br_str *out, uint32_t c))
{
    const char *p = t.p, *end = t.p + t.n, *last = p;
    size_t n = 0;

    for (; p < end && n < max; n++) {
        last = p;
        (void)next_char(&p, end);
    }
    if (p == end) /* all of it fits */
        last = end;
    for (p = t.p; p < last;)
        put(out, next_char(&p, end));
    if (last < end)
        put(out, put == ascii_char ? '~' : 0x2026);
}

void
br_show_xml(br_str *out, br_text t, size_t max)
{
    put_text(out, t, max, xml_char);
}

void
br_show_quoted(br_str *out, br_text t, size_t max)
{
    put_text(out, t, max, quoted_char);
}

void
br_show_ascii(br_str *out, br_text t, size_t max)
{
    put_text(out, t, max, ascii_char);
}

/* ---- numbers ----------------------------------------------------------- */

void
br_show_count(br_str *out, uint64_t n, char sep)
{
    char z[32];
    size_t k = sizeof z;

    for (int i = 0; i == 0 || n; i++, n /= 10) {
        if (i && i % 3 == 0 && sep)
            z[--k] = sep;
        z[--k] = (char)('0' + n % 10);
    }
    br_str_put(out, z + k, sizeof z - k);
}

void
br_show_bytes(br_str *out, double n)
{
    static const char *const unit[] = {"B", "KB", "MB", "GB", "TB", "PB", "EB"};
    size_t i = 0;

    for (; n >= 999.5 && i + 1 < BR_COUNT(unit); i++)
        n /= 1000;
    br_str_printf(out,
                  n < 10 && i    ? "%.2f %s"
                  : n < 100 && i ? "%.1f %s"
                                 : "%.0f %s",
                  n, unit[i]);
}

double
br_show_percent(double part, double all)
{
    return all > 0 ? 100 * part / all : 0;
}

void
br_show_shares(br_str *out, const br_show *s)
{
    br_str_printf(out, "memory %.0f %%, arithmetic %.0f %%, fixed cost %.0f %%",
                  br_show_percent(s->cost.critical.stream_us, s->total),
                  br_show_percent(s->cost.critical.compute_us, s->total),
                  br_show_percent(s->cost.critical.overhead_us, s->total));
}

void
br_show_num(br_str *out, double v)
{
    long long whole = llround(v * 100); /* the least where it has no room */
    unsigned long long c = (unsigned long long)whole;

    if (whole < 0) {
        br_str_putc(out, '-');
        c = 0 - c;
    }
    br_str_printf(out, "%llu", c / 100);
    if (c % 10)
        br_str_printf(out, ".%02llu", c % 100);
    else if (c % 100)
        br_str_printf(out, ".%llu", c % 100 / 10);
}

double
br_show_step(double total, int n)
{
    double step = total > 0 ? pow(10, floor(log10(total / n))) : 1;

    for (int i = 0; i < 4 && total > step * n; i++)
        step *= i % 3 == 1 ? 2.5 : 2; /* 1 2 5 10 20 */
    return step;
}

double
br_show_tick(double from, double step, int k)
{
    return (ceil(from) + k) * step;
}

/* ---- layers and stages ------------------------------------------------- */

enum {
    MAX_LAYER = 4000, /* tasks of a layer that is drawn; a larger one is cut */
    MIDDLE = 1000,    /* tasks from the middle where there are no layers */
};
#define NONE BR_SHOW_NONE

/* The number in "L12.q_proj", or NONE, and how long "L12." is. */
static uint32_t
layer_in(br_text z, size_t *len)
{
    uint32_t k = 0;
    size_t i = 1;

    if (!z.n || z.p[0] != 'L')
        return NONE;
    for (; i < z.n && i < 8 && z.p[i] >= '0' && z.p[i] <= '9'; i++)
        k = k * 10 + (uint32_t)(z.p[i] - '0');
    *len = i + 1;
    return i > 1 && i < z.n && z.p[i] == '.' ? k : NONE;
}

br_text
br_show_short(br_text z)
{
    size_t n;

    return layer_in(z, &n) == NONE ? z : (br_text){z.p + n, z.n - n};
}

uint32_t
br_show_layer(const br_show *s, uint32_t t)
{
    const br_mega_task *x = &s->p->tasks[t];
    size_t n;

    return layer_in((br_text){x->label, x->label_n}, &n);
}

/* The time of the middle layer; or of the tasks in the middle. */
uint32_t
br_show_middle(const br_show *s, double *from, double *to)
{
    uint32_t top = 0, layer, n = 0;
    bool any = false;

    for (uint32_t t = 0; t < s->n; t++) {
        uint32_t k = br_show_layer(s, t);
        any = any || k != NONE;
        top = k != NONE && k > top ? k : top;
    }
    layer = any ? (top + 1) / 2 : NONE;
    *from = s->total;
    *to = 0;
    for (uint32_t i = 0; i < s->n && n < MAX_LAYER; i++) {
        uint32_t t = s->by_time[i];
        bool in = any ? br_show_layer(s, t) == layer
                      : i >= s->n / 2 - MIDDLE / 2 && i < s->n / 2 + MIDDLE / 2;
        if (!in)
            continue;
        *from = BR_MIN(*from, s->t0[t]);
        *to = BR_MAX(*to, s->t1[t]);
        n++;
    }
    if (*from >= *to) {
        *from = 0;
        *to = s->total;
    }
    return layer;
}

/* What the counter's note or a task's label says, without layer and tile. */
static br_text
stage_name(const br_show *s, uint32_t c, uint32_t t)
{
    const br_mega_counter *ctr = &s->p->counters[c];
    br_text z = ctr->note_n ? (br_text){ctr->note, ctr->note_n}
                            : br_show_label(&s->p->tasks[t]);

    for (size_t i = 1; i < z.n; i++)
        if (z.p[i] == '[' || (z.p[i] == '(' && z.p[i - 1] == ' '))
            z.n = i;
    while (z.n > 1 && z.p[z.n - 1] == ' ')
        z.n--;
    return br_show_short(z);
}

bool
br_show_stage_of(const br_show *s, uint32_t c, double from, double to,
                 br_show_stage *g)
{
    *g = (br_show_stage){.counter = c, .t0 = to, .t1 = from};
    for (uint32_t i = s->g.prod_off[c]; i < s->g.prod_off[c + 1]; i++) {
        uint32_t t = s->g.prod[i];
        if (s->t1[t] <= from || s->t0[t] >= to)
            continue;
        g->t0 = BR_MIN(g->t0, BR_MAX(s->t0[t], from));
        g->t1 = BR_MAX(g->t1, BR_MIN(s->t1[t], to));
        g->critical = g->critical || s->on_path[t];
        g->task = t;
        g->tasks++;
    }
    if (g->tasks)
        g->name = stage_name(s, c, g->task);
    return g->tasks > 0;
}

static int
by_start(const void *a, const void *b)
{
    const br_show_stage *x = a, *y = b;

    if (x->t0 < y->t0 || x->t0 > y->t0)
        return x->t0 < y->t0 ? -1 : 1;
    return (x->counter > y->counter) - (x->counter < y->counter);
}

size_t
br_show_stages(const br_show *s, double from, double to, br_show_stage *g,
               size_t room)
{
    size_t n = 0;

    for (uint32_t c = 0; c < s->g.n_counters; c++) {
        br_show_stage x;
        if (!br_show_stage_of(s, c, from, to, &x))
            continue;
        if (n < room)
            g[n] = x;
        n++;
    }
    if (n <= room)
        qsort(g, n, sizeof *g, by_start);
    return n;
}

/* ---- legend ------------------------------------------------------------ */

static int
by_busy(const void *a, const void *b)
{
    const br_show_row *x = a, *y = b;

    if (x->busy < y->busy || x->busy > y->busy)
        return x->busy > y->busy ? -1 : 1;
    return x->op - y->op;
}

uint32_t
br_show_rows(const br_show *s, br_show_row rows[BR_MOP_LIMIT])
{
    uint32_t n = 0;

    for (int i = 0; i < BR_MOP_LIMIT; i++)
        rows[i] = (br_show_row){.op = i};
    for (uint32_t t = 0; t < s->n; t++) {
        br_show_row *r = &rows[s->p->tasks[t].op % BR_MOP_LIMIT];
        r->tasks++;
        r->busy += s->t1[t] - s->t0[t];
        r->path += s->on_path[t] ? s->t1[t] - s->t0[t] : 0;
    }
    for (int i = 0; i < BR_MOP_LIMIT; i++) {
        const br_cost_share *c = &s->cost.op[i].critical;
        if (s->timed) /* a task on the path may wait while it is ready */
            rows[i].path = c->stream_us + c->compute_us + c->overhead_us;
        if (rows[i].tasks)
            rows[n++] = rows[i];
    }
    qsort(rows, n, sizeof *rows, by_busy);
    return n;
}
