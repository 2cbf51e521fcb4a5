/* pg_kit.h - a PostgreSQL server of a test's own (tests/pg.sh).
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PG_KIT_H
#define PG_KIT_H

#include <sys/types.h>

typedef struct pg_server {
    char dir[32];
    int port;
    pid_t pid;
} pg_server;

/* Skips the test where there is none. */
void pg_begin(pg_server *p);
void pg_end(pg_server *p);
/* Between the two it may stop and start again with what it has. start: what
 * tests/pg.sh said in the end, 77: it is not here; 0: it runs. */
int pg_start(pg_server *p);
void pg_stop(pg_server *p);

const char *pg_url(const pg_server *p, const char *password, const char *db);
/* Its URL, when what was in it has gone. */
const char *pg_db(const pg_server *p);
/* The first line of what it answers. */
const char *pg_sql(const pg_server *p, const char *sql);

/* Cuts all connections of brass's. */
#define PG_CUT                                                       \
    "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity " \
    "WHERE application_name = 'brass'"

#endif
