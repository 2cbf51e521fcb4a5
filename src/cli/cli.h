/* cli.h - what a subcommand sees: its options, its arguments, its streams.
 *
 *   main -> br_cli_main -> longest match in commands.def
 *                       -> flags, environment, defaults (options.def)
 *                       -> int br_cmd_prog_check(br_cli *cli)
 *
 * A subcommand reads no environment, parses no argv and calls no exit(). It
 * writes results to cli->out and nothing else there; br_cli_main notices when
 * a write failed. Bad input is one line on stderr through br_cli_fail.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_CLI_H
#define BR_CLI_H

#include "base/base.h"
#include "base/options.h"

#include <stdio.h>

typedef enum br_opt_id {
#define X(id, who, flag, letter, type, range, def, value, help) BR_OPT_##id,
#include "cli/options.def"
#undef X
    BR_OPT_COUNT
} br_opt_id;

typedef struct br_cli br_cli;

typedef struct br_cmd {
    const char *words; /* "prog check" */
    const char *args;  /* "PROG.json" */
    int lo, hi;        /* how many arguments; hi -1: any number */
    const char *summary, *doc;
    const uint16_t *takes; /* br_opt_id, ended by BR_OPT_COUNT */
    int (*run)(br_cli *cli);
} br_cmd;

struct br_cli {
    const br_cmd *cmd; /* NULL until it is found */
    const char *name;  /* "prog check": begins every message; "" at first */
    br_options options;
    int n_args;
    const char *const *args; /* the arguments that are no options */
    FILE *out, *err;
    char *const *env;
};

/* The whole program but for main's globals; returns the exit code. argv[0] is
 * the program's name. Tests call it with files of their own as out and err. */
int br_cli_main(int argc, char *const *argv, char *const *env, FILE *out,
                FILE *err);

/* ---- options ----------------------------------------------------------- */

bool br_opt_given(const br_cli *cli, br_opt_id id); /* by flag or variable */
bool br_opt_bool(const br_cli *cli, br_opt_id id);
/* Unset options without default: 0, and br_opt_given is false. */
int64_t br_opt_int(const br_cli *cli, br_opt_id id);
double br_opt_f64(const br_cli *cli, br_opt_id id);
int br_opt_enum(const br_cli *cli, br_opt_id id);        /* -1: unset */
const char *br_opt_str(const br_cli *cli, br_opt_id id); /* NULL: unset */
size_t br_opt_list(const br_cli *cli, br_opt_id id, const char *const **out);

/* A variable of the environment that is not empty, or NULL. */
const char *br_cli_env(const br_cli *cli, const char *name);
/* TERM says that a terminal obeys no escape sequences. */
bool br_cli_dumb(const br_cli *cli);
/* May what is written to f be dim? Only on a terminal that is not dumb, and
 * while NO_COLOR is not set. */
bool br_cli_styled(const br_cli *cli, FILE *f);
/* Appends $XDG/brass, or ~/HOME_PATH/brass. False: the environment names
 * neither. */
bool br_cli_folder(const br_cli *cli, const char *xdg, const char *home_path,
                   br_str *out);

/* What --kv-type says, as a br_qtype; F16 where only speed counts. */
int br_cli_kv(const br_cli *cli, bool fast);

/* The folder of what can be made again, there; NULL: none. */
const char *br_cli_cache(const br_cli *cli, br_str *path);

/* 2026-01-15T12:00:00, shorter, a blank for the T, a Z at the end or not: UTC,
 * as seconds since 1970. False: it is none. */
bool br_cli_time(const char *text, int64_t *out);

/* SIGINT waits until it is let in again; returns whether it did before. */
bool br_cli_hold_interrupts(bool hold);

/* ---- results and failures ---------------------------------------------- */

/* One line on stderr, "brass prog check: FILE: place: rule", and the exit code
 * that errors.def gives to the status. The message says FILE itself (see
 * br_prefix). Control characters in it are shown as \xNN. */
int br_cli_fail(br_cli *cli, const br_status *st) BR_MUST_USE;
/* The same for wrong usage; a pointer to --help is added. Returns 2. */
int br_cli_usage(br_cli *cli, const char *fmt, ...) BR_PRINTF(2, 3);
/* Prints a finished text and a newline; 1 when memory ran out on the way. */
int br_cli_json_out(br_cli *cli, const br_str *doc) BR_MUST_USE;
/* Is a result to go to standard output? *path is what opens it then; what a command
 * says besides is for cli->err, and --json has no place. */
bool br_cli_piped(const char **path);
/* Writes a result to the file of --output; NULL or "-" is cli->out. */
br_code br_cli_write(br_cli *cli, const char *path, const void *p, size_t n,
                     br_status *st) BR_MUST_USE;

/* ---- tables (commands.c) ------------------------------------------------ */

extern const br_option br_cli_option_rows[BR_OPT_COUNT];
/* The one tier that the option is for; NULL: for any. */
const char *br_cli_only_on(br_opt_id id);
size_t br_cli_cmd_count(void);
const br_cmd *br_cli_cmd(size_t i);
/* What the commands that begin with this word serve; NULL: no such group. */
const char *br_cli_group(const char *word);
/* The command whose words are the longest match of words[0..n); *used says how
 * many of them. NULL: none, and *used is how many begin some command. */
const br_cmd *br_cli_find(const char *const *words, int n, int *used);

/* "check fmt sim": the second words of a group. */
void br_cli_group_words(const char *group, br_str *out);
/* "; did you mean 'prog fmt'?", or "": words[used] is the one that is wrong. */
void br_cli_suggest(const char *const *words, int used, char *hint,
                    size_t size);

#define CMD(name, words, args, lo, hi, summary, takes, doc) \
    int br_cmd_##name(br_cli *cli);
#define GROUP(word, what)
#include "cli/commands.def"
#undef CMD
#undef GROUP

/* ---- texts -------------------------------------------------------------- */

/* help.c. One screen for --help; `longer` adds doc and variables. cmd NULL:
 * the list of the commands of a group ("prog"), or of all ("").
 * BR_E_OOM only. */
br_code br_cli_help(const br_cmd *cmd, const char *group, bool longer,
                    br_str *out, br_status *st) BR_MUST_USE;
/* man.c. Source of brass.1 ("") or brass-prog.1 ("prog"). */
br_code br_cli_man(const char *page, br_str *out, br_status *st) BR_MUST_USE;
/* The options that a command takes, no values yet. */
br_code br_cli_options_of(const br_cmd *cmd, br_options *o,
                          br_status *st) BR_MUST_USE;
/* Names of pages: every group, every command of one word. */
const char *br_cli_page(size_t i); /* NULL: no more */
const char *br_cli_date(void);     /* version.c: of the commit, "2026-11-21" */

/* The graph of the model or of the .ir file that an argument names, by --stage
 * and --ctx (ir_show.c). */
struct br_ir;
br_code br_cli_graph(br_cli *cli, const char *path, struct br_ir **out,
                     br_status *st) BR_MUST_USE;
bool br_cli_is_ir(const char *path); /* its name ends in .ir */

/* bench.c. REJECTED: s seconds are less than what reading and multiplying alone
 * take, by more than the tenth that probes are off. */
br_code br_bench_believe(double s, double least_s, br_status *st) BR_MUST_USE;

#endif
