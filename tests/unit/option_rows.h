/* option_rows.h - options of every type, for the tests and the fuzzer.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef OPTION_ROWS_H
#define OPTION_ROWS_H

#include "base/options.h"

enum { JSON, QUIET, COUNT, CACHE, TEMP, NAME, OUT, MODE, ARG, LEVEL, HELP, N };

static const br_option rows[N] = {
    [JSON] = {.name = "json", .letter = 'j', .def = "no", .help = "print JSON"},
    [QUIET] = {.name = "quiet", .def = "yes", .help = "hush"},
    [COUNT] = {.name = "count",
               .letter = 'n',
               .type = BR_OPTION_INT,
               .lo = -5,
               .hi = 100,
               .def = "7",
               .value = "N",
               .help = "how many"},
    [CACHE] = {.name = "cache-bytes",
               .type = BR_OPTION_BYTES,
               .lo = 1,
               .hi = INT64_MAX,
               .value = "BYTES",
               .help = "cache"},
    [TEMP] = {.name = "temp",
              .type = BR_OPTION_FLOAT,
              .flo = 0,
              .fhi = 2,
              .def = "0.8",
              .value = "X",
              .help = "temperature"},
    [NAME] = {.name = "name",
              .type = BR_OPTION_STR,
              .value = "TEXT",
              .help = "a name"},
    [OUT] = {.name = "output",
             .letter = 'o',
             .type = BR_OPTION_PATH,
             .value = "FILE",
             .help = "where"},
    [MODE] = {.name = "mode",
              .type = BR_OPTION_ENUM,
              .choices = "fast|exact",
              .value = "MODE",
              .def = "fast",
              .help = "how"},
    [ARG] = {.name = "arg",
             .letter = 'I',
             .type = BR_OPTION_LIST,
             .value = "WORD",
             .help = "repeatable"},
    [LEVEL] = {.name = "log-level",
               .type = BR_OPTION_ENUM,
               .choices = "low|high",
               .value = "LEVEL",
               .global = true,
               .help = "log"},
    [HELP] = {.name = "help",
              .letter = 'h',
              .global = true,
              .last = true,
              .help = "help"},
};

#endif
