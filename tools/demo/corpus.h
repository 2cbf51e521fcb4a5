/* corpus.h - what the plots of the demo model's stories are told with.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CORPUS_H
#define CORPUS_H

#include <ctype.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* The first N_CAST questions of a story are about who is in it. */
enum { TEXT_MAX = 16384, QA_MAX = 48, LINE_MAX_ = 400, N_CAST = 9 };

struct text {
    char s[TEXT_MAX];
    size_t n;
};

struct pair {
    const char *a, *b;
};

struct who {
    const char *noun, *art, *name, *trait, *coat;
    const char *he, *him, *his;
};

struct qa {
    char q[LINE_MAX_], a[LINE_MAX_], key[64];
    bool look; /* about a colour or a trait */
};

struct story {
    int plot;
    struct who hero, pal;
    struct pair home, spot, found, fear;
    const char *weather, *time, *thing, *colour, *food, *skill, *build;
    const char *start, *end; /* feelings */
    const char *lesson;
    char gist[LINE_MAX_], next[LINE_MAX_];
    struct text text;
    struct qa qa[QA_MAX];
    int n_qa;
    bool has_thing;
};

enum { N_PLOTS = 12 };
/* Each tells its story from the facts drawn for it, and asks about it. */
extern void (*const plots[N_PLOTS])(struct story *s);

unsigned below(size_t n);
bool chance(unsigned percent);
#define pick(table) ((table)[below(COUNT(table))])
void put(struct text *t, const char *fmt, ...);
const char *article(const char *word);
void ask(struct story *s, const char *key, const char *q, const char *fmt, ...);
/* A question in one of two or three wordings. */
const char *fmtq(char *buf, const char *fmt, ...);
#define Q(...) fmtq((char[LINE_MAX_]){0}, __VA_ARGS__)

/* Asks for the thing's colour, and has the story say it more than once. */
void thing_colour(struct story *s);

#endif
