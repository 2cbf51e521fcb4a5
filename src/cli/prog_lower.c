/* prog_lower.c - brass prog lower: a graph or a known shape as a task program.
 *
 *   shape:llama-3.2-1b:bf16   a row of shapes.def, weights of this dtype
 *   GRAPH.json                a graph file (docs/graph.md)
 *   MODEL.gguf, GRAPH.ir      a model, or its transformer graph as text
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/cli.h"
#include "ir/ir.h"
#include "mega/lower.h"

#include <string.h>
#include <sys/stat.h>

enum { MAX_CONFIG_BYTES = 16 << 20 };

static br_code
shape_dtype(const char *text, br_mega_dtype *out, br_status *st)
{
    char upper[8] = {0};
    int d = -1;

    for (size_t i = 0; text[i] && i + 1 < sizeof upper; i++)
        upper[i] =
            (char)(text[i] >= 'a' && text[i] <= 'z' ? text[i] - 32 : text[i]);
    if (strlen(text) < sizeof upper)
        d = br_mega_dtype_find(br_text_z(upper));
    if (d != BR_MDT_F32 && d != BR_MDT_F16 && d != BR_MDT_BF16)
        return br_fail(st, BR_E_USAGE, "'%.20s' is not f32, f16 or bf16", text);
    *out = (br_mega_dtype)d;
    return BR_OK;
}

static br_code
no_such_shape(br_text name, br_status *st)
{
    br_str list = {0};
    br_code code;

    for (size_t i = 0; i < br_mega_shape_count(); i++)
        br_str_printf(&list, "%s%s", i ? ", " : "", br_mega_shape_at(i)->name);
    code = br_fail(st, BR_E_NOT_FOUND, "shape '%.*s': not known; there are %s",
                   (int)BR_MIN(name.n, (size_t)40), name.p, br_str_z(&list));
    br_str_fini(&list);
    return code;
}

/* "NAME" or "NAME:DTYPE", after "shape:". */
static br_code
net_of_shape(br_cli *cli, const char *text, br_mega_net **out, br_status *st)
{
    const char *colon = strchr(text, ':');
    br_text name = {text, colon ? (size_t)(colon - text) : strlen(text)};
    const br_mega_shape *row = br_mega_shape_find(name);
    br_mega_step step = {.batch = br_opt_int(cli, BR_OPT_batch),
                         .pos = br_opt_int(cli, BR_OPT_pos),
                         .dtype = BR_MDT_BF16};
    br_mega_shape s;
    int quant = br_opt_enum(cli, BR_OPT_quant);

    if (!row)
        return no_such_shape(name, st);
    s = *row;
    if (colon)
        BR_TRY(shape_dtype(colon + 1, &step.dtype, st));
    if (br_opt_given(cli, BR_OPT_layers))
        s.n_layers = br_opt_int(cli, BR_OPT_layers);
    if (quant >= 0) {
        step.quant_bits = quant == 0 ? 4 : 8;
        step.quant_group = br_opt_int(cli, BR_OPT_group);
    }
    return br_mega_net_model(out, &s, &step, st);
}

static br_code
net_of_file(br_cli *cli, const char *path, br_mega_net **out, br_status *st)
{
    static const br_opt_id shape_only[] = {BR_OPT_batch, BR_OPT_pos,
                                           BR_OPT_layers, BR_OPT_quant};
    char *text;
    size_t n;
    br_code code;

    BR_TRY(br_file_read(path, BR_NET_MAX_FILE_BYTES, &text, &n, st));
    for (size_t i = 0; i < BR_COUNT(shape_only); i++)
        if (br_opt_given(cli, shape_only[i])) {
            br_free(text);
            return br_fail(st, BR_E_USAGE,
                           "--%s is for shapes; a graph file says it itself",
                           br_cli_option_rows[shape_only[i]].name);
        }
    code = br_mega_net_parse(out, text, n, st);
    br_free(text);
    return code == BR_OK ? code : br_prefix(st, "%s", path);
}

/* A model says what it is in its first bytes; a Hugging Face folder or a part
 * of a split file is what br_model_open takes. */
static bool
is_model(const char *path)
{
    char head[4] = {0};
    struct stat is;
    FILE *f;

    if (br_cli_is_ir(path) || (stat(path, &is) == 0 && S_ISDIR(is.st_mode)))
        return true;
    f = fopen(path, "rb");
    if (!f)
        return false;
    (void)!fread(head, 1, sizeof head, f);
    fclose(f);
    return memcmp(head, "GGUF", sizeof head) == 0;
}

static br_code
read_config(const char *path, br_arena *a, br_json **out, br_status *st)
{
    char *text;
    size_t n;
    br_code code;

    BR_TRY(br_file_read(path, MAX_CONFIG_BYTES, &text, &n, st));
    code = br_json_parse(out, a, text, n, BR_JSON_LAX, st);
    br_free(text);
    return code == BR_OK ? code : br_prefix(st, "%s", path);
}

/* ---- results ------------------------------------------------------------- */

static int
print_json(br_cli *cli, const br_mega_prog *p, const br_mega_lower_stats *s)
{
    br_str doc = {0};
    br_json_writer w;
    int ret;

    br_json_w_begin(&w, &doc, 0);
    br_json_w_obj(&w);
    br_json_w_key_u64(&w, "tasks", p->n_tasks);
    br_json_w_key_u64(&w, "buffers", p->n_buffers);
    br_json_w_key_u64(&w, "counters", p->n_counters);
    br_json_w_key_u64(&w, "pages", p->n_pages);
    br_json_w_key_u64(&w, "workers", s->workers);
    br_json_w_key_u64(&w, "fused_groups", s->fused_groups);
    br_json_w_key_u64(&w, "resident_groups", s->resident_groups);
    br_json_w_key_u64(&w, "split_attentions", s->split_attentions);
    br_json_w_key_u64(&w, "on_chip_buffers", s->on_chip);
    br_json_w_key_i64(&w, "weight_bytes", br_mega_weight_bytes(p));
    br_json_w_obj_end(&w);
    ret = br_cli_json_out(cli, &doc);
    br_str_fini(&doc);
    return ret;
}

static void
print_text(br_cli *cli, const char *path, const br_mega_prog *p,
           const br_mega_lower_stats *s)
{
    fprintf(cli->out, "%s: %zu tasks, %zu buffers, %zu counters, %zu pages\n",
            path, p->n_tasks, p->n_buffers, p->n_counters, p->n_pages);
    if (s->workers)
        fprintf(cli->out,
                s->workers == 1 ? "%zu worker has tasks\n"
                                : "%zu workers have tasks\n",
                s->workers);
    if (s->fused_groups + s->resident_groups)
        fprintf(cli->out, "%zu groups fused, %zu resident\n", s->fused_groups,
                s->resident_groups);
}

/* The program goes to --output; without one to standard output, unless that
 * is where --json prints. */
static int
deliver(br_cli *cli, const br_mega_prog *p, const br_mega_lower_stats *s,
        br_status *st)
{
    const char *path = br_opt_str(cli, BR_OPT_output);
    bool json = br_opt_bool(cli, BR_OPT_json);
    br_str text = {0};
    br_code code = BR_OK;

    if (path || !json) {
        code = br_mega_save(p, &text, st);
        if (code == BR_OK)
            code = br_cli_write(cli, path, text.at, text.n, st);
        br_str_fini(&text);
    }
    if (code != BR_OK)
        return br_cli_fail(cli, st);
    if (json)
        return print_json(cli, p, s);
    if (path && strcmp(path, "-") != 0)
        print_text(cli, path, p, s);
    return 0;
}

static int
deliver_graph(br_cli *cli, const br_mega_net *net, br_status *st)
{
    br_str text = {0};
    br_code code;

    br_mega_net_write(net, &text);
    br_str_putc(&text, '\n');
    code = text.oom ? br_fail(st, BR_E_OOM, "graph: out of memory")
                    : br_cli_write(cli, br_opt_str(cli, BR_OPT_output), text.at,
                                   text.n, st);
    br_str_fini(&text);
    return code == BR_OK ? 0 : br_cli_fail(cli, st);
}

static br_code
lower(br_cli *cli, const br_mega_net *net, br_arena *a, br_mega_prog **out,
      br_mega_lower_stats *stats, br_status *st)
{
    const char *target = br_opt_str(cli, BR_OPT_target);
    const char *config = br_opt_str(cli, BR_OPT_config);
    br_mega_lower_opts o = {.style = br_opt_enum(cli, BR_OPT_style) == 1
                                         ? BR_LOWER_AMK
                                         : BR_LOWER_HOUSE};
    br_mega_target t;
    br_json *c = NULL;
    br_code code;

    if (target) {
        BR_TRY(br_mega_target_get(&t, br_text_z(target), st));
        o.target = &t;
    }
    if (config)
        BR_TRY(read_config(config, a, &c, st));
    o.config = c;
    code = br_mega_lower(out, net, &o, stats, st);
    if (code != BR_OK && config && strncmp(st->msg, "config", 6) == 0)
        return br_prefix(st, "%s", config);
    return code;
}

static br_code
model_only(br_cli *cli, bool is_model_arg, br_status *st)
{
    static const br_opt_id model[] = {BR_OPT_stage, BR_OPT_workers,
                                      BR_OPT_rows,  BR_OPT_tile,
                                      BR_OPT_ctx,   BR_OPT_fused};
    static const br_opt_id other[] = {
        BR_OPT_config, BR_OPT_target, BR_OPT_style, BR_OPT_batch, BR_OPT_pos,
        BR_OPT_layers, BR_OPT_quant,  BR_OPT_group, BR_OPT_graph};
    const br_opt_id *list = is_model_arg ? other : model;
    size_t n = is_model_arg ? BR_COUNT(other) : BR_COUNT(model);

    for (size_t i = 0; i < n; i++)
        if (br_opt_given(cli, list[i]))
            return br_fail(st, BR_E_USAGE, "--%s is %s",
                           br_cli_option_rows[list[i]].name,
                           is_model_arg ? "not for a model"
                                        : "for a model, which this is not");
    return BR_OK;
}

static br_code
lower_model(br_cli *cli, br_mega_prog **out, br_mega_lower_stats *stats,
            br_status *st)
{
    bool prefill = br_opt_enum(cli, BR_OPT_stage) == 1;
    br_step_config c = {.workers = br_opt_int(cli, BR_OPT_workers),
                        .rows = prefill ? 64 : 1};
    br_ir *g = NULL;
    br_code code;

    if (br_opt_given(cli, BR_OPT_rows))
        c.rows = br_opt_int(cli, BR_OPT_rows);
    if (br_opt_given(cli, BR_OPT_tile))
        c.tile = br_opt_int(cli, BR_OPT_tile);
    *stats = (br_mega_lower_stats){.workers = (size_t)c.workers};
    BR_TRY(br_cli_graph(cli, cli->args[0], &g, st));
    code = br_mega_lower_graph(out, g, &c, st);
    br_ir_free(g);
    return code == BR_OK ? code : br_prefix(st, "%s", cli->args[0]);
}

int
br_cmd_prog_lower(br_cli *cli)
{
    const char *arg = cli->args[0];
    bool is_shape = strncmp(arg, "shape:", 6) == 0;
    bool of_model = !is_shape && is_model(arg);
    br_status st = {0};
    br_mega_lower_stats stats;
    br_mega_prog *p = NULL;
    br_mega_net *net;
    br_arena a;
    int ret;

    if (model_only(cli, of_model, &st) != BR_OK)
        return br_cli_fail(cli, &st);
    if (of_model) {
        ret = lower_model(cli, &p, &stats, &st) == BR_OK
                  ? deliver(cli, p, &stats, &st)
                  : br_cli_fail(cli, &st);
        br_mega_free(p);
        return ret;
    }
    if ((is_shape ? net_of_shape(cli, arg + 6, &net, &st)
                  : net_of_file(cli, arg, &net, &st)) != BR_OK)
        return br_cli_fail(cli, &st);
    br_arena_init(&a, 0);
    if (br_opt_bool(cli, BR_OPT_graph))
        ret = deliver_graph(cli, net, &st);
    else if (lower(cli, net, &a, &p, &stats, &st) != BR_OK)
        ret = br_cli_fail(cli, &st);
    else
        ret = deliver(cli, p, &stats, &st);
    br_mega_free(p);
    br_mega_net_free(net);
    br_arena_fini(&a);
    return ret;
}
