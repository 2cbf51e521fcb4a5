/* ir_info.c - what the tables of opcodes and attributes say.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "ir/ir_int.h"

#include <string.h>

static const br_ir_opinfo ops[BR_IR_OP_LIMIT] = {
#define M(a) (1u << BR_IA_##a)
#define X(name, code, in, out, attrs, doc) \
    [code] = {#name, in, out, doc, attrs},
#include "ir/ops.def"
#undef X
#undef M
};

static const struct {
    const char *name;
    char type;
} attrs[BR_IA_COUNT] = {
#define P(name, type) {#name, #type[0]},
#include "ir/attr.def"
#undef P
};

const br_ir_opinfo *
br_ir_opinfo_of(int op)
{
    static const br_ir_opinfo none;

    return op >= 0 && op < BR_IR_OP_LIMIT ? &ops[op] : &none;
}

int
br_ir_op_find(br_text name)
{
    for (int i = 0; i < BR_IR_OP_LIMIT; i++)
        if (ops[i].name && br_text_is(name, ops[i].name))
            return i;
    return -1;
}

const char *
br_ir_attr_name(int a)
{
    return attrs[a].name;
}

char
br_ir_attr_type(int a)
{
    return attrs[a].type;
}

int
br_ir_attr_find(br_text name)
{
    for (int i = 0; i < BR_IA_COUNT; i++)
        if (br_text_is(name, attrs[i].name))
            return i;
    return -1;
}

bool
br_ir_role_at(int op, bool out, int i, br_ir_role *role)
{
    const br_ir_opinfo *info = br_ir_opinfo_of(op);
    const char *p = out ? info->out : info->in;

    if (!p)
        return false;
    for (int at = 0; *p; at++) {
        size_t n = strcspn(p, " ");

        if (at == i) {
            role->optional = p[0] == '[';
            if (role->optional)
                p++, n -= 2;
            role->inplace = p[0] == '*';
            if (role->inplace)
                p++, n--;
            role->name = (br_text){p, n};
            return true;
        }
        p += n;
        p += *p == ' ';
    }
    return false;
}

br_ir_kind
br_ir_kind_of(br_text name)
{
    static const char *const prefix[BR_IK_COUNT] = {"model.", "state.",
                                                    "request.", "step.", "t."};

    for (int k = 0; k < BR_IK_COUNT; k++) {
        size_t n = strlen(prefix[k]);

        if (name.n > n && memcmp(name.p, prefix[k], n) == 0)
            return (br_ir_kind)k;
    }
    return BR_IK_COUNT;
}

br_text
br_ir_value_name(const br_ir *g, uint32_t v)
{
    br_assert(v < g->n_values);
    return (br_text){g->strings + g->values[v].name, g->values[v].name_n};
}

int64_t
br_ir_cols(const br_ir_value *v)
{
    int64_t n = 1;

    for (int i = 1; i < v->rank; i++)
        n *= v->dim[i];
    return n;
}

bool
br_ir_has(const br_ir_node *n, br_ir_attr a)
{
    return (n->attrs >> a & 1) != 0;
}

static int
slot_of(const br_ir_node *n, br_ir_attr a)
{
    return __builtin_popcount(n->attrs & ((1u << a) - 1));
}

int64_t
br_ir_i(const br_ir_node *n, br_ir_attr a, int64_t def)
{
    br_assert(attrs[a].type == 'I');
    return br_ir_has(n, a) ? n->attr[slot_of(n, a)].i : def;
}

double
br_ir_f(const br_ir_node *n, br_ir_attr a, double def)
{
    br_assert(attrs[a].type == 'F');
    return br_ir_has(n, a) ? n->attr[slot_of(n, a)].f : def;
}
