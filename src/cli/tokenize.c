/* tokenize.c - brass tokenize: text to ids, ids to text.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"
#include "cli/catalogue.h"
#include "model/tokenizer.h"

#include <string.h>
#include <unistd.h>

/* ---- ids to text ------------------------------------------------------- */

/* Numbers between blanks or commas. */
static br_code
read_ids(const char *text, br_tok_ids *ids, br_status *st)
{
    static const char between[] = " ,\t\r\n";

    for (const char *p = text + strspn(text, between); *p;) {
        size_t n = strcspn(p, between);
        int64_t v;

        if (!br_json_to_i64((br_text){p, n}, &v) || v < 0 || v > INT32_MAX)
            return br_fail(st, BR_E_USAGE, "--detokenize: '%.*s' is no id",
                           (int)BR_MIN(n, 40), p);
        if (!br_vec_push(ids, (int32_t)v))
            return br_fail(st, BR_E_OOM, "out of memory");
        p += n;
        p += strspn(p, between);
    }
    return BR_OK;
}

static int
detokenize(br_cli *cli, const br_tok *t)
{
    br_status st = {0};
    br_tok_ids ids = {0};
    br_str text = {0}, doc = {0};
    br_json_writer w;
    int ret = 0;

    if (read_ids(br_opt_str(cli, BR_OPT_detokenize), &ids, &st) != BR_OK ||
        br_tok_decode(t, ids.at, ids.n,
                      BR_TOK_SHOW_SPECIAL | BR_TOK_KEEP_SPACES, &text,
                      &st) != BR_OK) {
        ret = br_cli_fail(cli, &st);
    } else if (br_opt_bool(cli, BR_OPT_json)) {
        br_json_w_begin(&w, &doc, 0);
        br_json_w_obj(&w);
        br_json_w_key(&w, "text");
        br_json_w_str(&w, (br_text){br_str_z(&text), text.n});
        br_json_w_obj_end(&w);
        ret = br_cli_json_out(cli, &doc);
    } else {
        fwrite(br_str_z(&text), 1, text.n, cli->out);
        if (isatty(fileno(cli->out)))
            fputc('\n', cli->out);
    }
    br_str_fini(&text);
    br_str_fini(&doc);
    br_vec_fini(&ids);
    return ret;
}

/* ---- text to ids ------------------------------------------------------- */

static const char *
type_name(br_tok_type type)
{
    switch (type) {
    case BR_TOK_UNDEFINED: return "undefined";
    case BR_TOK_NORMAL: return "normal";
    case BR_TOK_UNKNOWN: return "unknown";
    case BR_TOK_CONTROL: return "control";
    case BR_TOK_USER: return "user";
    case BR_TOK_UNUSED: return "unused";
    case BR_TOK_BYTE: return "byte";
    case BR_TOK_TYPE_COUNT: break;
    }
    br_unreachable("a type of a loaded vocabulary");
}

static int
print_json(br_cli *cli, const br_tok *t, const br_tok_ids *ids)
{
    br_str doc = {0};
    br_json_writer w;
    int ret;

    br_json_w_begin(&w, &doc, 0);
    br_json_w_obj(&w);
    br_json_w_key(&w, "ids");
    br_json_w_arr(&w);
    for (size_t i = 0; i < ids->n; i++)
        br_json_w_i64(&w, ids->at[i]);
    br_json_w_arr_end(&w);
    br_json_w_key(&w, "tokens");
    br_json_w_arr(&w);
    for (size_t i = 0; i < ids->n; i++) {
        br_json_w_obj(&w);
        br_json_w_key_i64(&w, "id", ids->at[i]);
        br_json_w_key(&w, "text");
        br_json_w_str(&w, br_tok_bytes(t, ids->at[i]));
        br_json_w_key_strz(&w, "type",
                           type_name(br_tok_type_of(t, ids->at[i])));
        br_json_w_obj_end(&w);
    }
    br_json_w_arr_end(&w);
    br_json_w_obj_end(&w);
    ret = br_cli_json_out(cli, &doc);
    br_str_fini(&doc);
    return ret;
}

static void
print_ids(br_cli *cli, const br_tok_ids *ids)
{
    for (size_t i = 0; i < ids->n; i++)
        fprintf(cli->out, "%s%d", i ? " " : "", ids->at[i]);
    fputc('\n', cli->out);
}

/* A terminal gets no byte that it could obey. */
static void
print_table(br_cli *cli, const br_tok *t, const br_tok_ids *ids)
{
    for (size_t i = 0; i < ids->n; i++) {
        br_text x = br_tok_bytes(t, ids->at[i]);

        fprintf(cli->out, "%7d  \"", ids->at[i]);
        for (size_t k = 0; k < x.n; k++) {
            uint8_t c = (uint8_t)x.p[k];

            if (c == '\n')
                fputs("\\n", cli->out);
            else if (c == '"' || c == '\\')
                fprintf(cli->out, "\\%c", c);
            else if (c < 0x20 || c == 0x7F || (x.n == 1 && c >= 0x80))
                fprintf(cli->out, "\\x%02X", c);
            else
                fputc(c, cli->out);
        }
        fputs("\"\n", cli->out);
    }
}

static int
tokenize(br_cli *cli, const br_tok *t, br_text text)
{
    br_status st = {0};
    br_tok_ids ids = {0};
    br_tok_work *work = br_tok_work_new();
    int flags =
        (br_opt_bool(cli, BR_OPT_bos) ? BR_TOK_ADD_SPECIAL : 0) |
        (br_opt_bool(cli, BR_OPT_parse_special) ? BR_TOK_PARSE_SPECIAL : 0);
    int ret = 0;

    if (!work)
        br_fail(&st, BR_E_OOM, "out of memory");
    if (!work || br_tok_encode(t, work, text, flags, &ids, &st) != BR_OK)
        ret = br_cli_fail(cli, &st);
    else if (br_opt_bool(cli, BR_OPT_json))
        ret = print_json(cli, t, &ids);
    else if (br_opt_bool(cli, BR_OPT_ids))
        print_ids(cli, &ids);
    else
        print_table(cli, t, &ids);
    br_tok_work_free(work);
    br_vec_fini(&ids);
    return ret;
}

int
br_cmd_tokenize(br_cli *cli)
{
    const char *file = br_opt_str(cli, BR_OPT_file);
    bool back = br_opt_given(cli, BR_OPT_detokenize);
    int sources = (cli->n_args > 1) + (file != NULL) + back, ret;
    br_status st = {0};
    char *read = NULL;
    br_text text = {"", 0};
    br_str path = {0};
    br_code code;
    br_tok *t;

    if (sources != 1)
        return br_cli_usage(cli, sources ? "TEXT, --file and --detokenize: "
                                           "only one of them"
                                         : "no TEXT, no --file and no "
                                           "--detokenize");
    if (br_opt_bool(cli, BR_OPT_ids) && br_opt_bool(cli, BR_OPT_json))
        return br_cli_usage(cli, "--ids and --json: only one of them");
    code = br_cli_model(cli, cli->args[0], &path, &st);
    if (code == BR_OK)
        code = br_tok_open(&t, path.at, br_opt_str(cli, BR_OPT_pre), &st);
    br_str_fini(&path);
    if (code != BR_OK)
        return br_cli_fail(cli, &st);
    if (file &&
        br_file_read(file, BR_TOK_MAX_TEXT, &read, &text.n, &st) != BR_OK) {
        br_tok_free(t);
        return br_cli_fail(cli, &st);
    }
    if (read)
        text.p = read;
    else if (cli->n_args > 1)
        text = br_text_z(cli->args[1]);
    ret = back ? detokenize(cli, t) : tokenize(cli, t, text);
    br_free(read);
    br_tok_free(t);
    return ret;
}
