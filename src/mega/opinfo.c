/* opinfo.c - names, arities and codes, all read from the .def files.
 *
 * The tables are short (59 opcodes, 24 parameters), so a name is found by
 * length and bytes in a walk; the loader remembers its last hits, which makes
 * the walk rare (load.c).
 * SPDX-License-Identifier: Apache-2.0 */
#include "mega/mega.h"
#include "model/quant.h"

#include <string.h>

#define BIT(p) (1u << BR_MP_##p)
#define R0()   .n_req = 0
#define R1(a)  .n_req = 1, .req = {BR_MP_##a}, .req_mask = BIT(a)
#define R2(a, b) \
    .n_req = 2, .req = {BR_MP_##a, BR_MP_##b}, .req_mask = BIT(a) | BIT(b)
#define R3(a, b, c)                                       \
    .n_req = 3, .req = {BR_MP_##a, BR_MP_##b, BR_MP_##c}, \
    .req_mask = BIT(a) | BIT(b) | BIT(c)
#define R4(a, b, c, d)                                               \
    .n_req = 4, .req = {BR_MP_##a, BR_MP_##b, BR_MP_##c, BR_MP_##d}, \
    .req_mask = BIT(a) | BIT(b) | BIT(c) | BIT(d)
#define R6(a, b, c, d, e, f)                                                   \
    .n_req = 6,                                                                \
    .req = {BR_MP_##a, BR_MP_##b, BR_MP_##c, BR_MP_##d, BR_MP_##e, BR_MP_##f}, \
    .req_mask = BIT(a) | BIT(b) | BIT(c) | BIT(d) | BIT(e) | BIT(f)

static const br_mega_opinfo ops[BR_MOP_LIMIT] = {
#define X(name_, code, lo, hi, out, reqs, doc_) \
    [code] = {.name = #name_,                   \
              .doc = (doc_),                    \
              .min_in = (lo),                   \
              .max_in = (hi),                   \
              .n_out = (out),                   \
              reqs},
#include "mega/minst.def"
#undef X
#define X(name_, code, in, out, attrs, doc_)                \
    [BR_MOP_STEP + (code)] = {.name = "STEP_" #name_,       \
                              .doc = (doc_),                \
                              .max_in = BR_MEGA_MAX_INPUTS, \
                              .n_out = -1,                  \
                              R3(node, n_off, N_tile)},
#include "ir/ops.def"
#undef X
};

/* A name and its length: the walk compares lengths first. */
typedef struct entry {
    const char *z;
    uint32_t n;
    int value;
} entry;
#define ENTRY(z, value)             \
    {                               \
        (z), sizeof(z) - 1, (value) \
    }

static const entry op_names[] = {
#define X(name, code, lo, hi, out, reqs, doc) ENTRY(#name, code),
#include "mega/minst.def"
#undef X
#define X(name, code, in, out, attrs, doc) \
    ENTRY("STEP_" #name, BR_MOP_STEP + (code)),
#include "ir/ops.def"
#undef X
};

static const entry param_names[BR_MP_COUNT] = {
#define P(name, type) ENTRY(#name, BR_MP_##name),
#include "mega/param.def"
#undef P
};

static const char param_types[BR_MP_COUNT] = {
#define P(name, type) [BR_MP_##name] = #type[0],
#include "mega/param.def"
#undef P
};

static const entry dtype_names[BR_MDT_COUNT] = {
    ENTRY("F32", BR_MDT_F32),       ENTRY("F16", BR_MDT_F16),
    ENTRY("BF16", BR_MDT_BF16),     ENTRY("F8E4M3", BR_MDT_F8E4M3),
    ENTRY("F8E5M2", BR_MDT_F8E5M2), ENTRY("I32", BR_MDT_I32),
    ENTRY("I8", BR_MDT_I8),         ENTRY("I4", BR_MDT_I4),
    ENTRY("U8", BR_MDT_U8),         ENTRY("BOOL", BR_MDT_BOOL),
};
static const uint8_t dtype_bits[BR_MDT_COUNT] = {32, 16, 16, 8, 8,
                                                 32, 8,  4,  8, 8};

static const entry space_names[BR_MSP_COUNT] = {
    ENTRY("HBM", BR_MSP_HBM),
    ENTRY("GLOBAL_SCRATCH", BR_MSP_GLOBAL_SCRATCH),
    ENTRY("SMEM", BR_MSP_SMEM),
    ENTRY("REGISTER", BR_MSP_REGISTER),
};

static const entry kind_names[BR_MBK_COUNT] = {
    ENTRY("WEIGHT", BR_MBK_WEIGHT),
    ENTRY("ACTIVATION", BR_MBK_ACTIVATION),
    ENTRY("KV_CACHE", BR_MBK_KV_CACHE),
    ENTRY("IO_INPUT", BR_MBK_IO_INPUT),
    ENTRY("IO_OUTPUT", BR_MBK_IO_OUTPUT),
    ENTRY("CONST", BR_MBK_CONST),
};

static int
find(const entry *rows, size_t n_rows, br_text name)
{
    for (size_t i = 0; i < n_rows; i++)
        if (rows[i].n == name.n && memcmp(rows[i].z, name.p, name.n) == 0)
            return rows[i].value;
    return -1;
}

static const char *
name_of(const entry *rows, int n_rows, int i)
{
    return i >= 0 && i < n_rows ? rows[i].z : "?";
}

const br_mega_opinfo *
br_mega_opinfo_of(int op)
{
    static const br_mega_opinfo none;

    return op >= 0 && op < BR_MOP_LIMIT ? &ops[op] : &none;
}

const char *
br_mega_op_name(int op)
{
    const char *name = br_mega_opinfo_of(op)->name;

    return name ? name : "?";
}

/* Formats that version 0.2 has keep its code. */
static const struct {
    uint8_t qtype, dtype;
} shared[] = {{BR_Q_F32, BR_MDT_F32},
              {BR_Q_F16, BR_MDT_F16},
              {BR_Q_BF16, BR_MDT_BF16},
              {BR_Q_I32, BR_MDT_I32},
              {BR_Q_I8, BR_MDT_I8}};

int
br_mega_dtype_of_qtype(int qtype)
{
    for (size_t i = 0; i < BR_COUNT(shared); i++)
        if (shared[i].qtype == qtype)
            return shared[i].dtype;
    return br_qinfo_of(qtype)->name ? BR_MDT_BLOCK + qtype : -1;
}

const char *
br_mega_dtype_name(int dt)
{
    if (dt >= BR_MDT_BLOCK && br_qinfo_of(dt - BR_MDT_BLOCK)->name)
        return br_qinfo_of(dt - BR_MDT_BLOCK)->name;
    return name_of(dtype_names, BR_MDT_COUNT, dt);
}

const char *
br_mega_space_name(int sp)
{
    return name_of(space_names, BR_MSP_COUNT, sp);
}

const char *
br_mega_kind_name(int k)
{
    return name_of(kind_names, BR_MBK_COUNT, k);
}

const char *
br_mega_param_name(int p)
{
    return name_of(param_names, BR_MP_COUNT, p);
}

char
br_mega_param_type(int p)
{
    return p >= 0 && p < BR_MP_COUNT ? param_types[p] : '?';
}

int
br_mega_op_find(br_text name)
{
    return find(op_names, BR_COUNT(op_names), name);
}

int
br_mega_dtype_find(br_text name)
{
    int dt = find(dtype_names, BR_COUNT(dtype_names), name);

    if (dt >= 0)
        return dt;
    for (int q = 0; q < BR_Q_LIMIT; q++) /* spelled as its row is */
        if (br_qinfo_of(q)->name && br_text_is(name, br_qinfo_of(q)->name))
            return br_mega_dtype_of_qtype(q);
    return -1;
}

int
br_mega_space_find(br_text name)
{
    return find(space_names, BR_COUNT(space_names), name);
}

int
br_mega_kind_find(br_text name)
{
    return find(kind_names, BR_COUNT(kind_names), name);
}

int
br_mega_param_find(br_text name)
{
    return find(param_names, BR_COUNT(param_names), name);
}

int
br_mega_dtype_bits(int dt)
{
    const br_qinfo *q = br_qinfo_of(dt - BR_MDT_BLOCK);

    if (dt >= BR_MDT_BLOCK && q->name)
        return (int)((8 * q->bytes + q->elems - 1) / q->elems);
    return dt >= 0 && dt < BR_MDT_COUNT ? dtype_bits[dt] : 0;
}

int64_t
br_mega_dtype_bytes(int dt, int64_t count)
{
    const br_qinfo *q = br_qinfo_of(dt - BR_MDT_BLOCK);
    int64_t bits, up;

    if (dt >= BR_MDT_BLOCK && q->name) {
        up = count / q->elems + (count % q->elems != 0);
        return count < 0 || __builtin_mul_overflow(up, q->bytes, &bits) ? -1
                                                                        : bits;
    }
    if (count < 0 ||
        __builtin_mul_overflow(count, br_mega_dtype_bits(dt), &bits))
        return -1;
    return __builtin_add_overflow(bits, 7, &up) ? -1 : up / 8;
}
