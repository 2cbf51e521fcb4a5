/* tstore_none.c - builds without SQLite: every call says so.
 * SPDX-License-Identifier: Apache-2.0 */
#include "run/tstore.h"

#ifndef BR_HAVE_SQLITE

bool
br_tstore_here(void)
{
    return false;
}

static br_code
not_here(br_status *st)
{
    return br_fail(st, BR_E_UNSUPPORTED,
                   "this brass was built without SQLite, so it keeps no "
                   "tenants: install libsqlite3-dev and build it again");
}

/* NAME((parameters)): without a store there is nothing to pass. */
#    define NONE(name, params)   \
        br_code name params      \
        {                        \
            return not_here(st); \
        }
#    pragma GCC diagnostic ignored "-Wunused-parameter"

br_code
br_tstore_open(br_tstore **out, const char *path, br_status *st)
{
    *out = NULL;
    return not_here(st);
}

void
br_tstore_close(br_tstore *s)
{
}

NONE(br_tstore_create, (br_tstore * s, const char *name, const br_quota *q,
                        uint32_t *id, char key[BR_KEY_CHARS], br_status *st))
NONE(br_tstore_set,
     (br_tstore * s, const char *name, const br_quota *q, br_status *st))
NONE(br_tstore_rotate,
     (br_tstore * s, const char *name, char key[BR_KEY_CHARS], br_status *st))
NONE(br_tstore_find,
     (br_tstore * s, const char *name, br_tenant *out, br_status *st))
NONE(br_tstore_each,
     (br_tstore * s, bool (*each)(void *ctx, const br_tenant *t), void *ctx,
      br_status *st))
NONE(br_tstore_version, (br_tstore * s, int64_t *version, br_status *st))
NONE(br_tstore_key,
     (br_tstore * s, br_text key, uint32_t *tenant, bool *ok, br_status *st))
NONE(br_tstore_add,
     (br_tstore * s, const br_ledger_delta *d, size_t n, br_status *st))
NONE(br_tstore_usage,
     (br_tstore * s, uint32_t tenant, br_ledger *out, br_status *st))
NONE(br_tstore_begin_run, (br_tstore * s, bool *lost, br_status *st))
NONE(br_tstore_end_run, (br_tstore * s, br_status *st))
#endif
