/* catalogue.h - models by name: those that can be had, those that are here.
 *
 *   catalogue   models/catalogue.json, inside the binary, and the user's own
 *               CONFIG/brass/catalogue.json: rows of name, quant, bytes,
 *               sha256, url. A row of the user's replaces one of the same name
 *               and quant.
 *   store       a folder of GGUF files: --models, or DATA/brass/models. A row
 *               of the catalogue lies there as NAME-QUANT.gguf.
 *   active      the file `active` in the store: the model that commands take
 *               when none is named
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_CATALOGUE_H
#define BR_CATALOGUE_H

#include "cli/cli.h"

enum {
    BR_CATALOGUE_MAX_BYTES = 4 << 20,
    BR_CATALOGUE_MAX_ROWS = 10000,
    BR_CATALOGUE_MAX_NAME = 100, /* of name, of quant, of a file */
};

typedef struct br_catalogue_row {
    const char *name, *quant;
    const char *url;
    const char *sha256; /* NULL: not told */
    uint64_t bytes;     /* 0: not told; of a set all its files */
    /* Of a set (the URL ends in -00001-of-00003.gguf), where told: [files] */
    const struct br_catalogue_part {
        const char *sha256;
        uint64_t bytes;
    } * parts;
} br_catalogue_row;

typedef struct br_catalogue {
    br_arena arena;
    BR_VEC(br_catalogue_row) rows;
} br_catalogue;

br_code br_catalogue_load(br_catalogue *c, const br_cli *cli,
                          br_status *st) BR_MUST_USE;
/* Adds the rows of one file. */
br_code br_catalogue_parse(br_catalogue *c, const char *text, size_t n,
                           br_status *st) BR_MUST_USE;
void br_catalogue_free(br_catalogue *c);
/* "NAME", whose first row that fits the memory, else its first; "NAME:QUANT";
 * "NAME-QUANT". NULL: none. */
const br_catalogue_row *br_catalogue_find(const br_catalogue *c,
                                          const char *name);
/* "; did you mean 'qwen3-4b'?", or "" */
void br_catalogue_hint(const br_catalogue *c, const char *name, char hint[100]);
/* "NAME-QUANT.gguf", of a set "NAME-QUANT-00001-of-00003.gguf" */
void br_catalogue_file(const br_catalogue_row *row, br_str *out);

/* "...-00002-of-00003.gguf": 3, and the 20 bytes it is by are the last of the
 * name; 0: no file of a set. *no, if not NULL: 2. */
enum { BR_SET_SUFFIX = 20 };
uint32_t br_set_of(br_text name, uint32_t *no);
/* The file name of a URL: what is between its last slash and ? or #. */
br_text br_url_name(const char *url);

/* What a model of this size needs to run, and whether this machine has it. */
bool br_model_fits(uint64_t bytes, uint64_t memory_bytes);

/* ---- the store (store.c) ------------------------------------------------- */

/* The folder, which need not be there: who only looks makes none. */
br_code br_store_dir(const br_cli *cli, br_str *dir, br_status *st) BR_MUST_USE;
/* Makes it; IO: why it is not there. */
br_code br_store_make(br_str *dir, br_status *st) BR_MUST_USE;
/* No file name but a plain one: letters, digits and "._-", no dot first. */
bool br_store_plain(const char *name);
/* The path of a model in the store by any of its names. NOT_FOUND: with the
 * word that would get it, where the catalogue has it. */
br_code br_store_find(const br_cli *cli, const char *name, br_str *path,
                      br_status *st) BR_MUST_USE;
/* What the file `active` says; NOT_FOUND when there is none. */
br_code br_store_active(const br_cli *cli, br_str *path,
                        br_status *st) BR_MUST_USE;
br_code br_store_set_active(const br_cli *cli, const char *path,
                            br_status *st) BR_MUST_USE;

/* What a command's MODEL means: a file that is there and may be a model, else a
 * name of the store; NULL: the active model. */
br_code br_cli_model(const br_cli *cli, const char *given, br_str *path,
                     br_status *st) BR_MUST_USE;

#endif
