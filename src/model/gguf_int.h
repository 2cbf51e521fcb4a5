/* gguf_int.h - what the parts of the GGUF reader share.
 *
 *   gguf_parse.c   one file's header, checked byte by byte
 *   gguf.c         sets of files, look-ups
 *   gguf_value.c   numbers and texts out of metadata
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_GGUF_INT_H
#define BR_GGUF_INT_H

#include "base/map.h"
#include "model/gguf.h"

/* One file. Arrays are in the arena of the br_gguf it belongs to. */
typedef struct br_gguf_part {
    br_file_map map; /* n 0: the bytes are somebody else's */
    const char *path;
    const uint8_t *p;
    size_t n;
    uint32_t version, alignment;
    br_gguf_kv *kv;
    size_t n_kv;
    br_map keys; /* key -> index in kv */
    br_gguf_tensor *tensor;
    size_t n_tensors;
} br_gguf_part;

/* Reads and checks part->p, part->n. What it made is freed by the owner, on
 * failure too: keys with br_map_fini, the rest with the arena. */
br_code br_gguf_parse(br_gguf_part *part, br_arena *a, br_status *st);

const br_gguf_kv *br_gguf_part_find(const br_gguf_part *part, const char *key);
uint32_t br_gguf_type_bytes(br_gguf_type t); /* 0: STR, ARR */

/* Little endian, at any address. */
uint32_t br_gguf_le32(const uint8_t *p);
uint64_t br_gguf_le64(const uint8_t *p);

#endif
