/* gmatch.c - which tokens a grammar allows now, see grammar.h.
 *
 *   configuration = the set of stacks that the text so far may have led to
 *
 *       "[1, "  ->  { number.2 > array.3 > root.1,  array.4 > root.1 }
 *
 * A stack is a chain of shared nodes (state, parent). Configurations and their
 * transitions by class of byte are worked out when first needed and kept, so
 * that a byte costs one look-up afterwards.
 *
 * Tokens are found by walking the tree of their bytes and leaving out what is
 * below a byte that cannot come. In a JSON string nearly nothing can be left
 * out; therefore the walk is made once for the topmost frame alone, whatever
 * called it, and kept: the tokens that stay in the frame, and the places in
 * the tree where it was left. For each caller only what lies below those
 * places is walked, on the caller's own stack.
 *
 *   150,000 tokens, string's frame:  once 1.1 ms; then 30 us for each caller,
 *   and nothing but copying for the same configuration again
 *
 * What is kept has a limit; over it all goes, and each answer finds its
 * configuration again from its text.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "run/grammar_int.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    KEEP_VISITS = 512,   /* a mask that cost fewer is made anew each time */
    DEAD = BR_CONF_DEAD, /* of no stack */
    FIRST_SLOTS = 1024,
};

struct br_matcher {
    br_grammar *g;
    uint32_t at, generation; /* configuration; of g when it was found */
    br_str text;             /* so far */
    char error[128];
    br_code code;            /* of error */
    const char *begin, *end; /* of a thought, which is free; NULL: none */
    enum { BOUND, MAY_THINK, THINKS } state;
    br_str thought; /* the end of it, or the beginning of the answer */
};

/* ---- memory -------------------------------------------------------------- */

static uint32_t
out_of_memory(br_grammar *g)
{
    g->failed = BR_E_OOM;
    return 0;
}

static void
cache_clear(br_grammar *g)
{
    for (size_t i = 1; i < g->masks.n; i++) {
        br_free(g->masks.at[i].bits);
        br_free(g->masks.at[i].leaves);
    }
    g->nodes.n = g->confs.n = g->masks.n = g->members.n = g->nexts.n = 0;
    if (g->node_slots.at)
        memset(g->node_slots.at, 0, g->node_slots.n * sizeof(uint32_t));
    if (g->conf_slots.at)
        memset(g->conf_slots.at, 0, g->conf_slots.n * sizeof(uint32_t));
    g->mask_bytes = 0;
    g->start = 0;
    g->stamp = 0;
    g->generation++;
}

void
br_grammar_cache_fini(br_grammar *g)
{
    cache_clear(g);
    br_vec_fini(&g->nodes);
    br_vec_fini(&g->confs);
    br_vec_fini(&g->masks);
    br_vec_fini(&g->node_slots);
    br_vec_fini(&g->conf_slots);
    br_vec_fini(&g->members);
    br_vec_fini(&g->nexts);
    br_vec_fini(&g->work);
    br_vec_fini(&g->found);
    br_vec_fini(&g->leaves);
    br_free(g->bits);
    g->bits = NULL;
}

br_grammar *
br_grammar_ref(br_grammar *g)
{
    g->refs++;
    return g;
}

void
br_grammar_free(br_grammar *g)
{
    if (!g || --g->refs)
        return;
    br_grammar_cache_fini(g);
    br_vec_fini(&g->states);
    br_free(g);
}

static size_t
cache_bytes(const br_grammar *g)
{
    return g->nodes.n * sizeof *g->nodes.at + g->confs.n * sizeof *g->confs.at +
           (g->node_slots.n + g->conf_slots.n + g->members.n + g->nexts.n) *
               sizeof(uint32_t) +
           g->mask_bytes;
}

static size_t
mask_words(const br_grammar *g)
{
    return ((size_t)g->v->n_tokens + 63) / 64;
}

/* ---- shared nodes -------------------------------------------------------- */

static uint32_t
mix(uint32_t a, uint32_t b)
{
    uint64_t h = ((uint64_t)a << 32 | b) * UINT64_C(0x9E3779B97F4A7C15);

    h ^= h >> 29;
    h *= UINT64_C(0xBF58476D1CE4E5B9);
    return (uint32_t)(h >> 32);
}

/* Twice the slots, empty; false: out of memory. */
static bool
grow_slots(gwords *w)
{
    size_t n = w->n ? 2 * w->n : FIRST_SLOTS;

    if (!br_vec_reserve(w, n))
        return false;
    w->n = n;
    memset(w->at, 0, n * sizeof *w->at);
    return true;
}

static uint32_t *
node_slot(const br_grammar *g, uint32_t state, uint32_t parent)
{
    uint32_t mask = (uint32_t)g->node_slots.n - 1, i = mix(state, parent);

    for (;; i++) {
        uint32_t *slot = &g->node_slots.at[i & mask];
        const gnode *n = &g->nodes.at[*slot];

        if (!*slot || (n->state == state && n->parent == parent))
            return slot;
    }
}

static uint32_t
node_of(br_grammar *g, uint32_t state, uint32_t parent)
{
    uint32_t *slot;

    if (2 * (g->nodes.n + 1) > g->node_slots.n) {
        if (!grow_slots(&g->node_slots))
            return out_of_memory(g);
        for (uint32_t i = G_FIRST_NODE; i < g->nodes.n; i++)
            *node_slot(g, g->nodes.at[i].state, g->nodes.at[i].parent) = i;
    }
    while (g->nodes.n < G_FIRST_NODE)
        if (!br_vec_push(&g->nodes, ((gnode){.state = UINT32_MAX})))
            return out_of_memory(g);
    slot = node_slot(g, state, parent);
    if (!*slot) {
        if (!br_vec_push(&g->nodes,
                         ((gnode){.state = state, .parent = parent})))
            return out_of_memory(g);
        *slot = (uint32_t)g->nodes.n - 1;
    }
    return *slot;
}

/* ---- configurations ------------------------------------------------------ */

static bool
is_conf(const br_grammar *g, const gconf *c, uint32_t hash)
{
    return c->hash == hash && c->n == g->found.n && c->flags == g->flags &&
           memcmp(g->members.at + c->at, g->found.at,
                  c->n * sizeof(uint32_t)) == 0;
}

static uint32_t *
conf_slot(const br_grammar *g, uint32_t hash, bool fresh)
{
    uint32_t mask = (uint32_t)g->conf_slots.n - 1, i = hash;

    for (;; i++) {
        uint32_t *slot = &g->conf_slots.at[i & mask];

        if (!*slot || (!fresh && is_conf(g, &g->confs.at[*slot], hash)))
            return slot;
    }
}

static int
ascending(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return x < y ? -1 : x > y;
}

static bool
make_room(br_grammar *g)
{
    if (2 * (g->confs.n + 1) > g->conf_slots.n) {
        if (!grow_slots(&g->conf_slots))
            return false;
        for (uint32_t i = DEAD + 1; i < g->confs.n; i++)
            *conf_slot(g, g->confs.at[i].hash, true) = i;
    }
    while (g->confs.n <= DEAD)
        if (!br_vec_push(&g->confs, ((gconf){0})))
            return false;
    return (g->nexts.n || br_vec_push(&g->nexts, 0)) &&
           (g->masks.n || br_vec_push(&g->masks, ((gmask){0}))) &&
           br_vec_reserve(&g->members, g->members.n + g->found.n);
}

/* The configuration of the nodes found and the flags. */
static uint32_t
conf_of(br_grammar *g)
{
    uint32_t hash = g->flags, *slot;

    if (!g->found.n && !g->flags)
        return DEAD;
    if (!make_room(g))
        return out_of_memory(g);
    if (g->found.n > 1)
        qsort(g->found.at, g->found.n, sizeof(uint32_t), ascending);
    for (size_t i = 0; i < g->found.n; i++)
        hash = mix(hash, g->found.at[i]);
    slot = conf_slot(g, hash, false);
    if (*slot)
        return *slot;
    if (!br_vec_push(&g->confs, ((gconf){.at = (uint32_t)g->members.n,
                                         .n = (uint32_t)g->found.n,
                                         .hash = hash,
                                         .flags = g->flags})))
        return out_of_memory(g);
    for (size_t i = 0; i < g->found.n; i++)
        g->members.at[g->members.n++] = g->found.at[i];
    *slot = (uint32_t)g->confs.n - 1;
    return *slot;
}

static void
begin_conf(br_grammar *g)
{
    g->stamp++;
    g->flags = 0;
    g->found.n = 0;
}

static void
push(br_grammar *g, uint32_t state, uint32_t parent)
{
    if (!br_vec_push(&g->work, state) || !br_vec_push(&g->work, parent))
        (void)out_of_memory(g);
}

static void
expand(br_grammar *g, uint32_t state, uint32_t parent)
{
    const gstate *s = &g->states.at[state];

    switch ((gkind)s->kind) {
    case G_BYTE: break;
    case G_SPLIT:
        push(g, s->a, parent);
        push(g, s->b, parent);
        break;
    case G_CALL: /* a call that ends its caller needs no way back to it */
        if (g->states.at[s->b].kind == G_RET)
            push(g, s->a, parent);
        else
            push(g, s->a, node_of(g, s->b, parent));
        break;
    case G_RET:
        if (parent == G_TOP)
            g->flags |= G_ACCEPTS;
        else if (parent == G_BOTTOM)
            g->flags |= G_LEAVES;
        else
            push(g, g->nodes.at[parent].state, g->nodes.at[parent].parent);
        break;
    }
}

/* Adds all places to read a byte at, from this one on. */
static void
closure(br_grammar *g, uint32_t state, uint32_t parent)
{
    g->work.n = 0;
    push(g, state, parent);
    while (g->work.n >= 2 && !g->failed) {
        uint32_t node;

        g->work.n -= 2;
        state = g->work.at[g->work.n];
        parent = g->work.at[g->work.n + 1];
        node = node_of(g, state, parent);
        if (++g->spent > BR_GRAMMAR_MAX_WORK ||
            g->found.n > BR_GRAMMAR_MAX_STACKS)
            g->failed = BR_E_LIMIT;
        if (g->failed || g->nodes.at[node].mark == g->stamp)
            continue;
        g->nodes.at[node].mark = g->stamp;
        if (g->states.at[state].kind != G_BYTE)
            expand(g, state, parent);
        else if (!br_vec_push(&g->found, node))
            (void)out_of_memory(g);
    }
}

/* Where a byte leads; DEAD also when it failed. */
static uint32_t
find_next(br_grammar *g, uint32_t at, uint8_t byte)
{
    uint32_t class_i = g->class_of[byte], to;

    if (!g->confs.at[at].next) {
        if (!br_vec_reserve(&g->nexts, g->nexts.n + g->n_classes))
            return out_of_memory(g), DEAD;
        memset(g->nexts.at + g->nexts.n, 0, g->n_classes * sizeof(uint32_t));
        g->confs.at[at].next = (uint32_t)g->nexts.n;
        g->nexts.n += g->n_classes;
    }
    begin_conf(g);
    for (uint32_t i = 0; i < g->confs.at[at].n; i++) {
        uint32_t node = g->members.at[g->confs.at[at].at + i];
        gstate s = g->states.at[g->nodes.at[node].state];

        if (byte >= s.lo && byte <= s.hi)
            closure(g, s.a, g->nodes.at[node].parent);
    }
    to = g->failed ? DEAD : conf_of(g);
    if (g->failed)
        return DEAD;
    g->nexts.at[g->confs.at[at].next + class_i] = to;
    return to;
}

static uint32_t
next_of(br_grammar *g, uint32_t at, uint8_t byte)
{
    uint32_t base = g->confs.at[at].next;
    uint32_t to = base ? g->nexts.at[base + g->class_of[byte]] : 0;

    return to ? to : find_next(g, at, byte);
}

static uint32_t
start_of(br_grammar *g)
{
    if (!g->start) {
        begin_conf(g);
        closure(g, g->root, G_TOP);
        g->start = g->failed ? 0 : conf_of(g);
    }
    return g->start;
}

/* Going on where the call behind this node returns to. */
static uint32_t
return_to(br_grammar *g, uint32_t node)
{
    if (node == G_TOP)
        return DEAD;
    if (!g->nodes.at[node].pop) {
        uint32_t to;

        begin_conf(g);
        closure(g, g->nodes.at[node].state, g->nodes.at[node].parent);
        to = g->failed ? DEAD : conf_of(g);
        if (g->failed)
            return DEAD;
        g->nodes.at[node].pop = to;
    }
    return g->nodes.at[node].pop;
}

uint32_t
br_conf_first(br_grammar *g)
{
    return start_of(g);
}

uint32_t
br_conf_next(br_grammar *g, uint32_t conf, uint8_t byte)
{
    uint32_t to;

    if (conf <= DEAD)
        return conf;
    g->spent = 0; /* of this byte alone */
    to = next_of(g, conf, byte);
    return g->failed ? 0 : to;
}

bool
br_conf_ends(const br_grammar *g, uint32_t conf)
{
    return conf > DEAD && g->confs.at[conf].flags & G_ACCEPTS;
}

/* ---- walks over the vocabulary ------------------------------------------- */

/* Sets the bits of the tokens below node `top` that a configuration at it
 * allows. leaves: notes the nodes at which the bottom frame is left, too. */
static void
walk(br_grammar *g, uint32_t top, uint32_t conf, uint64_t *bits, bool leaves)
{
    uint32_t at[BR_VOCAB_DEEPEST + 1];
    const br_vocab *v = g->v;
    uint32_t base = v->depth[top], end = v->skip[top];

    at[0] = conf;
    for (uint32_t i = top + 1; i < end && !g->failed;) {
        uint32_t d = v->depth[i] - base;
        uint32_t c = next_of(g, at[d - 1], v->byte[i]);

        g->visited++;
        if (c == DEAD) {
            i = v->skip[i];
            continue;
        }
        at[d] = c;
        for (int32_t id = v->token[i]; id >= 0;) {
            int32_t own = id & ~BR_VOCAB_MORE;

            bits[own / 64] |= UINT64_C(1) << (own % 64);
            id = id & BR_VOCAB_MORE ? v->same[own] : -1;
        }
        if (leaves && (g->confs.at[c].flags & G_LEAVES) && v->skip[i] > i + 1 &&
            !br_vec_push(&g->leaves, i))
            (void)out_of_memory(g);
        i = g->confs.at[c].n ? i + 1 : v->skip[i];
    }
    if (g->visited > BR_GRAMMAR_MAX_WORK)
        g->failed = BR_E_LIMIT;
}

static uint32_t
keep_mask(br_grammar *g, const uint64_t *bits, const gwords *leaves)
{
    size_t bytes = mask_words(g) * sizeof *bits;
    size_t leaf_bytes = leaves ? leaves->n * sizeof(uint32_t) : 0;
    gmask m = {.bits = br_try_alloc(bytes), .leaves = br_try_alloc(leaf_bytes)};

    if (!m.bits || !m.leaves || !br_vec_push(&g->masks, m)) {
        br_free(m.bits);
        br_free(m.leaves);
        return out_of_memory(g);
    }
    memcpy(m.bits, bits, bytes);
    if (leaf_bytes)
        memcpy(m.leaves, leaves->at, leaf_bytes);
    g->masks.at[g->masks.n - 1].n_leaves = leaves ? (uint32_t)leaves->n : 0;
    g->mask_bytes += bytes + leaf_bytes;
    return (uint32_t)g->masks.n - 1;
}

/* The part of configuration `at` whose stacks go on at `parent`, with nothing
 * below them. */
static uint32_t
frame_of(br_grammar *g, uint32_t at, uint32_t parent)
{
    begin_conf(g);
    for (uint32_t i = 0; i < g->confs.at[at].n && !g->failed; i++) {
        const gnode *n = &g->nodes.at[g->members.at[g->confs.at[at].at + i]];
        uint32_t state = n->state;

        if (n->parent == parent &&
            !br_vec_push(&g->found, node_of(g, state, G_BOTTOM)))
            (void)out_of_memory(g);
    }
    return g->failed ? DEAD : conf_of(g);
}

static void
mask_frame(br_grammar *g, uint32_t at, uint32_t parent, uint64_t *bits)
{
    uint32_t frame = frame_of(g, at, parent), back, kept, n;
    uint64_t before = g->visited;
    size_t words = mask_words(g);
    uint64_t *own = bits + words; /* the frame's, before it is kept */

    if (g->failed)
        return;
    g->leaves.n = 0;
    if (!g->confs.at[frame].mask) {
        memset(own, 0, words * sizeof *own);
        walk(g, 0, frame, own, true);
        if (!g->failed && g->visited - before > KEEP_VISITS)
            g->confs.at[frame].mask = keep_mask(g, own, &g->leaves);
    }
    kept = g->failed ? 0 : g->confs.at[frame].mask;
    if (kept)
        own = g->masks.at[kept].bits;
    for (size_t i = 0; i < words; i++)
        bits[i] |= own[i];
    back = return_to(g, parent);
    if (g->failed || !g->confs.at[back].n)
        return;
    n = kept ? g->masks.at[kept].n_leaves : (uint32_t)g->leaves.n;
    for (uint32_t i = 0; i < n && !g->failed; i++)
        walk(g, kept ? g->masks.at[kept].leaves[i] : g->leaves.at[i], back,
             bits, false);
}

/* Whether an earlier stack of the configuration has the same parent. */
static bool
seen_before(const br_grammar *g, const gconf *c, uint32_t i, uint32_t parent)
{
    for (uint32_t k = 0; k < i; k++)
        if (g->nodes.at[g->members.at[c->at + k]].parent == parent)
            return true;
    return false;
}

/* The tokens that may come; NULL: it failed. */
static const uint64_t *
mask_of(br_grammar *g, uint32_t at)
{
    size_t words = mask_words(g);

    if (g->confs.at[at].mask)
        return g->masks.at[g->confs.at[at].mask].bits;
    if (!g->bits)
        g->bits = br_try_calloc(2 * words + 1, sizeof *g->bits);
    if (!g->bits)
        return out_of_memory(g), NULL;
    memset(g->bits, 0, words * sizeof *g->bits);
    for (uint32_t i = 0; i < g->confs.at[at].n && !g->failed; i++) {
        uint32_t parent =
            g->nodes.at[g->members.at[g->confs.at[at].at + i]].parent;

        if (!seen_before(g, &g->confs.at[at], i, parent))
            mask_frame(g, at, parent, g->bits);
    }
    if (!g->failed && g->visited > KEEP_VISITS) {
        uint32_t kept = keep_mask(g, g->bits, NULL);

        g->confs.at[at].mask = kept;
    }
    return g->failed ? NULL : g->bits;
}

/* ---- one answer ---------------------------------------------------------- */

br_code
br_matcher_new(br_matcher **out, br_grammar *g, br_status *st)
{
    br_matcher *m = br_try_calloc(1, sizeof *m);

    *out = m;
    if (!m)
        return br_fail(st, BR_E_OOM, "grammar: out of memory");
    m->g = br_grammar_ref(g);
    m->generation = UINT32_MAX; /* not found yet */
    m->code = BR_E_REJECTED;
    return BR_OK;
}

void
br_matcher_free(br_matcher *m)
{
    if (!m)
        return;
    br_grammar_free(m->g);
    br_str_fini(&m->text);
    br_str_fini(&m->thought);
    br_free(m);
}

void
br_matcher_after(br_matcher *m, const char *begin, const char *end, bool open)
{
    m->begin = begin;
    m->end = end;
    m->state = open ? THINKS : MAY_THINK;
}

static bool
check(br_matcher *m)
{
    br_code why = m->g->failed;

    m->g->failed = BR_OK;
    if (why == BR_OK)
        return true;
    m->code = why == BR_E_OOM ? why : BR_E_REJECTED;
    if (why == BR_E_OOM)
        snprintf(m->error, sizeof m->error,
                 "the answer's grammar: out of memory");
    else
        snprintf(m->error, sizeof m->error,
                 "the answer's grammar: over %d steps, or %d ways to read the "
                 "same text, for one token",
                 BR_GRAMMAR_MAX_WORK, BR_GRAMMAR_MAX_STACKS);
    cache_clear(m->g); /* what is half done is not kept */
    return false;
}

/* Its configuration, found again where the cache was emptied. */
static bool
locate(br_matcher *m)
{
    br_grammar *g = m->g;

    g->spent = g->visited = 0;
    if (cache_bytes(g) > BR_GRAMMAR_CACHE_BYTES)
        cache_clear(g);
    if (m->generation == g->generation)
        return true;
    m->at = start_of(g);
    for (size_t i = 0; i < m->text.n && !g->failed; i++) {
        g->spent = 0; /* of many tokens */
        m->at = next_of(g, m->at, (uint8_t)m->text.at[i]);
    }
    m->generation = g->generation;
    return !g->failed;
}

static void
apply(const br_grammar *g, const uint64_t *bits, float *logits, int32_t n)
{
    int32_t known = BR_MIN(n, (int32_t)g->v->n_tokens);

    for (int32_t i = 0; i < known; i += 64) {
        uint64_t not = ~bits[i / 64];
        int32_t end = BR_MIN(64, known - i);

        if (not == UINT64_MAX) {
            for (int32_t k = 0; k < end; k++)
                logits[i + k] = -INFINITY;
            continue;
        }
        for (; not ; not &= not -1)
            if (__builtin_ctzll(not ) < end)
                logits[i + __builtin_ctzll(not )] = -INFINITY;
    }
    for (int32_t i = known; i < n; i++)
        logits[i] = -INFINITY;
}

bool
br_matcher_mask(br_matcher *m, float *logits, int32_t n_vocab)
{
    br_grammar *g = m->g;
    const uint64_t *bits =
        m->state != THINKS && locate(m) ? mask_of(g, m->at) : NULL;
    size_t n_eog = 0;
    const int32_t *eog = br_tok_eog(g->v->tok, &n_eog);
    float end[16]; /* logits of the tokens that end, while they are masked */

    for (size_t i = 0; m->state == THINKS && i < n_eog; i++)
        logits[eog[i]] = -INFINITY;
    if (m->state == THINKS)
        return true;
    if (!bits)
        return check(m);
    for (size_t i = 0; i < n_eog && i < BR_COUNT(end); i++)
        end[i] = logits[eog[i]];
    apply(g, bits, logits, n_vocab);
    for (size_t i = 0; i < n_eog && i < BR_COUNT(end); i++)
        if (g->confs.at[m->at].flags & G_ACCEPTS)
            logits[eog[i]] = end[i];
    return check(m);
}

static bool
advance(br_matcher *m, br_text t)
{
    if (!locate(m))
        return check(m);
    for (size_t i = 0; i < t.n; i++)
        m->at = next_of(m->g, m->at, (uint8_t)t.p[i]);
    br_str_put(&m->text, t.p, t.n);
    if (m->text.oom)
        (void)out_of_memory(m->g);
    return check(m) && m->at != DEAD;
}

/* White space that models put around their thoughts. */
static br_text
trimmed(const char *p, size_t n)
{
    while (n && (*p == ' ' || *p == '\n')) {
        p++;
        n--;
    }
    return (br_text){p, n};
}

/* A piece of a thought; behind its end the grammar begins. */
static bool
think(br_matcher *m)
{
    size_t n = strlen(m->end);
    char *at = memmem(br_str_z(&m->thought), m->thought.n, m->end, n);
    br_text rest;

    if (!at) {
        if (m->thought.n >= n) { /* only what may be the end's beginning */
            memmove(m->thought.at, m->thought.at + m->thought.n - n + 1, n - 1);
            m->thought.n = n - 1;
        }
        return true;
    }
    m->state = BOUND;
    br_str_clear(&m->text);
    m->generation = UINT32_MAX;
    at += n;
    rest = trimmed(at, m->thought.n - (size_t)(at - m->thought.at));
    return !rest.n || advance(m, rest);
}

/* Whether the answer so far is a thought, or the beginning of its mark. */
static void
may_think(br_matcher *m)
{
    br_text t = trimmed(br_str_z(&m->thought), m->thought.n);
    size_t n = strlen(m->begin), have = BR_MIN(n, t.n);

    if (memcmp(t.p, m->begin, have) != 0)
        m->state = BOUND;
    else if (have == n)
        m->state = THINKS;
}

bool
br_matcher_accept(br_matcher *m, int32_t token)
{
    br_text t = br_tok_bytes(m->g->v->tok, token);
    bool ok;

    if (m->state != BOUND) {
        br_str_put(&m->thought, t.p, t.n);
        if (m->thought.oom) {
            (void)out_of_memory(m->g);
            return check(m);
        }
        if (m->state == MAY_THINK)
            may_think(m);
        if (m->state == THINKS)
            return think(m);
    }
    ok = advance(m, t) && t.n;
    if (!ok && !m->error[0])
        snprintf(m->error, sizeof m->error,
                 "the answer's grammar: token %d was not allowed", token);
    return ok;
}

static bool
mask_hook(void *ctx, float *logits, int32_t n_vocab)
{
    return br_matcher_mask(ctx, logits, n_vocab);
}

static bool
accept_hook(void *ctx, int32_t token)
{
    return br_matcher_accept(ctx, token);
}

br_logit_hook
br_matcher_hook(br_matcher *m)
{
    return (br_logit_hook){mask_hook, accept_hook, m, m->error, &m->code};
}

bool
br_matcher_done(const br_matcher *m)
{
    return m->generation == m->g->generation &&
           (m->g->confs.at[m->at].flags & G_ACCEPTS);
}

uint64_t
br_matcher_visited(const br_matcher *m)
{
    return m->g->visited;
}
