/* progress.c - see progress.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/progress.h"

#include "base/thread.h"
#include "model/hf.h"
#include "model/model.h"
#include "run/lm_model.h"

#include <sys/ioctl.h>
#include <unistd.h>

#define SECOND    1000000000
#define ERASE_EOL "\033[K"

static br_mutex lock = BR_MUTEX;
static const br_progress *now; /* whose line is shown */

void
br_progress_begin(br_progress *p, const br_cli *cli, const char *what,
                  uint64_t total)
{
    const int fd = fileno(cli->err);

    *p = (br_progress){.f = cli->err, .what = what, .total = total};
    p->terminal = fd >= 0 && isatty(fd) && !br_cli_dumb(cli);
    p->begin_ns = br_now_ns();
}

/* Characters of a line that is to rewrite itself: one that wraps cannot. */
static size_t
columns(FILE *f)
{
    struct winsize w = {0};
    int fd = fileno(f);

    return fd >= 0 && ioctl(fd, TIOCGWINSZ, &w) == 0 && w.ws_col > 1
               ? w.ws_col - 1u
               : SIZE_MAX;
}

static void
write_line(br_progress *p, uint64_t done, int64_t took)
{
    char *to = p->line;
    size_t n = 0, size = sizeof p->line;

    n += (size_t)snprintf(to, size, "%.40s", p->what);
    if (p->total)
        n += (size_t)snprintf(to + n, size - n, " %d%%",
                              (int)((double)done * 100 / (double)p->total));
    if (p->bytes)
        (void)snprintf(to + n, size - n, " (%.1f of %.1f MB, %.1f MB/s)",
                       (double)done / 1e6, (double)p->total / 1e6,
                       (double)(done - p->begin) * 1e3 / (double)took);
    else if (p->total)
        (void)snprintf(to + n, size - n, " (%llu of %llu, %lld s)",
                       (unsigned long long)done, (unsigned long long)p->total,
                       (long long)(took / SECOND));
    else
        (void)snprintf(to + n, size - n, " %llu (%lld s)",
                       (unsigned long long)done, (long long)(took / SECOND));
    to[BR_MIN(columns(p->f), size - 1)] = 0;
}

void
br_progress_at(br_progress *p, uint64_t done, int64_t now_ns)
{
    int64_t took = now_ns - p->begin_ns;

    if (!p->terminal || took < SECOND || now_ns - p->last_ns < SECOND / 10)
        return;
    p->last_ns = now_ns;
    br_mutex_lock(&lock);
    write_line(p, done, took);
    fprintf(p->f, "\r%s" ERASE_EOL, p->line);
    fflush(p->f);
    p->shown = true;
    now = p;
    br_mutex_unlock(&lock);
}

void
br_progress_advance(void *progress, uint64_t done, uint64_t total)
{
    br_progress *p = progress;

    p->total = total;
    br_progress_at(p, done, br_now_ns());
}

void
br_progress_end(br_progress *p)
{
    br_mutex_lock(&lock);
    if (p->shown)
        fputs("\r" ERASE_EOL, p->f);
    p->shown = false;
    now = now == p ? NULL : now;
    br_mutex_unlock(&lock);
}

/* One call, one write: where no line is shown stdio's lock keeps lines of threads
 * apart, too. */
void
br_progress_above(FILE *f, const char *lines, size_t n)
{
    br_mutex_lock(&lock);
    if (now && now->f == f)
        fputs("\r" ERASE_EOL, f);
    fwrite(lines, 1, n, f);
    if (now && now->f == f) {
        fputs(now->line, f);
        fflush(f);
    }
    br_mutex_unlock(&lock);
}

br_code
br_progress_model(const br_cli *cli, br_model **out, const char *path,
                  const _Atomic bool *stop, br_status *st)
{
    br_progress p;
    br_hf_desc d = {.progress = br_progress_advance, .ctx = &p, .stop = stop};
    br_code code;

    br_progress_begin(&p, cli, "reading the folder", 0);
    p.bytes = true;
    code = br_model_open_told(out, path, &d, st);
    br_progress_end(&p);
    return code;
}

br_code
br_progress_lm(const br_cli *cli, br_lm_model **out, const br_model *m,
               const br_lm_config *c, br_status *st)
{
    br_lm_config told = *c;
    br_progress p;
    br_code code;

    told.progress = br_progress_advance;
    told.ctx = &p;
    br_progress_begin(&p, cli, "packing weights", 0);
    code = br_lm_model_open(out, m, &told, st);
    br_progress_end(&p);
    return code;
}
