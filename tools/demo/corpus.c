/* corpus.c - endless little stories and talks about them, for the demo model.
 *
 *   corpus --bytes 1000000000 --seed 7      documents, one after another
 *   corpus --eval 200 --seed 7              JSON lines: request, story, QA
 *
 * A story is a plot (12 of them) over facts drawn from words.def: hero, friend,
 * home, weather, thing, places, feelings. The facts are kept, so questions have
 * one right answer. A talk is chat turns: greeting, a wish ("a story about a
 * shy owl"), who lives somewhere or what is in a box, the story, questions,
 * another story, goodbye. Stories whose
 * (plot, hero, name, friend) hash to 0 mod 16 go only to --eval: a plot there
 * was never seen in training. The same seed gives the same bytes.
 *
 * The plots are in plots.c. Written without Brass's library: it also runs where
 * only a compiler is.
 * SPDX-License-Identifier: Apache-2.0 */
#include "corpus.h"
#include "words.def"

#define W(w)               w,
#define N(w)               w,
#define P(prep, noun)      {prep, noun},
#define F(what, remedy)    {what, remedy},
#define H(noun, art, coat) {noun, art, coat},

struct hero_row {
    const char *noun, *art;
    int coat;
};
static const struct hero_row heroes[] = {HEROES};
static const char *const names[] = {NAMES};
static const char *const traits[] = {TRAITS};
static const char *const colours[] = {COLOURS};
static const char *const coats[] = {COATS};
static const struct pair homes[] = {HOMES};
static const struct pair spots[] = {SPOTS};
static const char *const things[] = {THINGS};
static const char *const foods[] = {FOODS};
static const char *const skills[] = {SKILLS};
static const struct pair fears[] = {FEARS};
static const char *const builds[] = {BUILDS};
static const char *const weathers[] = {WEATHERS};
static const char *const times[] = {TIMES};
static const char *const unknown[] = {UNKNOWN};

/* ---- chance ------------------------------------------------------------- */

static uint64_t rng_state;

static uint64_t
rnd(void)
{
    uint64_t z = rng_state += 0x9e3779b97f4a7c15u;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

unsigned
below(size_t n)
{
    return (unsigned)(rnd() % n);
}

bool
chance(unsigned percent)
{
    return below(100) < percent;
}

/* ---- text --------------------------------------------------------------- */

void
put(struct text *t, const char *fmt, ...)
{
    va_list ap;
    int n;

    va_start(ap, fmt);
    n = vsnprintf(t->s + t->n, TEXT_MAX - t->n, fmt, ap);
    va_end(ap);
    if (n < 0 || t->n + (size_t)n >= TEXT_MAX) {
        fprintf(stderr, "corpus: a document is longer than %d\n", TEXT_MAX);
        exit(1);
    }
    t->n += (size_t)n;
}

static void
cap(char *s)
{
    s[0] = (char)toupper((unsigned char)s[0]);
}

/* ---- facts --------------------------------------------------------------- */

static void
draw_who(struct who *w, const struct who * not )
{
    const struct hero_row *h;
    unsigned name;

    do
        h = &pick(heroes);
    while (not &&h->noun == not ->noun);
    do
        name = below(COUNT(names));
    while (not &&names[name] == not ->name);
    w->noun = h->noun;
    w->art = h->art;
    w->name = names[name];
    w->trait = pick(traits);
    w->coat = h->coat && chance(60) ? pick(coats) : "";
    w->he = name & 1 ? "she" : "he";
    w->him = name & 1 ? "her" : "him";
    w->his = name & 1 ? "her" : "his";
    if (!strcmp(h->noun, "boy"))
        w->he = "he", w->him = "him", w->his = "his";
    if (!strcmp(h->noun, "girl") || !strcmp(h->noun, "hen"))
        w->he = "she", w->him = "her", w->his = "her";
}

static uint64_t
hash_str(uint64_t h, const char *s)
{
    while (*s)
        h = (h ^ (unsigned char)*s++) * 0x100000001b3u;
    return h;
}

static bool
held_out(const struct story *s)
{
    uint64_t h =
        hash_str(0xcbf29ce484222325u + (uint64_t)s->plot, s->hero.noun);

    h = hash_str(h, s->hero.name);
    h = hash_str(h, s->pal.noun);
    return (h ^ (h >> 29)) % 16 == 0;
}

const char *
article(const char *word)
{
    return strchr("aeiou", word[0]) ? "an" : "a";
}

void
ask(struct story *s, const char *key, const char *q, const char *fmt, ...)
{
    struct qa *x = &s->qa[s->n_qa];
    va_list ap;

    if (s->n_qa == QA_MAX)
        return;
    s->n_qa++;
    x->look = false;
    snprintf(x->q, sizeof x->q, "%s", q);
    snprintf(x->key, sizeof x->key, "%s", key);
    va_start(ap, fmt);
    vsnprintf(x->a, sizeof x->a, fmt, ap);
    va_end(ap);
    cap(x->q);
    cap(x->a);
}

/* A question in one of two or three wordings. */
const char *
fmtq(char *buf, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(buf, LINE_MAX_, fmt, ap);
    va_end(ap);
    return buf;
}

/* ---- who is who ---------------------------------------------------------- */

/* Everybody is asked for by the same words, so that only the animal tells them
 * apart: where hero and friend had a wording each, the model learned the words,
 * and where names were asked for seldom, it guessed. */
static void
ask_name(struct story *s, const struct who *w)
{
    static const char *const q[] = {
        "what was the %s's name?", "what is the %s's name?",
        "what is the name of the %s?", "what was the name of the %s?",
        "what is the %s called?"};

    ask(s, w->name, Q(pick(q), w->noun), "the %s's name was %s.", w->noun,
        w->name);
}

static bool
is_child(const struct who *w)
{
    return !strcmp(w->noun, "boy") || !strcmp(w->noun, "girl");
}

static void
ask_kind(struct story *s, const struct who *w)
{
    if (chance(40))
        ask(s, w->noun, Q("who %s %s?", chance(50) ? "is" : "was", w->name),
            "%s was %s %s.", w->name, w->art, w->noun);
    else
        ask(s, w->noun, Q("what kind of animal is %s?", w->name),
            is_child(w) ? "%s is not an animal. %s is %s %s."
                        : "%s is an animal. %s is %s %s.",
            w->name, w->name, w->art, w->noun);
}

static void
ask_cast(struct story *s)
{
    const struct who *h = &s->hero, *p = &s->pal;
    const struct who *a = chance(50) ? h : p, *b = a == h ? p : h;

    for (int i = 0; i < 2; i++) {
        ask_name(s, h);
        ask_name(s, p);
        ask_kind(s, i ? h : p);
    }
    ask(s, h->name,
        Q(chance(50) ? "what is the hero's name?"
                     : "who is the hero of the story?"),
        "the hero is %s the %s.", h->name, h->noun);
    ask(s, p->name,
        Q(chance(50) ? "what was the friend's name?"
                     : "who was the friend of %s?",
          h->name),
        "the friend was %s the %s.", p->name, p->noun);
    ask(s, b->name,
        Q(chance(50) ? "who is in the story?" : "who was in this story?"),
        "%s the %s and %s the %s.", a->name, a->noun, b->name, b->noun);
}

/* ---- colours and traits -------------------------------------------------- */

static const char *
another(const char *const *table, size_t n, const char * not )
{
    const char *w;

    do
        w = table[below(n)];
    while (!strcmp(w, not ));
    return w;
}

static void
ask_look(struct story *s, const char *key, const char *q, const char *a)
{
    ask(s, key, q, "%s", a);
    s->qa[s->n_qa - 1].look = true;
}

/* "Was the key red or golden?", with the right one first or last. */
static const char *
ask_either(char *out, const char *what, const char *right, const char *wrong)
{
    bool first = chance(50);

    return fmtq(out, "%s %s %s or %s?", chance(50) ? "was" : "is", what,
                first ? right : wrong, first ? wrong : right);
}

/* Everything that has a colour is asked for by the same words, a coat too, so
 * that only what is named tells them apart. */
static void
ask_colour(struct story *s, const char *what, const char *colour)
{
    static const char *const q[] = {"what colour was %s?", "what colour is %s?",
                                    "what was the colour of %s?",
                                    "what is the colour of %s?",
                                    "which colour did %s have?"};
    char line[LINE_MAX_];

    if (chance(80))
        fmtq(line, pick(q), what);
    else
        ask_either(line, what, colour,
                   another(colours, COUNT(colours), colour));
    ask_look(s, colour, line, Q("%s was %s.", what, colour));
}

static void
ask_trait(struct story *s, const struct who *w)
{
    static const char *const q[] = {"what was %s like?", "what is %s like?",
                                    "how would you describe %s?",
                                    "what do we know about %s?"};
    const char *what = chance(50) ? w->name : Q("the %s", w->noun);
    char line[LINE_MAX_];

    if (chance(25)) {
        ask_look(s, w->trait, Q("what kind of %s was %s?", w->noun, w->name),
                 Q("%s was %s %s %s.", w->name, article(w->trait), w->trait,
                   w->noun));
        return;
    }
    if (chance(75))
        fmtq(line, pick(q), what);
    else
        ask_either(line, what, w->trait,
                   another(traits, COUNT(traits), w->trait));
    ask_look(s, w->trait, line, Q("%s was %s.", what, w->trait));
}

/* Now and then a thing brings its colour again: "the golden key". */
static void
add_colours(struct text *t, const char *thing, const char *colour)
{
    static struct text old;
    char the[LINE_MAX_];
    size_t len;
    const char *from, *to;

    len = (size_t)snprintf(the, sizeof the, "the %s", thing);
    old = *t;
    t->n = 0;
    for (from = old.s; (to = strstr(from, the)); from = to + len) {
        put(t, "%.*s", (int)(to - from), from);
        if (!isalpha((unsigned char)to[len]) && chance(20))
            put(t, "the %s %s", colour, thing);
        else
            put(t, "%s", the);
    }
    put(t, "%s", from);
}

/* Now and then a name brings its animal: "said Pip the fox". Not where the name
 * is given (named Pip, My name is Pip), nor where the animal follows. */
static void
add_nouns(struct text *t, const struct who *w)
{
    static struct text old;
    size_t len = strlen(w->name);
    const char *from, *to;

    old = *t;
    t->n = 0;
    for (from = old.s; (to = strstr(from, w->name)); from = to + len) {
        const char *next = to + len;
        bool given = to == old.s || (to > old.s + 2 && strchr("sd", to[-2]) &&
                                     strchr("iea", to[-3]));
        bool end = *next == '.' || *next == ',' ||
                   (*next == ' ' && strncmp(next, " the ", 5) != 0);

        put(t, "%.*s", (int)(next - from), from);
        if (!given && to[-1] == ' ' && end && chance(14))
            put(t, " the %s", w->noun);
    }
    put(t, "%s", from);
}

/* Closes with both, in either order, and with the thing. */
static void
of_whom(struct story *s)
{
    bool hero_first = chance(50);
    const char *trait = s->hero.trait;
    char hero[LINE_MAX_], pal[LINE_MAX_];

    put(&s->text, " That was the story of ");
    if (chance(60)) {
        if (chance(50))
            fmtq(hero, "%s %s %s named %s", article(trait), trait, s->hero.noun,
                 s->hero.name);
        else
            fmtq(hero, "%s %s named %s", s->hero.art, s->hero.noun,
                 s->hero.name);
        fmtq(pal, "%s %s named %s", s->pal.art, s->pal.noun, s->pal.name);
    } else {
        fmtq(hero, "%s the %s", s->hero.name, s->hero.noun);
        fmtq(pal, "%s the %s", s->pal.name, s->pal.noun);
    }
    put(&s->text, "%s%s %s", hero_first ? hero : pal,
        s->has_thing ? "," : " and", hero_first ? pal : hero);
    if (s->has_thing)
        put(&s->text, " and %s %s %s", article(s->colour), s->colour, s->thing);
    put(&s->text, ".");
}

/* ---- how a story begins -------------------------------------------------- */

static void
intro(struct story *s)
{
    const struct who *h = &s->hero;
    struct text *t = &s->text;
    const char *sp = h->coat[0] ? " " : "";
    const char *art = article(h->trait);

    switch (below(4)) {
    case 0:
        put(t, "Once upon a time, %s %s%s%s %s named %s lived %s %s.", art,
            h->trait, sp, h->coat, h->noun, h->name, s->home.a, s->home.b);
        break;
    case 1:
        put(t,
            "There was once %s %s%s%s %s. %s name was %s, and %s lived %s "
            "%s.",
            art, h->trait, sp, h->coat, h->noun,
            !strcmp(h->his, "her") ? "Her" : "His", h->name, h->he, s->home.a,
            s->home.b);
        break;
    case 2:
        put(t, "%s was %s %s%s%s %s who lived %s %s.", h->name, art, h->trait,
            sp, h->coat, h->noun, s->home.a, s->home.b);
        break;
    default:
        put(t, "Long ago, %s %s%s%s %s called %s had a home %s %s.", art,
            h->trait, sp, h->coat, h->noun, h->name, s->home.a, s->home.b);
        break;
    }
    put(t, " ");
    if (chance(30))
        put(t, "Everyone there liked %s. ", h->name);
    else if (chance(30))
        put(t, "Everyone there knew how %s %s was. ", h->trait, h->name);
    ask(s, h->noun,
        Q(chance(50) ? "who is the story about?" : "who is this story about?"),
        "it is about %s, %s %s %s.", h->name, art, h->trait, h->noun);
    for (int i = 0; i < 3; i++)
        ask_trait(s, h);
    ask(s, s->home.b,
        Q(chance(50) ? "where did %s live?" : "where was %s's home?", h->name),
        "%s lived %s %s.", h->name, s->home.a, s->home.b);
    if (h->coat[0]) {
        ask_colour(s, h->name, h->coat);
        ask_colour(s, Q("the %s", h->noun), h->coat);
    }
}

void
thing_colour(struct story *s)
{
    s->has_thing = true;
    for (int i = 0; i < 3; i++)
        ask_colour(s, Q("the %s", s->thing), s->colour);
}

/* What is not in the story is not there: half of these are asked. */
static void
ask_absent(struct story *s)
{
    const struct hero_row *x = &pick(heroes);

    if (x->noun == s->hero.noun || x->noun == s->pal.noun)
        return;
    ask(s, "No", Q("was there %s %s in the story?", x->art, x->noun),
        "no, there was no %s in this story.", x->noun);
}

static void
make_story(struct story *s, bool eval)
{
    do {
        s->plot = (int)below(N_PLOTS);
        draw_who(&s->hero, NULL);
        draw_who(&s->pal, &s->hero);
    } while (held_out(s) != eval);
    s->text.n = 0;
    s->n_qa = 0;
    s->has_thing = false;
    s->home = pick(homes);
    s->spot = pick(spots);
    do
        s->found = pick(spots);
    while (s->found.b == s->spot.b);
    s->fear = pick(fears);
    s->weather = pick(weathers);
    s->time = pick(times);
    s->thing = pick(things);
    s->colour = pick(colours);
    s->food = pick(foods);
    s->skill = pick(skills);
    s->build = pick(builds);
}

static void
tell(struct story *s)
{
    ask_cast(s);
    intro(s);
    plots[s->plot](s);
    add_nouns(&s->text, &s->hero);
    add_nouns(&s->text, &s->pal);
    if (s->has_thing)
        add_colours(&s->text, s->thing, s->colour);
    if (chance(30))
        of_whom(s);
    ask_absent(s);
    ask(s, "Yes", Q("was there %s %s in the story?", s->hero.art, s->hero.noun),
        "yes, %s was %s %s.", s->hero.name, s->hero.art, s->hero.noun);
    cap(s->text.s);
    /* A sentence that begins with a place needs its capital. */
    for (size_t i = 0; i + 2 < s->text.n; i++)
        if ((s->text.s[i] == '.' || s->text.s[i] == '!') &&
            s->text.s[i + 1] == ' ')
            s->text.s[i + 2] = (char)toupper((unsigned char)s->text.s[i + 2]);
}

/* ---- talks -------------------------------------------------------------- */

static void
turn(struct text *t, const char *who, const char *what)
{
    put(t, "<|%s|>\n%s<|end|>\n", who, what);
}

/* Some people type "what was the fox's name", without capital and mark. */
static void
say(struct text *t, const char *what)
{
    char s[LINE_MAX_];
    size_t n;

    snprintf(s, sizeof s, "%s", what);
    n = strlen(s);
    if (chance(10)) {
        s[0] = (char)tolower((unsigned char)s[0]);
        if (n > 0 && ispunct((unsigned char)s[n - 1]))
            s[n - 1] = '\0';
    }
    turn(t, "user", s);
}

/* How one asks for this story; says no more than the story keeps. */
static void
wish(const struct story *s, char *out, size_t n)
{
    const struct who *h = &s->hero;
    const char *lead[] = {"Tell me a story about",
                          "Please tell me a story about",
                          "Can you tell me a story about",
                          "I want a story about",
                          "A story about",
                          "Tell me a short story about",
                          "Write a story about"};
    const char *l = pick(lead);
    const char *q = !strncmp(l, "Can", 3) ? "?" : ".";

    switch (below(6)) {
    case 0:
        snprintf(out, n, "%s %s %s named %s%s", l, h->art, h->noun, h->name, q);
        break;
    case 1:
        snprintf(out, n, "%s %s %s %s%s", l, article(h->trait), h->trait,
                 h->noun, q);
        break;
    case 2:
        snprintf(out, n, "%s %s %s and %s %s%s", l, h->art, h->noun, s->pal.art,
                 s->pal.noun, q);
        break;
    case 3:
        snprintf(out, n, "%s",
                 chance(50) ? "Tell me a story."
                            : "Can you tell me a story, please?");
        break;
    default: snprintf(out, n, "%s %s %s%s", l, h->art, h->noun, q); break;
    }
}

static void
small_talk(struct text *t)
{
    static const struct pair talk[] = {
        {"Hello!", "Hello! Shall I tell you a story?"},
        {"Hi", "Hi! Would you like to hear a story?"},
        {"Good morning.", "Good morning! I know many little stories."},
        {"Who are you?",
         "I am a very small model. I tell little stories and answer questions "
         "about them."},
        {"What can you do?",
         "I can tell little stories about animals and children, and answer "
         "questions about them."},
        {"How are you?", "I am well, thank you. Shall I tell you a story?"},
        {"What is your name?",
         "I have no name of my own. I am the little story teller of Brass."},
        {"Are you a human?", "No, I am a very small language model."},
        {"Help", "Ask me for a story, for example: Tell me a story about a "
                 "fox."}};
    const struct pair *p = &pick(talk);

    say(t, p->a);
    turn(t, "assistant", p->b);
}

static void
off_topic(struct text *t)
{
    static const char *const no[] = {
        "I do not know that. I only know little stories.",
        "That is too hard for me. I can only tell little stories.",
        "I am sorry, I only know about my little stories."};

    say(t, pick(unknown));
    turn(t, "assistant", pick(no));
}

/* A fifth about who is who, two fifths about colours and traits: these are one
 * token among many, and what is asked seldom is guessed. */
static const struct qa *
draw_question(const struct story *s)
{
    unsigned kind = below(100);
    size_t i;

    if (kind < 20)
        return &s->qa[below(N_CAST)];
    do
        i = N_CAST + below((size_t)s->n_qa - N_CAST);
    while (s->qa[i].look != (kind < 60));
    return &s->qa[i];
}

static void
questions(struct text *t, struct story *s, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        const struct qa *x = draw_question(s);

        if (chance(6)) {
            say(t, chance(50) ? "Tell it in short."
                              : "What is the story about, in short?");
            turn(t, "assistant", s->gist);
        } else if (chance(6)) {
            say(t, chance(50) ? "What happened next?" : "And then?");
            turn(t, "assistant", s->next);
        } else {
            say(t, x->q);
            turn(t, "assistant", x->a);
        }
    }
}

static void
ask_any(struct text *t, const struct story *s, unsigned n)
{
    for (; n > 0; n--) {
        const struct qa *x = &s->qa[below((size_t)s->n_qa)];

        say(t, x->q);
        turn(t, "assistant", x->a);
    }
}

/* Who lives where: three to six with names, and then who is who. A story has
 * two, so that half of all guesses are right; here a guess seldom is. */
static void
roll_call(struct text *t, struct story *s)
{
    enum { MOST = 6 };
    static const char *const count[] = {"three", "four", "five", "six"};
    const struct pair *at = &pick(homes);
    unsigned n = 3 + below(MOST - 2);
    struct who all[MOST];
    char q[LINE_MAX_];
    struct text line = {.n = 0};
    bool described = chance(60);

    s->n_qa = 0;
    for (unsigned i = 0; i < n; i++) {
        draw_who(&all[i], NULL);
        for (unsigned k = 0; k < i; k++)
            if (all[k].noun == all[i].noun || all[k].name == all[i].name) {
                i--;
                break;
            }
    }
    for (unsigned i = 0; i < n; i++) {
        put(&line, i == 0 ? "" : i + 1 < n ? ", " : " and ");
        if (described) {
            put(&line, "%s %s %s %s %s", article(all[i].trait), all[i].trait,
                all[i].noun, chance(50) ? "named" : "called", all[i].name);
            ask_trait(s, &all[i]);
            ask_trait(s, &all[i]);
        } else if (chance(33))
            put(&line, "%s the %s", all[i].name, all[i].noun);
        else
            put(&line, "%s %s %s %s", all[i].art, all[i].noun,
                chance(50) ? "named" : "called", all[i].name);
        ask_name(s, &all[i]);
        ask_name(s, &all[i]);
        ask_kind(s, &all[i]);
    }
    ask(s, count[n - 3], Q("how many are there?"), "there are %s.",
        count[n - 3]);
    put(&line, " live %s %s.", at->a, at->b);
    cap(line.s);
    snprintf(q, sizeof q, "Who lives %s %s?", at->a, at->b);
    say(t, q);
    turn(t, "assistant", line.s);
    ask_any(t, s, 2 + below(5));
}

/* What is in a box: three to six things and their colours, like roll_call. */
static void
unpack(struct text *t, struct story *s)
{
    enum { MOST = 6 };
    static const char *const in[] = {"box",  "basket", "bag",
                                     "shop", "attic",  "cupboard"};
    const char *where = pick(in), *thing[MOST];
    unsigned n = 3 + below(MOST - 2);
    struct text line = {.n = 0};

    s->n_qa = 0;
    put(&line, "In the %s there are ", where);
    for (unsigned i = 0; i < n; i++) {
        const char *colour = pick(colours);
        unsigned k;

        do {
            thing[i] = pick(things);
            for (k = 0; k < i && thing[k] != thing[i]; k++)
                ;
        } while (k < i || !strcmp(thing[i], where));
        put(&line, "%s%s %s %s",
            i == 0      ? ""
            : i + 1 < n ? ", "
                        : " and ",
            article(colour), colour, thing[i]);
        ask_colour(s, Q("the %s", thing[i]), colour);
        ask_colour(s, Q("the %s", thing[i]), colour);
    }
    put(&line, ".");
    say(t, Q("What is in the %s?", where));
    turn(t, "assistant", line.s);
    ask_any(t, s, 2 + below(5));
}

static void
make_talk(struct text *t, struct story *s)
{
    unsigned stories = 1 + (below(4) == 0);
    char w[LINE_MAX_];

    put(t, "<|bos|>");
    if (chance(15))
        turn(t, "system",
             "You tell little stories and answer questions about "
             "them.");
    if (chance(25))
        small_talk(t);
    if (chance(8))
        off_topic(t);
    if (chance(30)) {
        if (chance(50))
            roll_call(t, s);
        else
            unpack(t, s);
        stories--;
    }
    for (unsigned i = 0; i < stories; i++) {
        make_story(s, false);
        tell(s);
        wish(s, w, sizeof w);
        say(t, w);
        turn(t, "assistant", s->text.s);
        questions(t, s, 2 + below(8));
        if (chance(5))
            off_topic(t);
    }
    if (chance(30)) {
        say(t, chance(50) ? "Thank you!" : "That was nice.");
        turn(t, "assistant",
             chance(50) ? "You are welcome!" : "I am glad you liked it.");
    }
    if (chance(15)) {
        say(t, chance(50) ? "Goodbye." : "Good night!");
        turn(t, "assistant",
             chance(50) ? "Goodbye! Come back soon."
                        : "Good night! Sleep well.");
    }
}

/* ---- output ------------------------------------------------------------- */

static void
json_str(const char *s)
{
    putchar('"');
    for (; *s; s++)
        if (*s == '"' || *s == '\\')
            printf("\\%c", *s);
        else if (*s == '\n')
            printf("\\n");
        else
            putchar(*s);
    putchar('"');
}

static void
write_eval(unsigned long n)
{
    static struct story s;
    char w[LINE_MAX_];

    for (unsigned long i = 0; i < n; i++) {
        make_story(&s, true);
        tell(&s);
        wish(&s, w, sizeof w);
        printf("{\"wish\": ");
        json_str(w);
        printf(", \"story\": ");
        json_str(s.text.s);
        printf(", \"qa\": [");
        for (int k = 0; k < s.n_qa; k++) {
            printf("%s{\"q\": ", k ? ", " : "");
            json_str(s.qa[k].q);
            printf(", \"a\": ");
            json_str(s.qa[k].a);
            printf(", \"key\": ");
            json_str(s.qa[k].key);
            printf(", \"look\": %s}", s.qa[k].look ? "true" : "false");
        }
        printf("]}\n");
    }
}

static void
write_corpus(unsigned long long bytes)
{
    static struct story s;
    static struct text t;

    for (unsigned long long done = 0; done < bytes; done += t.n) {
        t.n = 0;
        if (chance(15)) { /* a story alone */
            make_story(&s, false);
            tell(&s);
            put(&t, "<|bos|>%s<|end|>\n", s.text.s);
        } else {
            make_talk(&t, &s);
        }
        fwrite(t.s, 1, t.n, stdout);
    }
}

int
main(int argc, char **argv)
{
    unsigned long long bytes = 0;
    unsigned long eval = 0;

    for (int i = 1; i + 1 < argc; i += 2) {
        if (!strcmp(argv[i], "--bytes"))
            bytes = strtoull(argv[i + 1], NULL, 10);
        else if (!strcmp(argv[i], "--eval"))
            eval = strtoul(argv[i + 1], NULL, 10);
        else if (!strcmp(argv[i], "--seed"))
            rng_state = strtoull(argv[i + 1], NULL, 10) * 0x2545f4914f6cdd1du;
        else
            break;
    }
    if ((bytes == 0) == (eval == 0)) {
        fprintf(stderr, "usage: corpus --bytes N | --eval N [--seed S]\n");
        return 2;
    }
    if (eval)
        write_eval(eval);
    else
        write_corpus(bytes);
    return ferror(stdout) || fflush(stdout) ? 1 : 0;
}
