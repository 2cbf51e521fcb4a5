/* gguf.h - a GGUF file as it lies on disk: typed metadata and a tensor table.
 *
 * The file is mapped, not read: opening a 40 GB model touches its header only,
 * and no page of a weight is read before somebody asks for it. Every count,
 * length, type, offset and alignment is checked against the file's size before
 * it is used, so a pointer handed out here is good for its stated bytes.
 * Split files (name-00001-of-00003.gguf) open as one.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_GGUF_H
#define BR_GGUF_H

#include "base/base.h"

enum { /* limits on a file, each named in the error that it causes */
       BR_GGUF_MAX_KEYS = 65536,
       BR_GGUF_MAX_TENSORS = 1 << 20,
       BR_GGUF_MAX_KEY_BYTES = 65535,
       BR_GGUF_MAX_NAME_BYTES = 64,     /* of a tensor */
       BR_GGUF_MAX_ALIGNMENT = 1 << 30, /* bytes, a power of two */
       BR_GGUF_DEFAULT_ALIGNMENT = 32,
       BR_GGUF_MAX_ARRAY = 1 << 26, /* elements of one metadata array */
       BR_GGUF_MAX_SPLITS = 1024,
       BR_GGUF_MAX_DIMS = 4,
};

typedef enum br_gguf_type { /* codes on disk */
                            BR_GGUF_U8,
                            BR_GGUF_I8,
                            BR_GGUF_U16,
                            BR_GGUF_I16,
                            BR_GGUF_U32,
                            BR_GGUF_I32,
                            BR_GGUF_F32,
                            BR_GGUF_BOOL,
                            BR_GGUF_STR,
                            BR_GGUF_ARR,
                            BR_GGUF_U64,
                            BR_GGUF_I64,
                            BR_GGUF_F64,
                            BR_GGUF_TYPE_COUNT
} br_gguf_type;

/* Values stay in the mapping; opening notes where the strings of an array
 * begin, so that each is found at once. */
typedef struct br_gguf_kv {
    br_text key;
    br_gguf_type type; /* BR_GGUF_ARR: see elem */
    br_gguf_type elem;
    uint64_t n;          /* elements of an array, else 1 */
    const uint8_t *data; /* first value; not aligned */
    const uint64_t
        *str_off; /* string arrays: n offsets from data, of lengths */
} br_gguf_kv;

typedef struct br_gguf_tensor {
    br_text name;
    int type; /* row of qtype.def (br_qtype) */
    uint32_t n_dims;
    uint64_t dim[BR_GGUF_MAX_DIMS]; /* dim[0] is contiguous; unused are 1 */
    uint64_t bytes;
    const uint8_t *data;
    uint32_t split; /* which file */
} br_gguf_tensor;

typedef struct br_gguf br_gguf;

/* Any file of a split set opens the whole set, a Hugging Face folder (hf.h) what it
 * would be as a file, in memory; the metadata is the first
 * file's. Of memory a file takes at most eight bytes for a byte of header, a folder all
 * of its weights. */
br_code br_gguf_open(br_gguf **out, const char *path,
                     br_status *st) BR_MUST_USE;
/* d, which may be NULL, is told how much of a folder has been read. */
struct br_hf_desc;
br_code br_gguf_open_told(br_gguf **out, const char *path,
                          const struct br_hf_desc *d,
                          br_status *st) BR_MUST_USE;
/* The same over bytes in memory, which must outlive it: tests and fuzzing. A
 * file of a split set is refused here. */
br_code br_gguf_open_mem(br_gguf **out, const void *p, size_t n,
                         br_status *st) BR_MUST_USE;
void br_gguf_close(br_gguf *g);
/* Which files these are and when they were written, as one digest; false where
 * the bytes are somebody else's. */
bool br_gguf_stamp(const br_gguf *g, uint8_t out[32]) BR_MUST_USE;
/* What is in them, wherever they lie: the beginning of each of 256 parts of a file. */
struct br_sha256;
void br_gguf_sample(const br_gguf *g, struct br_sha256 *h);
/* The (first) file, as it was named; NULL where there is none. */
const char *br_gguf_path(const br_gguf *g);
/* br_file_map_forget of all files. */
void br_gguf_forget(const br_gguf *g);

size_t br_gguf_n_kv(const br_gguf *g);
const br_gguf_kv *br_gguf_kv_at(const br_gguf *g, size_t i);
const br_gguf_kv *br_gguf_find(const br_gguf *g, const char *key); /* or NULL */
size_t br_gguf_n_tensors(const br_gguf *g);
const br_gguf_tensor *br_gguf_tensor_at(const br_gguf *g, size_t i);
const br_gguf_tensor *br_gguf_tensor_find(const br_gguf *g, const char *name);
uint64_t br_gguf_bytes(const br_gguf *g); /* of all files */
/* The same of a path that nobody has opened. Of a folder what its weights take there. */
br_code br_gguf_bytes_at(const char *path, uint64_t *bytes,
                         br_status *st) BR_MUST_USE;
uint32_t br_gguf_version(const br_gguf *g);
uint32_t br_gguf_alignment(const br_gguf *g); /* of the first file */
uint32_t br_gguf_n_splits(const br_gguf *g);  /* 1: not split */
/* Whether a path names one of its files. */
bool br_gguf_reads(const br_gguf *g, const char *path);
const char *br_gguf_type_name(br_gguf_type t); /* "u32", "str" */

/* Element i as a number or text; false when the key holds another type or i
 * is out of range. Integers of any width and sign that fit; bool as 0 or 1. */
bool br_gguf_i64(const br_gguf_kv *kv, uint64_t i, int64_t *out);
bool br_gguf_f64(const br_gguf_kv *kv, uint64_t i, double *out);
bool br_gguf_str(const br_gguf_kv *kv, uint64_t i, br_text *out);

/* "scalar or one per layer": element il of an array, or the scalar. */
bool br_gguf_i64_layer(const br_gguf_kv *kv, uint64_t il, int64_t *out);

#endif
