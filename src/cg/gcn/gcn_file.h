/* gcn_file.h - files of AMD machine code: assembly in, code objects, and back.
 *
 *     X.s --br_gcn_assemble--> pieces --br_gcn_link--> X.co
 *         <--br_gcn_disassemble--  br_gcn_co  <--br_gcn_load--
 *
 * Assembly is as LLVM 19 writes it for amdhsa. What is disassembled assembles
 * back to the same code, descriptors and metadata.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_GCN_FILE_H
#define BR_GCN_FILE_H

#include "cg/gcn/gcn.h"

enum {
    BR_GCN_MAX_IMAGE = 256 << 20, /* bytes of a code object in memory */
    BR_GCN_MAX_SYMBOLS = 1 << 20,
    BR_GCN_MAX_NOTE = 16 << 20, /* bytes of metadata */
    BR_GCN_MAX_DEPTH = 32,      /* of metadata */
};

typedef enum br_gcn_place {
    BR_GCN_NOWHERE, /* not defined */
    BR_GCN_TEXT,
    BR_GCN_DATA, /* constants and descriptors: .rodata */
} br_gcn_place;

typedef struct br_gcn_symbol {
    const char *name;
    uint64_t at, bytes; /* within its place; in a loaded file its address */
    uint32_t entry;     /* a descriptor: its function's index, plus one */
    uint8_t place;      /* br_gcn_place */
    bool local;         /* not in the file */
} br_gcn_symbol;

/* 32 bits of text that hold half of: symbol + add - their own address. */
typedef struct br_gcn_reloc {
    uint64_t at;
    int64_t add;
    uint32_t symbol;
    bool high;
} br_gcn_reloc;

/* A code object before it has addresses. */
typedef struct br_gcn_pieces {
    const br_gcn_cpu *cpu;
    br_text text, data, note; /* note: MessagePack, or nothing */
    const br_gcn_symbol *sym;
    size_t n_sym;
    const br_gcn_reloc *reloc;
    size_t n_reloc;
} br_gcn_pieces;
/* Appends the ELF file. gcn_elf.c */
br_code br_gcn_link(br_str *out, const br_gcn_pieces *p,
                    br_status *st) BR_MUST_USE;

/* A code object as a loader leaves it in memory, at address 0. gcn_load.c */
typedef struct br_gcn_co {
    br_gcn_isa isa;
    uint8_t *image;
    uint64_t bytes;
    uint64_t text_at, text_bytes; /* of the executable section */
    br_gcn_symbol *sym;           /* by address */
    size_t n_sym;
    br_text note;
    br_arena arena;
} br_gcn_co;
/* Any bytes; whatever fails, br_gcn_unload afterwards. */
br_code br_gcn_load(br_gcn_co *co, const void *file, size_t n,
                    br_status *st) BR_MUST_USE;
void br_gcn_unload(br_gcn_co *co);
/* The descriptor of a kernel (64 bytes of image), by its name without .kd. */
const br_gcn_symbol *br_gcn_kernel_find(const br_gcn_co *co, const char *name);

/* Errors begin with "line:column: ". gcn_asm.c */
br_code br_gcn_assemble(br_str *out, const br_gcn_cpu *cpu, const char *text,
                        size_t n, br_status *st) BR_MUST_USE;
br_code br_gcn_disassemble(br_str *out, const br_gcn_co *co,
                           br_status *st) BR_MUST_USE;

/* Metadata: YAML as LLVM writes it, MessagePack. gcn_meta.c */
br_code br_gcn_yaml_read(br_str *msgpack, const char *yaml, size_t n,
                         br_status *st) BR_MUST_USE;
br_code br_gcn_yaml_write(br_str *yaml, br_text msgpack,
                          br_status *st) BR_MUST_USE;
void br_gcn_mp_map(br_str *o, size_t n);
void br_gcn_mp_array(br_str *o, size_t n);
void br_gcn_mp_text(br_str *o, br_text t);
void br_gcn_mp_uint(br_str *o, uint64_t v);

/* ---- the descriptor's directives (gcn_kd.c) --------------------------- */

typedef struct br_gcn_kd {
    uint8_t bytes[BR_GCN_KD_BYTES];
    bool vgprs_said, sgprs_said, users_said;
    unsigned users; /* user SGPRs that what was asked for takes */
} br_gcn_kd;
void br_gcn_kd_begin(br_gcn_kd *kd, const br_gcn_isa *isa);
/* ".amdhsa_" name, without that. */
br_code br_gcn_kd_set(br_gcn_kd *kd, const br_gcn_isa *isa, br_text name,
                      int64_t v, br_status *st) BR_MUST_USE;
br_code br_gcn_kd_end(br_gcn_kd *kd, br_status *st) BR_MUST_USE;
/* The directives that make these bytes; LIMIT: none do. */
br_code br_gcn_kd_text(br_str *out, const br_gcn_isa *isa,
                       const uint8_t bytes[BR_GCN_KD_BYTES],
                       br_status *st) BR_MUST_USE;

#endif
