/* gcn_kinds.h - what the printers and parsers of operands help each other
 * with. SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_GCN_KINDS_H
#define BR_GCN_KINDS_H

#include "cg/gcn/isa.h"

/* ---- reading text (gcn_scan.c) ---------------------------------------- */

void br_gcn_space(br_gcn_ctx *c);
/* Takes the text, whatever follows. */
bool br_gcn_eat(br_gcn_ctx *c, const char *z);
/* Takes the word: no letter, digit or _ follows. */
bool br_gcn_word(br_gcn_ctx *c, const char *z);
/* 0: no number, 1: an integer in *v, 2: a float in *d. Takes a sign. */
int br_gcn_number(br_gcn_ctx *c, int64_t *v, double *d);
/* An integer within lo..hi. */
bool br_gcn_int(br_gcn_ctx *c, int64_t lo, int64_t hi, int64_t *v);
uint64_t br_gcn_f64_bits(double v);
/* Of a float as the kind holds it (not of doubles); false: it is out of range. */
bool br_gcn_small_bits(const br_gcn_kind *k, double v, uint64_t *bits);

/* ---- shared by kinds -------------------------------------------------- */

/* Sets the literal; false where another one is there already. */
bool br_gcn_lit(br_gcn_ctx *c, uint32_t v);
void br_gcn_put_code(const br_gcn_ctx *c, const br_gcn_kind *k, unsigned code);
/* Whether a source of a DPP instruction has rules of its own; and whether the
 * code keeps them. */
bool br_gcn_dpp_checks(const br_gcn_ctx *c, br_gcn_field f);
bool br_gcn_dpp_src1(const br_gcn_ctx *c, unsigned code);
/* The negation or absolute-value bit of a source. */
bool br_gcn_mod_get(const br_gcn_ctx *c, br_gcn_field f, bool abs);
/* A source whose negation bit means sign extension instead. */
bool br_gcn_sext(const br_gcn_ctx *c, br_gcn_field f);
bool br_gcn_mod_set(br_gcn_ctx *c, br_gcn_field f, bool neg, bool abs);

/* Words that an image instruction has beyond its format's. */
unsigned br_gcn_more_words(const br_gcn_inst *in);
/* Rules between operands: bus limits, register banks, sizes. */
bool br_gcn_together(br_gcn_ctx *c);
/* Whether an image's registers are as many as the rest of it asks for. */
bool br_gcn_image_kept(br_gcn_ctx *c);

#define HOW(name) extern const br_gcn_how br_gcn_how_##name;
#include "cg/gcn/hows.def"
#undef HOW

#endif
