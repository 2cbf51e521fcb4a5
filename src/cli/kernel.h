/* kernel.h - what the kernel commands share.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_CLI_KERNEL_H
#define BR_CLI_KERNEL_H

#include "base/json.h"
#include "cg/ktarget.h"
#include "cli/cli.h"

/* Reads the command's file: PTX, kernel IR as text, .zrt for x86-64. On BR_OK
 * br_kir_free. *code: that of a .zrt, freed first, or NULL; code may be NULL. */
br_code br_kernel_load(br_cli *cli, br_kir **out, br_kcode **code,
                       br_status *st) BR_MUST_USE;
/* The same; *text: the file's bytes if they are PTX, br_free, or NULL. */
br_code br_kernel_load_text(br_cli *cli, br_kir **out, br_kcode **code,
                            char **text, br_status *st) BR_MUST_USE;
/* What launches by this name, itself or made in *own. NO_DEVICE. */
br_code br_kernel_target(const br_ktarget **out, br_ktarget *own,
                         const char *name, br_status *st) BR_MUST_USE;
/* The .zrt file in bytes, with --slot applied; code as above. */
br_code br_kernel_zrt(br_cli *cli, char *bytes, size_t n, br_kir **out,
                      br_kcode **code, br_status *st) BR_MUST_USE;
void br_kernel_zrt_print(FILE *out, const br_zrt *z);
void br_kernel_zrt_json(br_json_writer *w, const br_zrt *z);
/* u32:5 and the like as the bytes of p. */
br_code br_kernel_number(const char *arg, const br_kparam *p, uint8_t *at,
                         br_status *st) BR_MUST_USE;
/* The kernel of --entry, or the only one there is. */
br_code br_kernel_entry(br_cli *cli, const br_kir *m, uint32_t *fn,
                        br_status *st) BR_MUST_USE;

/* A kernel with its arguments, ready to run (kernel_run.c). */
typedef struct br_kbuffer {
    char *bytes, *base; /* base: what is freed */
    const char *write; /* the file that it goes to; NULL: read only, "": none */
} br_kbuffer;
typedef struct br_kjob {
    br_cli *cli;
    const br_ktarget *on;
    bool optimise;
    bool any; /* a .zrt's own code may run in place of on's */
    br_kir *m;
    br_kimage *image;
    br_kcode *code;
    char *ptx; /* the file's text, for who wants that */
    uint8_t *params;
    BR_VEC(br_kregion) regions;
    BR_VEC(uint32_t) places;    /* of their addresses in params */
    BR_VEC(br_kbuffer) buffers; /* of the regions, in order */
} br_kjob;
/* From cli, on and optimise, all else; br_kjob_fini after failures, too. */
br_code br_kjob_open(br_kjob *j, br_klaunch *l, br_status *st) BR_MUST_USE;
void br_kjob_fini(br_kjob *j);
/* Its parts. --grid and --block; --arg into params and regions, by what f says
 * of its parameters; the outputs to their files. */
br_code br_kjob_shape(br_cli *cli, uint32_t grid[3], uint32_t block[3],
                      br_status *st) BR_MUST_USE;
br_code br_kjob_args(br_kjob *j, const br_kfn *f, br_status *st) BR_MUST_USE;
br_code br_kjob_write(const br_kjob *j, br_status *st) BR_MUST_USE;

#endif
