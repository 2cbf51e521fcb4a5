/* gcn_object.c - kernels of a compiler to a code object.
 *
 * A kernel `k` is two symbols: `k` (its code) and `k.kd` (64 bytes in .rodata
 * that packets point at). Behind the last instruction 256 bytes and more are
 * s_code_end, for the hardware fetches ahead.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg/gcn/gcn_file.h"

#include <string.h>

enum {
    CODE_ALIGN = 256,
    PAD_WORDS = 96,
    MAX_GROUP = 65536, /* bytes of LDS */
    MAX_THREADS = 1024,
};

/* ---- the descriptor --------------------------------------------------- */

static void
put32(uint8_t *p, uint32_t v)
{
    for (int k = 0; k < 4; k++)
        p[k] = (uint8_t)(v >> 8 * k);
}

unsigned
br_gcn_least_sgprs(const br_gcn_isa *isa)
{
    enum { GFX1100 = 0x41, GFX1102 = 0x47 };
    bool bad = isa->cpu->mach == GFX1100 || isa->cpu->mach == GFX1102;

    return bad && !isa->wave64 ? 16 : 0;
}

/* With the three numbers of the work-group they are enough. */
static unsigned
user_sgprs(const br_gcn_isa *isa, const br_gcn_kernel *k)
{
    unsigned n = k->kernarg_bytes ? 2 : 0, least = br_gcn_least_sgprs(isa);

    return BR_MAX(n + 3, least) - 3;
}

static uint32_t
rsrc1(const br_gcn_isa *isa, const br_gcn_kernel *k)
{
    unsigned granule = isa->wave64 ? 4 : 8, n = BR_MAX(k->vgprs, 1u);
    uint32_t v = (n + granule - 1) / granule - 1;

    v |= 3u << 16 | 3u << 18; /* denormals are kept */
    v |= 1u << 30;            /* loads return in order */
    if (isa->cpu->gen == 11)
        v |= 1u << 21 | 1u << 23; /* DX10_CLAMP, IEEE_MODE */
    return v;
}

br_code
br_gcn_descriptor(uint8_t kd[BR_GCN_KD_BYTES], const br_gcn_isa *isa,
                  const br_gcn_kernel *k, int64_t entry_minus_kd, br_status *st)
{
    uint32_t rsrc2;

    if (k->vgprs > 256 || k->sgprs > 106)
        return br_fail(st, BR_E_LIMIT,
                       "%s: %u VGPRs, %u SGPRs; 256 and 106 are there", k->name,
                       k->vgprs, k->sgprs);
    if (k->lds_bytes > MAX_GROUP || k->max_threads > MAX_THREADS ||
        !k->max_threads || k->ids < 1 || k->ids > 3)
        return br_fail(st, BR_E_LIMIT,
                       "%s: %u bytes of LDS, %u threads, %u dimensions",
                       k->name, k->lds_bytes, k->max_threads, k->ids);
    rsrc2 = (k->scratch_bytes != 0) | user_sgprs(isa, k) << 1 | 7u << 7 |
            (k->ids - 1u) << 11;
    memset(kd, 0, BR_GCN_KD_BYTES);
    put32(kd, k->lds_bytes);
    put32(kd + 4, k->scratch_bytes);
    put32(kd + 8, k->kernarg_bytes);
    put32(kd + 16, (uint32_t)entry_minus_kd);
    put32(kd + 20, (uint32_t)((uint64_t)entry_minus_kd >> 32));
    put32(kd + 48, rsrc1(isa, k));
    put32(kd + 52, rsrc2);
    /* bit 3: kernarg pointer, bit 10: wave32 */
    put32(kd + 56, (k->kernarg_bytes ? 8u : 0) | (isa->wave64 ? 0 : 1u << 10));
    return BR_OK;
}

/* ---- metadata: MessagePack -------------------------------------------- */

static void
mp_pair(br_str *o, const char *key, uint32_t v)
{
    br_gcn_mp_text(o, br_text_z(key));
    br_gcn_mp_uint(o, v);
}

static void
mp_kernel(br_str *o, const br_gcn_isa *isa, const br_gcn_kernel *k,
          const char *kd)
{
    br_gcn_mp_map(o, 11);
    br_gcn_mp_text(o, BR_TEXT(".name"));
    br_gcn_mp_text(o, br_text_z(k->name));
    br_gcn_mp_text(o, BR_TEXT(".symbol"));
    br_gcn_mp_text(o, br_text_z(kd));
    mp_pair(o, ".kernarg_segment_size", k->kernarg_bytes);
    mp_pair(o, ".kernarg_segment_align", 16);
    mp_pair(o, ".group_segment_fixed_size", k->lds_bytes);
    mp_pair(o, ".private_segment_fixed_size", k->scratch_bytes);
    mp_pair(o, ".sgpr_count", k->sgprs);
    mp_pair(o, ".vgpr_count", k->vgprs);
    mp_pair(o, ".max_flat_workgroup_size", k->max_threads);
    mp_pair(o, ".wavefront_size", isa->wave64 ? 64 : 32);
    br_gcn_mp_text(o, BR_TEXT(".args"));
    br_gcn_mp_array(o, k->n_args);
    for (size_t i = 0; i < k->n_args; i++) {
        br_gcn_mp_map(o, 3);
        mp_pair(o, ".offset", k->args[i].offset);
        mp_pair(o, ".size", k->args[i].bytes);
        br_gcn_mp_text(o, BR_TEXT(".value_kind"));
        br_gcn_mp_text(
            o, br_text_z(k->args[i].kind ? k->args[i].kind : "by_value"));
    }
}

/* ---- pieces ----------------------------------------------------------- */

/* What br_gcn_link wants, while it is put together. */
typedef struct object {
    br_str text, data, note, names;
    br_gcn_symbol *sym;
} object;

static void
code(br_str *t, const br_gcn_kernel *k)
{
    const uint32_t end = 0xbf9f0000; /* s_code_end */

    br_str_put(t, (const char *)k->code, k->words * 4);
    for (unsigned p = 0; (p < PAD_WORDS || t->n % CODE_ALIGN) && !t->oom; p++)
        br_str_put(t, (const char *)&end, 4);
}

static br_code
pieces(object *o, const br_gcn_isa *isa, const br_gcn_kernel *k, size_t n,
       br_status *st)
{
    br_str target = {0};

    br_str_printf(&target, "amdgcn-amd-amdhsa--%s", isa->cpu->name);
    br_gcn_mp_map(&o->note, 3);
    br_gcn_mp_text(&o->note, BR_TEXT("amdhsa.version"));
    br_gcn_mp_array(&o->note, 2);
    br_gcn_mp_uint(&o->note, 1);
    br_gcn_mp_uint(&o->note, 2);
    br_gcn_mp_text(&o->note, BR_TEXT("amdhsa.target"));
    br_gcn_mp_text(&o->note, br_text_z(br_str_z(&target)));
    br_gcn_mp_text(&o->note, BR_TEXT("amdhsa.kernels"));
    br_gcn_mp_array(&o->note, n);
    o->note.oom = o->note.oom || target.oom;
    br_str_fini(&target);
    for (size_t i = 0; i < n; i++) {
        br_str_printf(&o->names, "%s%c%s.kd%c", k[i].name, 0, k[i].name, 0);
        if (o->names.oom)
            break;
    }
    for (size_t i = 0, at = 0; i < n && !o->names.oom; i++) {
        const char *name = o->names.at + at, *kd = name + strlen(name) + 1;
        uint8_t bytes[BR_GCN_KD_BYTES];

        o->sym[2 * i] = (br_gcn_symbol){.name = name,
                                        .at = o->text.n,
                                        .bytes = k[i].words * 4,
                                        .place = BR_GCN_TEXT};
        o->sym[2 * i + 1] = (br_gcn_symbol){.name = kd,
                                            .at = o->data.n,
                                            .bytes = sizeof bytes,
                                            .entry = (uint32_t)(2 * i + 1),
                                            .place = BR_GCN_DATA};
        at = (size_t)(kd - o->names.at) + strlen(kd) + 1;
        BR_TRY(br_gcn_descriptor(bytes, isa, &k[i], 0, st));
        br_str_put(&o->data, (const char *)bytes, sizeof bytes);
        mp_kernel(&o->note, isa, &k[i], kd);
        code(&o->text, &k[i]);
    }
    if (o->text.oom || o->data.oom || o->note.oom || o->names.oom)
        return br_fail(st, BR_E_OOM, "no memory for a code object");
    return BR_OK;
}

static br_code
check(const br_gcn_kernel *k, size_t n, br_status *st)
{
    if (n == 0 || n > BR_GCN_MAX_KERNELS)
        return br_fail(st, BR_E_LIMIT,
                       "%zu kernels, 1 to %d go into a code object", n,
                       BR_GCN_MAX_KERNELS);
    for (size_t i = 0; i < n; i++)
        if (!k[i].words || k[i].words > BR_GCN_MAX_CODE ||
            strlen(k[i].name) > 1000)
            return br_fail(st, BR_E_LIMIT, "%.40s: %zu words of code",
                           k[i].name, k[i].words);
    return BR_OK;
}

br_code
br_gcn_object(br_str *out, const br_gcn_isa *isa, const br_gcn_kernel *k,
              size_t n, br_status *st)
{
    object o = {0};
    br_code c;

    BR_TRY(check(k, n, st));
    o.sym = br_try_calloc(2 * n, sizeof *o.sym);
    c = o.sym ? pieces(&o, isa, k, n, st)
              : br_fail(st, BR_E_OOM, "no memory for a code object");
    if (c == BR_OK) {
        br_gcn_pieces p = {.cpu = isa->cpu,
                           .text = {o.text.at, o.text.n},
                           .data = {o.data.at, o.data.n},
                           .note = {o.note.at, o.note.n},
                           .sym = o.sym,
                           .n_sym = 2 * n};

        c = br_gcn_link(out, &p, st);
    }
    br_free(o.sym);
    br_str_fini(&o.text);
    br_str_fini(&o.data);
    br_str_fini(&o.note);
    br_str_fini(&o.names);
    return c;
}
