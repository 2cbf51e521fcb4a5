/* prog_text.c - see prog_text.h. SPDX-License-Identifier: Apache-2.0 */
#include "prog_text.h"

#include <stdio.h>
#include <string.h>

typedef struct doc {
    br_str buffers, counters, tasks, more;
    int nb, nc, nt;
} doc;

static void
add_buffer(doc *d, const char *line)
{
    char name[32], kind[32], dtype[16], shape[64], space[32] = "HBM";

    /* no ck_assert: one that holds costs a system call */
    if (sscanf(line, "b %31s %31s %15s %63s %31s", name, kind, dtype, shape,
               space) < 4)
        ck_abort_msg("%s", line);
    br_str_printf(&d->buffers,
                  "%s{\"id\":%d,\"name\":\"%s\",\"kind\":\"%s\",\"dtype\":"
                  "\"%s\",\"shape\":%s,\"space\":\"%s\"}",
                  d->nb ? "," : "", d->nb, name, kind, dtype, shape, space);
    d->nb++;
}

static void
add_waits(br_str *s, char *list)
{
    char *save = NULL, *w;
    const char *sep = "";

    br_str_puts(s, ",\"waits\":[");
    for (w = strtok_r(list, ",", &save); w; w = strtok_r(NULL, ",", &save)) {
        char *colon = strchr(w, ':');

        if (!colon)
            ck_abort_msg("%s", w);
        *colon = 0;
        br_str_printf(s, "%s{\"counter\":%s,\"threshold\":%s}", sep, w,
                      colon + 1);
        sep = ",";
    }
    br_str_putc(s, ']');
}

static void
add_task(doc *d, char *line)
{
    char *params = strchr(line, '{'), *save = NULL, *w;
    const char *sides[2] = {"", ""};
    const char *op, *ctr = t_printf("%d", d->nt), *sm = "null";
    char *waits = t_printf("%s", "");
    br_str *s = &d->tasks;
    int side = 0;

    params = t_printf("%s", params ? params : "{}");
    if (strchr(line, '{'))
        *strchr(line, '{') = 0;
    strtok_r(line, " ", &save);
    op = strtok_r(NULL, " ", &save);
    while ((w = strtok_r(NULL, " ", &save))) {
        if (strcmp(w, ">") == 0)
            side = 1;
        else if (*w == 'c')
            ctr = w + 1;
        else if (*w == 'w')
            waits = w + 1;
        else if (*w == 's')
            sm = w + 1;
        else
            sides[side] = w;
    }
    br_str_printf(s, "%s{\"id\":%d,\"op\":\"%s\",\"inputs\":[%s],",
                  d->nt ? "," : "", d->nt, op, sides[0]);
    br_str_printf(s, "\"outputs\":[%s],\"out_counter\":%s,\"sm\":%s", sides[1],
                  ctr, sm);
    add_waits(s, waits);
    br_str_printf(s, ",\"label\":\"t%d\",\"params\":%s}", d->nt, params);
    d->nt++;
}

static void
add_counter(doc *d, const char *init)
{
    br_str_printf(&d->counters, "%s{\"id\":%d,\"init\":%s}", d->nc ? "," : "",
                  d->nc, init);
    d->nc++;
}

char *
pt_json(const char *lines)
{
    char *text = t_printf("%s", lines), *save = NULL, *line, *out;
    bool counters = strstr(lines, "\nc ") || *lines == 'c';
    doc d = {0};

    for (char *q = text; (q = strchr(q, '\''));)
        *q = '"';
    for (line = strtok_r(text, "\n", &save); line;
         line = strtok_r(NULL, "\n", &save)) {
        line += strspn(line, " ");
        switch (*line) {
        case 'b': add_buffer(&d, line); break;
        case 'c': add_counter(&d, line + 2); break;
        case 't': add_task(&d, line); break;
        case '+': br_str_printf(&d.more, ",%s", line + 1); break;
        case 0: break;
        default: ck_abort_msg("what is this: %s", line);
        }
    }
    while (!counters && d.nc < d.nt)
        add_counter(&d, "0");
    out = t_printf("{\"buffers\":[%s],\"counters\":[%s],\"tasks\":[%s]%s}",
                   br_str_z(&d.buffers), br_str_z(&d.counters),
                   br_str_z(&d.tasks), br_str_z(&d.more));
    br_str_fini(&d.buffers);
    br_str_fini(&d.counters);
    br_str_fini(&d.tasks);
    br_str_fini(&d.more);
    return out;
}

br_mega_prog *
pt_load(const char *lines)
{
    char *json = pt_json(lines);
    br_status st = {0};
    br_mega_prog *p;

    if (br_mega_load(&p, json, strlen(json), &st) != BR_OK)
        ck_abort_msg("%s\n%s", st.msg, json);
    return p;
}

static br_mega_report
judge(const char *lines)
{
    br_mega_prog *p = pt_load(lines);
    br_status st = {0};
    br_mega_report r;

    t_ok(br_mega_check(p, BR_MEGA_SOUND, &r, &st), &st);
    br_mega_free(p);
    return r;
}

void
pt_accepts(const char *lines)
{
    br_mega_report r = judge(lines);

    if (!r.ok)
        ck_abort_msg("refused: %s\n%s", r.errors.at[0], lines);
    br_mega_report_fini(&r);
}

static bool
holds(char *const *at, size_t n, const char *text)
{
    for (size_t i = 0; i < n; i++)
        if (strstr(at[i], text))
            return true;
    return false;
}

void
pt_refuses(const char *lines, const char *text)
{
    br_mega_report r = judge(lines);

    if (r.ok)
        ck_abort_msg("accepted, want: %s\n%s", text, lines);
    if (!holds(r.errors.at, r.errors.n, text))
        ck_abort_msg("says: %s\nwant: %s\n%s", r.errors.at[0], text, lines);
    br_mega_report_fini(&r);
}

void
pt_warns(const char *lines, const char *text)
{
    br_mega_report r = judge(lines);

    if (!r.ok)
        ck_abort_msg("refused: %s\n%s", r.errors.at[0], lines);
    if (!holds(r.warnings.at, r.warnings.n, text))
        ck_abort_msg("no warning: %s\n%s", text, lines);
    br_mega_report_fini(&r);
}

const char *
pt_dump(const br_json *v)
{
    br_json_writer w;
    br_str s = {0};
    const char *z;

    br_json_w_begin(&w, &s, 0);
    br_json_w_tree(&w, v);
    z = t_printf("%s", br_str_z(&s));
    br_str_fini(&s);
    return z;
}

static void
fanin_buffer(br_str *s, int id, const char *name, const char *kind, int rows,
             int n)
{
    bool weight = strcmp(kind, "WEIGHT") == 0;

    br_str_printf(s,
                  "%s{\"id\":%d,\"name\":\"%s\",\"kind\":\"%s\",\"dtype\":"
                  "\"F32\",\"shape\":[%d,%d],\"space\":\"HBM\",\"source\":%s}",
                  id ? "," : "", id, name, kind, rows, n,
                  weight ? "\"w\"" : "null");
}

static void
fanin_family(br_str *s, int n)
{
    br_str_puts(s, "\"counters\":[{\"id\":0},{\"id\":1}],\"buffers\":[");
    fanin_buffer(s, 0, "x", "IO_INPUT", 1, n);
    fanin_buffer(s, 1, "w", "WEIGHT", n, n);
    fanin_buffer(s, 2, "y", "ACTIVATION", 1, n);
    fanin_buffer(s, 3, "o", "IO_OUTPUT", 1, n);
    br_str_puts(s, "],\"tasks\":[");
    for (int i = 0; i < n; i++)
        br_str_printf(s,
                      "{\"id\":%d,\"op\":\"GEMV_TILE\",\"inputs\":[0,1],"
                      "\"outputs\":[2],\"out_counter\":0,\"params\":{\"K\":%d,"
                      "\"N_tile\":1,\"n_off\":%d},\"label\":\"t%d\"},",
                      i, n, i, i);
    br_str_printf(s,
                  "{\"id\":%d,\"op\":\"COPY\",\"inputs\":[2],\"outputs\":[3],"
                  "\"out_counter\":1,\"waits\":[{\"counter\":0,"
                  "\"threshold\":%d}],\"label\":\"join\"}]",
                  n, n);
}

static void
nop_family(br_str *s, int n, bool ring)
{
    br_str_puts(s, "\"counters\":[");
    for (int i = 0; i < n; i++)
        br_str_printf(s, "%s{\"id\":%d}", i ? "," : "", i);
    br_str_puts(s, "],\"tasks\":[");
    for (int i = 0; i < n; i++) {
        br_str_printf(s,
                      "%s{\"id\":%d,\"op\":\"NOP\",\"inputs\":[],"
                      "\"outputs\":[],\"out_counter\":%d,\"label\":\"n%d\","
                      "\"waits\":[",
                      i ? "," : "", i, i, i);
        if (i || ring)
            br_str_printf(s, "{\"counter\":%d,\"threshold\":1}",
                          (i + n - 1) % n);
        br_str_puts(s, "]}");
    }
    br_str_puts(s, "]");
}

void
pt_family(br_str *s, const char *family, int n)
{
    bool ring = strcmp(family, "nop_ring") == 0;

    if (strcmp(family, "gemv_fanin") == 0)
        fanin_family(s, n);
    else if (ring || strcmp(family, "nop_chain") == 0)
        nop_family(s, n, ring);
    else
        ck_abort_msg("no family %s", family);
}
