/* fuzz_options.c - the parser of options, with a row of every type.
 *
 * The input is a list of texts that end in a NUL byte: those that begin with
 * BRASS_ are the environment, the others argv. Whatever is accepted has to lie
 * inside its row's range; whatever is refused has to say why.
 * SPDX-License-Identifier: Apache-2.0 */
#include "../unit/option_rows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { TEXTS = 64 };

static void
must(bool c)
{
    if (!c)
        abort();
}

static void
in_range(const br_option *r, const br_option_value *v)
{
    switch (r->type) {
    case BR_OPTION_BOOL: break;
    case BR_OPTION_INT:
    case BR_OPTION_BYTES: must(v->i >= r->lo && v->i <= r->hi); break;
    case BR_OPTION_FLOAT: must(v->f >= r->flo && v->f <= r->fhi); break;
    case BR_OPTION_STR: must(v->s != NULL); break;
    case BR_OPTION_PATH: must(v->s && *v->s); break;
    case BR_OPTION_ENUM: must(v->i >= 0 && v->i < 2); break;
    case BR_OPTION_LIST:
        for (size_t i = 0; i < v->list.n; i++)
            must(v->list.at[i] != NULL);
        break;
    }
}

static void
read_all(int n, char *const *argv, char *const *env)
{
    char typo[100];
    br_status st = {0};
    br_options o;
    int at = 0;
    br_code code = br_options_init(&o, rows, BR_COUNT(rows), "BRASS_", &st);

    must(code == BR_OK);
    for (size_t i = 0; i < BR_COUNT(rows); i++)
        br_options_take(&o, i);
    code = br_options_argv(&o, n, argv, &at, true, &st);
    if (code == BR_OK)
        code = br_options_argv(&o, n, argv, &at, false, &st);
    must(at >= 0 && at <= n && (code || o.stopped || at == n));
    if (code == BR_OK)
        code = br_options_env(&o, env, &st);
    if (code == BR_OK)
        code = br_options_defaults(&o, &st);
    must(code == BR_OK || (code == BR_E_USAGE && *st.msg));
    for (size_t i = 0; i < BR_COUNT(rows) && code == BR_OK; i++)
        if (o.values[i].from != BR_FROM_NOWHERE)
            in_range(&rows[i], &o.values[i]);
    for (size_t i = 0; br_options_env_typo(&o, env, &i, typo, sizeof typo);)
        must(strlen(typo) < sizeof typo);
    br_options_fini(&o);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *argv[TEXTS + 1], *env[TEXTS + 1];
    char *text = malloc(size + 1);
    int n_argv = 0, n_env = 0;

    must(text != NULL);
    if (size)
        memcpy(text, data, size);
    text[size] = 0;
    for (size_t at = 0; at < size; at += strlen(text + at) + 1) {
        if (strncmp(text + at, "BRASS_", 6) == 0 && n_env < TEXTS)
            env[n_env++] = text + at;
        else if (n_argv < TEXTS)
            argv[n_argv++] = text + at;
    }
    argv[n_argv] = env[n_env] = NULL;
    read_all(n_argv, argv, env);
    free(text);
    return 0;
}
