/* talk.h - what `run` and `chat` share: a model ready to answer, as the
 * options want it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_TALK_H
#define BR_TALK_H

#include "cli/cli.h"
#include "run/chat.h"
#include "run/generate.h"
#include "run/lm_model.h"

typedef struct br_talk {
    br_cli *cli;
    br_str path; /* of the model */
    br_model *model;
    br_tok *tok;
    br_lm_model *lm;
    br_session *session;
    br_tok_work *work;
    br_chat *chat; /* NULL unless asked for */
    br_gen_params params;
    br_gen_stats stats; /* of the latest answer */
    BR_VEC(br_logit_bias) bias;
    br_tok_ids prompt;
    const atomic_bool *stop; /* loading ends when it says so; may be NULL */
    bool once; /* no talk goes on: Ctrl-C ends the process while the prompt is
                * read, until br_interrupt_ends says otherwise */
} br_talk;

/* The file and its words; then its weights, as fits t->prompt, if that is there. They can
 * be loaded again. Both fail with messages that name the file or the option. */
br_code br_talk_open(br_talk *t, br_cli *cli, bool chat,
                     br_status *st) BR_MUST_USE;
br_code br_talk_load(br_talk *t, br_status *st) BR_MUST_USE;
void br_talk_close(br_talk *t);
/* Loads again, in a talk that goes on: CANCELLED after a Ctrl-C, then there may be
 * no session. A second one ends the program. */
br_code br_talk_reload(br_talk *t, br_status *st) BR_MUST_USE;
/* They are not there, or so much of t->prompt is new that they should be loaded again
 * for it. */
bool br_talk_outgrown(const br_talk *t);

/* Answers t->prompt. While it runs Ctrl-C ends the answer; a second one ends
 * the program. */
br_code br_talk_answer(br_talk *t, br_status *st) BR_MUST_USE;
/* Text of a model on its way out: a terminal gets nothing it could obey. */
void br_talk_print(FILE *f, br_text piece);
/* "12 tokens, 20.1 tok/s, first after 0.31 s" on stderr, dimmed, where that is
 * a terminal; and why it ended, where that needs saying. */
void br_talk_numbers(const br_talk *t);

#endif
