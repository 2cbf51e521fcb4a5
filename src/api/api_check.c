/* api_check.c - the C library: verdicts on a task program.
 * SPDX-License-Identifier: Apache-2.0 */
#include "api/api.h"

struct br_report {
    br_mega_report mega;
    br_str json;
};

br_report *
br_program_check(const br_program *p, brass_check mode, br_error *e)
{
    br_status spare, *st = br_api_begin(e, &spare);
    br_mega_mode m =
        mode == BRASS_CHECK_COMPAT_0_2 ? BR_MEGA_COMPAT_0_2 : BR_MEGA_SOUND;
    br_report *r;

    if (mode != BRASS_CHECK_SOUND && mode != BRASS_CHECK_COMPAT_0_2) {
        br_fail(st, BR_E_USAGE, "check: there is no mode %d", (int)mode);
        return NULL;
    }
    r = br_api_handle(sizeof *r, st);
    if (!r)
        return NULL;
    if (br_mega_check(p->mega, m, &r->mega, st) == BR_OK) {
        br_mega_report_json(p->mega, &r->mega, &r->json);
        if (!r->json.oom)
            return r;
        br_fail(st, BR_E_OOM, "no memory for the report");
    }
    br_report_free(r);
    return NULL;
}

void
br_report_free(br_report *r)
{
    if (!r)
        return;
    br_mega_report_fini(&r->mega);
    br_str_fini(&r->json);
    br_free(r);
}

int
br_report_ok(const br_report *r)
{
    return r->mega.ok;
}

size_t
br_report_errors(const br_report *r)
{
    return r->mega.errors.n;
}

size_t
br_report_warnings(const br_report *r)
{
    return r->mega.warnings.n;
}

const char *
br_report_error(const br_report *r, size_t i)
{
    return i < r->mega.errors.n ? r->mega.errors.at[i] : NULL;
}

const char *
br_report_warning(const br_report *r, size_t i)
{
    return i < r->mega.warnings.n ? r->mega.warnings.at[i] : NULL;
}

const char *
br_report_json(const br_report *r)
{
    return r->json.at;
}
