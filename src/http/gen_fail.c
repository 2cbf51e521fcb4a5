/* gen_fail.c - which of a request's choices failed, and what its client is told.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "http/gen.h"

#include <stdio.h>
#include <string.h>

br_error
br_gen_error(br_choice *c)
{
    br_error e = {.status = 500, .msg = c->error};

    switch (c->usage.finish) {
    case BR_FINISH_TOO_SLOW:
        e.msg = "client_too_slow: the answer was not fetched";
        break;
    case BR_FINISH_DEADLINE:
        e = (br_error){.status = 504, .msg = "the deadline has passed"};
        break;
    case BR_FINISH_SHUTDOWN:
    case BR_FINISH_CANCELLED:
        e = (br_error){.status = 503, .msg = "the server is shutting down"};
        if (c->gen->cancelled || c->gen->dropped)
            e.msg = "the response was cancelled";
        if (!c->gen->kept)
            break;
        snprintf(c->error, sizeof c->error,
                 "the server restarts, then this answer goes on by itself: GET "
                 "/v1/requests/%s has it",
                 c->gen->id);
        e.msg = c->error;
        e.code = "restarting";
        break;
    default:
        e.status = br_code_http(c->code);
        /* Its grammar allows no token or asks too much of a step, its biases
         * leave none: found late, but 400 as what is found early. */
        if (c->code == BR_E_LIMIT || c->code == BR_E_REJECTED)
            e.status = 400;
        if (c->code == BR_E_LIMIT && c->gen->wire->embeds) /* a later text */
            e.code = "context_length_exceeded";
        if (e.status == 400 && c->matcher &&
            br_matcher_hook(c->matcher).error[0])
            e.param = c->gen->ask.form ? c->gen->ask.form : "tools";
        break;
    }
    return e;
}

br_choice *
br_gen_failed(br_gen *g)
{
    br_choice *bad = NULL;

    for (uint32_t i = 0; i < g->n_choices; i++) {
        br_finish why = g->choices[i].usage.finish;

        if (strcmp(br_finish_openai(why), "error") == 0 &&
            (!bad || bad->usage.finish == BR_FINISH_CANCELLED))
            bad = &g->choices[i];
    }
    return bad;
}
