/* gcn.h - AMD machine code: words in, text out, and back; code objects.
 *
 *       text --parse--> br_gcn_inst --words--> code --> ELF code object
 *            <--print--             <--decode--
 *
 * Everything about single instructions stands in tables (README-ISA.md):
 * formats.def (bit fields), kinds.def (operands), isa_gfx11.def and
 * isa_gfx12.def (one row an instruction). An instruction is its row and its
 * words; a field is read from and written to the words by its name, so that
 * an encoder, a printer and a simulator see the same thing.
 *
 * Text is what LLVM 19 prints and reads; tests compare every row with it.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_GCN_H
#define BR_GCN_H

#include "base/base.h"

enum {
    BR_GCN_MAX_WORDS = 5,       /* the longest instruction, an image one */
    BR_GCN_MAX_TEXT = 1024,     /* bytes of one line of assembly */
    BR_GCN_MAX_FILE = 64 << 20, /* bytes of a file that is read */
};

/* A processor: a row of cpus.def. */
typedef struct br_gcn_cpu {
    const char *name;
    uint8_t gen;  /* 11 or 12 */
    uint8_t mach; /* low byte of e_flags */
    bool minor5;  /* gfx115x: scalar floats, SGPRs in DPP */
    bool
        wmma; /* asked for as name-wmma: compiled code may sum as v_wmma does */
    uint8_t sgprs, vgprs; /* that compiled code may name; 0: all there are. For
                           * tests of code that has too few. */
} br_gcn_cpu;

/* NULL: no such processor is known. */
const br_gcn_cpu *br_gcn_cpu_find(const char *name);
const br_gcn_cpu *br_gcn_cpu_at(size_t i); /* NULL ends the list */

typedef struct br_gcn_isa {
    const br_gcn_cpu *cpu;
    bool wave64; /* lane masks are pairs of SGPRs */
} br_gcn_isa;
/* Lanes of a wave, and SGPRs of a mask of them. */
static inline unsigned
br_gcn_lanes(const br_gcn_isa *isa)
{
    return isa->wave64 ? 64 : 32;
}
static inline unsigned
br_gcn_mask_words(const br_gcn_isa *isa)
{
    return br_gcn_lanes(isa) / 32;
}
/* User and system SGPRs that a wave has to start with, or the processor sets them
 * wrong. */
unsigned br_gcn_least_sgprs(const br_gcn_isa *isa);

struct br_gcn_row;

typedef struct br_gcn_inst {
    const struct br_gcn_row *row;
    const struct br_gcn_row *row_y; /* second half of a dual instruction */
    uint32_t w[BR_GCN_MAX_WORDS];
    uint8_t words; /* of w that count */
    uint8_t ext;   /* br_gcn_ext: what the last word holds */
    uint16_t far;  /* bytes of a line that were understood, where not all */
} br_gcn_inst;

/* Reads one instruction from n words. Returns the words it took; 0: they are
 * no instruction of this processor, or bits that mean nothing are set. */
unsigned br_gcn_decode(const br_gcn_isa *isa, const uint32_t *w, size_t n,
                       br_gcn_inst *out);
/* Appends the line, without newline. */
void br_gcn_print(const br_gcn_isa *isa, const br_gcn_inst *in, br_str *out);
/* Reads one line (no label, no comment). */
br_code br_gcn_parse(const br_gcn_isa *isa, const char *text, size_t n,
                     br_gcn_inst *out, br_status *st) BR_MUST_USE;

/* Why a wave traps, and what is said of what M0 has then; "": nothing. */
enum { BR_GCN_TRAPS = 1 << 24 };
typedef enum br_gcn_trap {
#define X(name, text) BR_GCN_TRAP_##name,
#include "cg/gcn/traps.def"
#undef X
} br_gcn_trap;
const char *br_gcn_trap_text(uint32_t m0);

/* ---- code objects (gcn_object.c) -------------------------------------- */

enum {
    BR_GCN_KD_BYTES = 64,
    BR_GCN_MAX_KERNELS = 4096,
    BR_GCN_MAX_CODE = 16 << 20, /* words of one kernel */
};

/* For the metadata: an argument within the kernarg block. */
typedef struct br_gcn_arg {
    uint32_t offset, bytes;
    const char *kind; /* ".value_kind"; NULL: by_value */
} br_gcn_arg;

/* What a kernel asks of the machine. */
typedef struct br_gcn_kernel {
    const char *name;
    const uint32_t *code; /* ends with s_endpgm; padding is added */
    size_t words;
    uint32_t lds_bytes, scratch_bytes, kernarg_bytes; /* scratch: per lane */
    uint16_t vgprs, sgprs; /* highest used plus one */
    uint16_t max_threads;  /* of a work-group */
    uint8_t ids;           /* dimensions of the work-item id in v0: 1 to 3 */
    const br_gcn_arg *args;
    size_t n_args;
} br_gcn_kernel;

/* The 64 bytes a dispatch packet points at; entry_minus_kd: from descriptor to
 * code. The kernel gets the kernarg pointer in s[0:1] where it has arguments,
 * then padding where the processor needs it, then the work-group ids. */
br_code br_gcn_descriptor(uint8_t kd[BR_GCN_KD_BYTES], const br_gcn_isa *isa,
                          const br_gcn_kernel *k, int64_t entry_minus_kd,
                          br_status *st) BR_MUST_USE;
/* Appends an ELF code object (amdhsa, version 5) that a loader can map. */
br_code br_gcn_object(br_str *out, const br_gcn_isa *isa,
                      const br_gcn_kernel *k, size_t n,
                      br_status *st) BR_MUST_USE;

#endif
