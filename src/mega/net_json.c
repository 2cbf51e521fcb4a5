/* net_json.c - a network from and to a graph file. The format: docs/graph.md.
 *
 * The document tree is read first, so keys may come in any order; a key that
 * is not known is an error, because a typo in an optional one would otherwise
 * change the result in silence.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "mega/net_internal.h"

#include <stdio.h>
#include <string.h>

enum { DEFAULT_MAX_SEQ = 2048 };

typedef struct reader {
    const br_json *root;
    br_mega_net *net;
    br_status *st;
} reader;

/* ---- values -------------------------------------------------------------- */

static br_code
wrong(reader *r, const char *place, const br_json *v, const char *want)
{
    if (!v)
        return br_fail(r->st, BR_E_FORMAT, "%s: missing, needs %s", place,
                       want);
    return br_fail(r->st, BR_E_FORMAT, "%s: %s, not %s", place,
                   br_json_kind_name((br_json_kind)v->kind), want);
}

static br_code
get_int(reader *r, const char *place, const br_json *v, int64_t *out)
{
    if (!v || v->kind != BR_J_INT)
        return wrong(r, place, v, "an integer");
    *out = v->i;
    return BR_OK;
}

static br_code
get_real(reader *r, const char *place, const br_json *v, double *out)
{
    if (!v || (v->kind != BR_J_INT && v->kind != BR_J_FLOAT))
        return wrong(r, place, v, "a number");
    *out = v->kind == BR_J_INT ? (double)v->i : v->f;
    if (!(*out > -1e300 && *out < 1e300))
        return br_fail(r->st, BR_E_FORMAT, "%s: not a finite number", place);
    return BR_OK;
}

/* A name without a NUL inside, so that a C string holds it. */
static br_code
get_name(reader *r, const char *place, const br_json *v, const char **out)
{
    if (!v || v->kind != BR_J_STR)
        return wrong(r, place, v, "a string");
    if (strlen(v->s) != v->n)
        return br_fail(r->st, BR_E_FORMAT, "%s: a NUL in a name", place);
    *out = v->s;
    return BR_OK;
}

static br_code
get_dtype(reader *r, const char *place, const br_json *v, br_mega_dtype *out)
{
    const char *s = "";
    int d;

    BR_TRY(get_name(r, place, v, &s));
    d = br_mega_dtype_find(br_text_z(s));
    if (d < 0)
        return br_fail(r->st, BR_E_FORMAT, "%s: '%.16s' is no dtype", place, s);
    *out = (br_mega_dtype)d;
    return BR_OK;
}

static br_code
known_keys(reader *r, const char *place, const br_json *o,
           const char *const *keys)
{
    for (const br_json *m = o->child; m; m = m->next) {
        int i = 0;

        while (keys[i] && strcmp(keys[i], m->key) != 0)
            i++;
        if (!keys[i] || strlen(m->key) != m->key_n)
            return br_fail(r->st, BR_E_FORMAT, "%s: there is no field '%.40s'",
                           place, m->key);
    }
    return BR_OK;
}

/* An object's members as "place.key"; the buffer is the caller's. */
static const char *
sub(char buf[160], const char *place, const char *key)
{
    snprintf(buf, 160, "%.70s.%.70s", place, key);
    return buf;
}

/* ---- tensors ------------------------------------------------------------- */

static br_code
get_shape(reader *r, const char *place, const br_json *v, br_net_tensor *t)
{
    if (!v || v->kind != BR_J_ARR || v->n < 1 || v->n > BR_MEGA_MAX_RANK)
        return br_fail(r->st, BR_E_FORMAT, "%s: not a list of 1..%d dimensions",
                       place, BR_MEGA_MAX_RANK);
    for (const br_json *m = v->child; m; m = m->next)
        BR_TRY(get_int(r, place, m, &t->shape[t->rank++]));
    return BR_OK;
}

static br_code
read_tensor(reader *r, const char *group, const br_json *m, br_mega_kind kind)
{
    static const char *const keys[] = {"shape", "dtype", "quant", NULL};
    br_net_tensor t = {.name = m->key, .kind = (uint8_t)kind};
    br_mega_dtype d = kind == BR_MBK_WEIGHT ? r->net->dtype : BR_MDT_I32;
    const br_json *v;
    char place[160], p[160];
    int32_t id;

    sub(place, group, m->key);
    if (strlen(m->key) != m->key_n)
        return br_fail(r->st, BR_E_FORMAT, "%s: a NUL in a name", place);
    if (m->kind != BR_J_OBJ)
        return wrong(r, place, m, "an object");
    BR_TRY(known_keys(r, place, m, keys));
    BR_TRY(get_shape(r, sub(p, place, "shape"), br_json_get(m, "shape"), &t));
    if ((v = br_json_get(m, "dtype")))
        BR_TRY(get_dtype(r, sub(p, place, "dtype"), v, &d));
    if ((v = br_json_get(m, "quant"))) {
        if (v->kind != BR_J_BOOL || v->b || kind != BR_MBK_WEIGHT)
            return br_fail(r->st, BR_E_FORMAT,
                           "%s.quant: only false, and only of a weight", place);
        t.keep_float = true;
    }
    t.dtype = (uint8_t)d;
    if (d != BR_MDT_F32 && d != BR_MDT_F16 && d != BR_MDT_BF16 &&
        (kind == BR_MBK_WEIGHT || d != BR_MDT_I32))
        return br_fail(r->st, BR_E_FORMAT,
                       "%s.dtype: neither F32, F16 nor BF16%s", place,
                       kind == BR_MBK_WEIGHT ? "" : ", nor I32");
    return br_net_add_tensor(r->net, &t, &id, r->st);
}

static br_code
read_tensors(reader *r, const char *group, br_mega_kind kind)
{
    const br_json *o = br_json_get(r->root, group);

    if (!o || o->kind != BR_J_OBJ)
        return wrong(r, group, o, "an object");
    for (const br_json *m = o->child; m; m = m->next)
        BR_TRY(read_tensor(r, group, m, kind));
    return BR_OK;
}

/* ---- nodes --------------------------------------------------------------- */

static br_code
find_tensor(reader *r, const char *place, const br_json *v, int32_t *out)
{
    const char *name = "";

    BR_TRY(get_name(r, place, v, &name));
    *out = br_net_find(r->net, name);
    if (*out == BR_NET_NONE)
        return br_fail(r->st, BR_E_FORMAT,
                       "%s: there is no tensor '%.60s' so far", place, name);
    return BR_OK;
}

static br_code
read_weight(reader *r, const char *place, const br_json *v, int32_t *out)
{
    BR_TRY(find_tensor(r, place, v, out));
    if (r->net->tensors.at[*out].kind != BR_MBK_WEIGHT)
        return br_fail(r->st, BR_E_FORMAT, "%s: '%s' is no weight", place,
                       r->net->tensors.at[*out].name);
    return BR_OK;
}

static br_code
read_which(reader *r, const char *place, const br_json *v, br_net_node *d)
{
    const char *s = "";

    BR_TRY(get_name(r, place, v, &s));
    d->is_query = strcmp(s, "q") == 0;
    if (!d->is_query && strcmp(s, "k") != 0)
        return br_fail(r->st, BR_E_FORMAT, "%s: neither \"q\" nor \"k\"",
                       place);
    return BR_OK;
}

/* Scalars: those that the operation has, all of them, and no others. */
static br_code
read_attrs(reader *r, const char *place, const br_json *o, br_net_node *d)
{
    unsigned attrs = br_net_op_attrs(d->op);
    const struct {
        unsigned bit;
        const char *key;
        double *real;
        int64_t *whole;
    } rows[] = {
        {A_EPS, "eps", &d->eps, NULL},
        {A_THETA, "theta", &d->theta, NULL},
        {A_SCALE, "scale", &d->scale, NULL},
        {A_HEADS, "heads", NULL, &d->n_heads},
        {A_KV_HEADS, "kv_heads", NULL, &d->n_kv_heads},
        {A_HEAD_DIM, "head_dim", NULL, &d->head_dim},
        {A_WHICH, "which", NULL, NULL},
    };
    char p[160];

    if (d->op == BR_NET_MUL && d->n_in == 2)
        attrs = 0;
    for (size_t i = 0; i < BR_COUNT(rows); i++) {
        const br_json *v = br_json_get(o, rows[i].key);

        sub(p, place, rows[i].key);
        if (!(attrs & rows[i].bit)) {
            if (v)
                return br_fail(r->st, BR_E_FORMAT, "%s: %s has none", p,
                               br_net_op_text(d->op));
            continue;
        }
        if (rows[i].real)
            BR_TRY(get_real(r, p, v, rows[i].real));
        else if (rows[i].whole)
            BR_TRY(get_int(r, p, v, rows[i].whole));
        else
            BR_TRY(read_which(r, p, v, d));
    }
    return BR_OK;
}

static br_code
read_inputs(reader *r, const char *place, const br_json *v, br_net_node *d)
{
    char p[160];

    sub(p, place, "in");
    if (!v || v->kind != BR_J_ARR || v->n < 1 || v->n > BR_COUNT(d->in))
        return br_fail(r->st, BR_E_FORMAT, "%s: not a list of 1..3 tensors", p);
    for (const br_json *m = v->child; m; m = m->next)
        BR_TRY(find_tensor(r, p, m, &d->in[d->n_in++]));
    return BR_OK;
}

static br_code
read_op(reader *r, const char *place, const br_json *v, br_net_node *d)
{
    const char *s = "";
    char p[160];
    int op;

    BR_TRY(get_name(r, sub(p, place, "op"), v, &s));
    op = br_net_op_find(br_text_z(s));
    if (op < 0)
        return br_fail(r->st, BR_E_FORMAT, "%s: '%.40s' is no operation", p, s);
    d->op = (br_net_op)op;
    return BR_OK;
}

static br_code
read_node(reader *r, size_t index, const br_json *o)
{
    static const char *const keys[] = {"op",    "name",     "role",     "in",
                                       "out",   "weight",   "bias",     "theta",
                                       "eps",   "kv_heads", "head_dim", "heads",
                                       "scale", "which",    NULL};
    br_net_node d = {.role = "", .weight = BR_NET_NONE, .bias = BR_NET_NONE};
    const br_json *v;
    const char *out;
    char place[40], p[160];
    int32_t id;

    snprintf(place, sizeof place, "nodes[%zu]", index);
    if (o->kind != BR_J_OBJ)
        return wrong(r, place, o, "an object");
    BR_TRY(known_keys(r, place, o, keys));
    BR_TRY(read_op(r, place, br_json_get(o, "op"), &d));
    BR_TRY(read_inputs(r, place, br_json_get(o, "in"), &d));
    BR_TRY(read_attrs(r, place, o, &d));
    BR_TRY(get_name(r, sub(p, place, "out"), br_json_get(o, "out"), &out));
    d.name = out;
    if ((v = br_json_get(o, "name")))
        BR_TRY(get_name(r, sub(p, place, "name"), v, &d.name));
    if ((v = br_json_get(o, "role")))
        BR_TRY(get_name(r, sub(p, place, "role"), v, &d.role));
    if ((v = br_json_get(o, "weight")))
        BR_TRY(read_weight(r, sub(p, place, "weight"), v, &d.weight));
    if ((v = br_json_get(o, "bias")))
        BR_TRY(read_weight(r, sub(p, place, "bias"), v, &d.bias));
    return br_net_add_node(r->net, &d, out, &id, r->st);
}

static br_code
read_nodes(reader *r)
{
    const br_json *v = br_json_get(r->root, "nodes");
    size_t i = 0;

    if (!v || v->kind != BR_J_ARR)
        return wrong(r, "nodes", v, "an array");
    for (const br_json *m = v->child; m; m = m->next, i++)
        if (read_node(r, i, m) != BR_OK) {
            if (r->st && strncmp(r->st->msg, "nodes[", 6) != 0)
                return br_prefix(r->st, "nodes[%zu]", i);
            return r->st->code;
        }
    return BR_OK;
}

/* ---- the document -------------------------------------------------------- */

static br_code
read_outputs(reader *r)
{
    const br_json *v = br_json_get(r->root, "outputs");
    int32_t id;

    if (!v || v->kind != BR_J_ARR)
        return wrong(r, "outputs", v, "an array");
    for (const br_json *m = v->child; m; m = m->next) {
        BR_TRY(find_tensor(r, "outputs", m, &id));
        BR_TRY(br_net_set_output(r->net, id, r->st));
    }
    return BR_OK;
}

static br_code
read_quant(reader *r)
{
    static const char *const keys[] = {"bits", "group", NULL};
    const br_json *v = br_json_get(r->root, "quant");
    int64_t bits = 0, group = 0;

    if (!v || v->kind == BR_J_NULL)
        return BR_OK;
    if (v->kind != BR_J_OBJ)
        return wrong(r, "quant", v, "an object");
    BR_TRY(known_keys(r, "quant", v, keys));
    BR_TRY(get_int(r, "quant.bits", br_json_get(v, "bits"), &bits));
    BR_TRY(get_int(r, "quant.group", br_json_get(v, "group"), &group));
    return br_net_quantise(r->net, bits == 4 || bits == 8 ? (int)bits : 0,
                           group, r->st);
}

static br_code
read_head(reader *r, br_net_open *o)
{
    static const char *const keys[] = {"name",    "dtype",  "batch",   "pos",
                                       "max_seq", "layers", "quant",   "inputs",
                                       "weights", "nodes",  "outputs", NULL};
    const struct {
        const char *key;
        int64_t *at;
    } ints[] = {{"batch", &o->batch},
                {"pos", &o->pos},
                {"max_seq", &o->max_seq},
                {"layers", &o->n_layers}};
    const br_json *v;

    *o = (br_net_open){.source = "graph",
                       .batch = 1,
                       .max_seq = DEFAULT_MAX_SEQ,
                       .n_layers = BR_NET_NONE};
    if (r->root->kind != BR_J_OBJ)
        return wrong(r, "graph", r->root, "an object");
    BR_TRY(known_keys(r, "graph", r->root, keys));
    if ((v = br_json_get(r->root, "name")))
        BR_TRY(get_name(r, "name", v, &o->source));
    if ((v = br_json_get(r->root, "dtype")))
        BR_TRY(get_dtype(r, "dtype", v, &o->dtype));
    for (size_t i = 0; i < BR_COUNT(ints); i++)
        if ((v = br_json_get(r->root, ints[i].key)))
            BR_TRY(get_int(r, ints[i].key, v, ints[i].at));
    if (o->n_layers < BR_NET_NONE)
        return br_fail(r->st, BR_E_FORMAT, "layers: below zero");
    return BR_OK;
}

static br_code
read_net(reader *r)
{
    br_net_open o;

    BR_TRY(read_head(r, &o));
    BR_TRY(br_mega_net_open(&r->net, &o, r->st));
    BR_TRY(read_tensors(r, "inputs", BR_MBK_IO_INPUT));
    BR_TRY(read_tensors(r, "weights", BR_MBK_WEIGHT));
    BR_TRY(read_nodes(r));
    BR_TRY(read_outputs(r));
    BR_TRY(read_quant(r));
    return br_net_finish(r->net, r->st);
}

br_code
br_mega_net_parse(br_mega_net **out, const char *text, size_t n, br_status *st)
{
    br_status own = {0};
    reader r = {.st = st ? st : &own};
    br_arena a;
    br_json *root;
    br_code code;

    *out = NULL;
    if (n > BR_NET_MAX_FILE_BYTES)
        return br_fail(st, BR_E_LIMIT, "graph: more than %d bytes",
                       BR_NET_MAX_FILE_BYTES);
    br_arena_init(&a, (size_t)4 << 30);
    code = br_json_parse(&root, &a, text, n, 0, r.st);
    if (code == BR_OK) {
        r.root = root;
        code = read_net(&r);
    }
    br_arena_fini(&a);
    if (code != BR_OK)
        br_mega_net_free(r.net);
    else
        *out = r.net;
    return code;
}

/* ---- writing ------------------------------------------------------------- */

static void
write_tensor(br_json_writer *w, const br_mega_net *n, const br_net_tensor *t)
{
    br_json_w_key(w, t->name);
    br_json_w_obj(w);
    br_json_w_key(w, "shape");
    br_json_w_arr(w);
    for (uint32_t i = 0; i < t->rank; i++)
        br_json_w_i64(w, t->shape[i]);
    br_json_w_arr_end(w);
    if (t->kind == BR_MBK_IO_INPUT ? t->dtype != BR_MDT_I32
                                   : t->dtype != n->dtype) {
        br_json_w_key_strz(w, "dtype", br_mega_dtype_name(t->dtype));
    }
    if (t->keep_float) {
        br_json_w_key_bool(w, "quant", false);
    }
    br_json_w_obj_end(w);
}

static void
write_tensors(br_json_writer *w, const br_mega_net *n, const char *group,
              br_mega_kind kind)
{
    br_json_w_key(w, group);
    br_json_w_obj(w);
    for (size_t i = 0; i < n->tensors.n; i++)
        if (n->tensors.at[i].kind == kind)
            write_tensor(w, n, &n->tensors.at[i]);
    br_json_w_obj_end(w);
}

static void
write_real(br_json_writer *w, bool has, const char *key, double v)
{
    if (!has)
        return;
    br_json_w_key_f64(w, key, v);
}

static void
write_int(br_json_writer *w, bool has, const char *key, int64_t v)
{
    if (!has)
        return;
    br_json_w_key_i64(w, key, v);
}

static void
write_node(br_json_writer *w, const br_mega_net *n, const br_net_node *d)
{
    unsigned attrs = br_net_op_attrs(d->op);
    const br_net_tensor *t = n->tensors.at;

    if (d->op == BR_NET_MUL && d->n_in == 2)
        attrs = 0;
    br_json_w_obj(w);
    br_json_w_key_strz(w, "op", br_net_op_text(d->op));
    br_json_w_key_strz(w, "name", d->name);
    if (d->role[0])
        br_json_w_key_strz(w, "role", d->role);
    br_json_w_key(w, "in");
    br_json_w_arr(w);
    for (int i = 0; i < d->n_in; i++)
        br_json_w_strz(w, t[d->in[i]].name);
    br_json_w_arr_end(w);
    br_json_w_key_strz(w, "out", t[d->out].name);
    if (d->weight != BR_NET_NONE)
        br_json_w_key_strz(w, "weight", t[d->weight].name);
    if (d->bias != BR_NET_NONE)
        br_json_w_key_strz(w, "bias", t[d->bias].name);
    write_real(w, attrs & A_EPS, "eps", d->eps);
    write_real(w, attrs & A_THETA, "theta", d->theta);
    write_real(w, attrs & A_SCALE, "scale", d->scale);
    write_int(w, attrs & A_HEADS, "heads", d->n_heads);
    write_int(w, attrs & A_KV_HEADS, "kv_heads", d->n_kv_heads);
    write_int(w, attrs & A_HEAD_DIM, "head_dim", d->head_dim);
    if (attrs & A_WHICH)
        br_json_w_key_strz(w, "which", d->is_query ? "q" : "k");
    br_json_w_obj_end(w);
}

static void
write_head(br_json_writer *w, const br_mega_net *n)
{
    br_json_w_key_strz(w, "name", n->source);
    br_json_w_key_strz(w, "dtype", br_mega_dtype_name((int)n->dtype));
    write_int(w, true, "batch", n->batch);
    write_int(w, true, "pos", n->pos);
    write_int(w, true, "max_seq", n->max_seq);
    write_int(w, n->n_layers != BR_NET_NONE, "layers", n->n_layers);
    if (!n->quant_bits)
        return;
    br_json_w_key(w, "quant");
    br_json_w_obj(w);
    write_int(w, true, "bits", n->quant_bits);
    write_int(w, true, "group", n->quant_group);
    br_json_w_obj_end(w);
}

void
br_mega_net_write(const br_mega_net *n, br_str *out)
{
    br_json_writer w;

    br_json_w_begin(&w, out, 2);
    br_json_w_obj(&w);
    write_head(&w, n);
    write_tensors(&w, n, "inputs", BR_MBK_IO_INPUT);
    write_tensors(&w, n, "weights", BR_MBK_WEIGHT);
    br_json_w_key(&w, "nodes");
    br_json_w_arr(&w);
    for (size_t i = 0; i < n->nodes.n; i++)
        write_node(&w, n, &n->nodes.at[i]);
    br_json_w_arr_end(&w);
    br_json_w_key(&w, "outputs");
    br_json_w_arr(&w);
    for (size_t i = 0; i < n->tensors.n; i++)
        if (n->tensors.at[i].kind == BR_MBK_IO_OUTPUT)
            br_json_w_strz(&w, n->tensors.at[i].name);
    br_json_w_arr_end(&w);
    br_json_w_obj_end(&w);
}
