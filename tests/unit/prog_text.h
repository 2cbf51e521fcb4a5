/* prog_text.h - a task program in a few short lines.
 *
 *     b x IO_INPUT F32 [1,4]              buffers, numbered from 0; a space may
 *     b a ACTIVATION F32 [1,4] SMEM       follow the shape
 *     b o IO_OUTPUT F32 [1,4]
 *     t GELU 0 > 1                        task i signals counter i,
 *     t COPY 1 > 2 c0 w0:1,1:1 s2 {'K':4} or cN; waits counter:threshold,
 *                                         worker, parameters
 *     c 5                                 counters, if not one for each task;
 *                                         with their init
 *     + 'pages': {..}                     a member of the document
 *
 * ' stands for ". Lines end in \n. SPDX-License-Identifier: Apache-2.0 */
#ifndef PROG_TEXT_H
#define PROG_TEXT_H

#include "t.h"

#include "mega/mega.h"

char *pt_json(const char *lines);         /* freed with the test */
br_mega_prog *pt_load(const char *lines); /* fails the test if it does not */
/* Fails the test unless the sound check accepts. */
void pt_accepts(const char *lines);
/* ... unless it refuses, with an error that holds this text. */
void pt_refuses(const char *lines, const char *text);
/* ... unless it accepts, with a warning that holds this text. */
void pt_warns(const char *lines, const char *text);
/* A tree as text, freed with the test. */
const char *pt_dump(const br_json *v);
/* Counters, buffers and tasks, as members, of a program of the vectors that is
 * too big to store: nop_chain, nop_ring, gemv_fanin. */
void pt_family(br_str *s, const char *family, int n);

#endif
