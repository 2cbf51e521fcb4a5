/* store_none.c - builds without SQLite: every call says so.
 * SPDX-License-Identifier: Apache-2.0 */
#include "run/store.h"

#ifndef BR_HAVE_SQLITE

bool
br_store_here(void)
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
br_store_open(br_store **out, const char *path, br_status *st)
{
    *out = NULL;
    return not_here(st);
}

void
br_store_close(br_store *s)
{
}

NONE(br_store_create, (br_store * s, const char *name, const br_quota *q,
                       uint32_t *id, char key[BR_KEY_CHARS], br_status *st))
NONE(br_store_set,
     (br_store * s, const char *name, const br_quota *q, br_status *st))
NONE(br_store_rotate,
     (br_store * s, const char *name, char key[BR_KEY_CHARS], br_status *st))
NONE(br_store_find,
     (br_store * s, const char *name, br_tenant *out, br_status *st))
NONE(br_store_each, (br_store * s, bool (*each)(void *ctx, const br_tenant *t),
                     void *ctx, br_status *st))
NONE(br_store_version, (br_store * s, int64_t *version, br_status *st))
NONE(br_store_key,
     (br_store * s, br_text key, uint32_t *tenant, bool *ok, br_status *st))
NONE(br_store_add,
     (br_store * s, const br_ledger_delta *d, size_t n, br_status *st))
NONE(br_store_usage,
     (br_store * s, uint32_t tenant, br_ledger *out, br_status *st))
NONE(br_store_begin_run, (br_store * s, bool *lost, br_status *st))
NONE(br_store_end_run, (br_store * s, br_status *st))
#endif
