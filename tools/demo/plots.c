/* plots.c - the twelve plots of the demo model's stories.
 * SPDX-License-Identifier: Apache-2.0 */
#include "corpus.h"

static const char *const wandering[] = {
    "picking flowers",   "looking for shells", "carrying wood",
    "on the way home",   "sitting in the sun", "watching the clouds",
    "sweeping the path", "singing a song"};

/* Where a house can stand and a race can pass. */
static const struct pair outside[] = {{"beside the", "pond"},
                                      {"near the", "mill"},
                                      {"behind the", "barn"},
                                      {"at the end of the", "path"},
                                      {"by the", "gate"},
                                      {"in the", "orchard"},
                                      {"at the top of the", "hill"},
                                      {"near the", "bridge"}};

/* ---- parts that every story has ----------------------------------------- */

static void
one_day(struct story *s)
{
    put(&s->text, chance(50) ? "One %s %s " : "On a %s %s ", s->weather,
        s->time);
    ask(s, s->weather,
        Q(chance(50) ? "what was the weather like?" : "how was the weather?"),
        "it was a %s %s.", s->weather, s->time);
}

static void
meet_pal(struct story *s, const char *doing)
{
    const struct who *h = &s->hero, *p = &s->pal;

    switch (below(3)) {
    case 0:
        put(&s->text, "Then %s met %s the %s, who was %s. ", h->name, p->name,
            p->noun, doing);
        break;
    case 1:
        put(&s->text, "Just then %s %s named %s came by, %s. ", p->art, p->noun,
            p->name, doing);
        break;
    default:
        put(&s->text, "Not far away, %s saw %s %s called %s %s. ", h->name,
            p->art, p->noun, p->name, doing);
        break;
    }
}

static void
who_helped(struct story *s)
{
    ask(s, s->pal.name,
        Q(chance(50) ? "who helped %s?" : "who came to help %s?", s->hero.name),
        "%s the %s helped %s.", s->pal.name, s->pal.noun, s->hero.name);
}

static void
feel_start(struct story *s, const char *why)
{
    ask(s, s->start,
        Q(chance(50) ? "how did %s feel at first?"
                     : "how did %s feel in the beginning?",
          s->hero.name),
        "at first %s felt %s.", s->hero.name, s->start);
    if (why)
        ask(s, s->start, Q("why was %s %s?", s->hero.name, s->start),
            "%s was %s because %s.", s->hero.name, s->start, why);
}

static void
the_end(struct story *s)
{
    const struct who *h = &s->hero;

    switch (below(4)) {
    case 0:
        put(&s->text, "In the end %s felt very %s. ", h->name, s->end);
        break;
    case 1:
        put(&s->text, "That night %s went to sleep feeling %s. ", h->name,
            s->end);
        break;
    case 2:
        put(&s->text, "%s walked home and felt %s. ", h->name, s->end);
        break;
    default: put(&s->text, "At last %s was %s. ", h->name, s->end); break;
    }
    put(&s->text, chance(50) ? "%s learned that %s." : "So %s learned that %s.",
        h->name, s->lesson);
    ask(s, s->end,
        Q(chance(50) ? "how did %s feel at the end?"
                     : "how did %s feel in the end?",
          h->name),
        "at the end %s felt %s.", h->name, s->end);
    ask(s, s->lesson,
        Q(chance(50) ? "what did %s learn?"
                     : "what is the lesson of the story?",
          h->name),
        "%s learned that %s.", h->name, s->lesson);
}

/* ---- plots -------------------------------------------------------------- */

static void
plot_lost(struct story *s)
{
    const struct who *h = &s->hero, *p = &s->pal;
    struct text *t = &s->text;

    s->start = chance(50) ? "sad" : "worried";
    s->end = chance(50) ? "happy" : "glad";
    s->lesson = chance(50) ? "it is good to ask for help"
                           : "friends find what one cannot find alone";
    put(t, "%s had %s %s %s and loved it very much. ", h->name,
        article(s->colour), s->colour, s->thing);
    one_day(s);
    put(t, "the %s was gone. ", s->thing);
    put(t,
        chance(50) ? "%s felt %s and looked everywhere. "
                   : "%s was so %s and began to look for it. ",
        h->name, s->start);
    put(t, "%s looked %s %s, but the %s was not there. ", h->name, s->spot.a,
        s->spot.b, s->thing);
    meet_pal(s, pick(wandering));
    put(t,
        chance(50) ? "\"I have lost my %s,\" said %s. \"I will help you,\" "
                     "said %s. "
                   : "\"Have you seen my %s?\" asked %s. \"No, but I will "
                     "help you look,\" said %s. ",
        s->thing, h->name, p->name);
    put(t, "Together they walked and walked. At last they found the %s %s %s. ",
        s->thing, s->found.a, s->found.b);
    put(t, "\"Thank you, %s!\" said %s. ", p->name, h->name);
    the_end(s);
    feel_start(s, Q("%s had lost the %s", h->he, s->thing));
    who_helped(s);
    thing_colour(s);
    ask(s, s->thing,
        Q(chance(50) ? "what did %s lose?" : "what had %s lost?", h->name),
        "%s lost %s %s %s.", h->name, article(s->colour), s->colour, s->thing);
    ask(s, s->found.b,
        Q(chance(50) ? "where did they find the %s?" : "where was the %s?",
          s->thing),
        "they found the %s %s %s.", s->thing, s->found.a, s->found.b);
    ask(s, s->spot.b, Q("where did %s look first?", h->name),
        "%s looked %s %s first.", h->name, s->spot.a, s->spot.b);
    ask(s, "Yes", Q("did %s find the %s?", h->name, s->thing),
        "yes, %s and %s found the %s.", h->name, p->name, s->thing);
    snprintf(s->gist, sizeof s->gist,
             "%s the %s lost a %s %s. %s the %s helped, and they found it %s "
             "%s.",
             h->name, h->noun, s->colour, s->thing, p->name, p->noun,
             s->found.a, s->found.b);
    snprintf(s->next, sizeof s->next,
             "The next day %s and %s played with the %s together.", h->name,
             p->name, s->thing);
}

static void
plot_gift(struct story *s)
{
    const struct who *h = &s->hero, *p = &s->pal;
    struct text *t = &s->text;

    s->start = chance(50) ? "worried" : "unsure";
    s->end = chance(50) ? "proud" : "happy";
    s->lesson = chance(50) ? "giving is a joy"
                           : "a gift from the heart is the best gift";
    one_day(s);
    put(t, "it was the birthday of %s the %s, %s's best friend. ", p->name,
        p->noun, h->name);
    put(t, "%s had no gift yet and felt %s. ", h->name, s->start);
    put(t, "%s went for a walk to think. ", h->name);
    put(t, "There, %s %s, lay %s %s %s. ", s->found.a, s->found.b,
        article(s->colour), s->colour, s->thing);
    put(t, "%s cleaned it and wrapped it in %s. ", h->name,
        chance(50) ? "soft leaves" : "pretty paper");
    put(t,
        "At the party %s opened the gift and smiled. \"A %s! I always "
        "wanted one,\" said %s. ",
        p->name, s->thing, p->name);
    put(t, "They all ate %s until the moon came up. ", s->food);
    the_end(s);
    feel_start(s, Q("%s had no gift for %s", h->he, p->name));
    thing_colour(s);
    ask(s, p->name, Q("whose birthday was it?"), "it was the birthday of %s.",
        p->name);
    ask(s, s->thing,
        Q(chance(50) ? "what did %s give to %s?"
                     : "what was the gift from %s to %s?",
          h->name, p->name),
        "%s gave %s %s %s %s.", h->name, p->name, article(s->colour), s->colour,
        s->thing);
    ask(s, s->found.b, Q("where did %s find the %s?", h->name, s->thing),
        "%s found the %s %s %s.", h->name, s->thing, s->found.a, s->found.b);
    ask(s, s->food, Q("what did they eat at the party?"), "they ate %s.",
        s->food);
    snprintf(s->gist, sizeof s->gist,
             "It was the birthday of %s the %s. %s the %s found a %s %s %s %s "
             "and gave it to %s.",
             p->name, p->noun, h->name, h->noun, s->colour, s->thing,
             s->found.a, s->found.b, p->name);
    snprintf(s->next, sizeof s->next,
             "The next day %s showed the %s to everybody and told them about "
             "%s.",
             p->name, s->thing, h->name);
}

static void
plot_skill(struct story *s)
{
    const struct who *h = &s->hero, *p = &s->pal;
    struct text *t = &s->text;

    s->start = chance(50) ? "sad" : "tired";
    s->end = "proud";
    s->lesson = chance(50) ? "one must try again and again"
                           : "nobody can do it the first time";
    put(t, "%s wanted to %s more than anything. ", h->name, s->skill);
    one_day(s);
    put(t, "%s tried for the first time, but it did not work. ", h->name);
    put(t, "%s tried again and it went wrong again. %s felt %s. ", h->name,
        h->name, s->start);
    meet_pal(s, pick(wandering));
    put(t, "\"I can %s,\" said %s. \"I will show you how.\" ", s->skill,
        p->name);
    put(t, "They practised %s %s every day for a week. ", s->found.a,
        s->found.b);
    put(t, "And then, all at once, %s could %s! ", h->name, s->skill);
    put(t, "%s clapped and laughed. ", p->name);
    the_end(s);
    feel_start(s, Q("%s could not %s", h->he, s->skill));
    who_helped(s);
    ask(s, s->skill,
        Q(chance(50) ? "what did %s want to do?" : "what did %s want to learn?",
          h->name),
        "%s wanted to %s.", h->name, s->skill);
    ask(s, s->found.b, Q("where did they practise?"), "they practised %s %s.",
        s->found.a, s->found.b);
    ask(s, p->name, Q("who taught %s?", h->name), "%s the %s taught %s.",
        p->name, p->noun, h->name);
    ask(s, "week", Q("how long did they practise?"),
        "they practised every day for a week.");
    snprintf(
        s->gist, sizeof s->gist,
        "%s the %s wanted to %s. %s the %s showed %s how, and after a week "
        "%s could do it.",
        h->name, h->noun, s->skill, p->name, p->noun, h->him, h->he);
    snprintf(s->next, sizeof s->next, "Soon %s taught a young %s to %s too.",
             h->name, s->hero.noun, s->skill);
}

static void
plot_share(struct story *s)
{
    const struct who *h = &s->hero, *p = &s->pal;
    struct text *t = &s->text;

    s->start = "hungry";
    s->end = chance(50) ? "happy" : "warm inside";
    s->lesson = chance(50) ? "food tastes better when it is shared"
                           : "what you give comes back to you";
    one_day(s);
    put(t, "%s packed a basket of %s and went out. ", h->name, s->food);
    put(t, "After a long walk %s was %s and sat down %s %s. ", h->name,
        s->start, s->found.a, s->found.b);
    meet_pal(s, "looking thin and tired");
    put(t, "\"I have not eaten all day,\" said %s. ", p->name);
    put(t, "%s looked at the %s. There was only enough for one. ", h->name,
        s->food);
    put(t,
        chance(50) ? "But %s gave half of the %s to %s. "
                   : "Still %s shared the %s with %s. ",
        h->name, s->food, p->name);
    put(t, "\"You are kind,\" said %s, and gave %s %s %s %s to say thank you. ",
        p->name, h->name, article(s->colour), s->colour, s->thing);
    the_end(s);
    feel_start(s, Q("%s had walked a long way", h->he));
    thing_colour(s);
    ask(s, s->food,
        Q(chance(50) ? "what did %s share?" : "what food did %s have?",
          h->name),
        "%s had a basket of %s.", h->name, s->food);
    ask(s, p->name, Q("with whom did %s share the food?", h->name),
        "%s shared the food with %s the %s.", h->name, p->name, p->noun);
    ask(s, s->found.b, Q("where did %s sit down?", h->name),
        "%s sat down %s %s.", h->name, s->found.a, s->found.b);
    ask(s, s->thing, Q("what did %s give to %s?", p->name, h->name),
        "%s gave %s %s %s %s.", p->name, h->name, article(s->colour), s->colour,
        s->thing);
    snprintf(s->gist, sizeof s->gist,
             "%s the %s had a basket of %s and shared it with %s, a hungry %s.",
             h->name, h->noun, s->food, p->name, p->noun);
    snprintf(s->next, sizeof s->next,
             "The next day %s invited %s to a big dinner.", p->name, h->name);
}

static void
plot_stuck(struct story *s)
{
    const struct who *h = &s->hero, *p = &s->pal;
    struct text *t = &s->text;

    s->start = "surprised";
    s->end = chance(50) ? "proud" : "happy";
    s->lesson = chance(50) ? "even a small friend can be a big help"
                           : "one should always listen when someone calls";
    one_day(s);
    put(t, "%s was out with %s %s %s. ", h->name, h->his, s->colour, s->thing);
    put(t, "Suddenly %s heard a small voice: \"Help! Help!\" ", h->name);
    put(t, "%s was %s. The voice came from a place %s %s. ", h->name, s->start,
        s->found.a, s->found.b);
    put(t, "There was %s %s, stuck and crying. ", p->art, p->noun);
    put(t, "\"My name is %s,\" it said. \"I cannot get out.\" ", p->name);
    put(t, "%s thought hard. Then %s held out the %s. \"Hold on tight!\" ",
        h->name, h->he, s->thing);
    put(t, "%s pulled and pulled, and pop, %s was free. ", h->name, p->name);
    put(t, "\"You saved me,\" said %s, and they became friends. ", p->name);
    the_end(s);
    feel_start(s, NULL);
    thing_colour(s);
    ask(s, p->name, Q(chance(50) ? "who was stuck?" : "who called for help?"),
        "%s the %s was stuck.", p->name, p->noun);
    ask(s, s->found.b, Q("where was %s stuck?", p->name), "%s was stuck %s %s.",
        p->name, s->found.a, s->found.b);
    ask(s, s->thing,
        Q(chance(50) ? "what did %s use to help?" : "with what did %s help?",
          h->name),
        "%s used the %s.", h->name, s->thing);
    ask(s, h->name, Q("who saved %s?", p->name), "%s the %s saved %s.", h->name,
        h->noun, p->name);
    snprintf(s->gist, sizeof s->gist,
             "%s the %s was stuck %s %s. %s the %s pulled %s out with a %s.",
             p->name, p->noun, s->found.a, s->found.b, h->name, h->noun, p->him,
             s->thing);
    snprintf(s->next, sizeof s->next,
             "After that %s and %s met every day %s %s.", h->name, p->name,
             s->found.a, s->found.b);
}

static void
plot_fear(struct story *s)
{
    const struct who *h = &s->hero, *p = &s->pal;
    struct text *t = &s->text;

    s->start = "afraid";
    s->end = chance(50) ? "brave" : "proud";
    s->lesson = chance(50) ? "being brave means to try although one is afraid"
                           : "a friend makes every fear smaller";
    put(t, "%s had a secret: %s was afraid of %s. ", h->name, h->he, s->fear.a);
    one_day(s);
    put(t, "%s had to go to a place %s %s, but %s was too %s. ", h->name,
        s->found.a, s->found.b, h->he, s->start);
    meet_pal(s, pick(wandering));
    put(t,
        "\"Why do you tremble?\" asked %s. \"I am afraid of %s,\" said "
        "%s. ",
        p->name, s->fear.a, h->name);
    put(t,
        "\"I was afraid too, once,\" said %s. \"%c%s helped me. Come, we go "
        "together.\" ",
        p->name, toupper((unsigned char)s->fear.b[0]), s->fear.b + 1);
    put(t, "Step by step they went on, and with %s it was not so bad. ",
        s->fear.b);
    the_end(s);
    feel_start(s, Q("%s was afraid of %s", h->he, s->fear.a));
    who_helped(s);
    ask(s, s->fear.a,
        Q(chance(50) ? "what was %s afraid of?" : "of what was %s afraid?",
          h->name),
        "%s was afraid of %s.", h->name, s->fear.a);
    ask(s, s->fear.b, Q("what helped against the fear?"), "%s helped.",
        s->fear.b);
    ask(s, s->found.b, Q("where did %s have to go?", h->name),
        "%s had to go to a place %s %s.", h->name, s->found.a, s->found.b);
    snprintf(s->gist, sizeof s->gist,
             "%s the %s was afraid of %s. %s the %s went along, and with %s %s "
             "became brave.",
             h->name, h->noun, s->fear.a, p->name, p->noun, s->fear.b, h->he);
    snprintf(s->next, sizeof s->next,
             "Later %s helped another %s who was afraid of %s.", h->name,
             s->pal.noun, s->fear.a);
}

static void
plot_build(struct story *s)
{
    const struct who *h = &s->hero, *p = &s->pal;
    struct text *t = &s->text;

    s->start = chance(50) ? "sad" : "angry";
    s->end = chance(50) ? "proud" : "happy";
    s->lesson = chance(50) ? "two can build what one cannot"
                           : "one should never give up";
    put(t, "%s wanted to build %s %s. ", h->name, article(s->build), s->build);
    one_day(s);
    put(t, "%s began to work %s %s. ", h->name, s->found.a, s->found.b);
    put(t, "But the %s fell apart, and %s was %s. ", s->build, h->name,
        s->start);
    meet_pal(s, pick(wandering));
    put(t, "\"Let us do it together,\" said %s. ", p->name);
    put(t, "%s brought %s and %s held everything in place. ", p->name,
        chance(50) ? "strong rope" : "good wood", h->name);
    put(t, "They worked until the sun went down, and the %s was ready. ",
        s->build);
    put(t, "Then they ate %s and looked at it. ", s->food);
    the_end(s);
    feel_start(s, Q("the %s fell apart", s->build));
    who_helped(s);
    ask(s, s->build,
        Q(chance(50) ? "what did %s want to build?" : "what did %s build?",
          h->name),
        "%s wanted to build %s %s.", h->name, article(s->build), s->build);
    ask(s, s->found.b, Q("where did they build it?"), "they built it %s %s.",
        s->found.a, s->found.b);
    ask(s, s->food, Q("what did they eat?"), "they ate %s.", s->food);
    ask(s, "fell apart", Q("what happened to the first %s?", s->build),
        "the first %s fell apart.", s->build);
    snprintf(
        s->gist, sizeof s->gist,
        "%s the %s wanted to build a %s, but it fell apart. With %s the %s "
        "it worked.",
        h->name, h->noun, s->build, p->name, p->noun);
    snprintf(s->next, sizeof s->next,
             "The next day all their friends came to see the %s.", s->build);
}

static void
plot_storm(struct story *s)
{
    const struct who *h = &s->hero, *p = &s->pal;
    struct text *t = &s->text;

    s->weather = chance(50) ? "windy" : "rainy";
    s->found = pick(outside);
    s->start = "cold";
    s->end = chance(50) ? "thankful" : "safe";
    s->lesson =
        chance(50) ? "an open door is a great gift" : "every storm passes";
    one_day(s);
    put(t, "%s was far from home when a big storm began. ", h->name);
    put(t, "The wind took %s %s %s away, and %s was wet and %s. ", h->his,
        s->colour, s->thing, h->name, s->start);
    put(t, "Then %s saw a light %s %s. It was the house of %s the %s. ",
        h->name, s->found.a, s->found.b, p->name, p->noun);
    put(t, "\"Come in, come in!\" said %s and made warm %s. ", p->name,
        s->food);
    put(t, "They told each other stories until the storm was over. ");
    put(t, "In the morning there was a rainbow, and the %s hung in a tree. ",
        s->thing);
    the_end(s);
    feel_start(s, Q("%s was wet from the storm", h->he));
    who_helped(s);
    thing_colour(s);
    ask(s, s->found.b, Q("where was the house of %s?", p->name),
        "the house was %s %s.", s->found.a, s->found.b);
    ask(s, s->thing, Q("what did the wind take away?"),
        "the wind took the %s %s away.", s->colour, s->thing);
    ask(s, s->food, Q("what did %s make?", p->name), "%s made warm %s.",
        p->name, s->food);
    ask(s, "tree", Q("where was the %s in the morning?", s->thing),
        "in the morning the %s hung in a tree.", s->thing);
    snprintf(
        s->gist, sizeof s->gist,
        "%s the %s was caught in a storm and found shelter in the house of "
        "%s the %s.",
        h->name, h->noun, p->name, p->noun);
    snprintf(s->next, sizeof s->next,
             "A week later %s visited %s again, this time in the sun.", h->name,
             p->name);
}

static void
plot_borrow(struct story *s)
{
    const struct who *h = &s->hero, *p = &s->pal;
    struct text *t = &s->text;

    s->start = chance(50) ? "ashamed" : "worried";
    s->end = chance(50) ? "relieved" : "glad";
    s->lesson =
        chance(50) ? "it is best to tell the truth" : "a true friend forgives";
    put(t, "%s had a friend, %s %s named %s. ", h->name, p->art, p->noun,
        p->name);
    one_day(s);
    put(t, "%s borrowed a %s %s from %s and played with it %s %s. ", h->name,
        s->colour, s->thing, p->name, s->found.a, s->found.b);
    put(t, "But oh no, the %s broke! %s felt %s and did not know what to do. ",
        s->thing, h->name, s->start);
    put(t, "\"I could hide it,\" thought %s. But that was not right. ",
        h->name);
    put(t, "So %s went to %s and said, \"I broke your %s. I am sorry.\" ",
        h->name, p->name, s->thing);
    put(t,
        "%s was quiet for a moment. \"Thank you for telling me,\" said %s. "
        "\"We will mend it together.\" And so they did. ",
        p->name, p->name);
    the_end(s);
    feel_start(s, Q("%s broke the %s", h->he, s->thing));
    thing_colour(s);
    ask(s, s->thing,
        Q(chance(50) ? "what did %s borrow?" : "what did %s break?", h->name),
        "it was %s %s %s.", article(s->colour), s->colour, s->thing);
    ask(s, p->name,
        Q(chance(50) ? "from whom did %s borrow it?" : "whose %s was it?",
          chance(0) ? h->name : s->thing),
        "it belonged to %s the %s.", p->name, p->noun);
    ask(s, s->found.b, Q("where did %s play?", h->name), "%s played %s %s.",
        h->name, s->found.a, s->found.b);
    ask(s, "Yes", Q("did %s tell the truth?", h->name),
        "yes, %s told %s the truth.", h->name, p->name);
    snprintf(s->gist, sizeof s->gist,
             "%s the %s borrowed a %s from %s the %s and broke it. %s told the "
             "truth, and they mended it together.",
             h->name, h->noun, s->thing, p->name, p->noun, h->name);
    snprintf(s->next, sizeof s->next,
             "From then on %s was very careful with the things of others.",
             h->name);
}

static void
plot_map(struct story *s)
{
    const struct who *h = &s->hero, *p = &s->pal;
    struct text *t = &s->text;

    s->start = "excited";
    s->end = chance(50) ? "rich" : "happy";
    s->lesson = chance(50) ? "a friend is the best treasure"
                           : "an adventure is better with a friend";
    one_day(s);
    put(t, "%s found an old map %s %s. ", h->name, s->spot.a, s->spot.b);
    put(t, "%s was %s, for there was a big cross on it. ", h->name, s->start);
    meet_pal(s, pick(wandering));
    put(t, "\"Let us find the treasure together,\" said %s. ", p->name);
    put(t, "They walked over hills and through the mud. The cross was %s %s. ",
        s->found.a, s->found.b);
    put(t, "They dug and dug and found %s %s %s! ", article(s->colour),
        s->colour, s->thing);
    put(t, "\"It is for both of us,\" said %s, and %s smiled. ", h->name,
        p->name);
    the_end(s);
    feel_start(s, NULL);
    thing_colour(s);
    ask(s, s->spot.b, Q("where did %s find the map?", h->name),
        "%s found the map %s %s.", h->name, s->spot.a, s->spot.b);
    ask(s, s->found.b,
        Q(chance(50) ? "where was the treasure?" : "where was the cross?"),
        "it was %s %s.", s->found.a, s->found.b);
    ask(s, s->thing,
        Q(chance(50) ? "what was the treasure?" : "what did they find?"),
        "the treasure was %s %s %s.", article(s->colour), s->colour, s->thing);
    ask(s, p->name, Q("who went with %s?", h->name), "%s the %s went with %s.",
        p->name, p->noun, h->name);
    snprintf(s->gist, sizeof s->gist,
             "%s the %s found a map. With %s the %s %s found a %s %s %s %s.",
             h->name, h->noun, p->name, p->noun, h->he, s->colour, s->thing,
             s->found.a, s->found.b);
    snprintf(s->next, sizeof s->next,
             "They kept the %s in a safe place and drew a new map.", s->thing);
}

static void
plot_race(struct story *s)
{
    const struct who *h = &s->hero, *p = &s->pal;
    struct text *t = &s->text;

    s->found = pick(outside);
    s->start = "nervous";
    s->end = chance(50) ? "happy" : "proud";
    s->lesson = chance(50) ? "helping is better than winning"
                           : "it is no fun to win alone";
    one_day(s);
    put(t, "there was a big race, and the prize was %s %s %s. ",
        article(s->colour), s->colour, s->thing);
    put(t, "%s was %s. Beside %s stood %s the %s, who was very fast. ", h->name,
        s->start, h->him, p->name, p->noun);
    put(t, "\"One, two, three, go!\" They ran as fast as they could. ");
    put(t, "%s %s, %s fell and could not get up. ", s->found.a, s->found.b,
        p->name);
    put(t, "%s could have won now. But %s stopped and helped %s. ", h->name,
        h->he, p->name);
    put(t, "Hand in hand they came to the end, the last of all, and everyone "
           "cheered. The prize was for both of them. ");
    the_end(s);
    feel_start(s, NULL);
    thing_colour(s);
    ask(s, s->thing, Q("what was the prize?"), "the prize was %s %s %s.",
        article(s->colour), s->colour, s->thing);
    ask(s, p->name, Q("who fell?"), "%s the %s fell.", p->name, p->noun);
    ask(s, s->found.b, Q("where did %s fall?", p->name), "%s fell %s %s.",
        p->name, s->found.a, s->found.b);
    ask(s, h->name, Q("who helped %s?", p->name), "%s the %s helped %s.",
        h->name, h->noun, p->name);
    snprintf(
        s->gist, sizeof s->gist,
        "In a race %s the %s fell. %s the %s stopped to help, and both got "
        "the prize.",
        p->name, p->noun, h->name, h->noun);
    snprintf(s->next, sizeof s->next,
             "The next year %s and %s ran the race together again.", h->name,
             p->name);
}

static void
plot_visit(struct story *s)
{
    const struct who *h = &s->hero, *p = &s->pal;
    struct text *t = &s->text;

    s->found = pick(outside);
    s->start = "lonely";
    s->end = chance(50) ? "happy" : "cheerful";
    s->lesson = chance(50) ? "a friendly word opens every door"
                           : "new friends are waiting everywhere";
    put(t, "%s had nobody to play with and felt %s. ", h->name, s->start);
    one_day(s);
    put(t, "somebody new moved into a house %s %s. ", s->found.a, s->found.b);
    put(t, "It was %s %s named %s. ", p->art, p->noun, p->name);
    put(t, "%s wanted to say hello but did not dare. ", h->name);
    put(t, "Then %s had an idea and brought some %s. ", h->name, s->food);
    put(t, "\"Welcome!\" said %s. \"I made %s for you.\" ", h->name, s->food);
    put(t, "%s was so pleased, and showed %s %s %s %s. ", p->name, h->name,
        article(s->colour), s->colour, s->thing);
    put(t, "They played with it all day long. ");
    the_end(s);
    feel_start(s, Q("%s had nobody to play with", h->he));
    thing_colour(s);
    ask(s, p->name, Q("who moved in?"), "%s, %s %s, moved in.", p->name, p->art,
        p->noun);
    ask(s, s->found.b, Q("where was the house of %s?", p->name),
        "the house was %s %s.", s->found.a, s->found.b);
    ask(s, s->food, Q("what did %s bring?", h->name), "%s brought some %s.",
        h->name, s->food);
    ask(s, s->thing, Q("what did they play with?"),
        "they played with %s %s %s.", article(s->colour), s->colour, s->thing);
    snprintf(
        s->gist, sizeof s->gist,
        "%s the %s was lonely. %s the %s moved in, %s brought %s, and they "
        "became friends.",
        h->name, h->noun, p->name, p->noun, h->name, s->food);
    snprintf(s->next, sizeof s->next,
             "The next day %s came to visit %s with more %s.", p->name, h->name,
             s->food);
}

void (*const plots[N_PLOTS])(struct story *) = {
    plot_lost,  plot_gift,  plot_skill,  plot_share, plot_stuck, plot_fear,
    plot_build, plot_storm, plot_borrow, plot_map,   plot_race,  plot_visit};
