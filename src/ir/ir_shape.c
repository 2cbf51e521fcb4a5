/* ir_shape.c - rules R3 and R6 of the verifier: attributes in range, widths
 * that agree, for every opcode.
 *
 * Written so that a graph that passes cannot make an executor read or write
 * outside of a value, divide by zero, or overflow an index.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "ir/ir_shape.h"
#include "model/model.h"

#define NEED(cond, rule)                     \
    do {                                     \
        if (!(cond))                         \
            return br_ir_bad(c, NULL, rule); \
    } while (0)

enum { MOST = 1 << 24 }; /* any attribute that counts columns or heads */

static int64_t
width_of(const br_ir_bind *b)
{
    return b->value == BR_IR_NONE ? 0 : (int64_t)b->width * b->count;
}

static int64_t
in(const br_ir_ctx *c, int i)
{
    return width_of(&c->n->bind[i]);
}

static int64_t
out(const br_ir_ctx *c, int i)
{
    return width_of(&c->n->bind[c->n->n_in + i]);
}

static bool
bound(const br_ir_ctx *c, int i)
{
    return c->n->bind[i].value != BR_IR_NONE;
}

static const br_ir_value *
val(const br_ir_ctx *c, int i)
{
    return &c->g->values[c->n->bind[i].value];
}

/* Numbers of a weight, whatever its shape; 0: not bound. */
static int64_t
count(const br_ir_ctx *c, int i)
{
    return bound(c, i) ? br_ir_cols(val(c, i)) * val(c, i)->dim[0] : 0;
}

static int64_t
attr(const br_ir_ctx *c, br_ir_attr a, int64_t def)
{
    int64_t v = br_ir_i(c->n, a, def);

    return v < 0 || v > MOST ? -1 : v;
}

static bool
maybe(const br_ir_ctx *c, int i, int64_t n)
{
    return !bound(c, i) || count(c, i) == n;
}

static bool
act_ok(const br_ir_ctx *c, bool glu)
{
    int64_t a = br_ir_i(c->n, BR_IA_act, 0);

    return a >= 0 && a < BR_ACT_COUNT && (glu || a != BR_ACT_OAI);
}

static bool
eps_ok(const br_ir_ctx *c)
{
    double e = br_ir_f(c->n, BR_IA_eps, 0);

    return e >= 0 && e <= 1;
}

/* y[n] = w[n][k] x[k] */
static bool
product(const br_ir_ctx *c, int x, int w, int64_t y)
{
    const br_ir_value *v = val(c, w);

    return v->rank == 2 && v->dim[1] == in(c, x) && v->dim[0] == y;
}

static br_code
norm_rule(const br_ir_ctx *c, int x, int w)
{
    int64_t n = attr(c, BR_IA_width, 0);

    NEED(n > 0 && in(c, x) % n == 0, "width does not divide the columns");
    NEED(eps_ok(c), "eps has to be 0..1");
    NEED(!bound(c, w) || count(c, w) == n, "the norm's weight has not width "
                                           "numbers");
    return BR_OK;
}

static br_code
rope_rule(const br_ir_ctx *c, int64_t cols, int freq)
{
    int64_t heads = attr(c, BR_IA_heads, 0), d = attr(c, BR_IA_head_dim, 0);
    int64_t rot = attr(c, BR_IA_n_rot, 0), kind = attr(c, BR_IA_kind, 0);

    NEED(heads > 0 && d > 0 && heads * d == cols,
         "heads times head_dim are not the columns");
    NEED(rot > 0 && rot % 2 == 0 && rot <= d, "n_rot has to be even and at "
                                              "most head_dim");
    NEED(kind == BR_ROPE_NORM || kind == BR_ROPE_NEOX, "no such kind");
    NEED(count(c, freq) == rot / 2, "freq has not n_rot / 2 numbers");
    return BR_OK;
}

static br_code
attention_rule(const br_ir_ctx *c)
{
    int64_t h = attr(c, BR_IA_heads, 0), kv = attr(c, BR_IA_kv_heads, 0);
    int64_t dk = attr(c, BR_IA_head_dim, 0), dv = attr(c, BR_IA_head_v, 0);

    NEED(h > 0 && kv > 0 && h % kv == 0, "heads do not share kv_heads");
    NEED(dk > 0 && dv > 0 && in(c, 0) == h * dk, "q is not heads * head_dim");
    NEED(in(c, 1) == kv * dk, "kv_k is not kv_heads * head_dim");
    NEED(bound(c, 2) ? in(c, 2) == kv * dv : dv <= dk,
         "kv_v is not kv_heads * head_v");
    NEED(out(c, 0) == h * dv, "y is not heads * head_v");
    NEED(maybe(c, 4, h), "sinks are not one per head");
    NEED(attr(c, BR_IA_window, 0) >= 0 ||
             br_ir_i(c->n, BR_IA_window, 0) <= INT32_MAX,
         "window is out of range");
    NEED(br_ir_i(c->n, BR_IA_window, 0) >= 0 &&
             br_ir_i(c->n, BR_IA_window, 0) <= INT32_MAX,
         "window is out of range");
    NEED(val(c, 1)->dim[0] == BR_DIM_POS, "kv_k is not pages");
    return BR_OK;
}

static br_code
kv_write_rule(const br_ir_ctx *c, int k, int v, int kv_k)
{
    NEED(val(c, kv_k)->dim[0] == BR_DIM_POS, "kv_k is not pages");
    NEED(k < 0 || in(c, k) == in(c, kv_k), "k is not as wide as its pages");
    NEED(bound(c, v) == bound(c, kv_k + 1) && in(c, v) == in(c, kv_k + 1),
         "v is not as wide as its pages");
    return BR_OK;
}

static br_code
topk_rule(const br_ir_ctx *c)
{
    int64_t k = attr(c, BR_IA_k, 0), n = out(c, 0);
    int64_t g = attr(c, BR_IA_groups, 1), used = attr(c, BR_IA_groups_used, 1);
    int64_t gating = br_ir_i(c->n, BR_IA_gating, 0);

    NEED(n <= 4096 && k > 0 && k <= n, "k has to be 1..experts, at most 4096");
    NEED(product(c, 0, 1, n), "router_w is not experts by columns of x");
    NEED(out(c, 1) == k && out(c, 2) == k,
         "ids and weights have not k columns");
    NEED(maybe(c, 2, n) && maybe(c, 3, n), "a bias has not one number each");
    NEED(gating >= BR_GATE_SOFTMAX && gating <= BR_GATE_PICKED,
         "no such gating");
    NEED(g > 0 && n % g == 0 && used > 0 && used <= g,
         "groups do not divide the experts");
    NEED(k <= n / g * used, "fewer experts in the groups used than k");
    return BR_OK;
}

static br_code
gate_up_rule(const br_ir_ctx *c)
{
    int64_t k = attr(c, BR_IA_k, 0), ff;
    const br_ir_value *w = val(c, 1), *up = bound(c, 2) ? val(c, 2) : NULL;

    NEED(k > 0 && in(c, 5) == k && out(c, 0) % k == 0 && out(c, 0) == out(c, 1),
         "gate, up and ids are not of k experts");
    ff = out(c, 0) / k;
    NEED(w->rank == 3 && w->dim[2] == in(c, 0) &&
             w->dim[1] == (up ? ff : 2 * ff),
         "gate_w is not experts by width by columns of x");
    NEED(!up || (up->rank == 3 && up->dim[0] == w->dim[0] && up->dim[1] == ff &&
                 up->dim[2] == in(c, 0)),
         "up_w is not like gate_w");
    NEED(maybe(c, 3, w->dim[0] * ff) && maybe(c, 4, w->dim[0] * ff),
         "a bias is not experts by width");
    return BR_OK;
}

static br_code
down_rule(const br_ir_ctx *c)
{
    int64_t k = attr(c, BR_IA_k, 0), n = out(c, 0);
    const br_ir_value *w = val(c, 1);

    NEED(k > 0 && in(c, 0) % k == 0 && in(c, 2) == k && in(c, 3) == k,
         "x, ids and weights are not of k experts");
    NEED(w->rank == 3 && w->dim[1] == n && w->dim[2] == in(c, 0) / k,
         "down_w is not experts by columns of y by width");
    NEED(maybe(c, 4, w->dim[0] * n) && maybe(c, 5, w->dim[0]),
         "down_b or down_s has not its numbers");
    NEED(!bound(c, 6) || in(c, 6) == n, "residual is not as wide as y");
    return BR_OK;
}

static br_code
shared_rule(const br_ir_ctx *c)
{
    const br_ir_value *w = val(c, 1);

    NEED(w->rank == 2 && product(c, 0, 1, w->dim[0]) &&
             product(c, 0, 2, w->dim[0]),
         "gate_w and up_w are not width by columns of x");
    NEED(val(c, 3)->rank == 2 && val(c, 3)->dim[0] == out(c, 0) &&
             val(c, 3)->dim[1] == w->dim[0],
         "down_w is not columns of y by width");
    NEED(!bound(c, 4) || product(c, 0, 4, 1), "router_w is not one row");
    NEED(in(c, 5) == out(c, 0), "residual is not as wide as y");
    NEED(act_ok(c, true), "no such act");
    return BR_OK;
}

static br_code
conv_rule(const br_ir_ctx *c)
{
    int64_t k = attr(c, BR_IA_kernel, 0), n = in(c, 0);

    NEED(k >= 2 && k <= 64, "kernel has to be 2..64");
    NEED(out(c, 0) == n && count(c, 1) == n * k && maybe(c, 2, n),
         "w is not columns by kernel");
    NEED(val(c, 3)->dim[0] == BR_DIM_S && in(c, 3) == (k - 1) * n,
         "state is not kernel - 1 rows per slot");
    NEED(act_ok(c, false), "no such act");
    return BR_OK;
}

static br_code
delta_rule(const br_ir_ctx *c)
{
    int64_t hv = attr(c, BR_IA_heads, 0), hk = attr(c, BR_IA_kv_heads, 0);
    int64_t w = attr(c, BR_IA_head_dim, 0);

    NEED(hv > 0 && hk > 0 && hv % hk == 0 && w > 0 && w <= 4096,
         "heads do not share kv_heads");
    NEED(in(c, 0) == (2 * hk + hv) * w && out(c, 0) == hv * w,
         "qkv or y has not its heads");
    NEED(in(c, 1) == hv && in(c, 2) == hv && count(c, 3) == hv &&
             count(c, 4) == hv,
         "alpha, beta, a and dt_b are not one per head");
    NEED(val(c, 5)->dim[0] == BR_DIM_S && in(c, 5) == hv * w * w,
         "state is not a square per head");
    NEED(eps_ok(c), "eps has to be 0..1");
    return BR_OK;
}

static br_code
scan_rule(const br_ir_ctx *c)
{
    int64_t h = attr(c, BR_IA_heads, 0), p = attr(c, BR_IA_head_dim, 0);
    int64_t g = attr(c, BR_IA_groups, 0), n = attr(c, BR_IA_width, 0);

    NEED(h > 0 && p > 0 && g > 0 && n > 0 && h % g == 0,
         "groups do not divide the heads");
    NEED(in(c, 0) == h * p + 2 * g * n && out(c, 0) == h * p,
         "xbc or y has not its columns");
    NEED(in(c, 1) == h && count(c, 2) == h && count(c, 3) == h &&
             maybe(c, 4, h),
         "dt, a, dt_b and d are not one per head");
    NEED(val(c, 5)->dim[0] == BR_DIM_S && in(c, 5) == h * p * n,
         "state is not heads by head_dim by width");
    return BR_OK;
}

static br_code
gated_norm_rule(const br_ir_ctx *c)
{
    int64_t n = attr(c, BR_IA_width, 0), kind = br_ir_i(c->n, BR_IA_kind, 0);

    NEED(n > 0 && in(c, 0) % n == 0, "width does not divide the columns");
    NEED(in(c, 0) == in(c, 1) && in(c, 0) == out(c, 0), "widths differ");
    NEED(kind == 0 || kind == 1, "no such kind");
    NEED(maybe(c, 2, kind == 1 ? in(c, 0) : n), "w has not its numbers");
    NEED(eps_ok(c), "eps has to be 0..1");
    return BR_OK;
}

static br_code
two_rule(const br_ir_ctx *c)
{
    int64_t n = out(c, 0);
    bool weight = val(c, 1)->kind == BR_IK_MODEL;
    int64_t b = weight ? count(c, 1) : in(c, 1);

    NEED(in(c, 0) == n, "widths differ");
    NEED(b == n || (c->n->op == BR_IR_MUL && b == 1), "b is of another width");
    return BR_OK;
}

static br_code
linear_rule(const br_ir_ctx *c)
{
    NEED(product(c, 0, 1, out(c, 0)), "w is not columns of y by columns of x");
    NEED(c->n->op != BR_IR_MATMUL || maybe(c, 2, out(c, 0)),
         "b is not as wide as y");
    return BR_OK;
}

static br_code
head_matmul_rule(const br_ir_ctx *c)
{
    int64_t h = attr(c, BR_IA_heads, 0);
    const br_ir_value *w = val(c, 1);

    NEED(h > 0 && w->rank == 3 && w->dim[0] == h &&
             w->dim[1] * h == out(c, 0) && w->dim[2] * h == in(c, 0),
         "w is not heads by columns of y by columns of x");
    return BR_OK;
}

static br_code
fused_rule(const br_ir_ctx *c, int n)
{
    BR_TRY(norm_rule(c, 0, 1));
    for (int i = 0; i < n; i++)
        NEED(product(c, 0, 2 + i, out(c, i)), "a weight has another shape");
    return BR_OK;
}

static br_code
embed_rule(const br_ir_ctx *c)
{
    NEED(in(c, 0) == 1 && val(c, 1)->rank == 2 &&
             val(c, 1)->dim[1] == out(c, 0),
         "table is not rows as wide as y");
    return BR_OK;
}

static br_code
glu_rule(const br_ir_ctx *c)
{
    NEED(in(c, 0) == in(c, 1) && in(c, 0) == out(c, 0), "widths differ");
    NEED(act_ok(c, true), "no such act");
    return BR_OK;
}

static br_code
same_rule(const br_ir_ctx *c)
{
    NEED(in(c, 0) == out(c, 0), "widths differ");
    NEED(act_ok(c, false), "no such act");
    if (c->n->op == BR_IR_TEMP_SCALE)
        NEED(br_ir_i(c->n, BR_IA_field, 0) > 0 &&
                 br_ir_i(c->n, BR_IA_field, 0) <= INT32_MAX,
             "field has to be 1 or more");
    return BR_OK;
}

static br_code
norm_rope_write_rule(const br_ir_ctx *c)
{
    BR_TRY(rope_rule(c, in(c, 0), 2));
    NEED(count(c, 1) == attr(c, BR_IA_head_dim, 0),
         "w is not head_dim numbers");
    NEED(eps_ok(c), "eps has to be 0..1");
    return kv_write_rule(c, 0, 3, 5);
}

static br_code
residual_norm_rule(const br_ir_ctx *c)
{
    NEED(in(c, 0) == in(c, 1) && in(c, 0) == out(c, 0) && in(c, 0) == out(c, 1),
         "widths differ");
    return norm_rule(c, 0, 2);
}

br_code
br_ir_check_shape(const br_ir_ctx *c)
{
    switch ((br_ir_op)c->n->op) {
    case BR_IR_EMBED: return embed_rule(c);
    case BR_IR_RMS_NORM:
        NEED(in(c, 0) == out(c, 0), "widths differ");
        return norm_rule(c, 0, 1);
    case BR_IR_RMS_NORM_FUSED_QKV: return fused_rule(c, 3);
    case BR_IR_RMS_NORM_FUSED_MLP_GATE_UP: return fused_rule(c, 2);
    case BR_IR_ROPE:
        NEED(in(c, 0) == out(c, 0), "widths differ");
        return rope_rule(c, in(c, 0), 2);
    case BR_IR_RMS_NORM_FUSED_ROPE_KV_WRITE: return norm_rope_write_rule(c);
    case BR_IR_FLASH_ATTN:
    case BR_IR_FLASH_ATTN_BATCHED: return attention_rule(c);
    case BR_IR_MOE_GATE_TOPK: return topk_rule(c);
    case BR_IR_MOE_GATE_UP: return gate_up_rule(c);
    case BR_IR_MOE_SWIGLU: return glu_rule(c);
    case BR_IR_MOE_DOWN_ACC: return down_rule(c);
    case BR_IR_SHARED_EXPERT: return shared_rule(c);
    case BR_IR_SSM_CONV1D: return conv_rule(c);
    case BR_IR_SSM_DELTA_NET: return delta_rule(c);
    case BR_IR_SSM_GATED_NORM: return gated_norm_rule(c);
    case BR_IR_SSM_SCAN: return scan_rule(c);
    case BR_IR_RESIDUAL_RMS_NORM: return residual_norm_rule(c);
    case BR_IR_LM_HEAD:
    case BR_IR_MATMUL:
    case BR_IR_MATMUL_WMMA_F16:
    case BR_IR_MATMUL_WMMA_Q4K: return linear_rule(c);
    case BR_IR_HEAD_MATMUL: return head_matmul_rule(c);
    case BR_IR_KV_WRITE_BATCHED: return kv_write_rule(c, 0, 1, 3);
    case BR_IR_ADD:
    case BR_IR_MUL: return two_rule(c);
    case BR_IR_GLU: return glu_rule(c);
    case BR_IR_SCALE:
    case BR_IR_SOFTCAP:
    case BR_IR_ACT:
    case BR_IR_COPY:
    case BR_IR_TEMP_SCALE: return same_rule(c);
    case BR_IR_ARGMAX:
    case BR_IR_SAMPLE: NEED(out(c, 0) == 1, "a token is one column"); break;
    case BR_IR_BARRIER:
    case BR_IR_STREAM_OUT:
    case BR_IR_LOAD_REQUEST_STATE:
    case BR_IR_STORE_REQUEST_STATE:
    case BR_IR_VERIFY_K:
    case BR_IR_OP_LIMIT: break;
    }
    return BR_OK;
}
