/* commands.c - the tables of commands and options, and the longest match.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg/kcache.h"
#include "cli/cli.h"

#include <string.h>

/* clang-format off: one field to a line, as the macros would have it, hides
 * what is a table. */

/* ---- options.def -------------------------------------------------------- */

enum { ONE, RARE, ALL, STOP, WHO = 0xf, CPU = 0x10, CUDA = 0x20, AMD = 0x30 };
#define ON(who, tier) ((who) | (tier))
#define NONE
#define R(from, to) .lo = (from), .hi = (to),
#define F(from, to) .flo = (from), .fhi = (to),
#define C(names)    .choices = (names),
#define X(id, who, flag, let, kind, range, dflt, val, text) \
    {.name = (flag),                                        \
     .letter = (let),                                       \
     .type = BR_OPTION_##kind,                              \
     range.def = (dflt),                                    \
     .value = (val),                                        \
     .help = (text),                                        \
     .global = ((who)&WHO) >= ALL,                          \
     .rare = ((who)&WHO) == RARE,                           \
     .last = ((who)&WHO) == STOP},
const br_option br_cli_option_rows[BR_OPT_COUNT] = {
#include "cli/options.def"
};
#undef X

static const uint8_t only_on[BR_OPT_COUNT] = {
#define X(id, who, flag, let, kind, range, dflt, val, text) (who) & ~WHO,
#include "cli/options.def"
#undef X
};

/* ---- commands.def ------------------------------------------------------- */

#define T(id) BR_OPT_##id,
#define CMD(name, words, args, lo, hi, summary, takes, doc) \
    {words,                                                 \
     args,                                                  \
     lo,                                                    \
     hi,                                                    \
     summary,                                               \
     doc,                                                   \
     (const uint16_t[]){takes BR_OPT_COUNT},                \
     br_cmd_##name},
#define GROUP(word, what)
static const br_cmd cmds[] = {
#include "cli/commands.def"
};
#undef CMD
#undef GROUP
/* clang-format on */

static const struct {
    const char *word, *what;
} groups[] = {
#define CMD(name, words, args, lo, hi, summary, takes, doc)
#define GROUP(word, what) {word, what},
#include "cli/commands.def"
#undef CMD
#undef GROUP
};

const char *
br_cli_only_on(br_opt_id id)
{
    br_assert((unsigned)id < BR_OPT_COUNT);
    switch (only_on[id]) {
    case CPU: return "cpu";
    case CUDA: return "cuda";
    case AMD: return "amd";
    default: return NULL;
    }
}

size_t
br_cli_cmd_count(void)
{
    return BR_COUNT(cmds);
}

const br_cmd *
br_cli_cmd(size_t i)
{
    br_assert(i < BR_COUNT(cmds));
    return &cmds[i];
}

const char *
br_cli_group(const char *word)
{
    for (size_t i = 0; i < BR_COUNT(groups); i++)
        if (strcmp(groups[i].word, word) == 0)
            return groups[i].what;
    return NULL;
}

/* How many words of "prog check" the user's words begin with; *whole: all. */
static int
match(const char *words, const char *const *argv, int n, bool *whole)
{
    int used = 0;

    while (*words && used < n) {
        size_t len = strcspn(words, " ");

        if (!br_text_is((br_text){words, len}, argv[used]))
            break;
        used++;
        words += len + (words[len] == ' ');
    }
    *whole = *words == 0;
    return used;
}

const br_cmd *
br_cli_find(const char *const *words, int n, int *used)
{
    const br_cmd *found = NULL;
    int best = 0, begun = 0;

    for (size_t i = 0; i < BR_COUNT(cmds); i++) {
        bool whole;
        int k = match(cmds[i].words, words, n, &whole);

        begun = BR_MAX(begun, k);
        if (whole && k > best) {
            best = k;
            found = &cmds[i];
        }
    }
    *used = found ? best : begun;
    return found;
}

static bool
has_commands(const char *group)
{
    size_t n = strlen(group);

    for (size_t i = 0; i < BR_COUNT(cmds); i++)
        if (strncmp(cmds[i].words, group, n) == 0 && cmds[i].words[n] == ' ')
            return true;
    return false;
}

const char *
br_cli_page(size_t i)
{
    for (size_t g = 0; g < BR_COUNT(groups); g++)
        if (has_commands(groups[g].word) && i-- == 0)
            return groups[g].word;
    for (size_t c = 0; c < BR_COUNT(cmds); c++)
        if (!strchr(cmds[c].words, ' ') && i-- == 0)
            return cmds[c].words;
    return NULL;
}

/* The words of a command that come after `group` and a blank; "": all of them;
 * NULL: the command is of another group. */
static const char *
words_after(const br_cmd *cmd, const char *group)
{
    size_t n = strlen(group);

    if (n == 0)
        return cmd->words;
    if (strncmp(cmd->words, group, n) != 0 || cmd->words[n] != ' ')
        return NULL;
    return cmd->words + n + 1;
}

void
br_cli_group_words(const char *group, br_str *out)
{
    const char *sep = "";

    for (size_t i = 0; i < BR_COUNT(cmds); i++) {
        const char *w = words_after(&cmds[i], group);

        if (!w)
            continue;
        br_str_printf(out, "%s%s", sep, w);
        sep = " ";
    }
}

void
br_cli_suggest(const char *const *words, int used, char *hint, size_t size)
{
    const char *group = used ? words[0] : "", *want = words[used];
    br_suggest near;

    br_suggest_begin(&near, br_text_z(want));
    for (size_t i = 0; i < BR_COUNT(cmds); i++) {
        const char *w = words_after(&cmds[i], group);

        if (w)
            br_suggest_offer(&near, (br_text){w, strcspn(w, " ")});
    }
    /* "brass fmt" is short for what it may mean. */
    for (size_t i = 0; i < BR_COUNT(cmds) && !used && !near.best.p; i++) {
        const char *last = strrchr(cmds[i].words, ' ');

        if (last && strcmp(last + 1, want) == 0)
            near.best = br_text_z(cmds[i].words);
    }
    br_suggest_text(&near, "", hint, size);
}
