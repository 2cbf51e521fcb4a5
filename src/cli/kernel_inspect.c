/* kernel_inspect.c - brass kernel inspect: what a kernel file holds; and the
 * reading that all kernel commands begin with.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/kernel.h"

#include "base/json.h"
#include "cg/ptx/ptx.h"

#include <elf.h>
#include <string.h>

enum { MACHINE_CUDA = 190, MACHINE_AMDGPU = 224 }; /* not in every elf.h */

static bool
is_kir(const char *bytes, size_t n)
{
    return n >= 4 && memcmp(bytes, "kir ", 4) == 0;
}

static bool
is_ptx(const char *bytes, size_t n)
{
    return !br_zrt_is(bytes, n) && !is_kir(bytes, n);
}

/* What compilers make beside PTX, by the machine that an ELF file names. */
static br_code
refuse_elf(const char *bytes, br_status *st)
{
    unsigned machine = (uint8_t)bytes[18] | (unsigned)(uint8_t)bytes[19] << 8;

    if (machine == MACHINE_AMDGPU)
        return br_fail(st, BR_E_FORMAT,
                       "a code object, not PTX; brass gcn disasm and brass gcn "
                       "sim take it");
    return br_fail(st, BR_E_FORMAT, "machine code (ELF), not PTX%s",
                   machine == MACHINE_CUDA ? "; nvcc -ptx makes that" : "");
}

static br_code
read_module(br_cli *cli, char *bytes, size_t n, br_kir **out, br_kcode **code,
            br_status *st)
{
    br_ptx_opts opts = {.strict = br_opt_bool(cli, BR_OPT_ptx_strict)};
    br_code c;

    if (br_zrt_is(bytes, n))
        c = br_kernel_zrt(cli, bytes, n, out, code, st);
    else if (is_kir(bytes, n))
        c = br_kir_parse(out, bytes, n, st);
    else if (n >= EI_NIDENT + 4 && memcmp(bytes, ELFMAG, SELFMAG) == 0)
        c = refuse_elf(bytes, st);
    else
        c = br_ptx_parse(out, bytes, n, &opts, st);
    return c == BR_OK ? c : br_prefix(st, "%s", cli->args[0]);
}

br_code
br_kernel_load_text(br_cli *cli, br_kir **out, br_kcode **code, char **text,
                    br_status *st)
{
    char *bytes;
    size_t n;
    br_code c;

    *out = NULL;
    *text = NULL;
    if (code)
        *code = NULL;
    BR_TRY(br_file_read(cli->args[0], BR_PTX_MAX_BYTES, &bytes, &n, st));
    c = read_module(cli, bytes, n, out, code, st);
    if (c == BR_OK && is_ptx(bytes, n))
        *text = bytes;
    else
        br_free(bytes);
    return c;
}

br_code
br_kernel_load(br_cli *cli, br_kir **out, br_kcode **code, br_status *st)
{
    char *text;
    br_code c = br_kernel_load_text(cli, out, code, &text, st);

    br_free(text);
    return c;
}

br_code
br_kernel_entry(br_cli *cli, const br_kir *m, uint32_t *fn, br_status *st)
{
    const char *name = br_opt_str(cli, BR_OPT_entry);
    uint32_t n = 0;

    *fn = BR_KNONE;
    for (uint32_t k = 0; k < m->fns.n; k++)
        if (m->fns.at[k].entry && !m->fns.at[k].external) {
            n++;
            if (!name || br_text_is(m->fns.at[k].name, name))
                *fn = k;
        }
    if (name && *fn == BR_KNONE)
        return br_fail(st, BR_E_NOT_FOUND,
                       "%s: no kernel '%s'; kernel inspect "
                       "lists them",
                       cli->args[0], name);
    if (!name && n != 1)
        return br_fail(st, BR_E_USAGE,
                       "%s holds %u kernels: --entry has to name one",
                       cli->args[0], n);
    return BR_OK;
}

static const char *
space_text(unsigned space)
{
    for (const br_kminfo *k = br_kminfo_of; k->letter; k++)
        if (k->field == BR_KF_SPACE && k->value == space)
            return k->text;
    return "?";
}

static void
key_text(br_json_writer *w, const char *key, br_text t)
{
    br_json_w_key(w, key);
    br_json_w_str(w, t);
}

static void
json_fn(br_json_writer *w, const br_kfn *f)
{
    br_json_w_obj(w);
    key_text(w, "name", f->name);
    br_json_w_key(w, "line");
    br_json_w_i64(w, f->line);
    br_json_w_key(w, "params");
    br_json_w_arr(w);
    for (size_t k = 0; k < f->params.n; k++) {
        const br_kparam *p = &f->params.at[k];

        br_json_w_obj(w);
        key_text(w, "name", p->name);
        br_json_w_key(w, "offset");
        br_json_w_i64(w, p->offset);
        br_json_w_key(w, "bytes");
        br_json_w_i64(w, p->bytes);
        br_json_w_key(w, "align");
        br_json_w_i64(w, p->align);
        br_json_w_obj_end(w);
    }
    br_json_w_arr_end(w);
    br_json_w_key(w, "instructions");
    br_json_w_i64(w, (int64_t)f->ins.n);
    br_json_w_key(w, "blocks");
    br_json_w_i64(w, (int64_t)f->blks.n);
    br_json_w_key(w, "local_bytes");
    br_json_w_i64(w, f->frame_bytes);
    br_json_w_obj_end(w);
}

static void
print_fn(FILE *out, const br_kfn *f)
{
    const char *sep = "";

    fprintf(out, "%s %.*s(", f->entry ? "kernel  " : "function", (int)f->name.n,
            f->name.p);
    for (size_t k = 0; k < f->params.n; k++) {
        const br_kparam *p = &f->params.at[k];

        fprintf(out, "%s%.*s: %u", sep, (int)p->name.n, p->name.p, p->bytes);
        sep = ", ";
    }
    fprintf(out, ")");
    if (f->external)
        fprintf(out, " without body\n");
    else
        fprintf(out, " %zu instructions in %zu blocks, %u bytes local\n",
                f->ins.n, f->blks.n, f->frame_bytes);
}

static void
print_text(FILE *out, const br_kir *m)
{
    fprintf(out, "target   %.*s\n", (int)m->target.n, m->target.p);
    for (size_t k = 0; k < m->fns.n; k++)
        print_fn(out, &m->fns.at[k]);
    for (size_t k = 0; k < m->vars.n; k++) {
        const br_kvar *v = &m->vars.at[k];

        fprintf(out, "variable %.*s: %s, %llu bytes%s\n", (int)v->name.n,
                v->name.p, space_text(v->space), (unsigned long long)v->bytes,
                v->external ? ", dynamic"
                : v->init   ? ", initialised"
                            : "");
    }
    for (size_t k = 0; k < m->notes.n; k++)
        fprintf(out, "traps    line %u: %.*s\n", m->notes.at[k].line,
                (int)m->notes.at[k].text.n, m->notes.at[k].text.p);
}

static void
json_rest(br_json_writer *w, const br_kir *m)
{
    br_json_w_key(w, "variables");
    br_json_w_arr(w);
    for (size_t k = 0; k < m->vars.n; k++) {
        br_json_w_obj(w);
        key_text(w, "name", m->vars.at[k].name);
        br_json_w_key(w, "space");
        br_json_w_strz(w, space_text(m->vars.at[k].space));
        br_json_w_key(w, "bytes");
        br_json_w_i64(w, (int64_t)m->vars.at[k].bytes);
        br_json_w_obj_end(w);
    }
    br_json_w_arr_end(w);
    br_json_w_key(w, "notes");
    br_json_w_arr(w);
    for (size_t k = 0; k < m->notes.n; k++) {
        br_json_w_obj(w);
        br_json_w_key(w, "line");
        br_json_w_i64(w, m->notes.at[k].line);
        key_text(w, "text", m->notes.at[k].text);
        br_json_w_obj_end(w);
    }
    br_json_w_arr_end(w);
}

static void
json_module(br_json_writer *w, const br_kir *m)
{
    key_text(w, "target", m->target);
    for (int entry = 1; entry >= 0; entry--) {
        br_json_w_key(w, entry ? "kernels" : "functions");
        br_json_w_arr(w);
        for (size_t k = 0; k < m->fns.n; k++)
            if (m->fns.at[k].entry == entry)
                json_fn(w, &m->fns.at[k]);
        br_json_w_arr_end(w);
    }
    json_rest(w, m);
}

static int
print_json(br_cli *cli, const br_kir *m, const br_zrt *z)
{
    br_str doc = {0};
    br_json_writer w;
    int code;

    br_json_w_begin(&w, &doc, 0);
    br_json_w_obj(&w);
    if (z)
        br_kernel_zrt_json(&w, z);
    if (m)
        json_module(&w, m);
    br_json_w_obj_end(&w);
    code = br_cli_json_out(cli, &doc);
    br_str_fini(&doc);
    return code;
}

/* -o: the code alone, of an AMD processor a file that gcn reads. */
static int
show_zrt(br_cli *cli, char *bytes, size_t n, br_status *st)
{
    const char *path = br_opt_str(cli, BR_OPT_output);
    br_zrt z;
    br_kir *m = NULL;
    br_code c = br_zrt_read(&z, bytes, n, st);
    int code = 0;

    if (c == BR_OK && path)
        c = br_cli_write(cli, path, z.code.p, z.code.n, st);
    else if (c == BR_OK && z.target == BR_ZRT_X86)
        c = br_kernel_zrt(cli, bytes, n, &m, NULL, st);
    if (c == BR_OK && !path && br_opt_bool(cli, BR_OPT_json))
        code = print_json(cli, m, &z);
    else if (c == BR_OK && !path)
        br_kernel_zrt_print(cli->out, &z);
    if (c == BR_OK && !path && m && !br_opt_bool(cli, BR_OPT_json))
        print_text(cli->out, m);
    br_zrt_fini(&z);
    br_kir_free(m);
    return c == BR_OK ? code : -1;
}

int
br_cmd_kernel_inspect(br_cli *cli)
{
    const char *path = cli->args[0];
    br_status st = {0};
    char *bytes;
    size_t n;
    int code = 0;
    br_kir *m = NULL;

    if (br_file_read(path, BR_PTX_MAX_BYTES, &bytes, &n, &st) != BR_OK)
        return br_cli_fail(cli, &st);
    if (br_zrt_is(bytes, n)) {
        code = show_zrt(cli, bytes, n, &st);
        if (code < 0)
            br_prefix(&st, "%s", path);
    } else if (br_opt_given(cli, BR_OPT_output)) {
        code = br_cli_usage(cli, "-o takes the code out of a .zrt file");
    } else if (read_module(cli, bytes, n, &m, NULL, &st) != BR_OK) {
        code = -1;
    } else if (br_opt_bool(cli, BR_OPT_json)) {
        code = print_json(cli, m, NULL);
    } else {
        print_text(cli->out, m);
    }
    br_free(bytes);
    br_kir_free(m);
    return code < 0 ? br_cli_fail(cli, &st) : code;
}
