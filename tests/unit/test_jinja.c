/* test_jinja.c - chat templates: the language in small pieces, and every
 * recorded rendering of real templates, byte for byte.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "t.h"

#include "base/json.h"
#include "model/jinja.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

T_ONE_THREAD();

#define NOON 1768478400 /* 2026-01-15 12:00:00 UTC */

/* Renders source over a JSON context; "!" and the message when it fails. */
static char *
render(const char *source, const char *context)
{
    br_status st = {0};
    br_jinja *t = NULL;
    br_json *ctx = NULL;
    br_arena a;
    br_str out = {0};
    char *text;

    br_arena_init(&a, 0);
    if (br_json_parse(&ctx, &a, context, strlen(context), 0, &st) == BR_OK &&
        br_jinja_compile(&t, source, strlen(source), &st) == BR_OK &&
        br_jinja_render(t, ctx, NOON, &out, &st) == BR_OK)
        text = t_printf("%s", br_str_z(&out));
    else
        text = t_printf("!%s", st.msg);
    br_str_fini(&out);
    br_jinja_free(t);
    br_arena_fini(&a);
    return text;
}

static void
same(const char *source, const char *context, const char *want)
{
    char *got = render(source, context);

    ck_assert_msg(!strcmp(got, want), "%s\n  got  [%s]\n  want [%s]", source,
                  got, want);
}

TEST(jinja_expressions)
{
    same("{{ 1 + 2 * 3 }} {{ 7 // 2 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 7 / 2 }}",
         "{}", "7 3 -4 2 3.5");
    same("{{ 2 ** 10 }} {{ 'a' ~ 1 ~ none }} {{ 'ab' * 2 }} {{ [1] + [2] }}",
         "{}", "1024 a1None abab [1, 2]");
    same("{{ 'a' 'b' }} {{ \"it's\" }} {{ ['it\\'s', 1.0, true, none] }}", "{}",
         "ab it's [\"it's\", 1.0, True, None]");
    same(
        "{{ 1 < 2 < 3 }} {{ 1 < 2 > 3 }} {{ 'a' in 'cat' }} {{ 3 not in [1] }}",
        "{}", "True False True True");
    same("{{ x and 'y' }} {{ 0 or 'z' }} {{ not x }}", "{\"x\": 1}",
         "y z False");
    same("{{ 'a' if x else 'b' }}{{ 'c' if not x }}", "{\"x\": 1}", "a");
    same("{{ x[1:] }} {{ x[::-1] }} {{ 'h\\u00e9llo'[1:3] }} {{ x[-1] }}",
         "{\"x\": [1,2,3]}", "[2, 3] [3, 2, 1] \xc3\xa9l 3");
    same("{{ x.a }} {{ x['b'] }} {{ x.nope }}|{{ x.nope is defined }}",
         "{\"x\": {\"a\": 1, \"b\": 2}}", "1 2 |False");
    same("{{ {'a': 1, 'b': [1, (2,)]} }}", "{}", "{'a': 1, 'b': [1, (2,)]}");
    same("{{ -1|abs }} {{ (1, 2)|length }}", "{}", "1 2");
}

TEST(jinja_calls_spread_lists_and_dicts)
{
    static const char m[] = "{% macro f(a, b=2) %}{{ a }}{{ b }}{{ varargs }}"
                            "{{ kwargs }}{% endmacro %}";

    same(t_printf("%s{{ f(*[1, 3]) }} {{ f(7, *'xy') }} {{ f(*[], a=4) }}", m),
         "{}", "13(){} 7x('y',){} 42(){}");
    same(t_printf("%s{{ f(1, c=5, **{'b': 6, 'd': 8}) }} {{ f(**x) }}", m),
         "{\"x\": {\"a\": \"k\"}}", "16(){'c': 5, 'd': 8} k2(){}");
    same(t_printf("%s{{ f(a=1, *[]) }} {{ 'a-b'|replace(*['-', '+']) }}", m),
         "{}", "12(){} a+b");
    same("{{ f(*1) }}", "{}", "!line 1: cannot loop over an integer");
    same("{{ dict(**3) }}", "{}", "!line 1: '**' needs a dict, not an integer");
    same("{{ dict(**{1: 2}) }}", "{}",
         "!line 1: '**': a key that is an integer");
    same("{{ f(*a, 1) }}", "{}",
         "!line 1: a positional argument after a named one or '*'");
    same("{{ f(*a, *b) }}", "{}", "!line 1: more than one '*' in a call");
    same("{{ f(**a, b=1) }}", "{}", "!line 1: an argument after '**'");
}

TEST(jinja_joiners_and_cyclers)
{
    same("{% set j = joiner(' | ') %}{% for i in 'abc' %}{{ j() }}{{ i }}"
         "{% endfor %} {% set k = joiner() %}{{ k() }}1{{ k() }}2",
         "{}", "a | b | c 1, 2");
    same("{% set c = cycler('x', 'y') %}{{ c.current }}{{ c.next() }}"
         "{{ c.current }}{{ c.next() }}{{ c.next() }}{{ c.reset() }}"
         "{{ c.next() }} {{ c.nope is defined }} {{ c is callable }}",
         "{}", "xxyyxNonex False False");
    same("{{ cycler() }}", "{}", "!line 1: 'cycler' needs values");
    same("{{ cycler(1)() }}", "{}",
         "!line 1: a cycler is not called: it has 'next'");
    same("{{ joiner()(1) }}", "{}", "!line 1: a joiner takes no arguments");
    same("{{ joiner() }} {{ joiner() is callable }} {{ [cycler(1)] }}", "{}",
         "<Joiner> True [<Cycler>]");
}

TEST(jinja_formats_by_name)
{
    same("{{ '%(a)s %(b)03d%%' % {'a': 'x', 'b': 7} }} "
         "{{ '%(n)-4s|'|format(n='q') }} {{ '%s' % {'a': 1} }}",
         "{}", "x 007% q   | {'a': 1}");
    same("{{ '%(a)s' % {} }}", "{}", "!line 1: the format's 'a' has no value");
    same("{{ '%(a' % {'a': 1} }}", "{}", "!line 1: a '%(' without its ')'");
    same("{{ '%s'|format(1, a=2) }}", "{}",
         "!line 1: a format takes values by place or by name");
}

/* Where templates differ from Python, and what is easy to get nearly right. */
TEST(jinja_fine_print)
{
    same("{{ -2**2 }} {{ 2**3**2 }} {{ -2|abs**2 }}", "{}", "4 64 4");
    same("{{ (-1)**9999999999999 }} {{ 1**9999999999999 }} {{ 0**0 }} "
         "{{ 0**7 }} {{ (-2)**63 }}",
         "{}", "-1 1 1 0 -9223372036854775808");
    same("{{ 223372036854775807**2 }}", "{}",
         "!line 1: an integer that does not fit 64 bits");
    same("{{ 'abcabc'.find('c', 3) }} {{ 'äbc'.find('c', 1, 2) }} "
         "{{ 'abc'.startswith('b', 1) }} {{ 'abc'.endswith('b', 0, -1) }} "
         "{{ 'äbc'.index('c') }} {{ 'abc'.find('b', -9) }}",
         "{}", "5 -1 True True 2 1");
    same("{{ ['b', 'A', 'a']|sort(reverse=true) }} "
         "{{ {'x': 1, 'y': 1}|dictsort(by='value', reverse=true) }}",
         "{}", "['b', 'A', 'a'] [('x', 1), ('y', 1)]");
    same("{{ 2.675|round(2) }} {{ 5|round }} {{ 2.5|round }} "
         "{{ 1234.5|round(-2) }} {{ 2.1|round(0, 'ceil') }}",
         "{}", "2.67 5 2.0 1200.0 3.0");
    same("{{ 15|round(-1) }} {{ 25|round(-1) }} {{ (-15)|round(-1) }} "
         "{{ 9007199254740993|round(-1) }} {{ 7|round(-3) }} "
         "{{ 15|round(-1, 'floor') }} {{ true|round }} {{ true|round(-1) }} "
         "{{ 9223372036854775807|round(-15) }} {{ 7|round(2) }} "
         "{{ -0.5|round(0, 'ceil') }}",
         "{}",
         "20 20 -20 9007199254740990 0 10.0 1 0 9223000000000000000 7 0.0");
    same("{{ 9223372036854775807|round(-1) }}", "{}",
         "!line 1: an integer that does not fit 64 bits");
    same("{{ \"they're (a-b)\"|title }} {{ \"they're\".title() }}", "{}",
         "They're (A-B) They'Re");
    same("{{ ' a b  c '.rsplit(none, 1) }} {{ 'a,b,c'.rsplit(',', 1) }}", "{}",
         "[' a b', 'c'] ['a,b', 'c']");
    same("{{ {1: 'x', none: 2, true: 3, 1.5: 4}|tojson }}", "{}",
         "{\"1\": 3, \"null\": 2, \"1.5\": 4}");
    same("{{ [1, 2, 3]|select('>', 1)|list }} {{ [1, 2]|reject('==', 1)|list "
         "}}",
         "{}", "[2, 3] [2]");
    same("{% for a, (b, (c,)) in [(1, (2, (3,)))] %}{{ a }}{{ b }}{{ c }}"
         "{% endfor %}",
         "{}", "123");
    same("{% for x in [1, 1, 2] %}{{ loop.cycle('a', 'b') }}"
         "{{ loop.changed(x) }} {% endfor %}",
         "{}", "aTrue bFalse aTrue ");
    same("{% for k, l in m|groupby('r') %}{{ k }}:"
         "{{ l|map(attribute='c')|join('+') }} {% endfor %}",
         "{\"m\":[{\"r\":\"u\",\"c\":1},{\"r\":\"a\",\"c\":2},"
         "{\"r\":\"u\",\"c\":3}]}",
         "a:2 u:1+3 ");
    same("{% for g in m|groupby('r') %}{{ g.grouper }}{{ g.list|length }} "
         "{% endfor %}{{ (1, 2).list is defined }}",
         "{\"m\":[{\"r\":\"u\"},{\"r\":\"a\"},{\"r\":\"u\"}]}", "a1 u2 False");
    same("{{ 'AB1'.isupper() }} {{ 'ab'.islower() }} {{ '1'.isupper() }}", "{}",
         "True True False");
}

TEST(jinja_texts_have_octal_escapes)
{
    same("{{ '\\101\\12\\1012\\377\\8' }}", "{}", "A\nA2\xc3\xbf\\8");
    same("{{ '\\0'|length }}{{ '\\18'|length }}{{ '\\400' }}", "{}",
         "12\xc4\x80");
}

TEST(jinja_whitespace)
{
    same("a\n  {% if true %}\nb\n  {% endif %}\nc\n", "{}", "a\nb\nc");
    same("a  {%- if true -%}  b  {%- endif -%}  c", "{}", "abc");
    same("a\n  {{ 1 }}\n  {{- 2 -}}\n  b", "{}", "a\n  12b");
    same("x {# note #}\ny", "{}", "x y");
    same("  {%+ if true %}a{% endif +%}\nb", "{}", "  a\nb");
    same("{% raw %}{{ x }}{% endraw %}!", "{}", "{{ x }}!");
    same("a\r\nb\n", "{}", "a\nb");
}

TEST(jinja_raw_keeps_its_first_newline)
{
    same("{% raw %}\n{{ x }}{% endraw %}\nb", "{}", "\n{{ x }}b");
    same("a\n  {% raw %}  \n{{ x }}\n  {% endraw %}  \n  b", "{}",
         "a\n  \n{{ x }}\n  \n  b");
    same("{% if true %}\n{% raw %}\n{%- endraw %}{% endif %}", "{}", "");
    same("{% raw -%}\n {{ x }}{% endraw -%}\n b", "{}", "{{ x }}b");
}

TEST(jinja_loops_and_scopes)
{
    same("{% for i in [1,2,3] %}{{ i }}{{ ',' if not loop.last }}{% endfor %}",
         "{}", "1,2,3");
    same("{% for a, b in {'x': 1, 'y': 2}.items() %}{{ a }}{{ b }}{% endfor %}",
         "{}", "x1y2");
    same("{% for i in [] %}a{% else %}none{% endfor %}", "{}", "none");
    same("{% for i in range(6) if i is odd %}{{ loop.index }}:{{ i }} "
         "{% endfor %}",
         "{}", "1:1 2:3 3:5 ");
    same("{% set n = 0 %}{% for i in [1] %}{% set n = 9 %}{% endfor %}{{ n }}",
         "{}", "0");
    same("{% set ns = namespace(n=0) %}{% for i in [1,2] %}"
         "{% set ns.n = ns.n + i %}{% endfor %}{{ ns.n }}",
         "{}", "3");
    same("{% for i in range(9) %}{% if i == 2 %}{% continue %}{% endif %}"
         "{% if i == 4 %}{% break %}{% endif %}{{ i }}{% endfor %}",
         "{}", "013");
    same("{% for i in 'ab' %}{{ loop.previtem }}{{ i }}{{ loop.nextitem }} "
         "{% endfor %}",
         "{}", "ab ab ");
    same("{% if true %}{% set a = 1 %}{% endif %}{{ a }}", "{}", "1");
    same("{% set t %}x{{ 1 }}{% endset %}[{{ t }}]", "{}", "[x1]");
    same("{% set t | upper %}ab{% endset %}{{ t }}", "{}", "AB");
}

/* Each as Jinja2 3.1 has it. */
TEST(jinja_else_of_a_loop_that_never_got_to_its_end)
{
    same("{% for i in [1, 2] %}{% break %}{% else %}E{% endfor %}", "{}", "E");
    same("{% for i in [1, 2] %}{% continue %}{% else %}E{% endfor %}", "{}",
         "E");
    same("{% for i in [1, 2] %}{{ i }}{% if i == 2 %}{% break %}{% endif %}"
         "{% else %}E{% endfor %}",
         "{}", "12");
    same("{% for i in [1, 2] %}{% for j in [3] %}{% break %}{% else %}{{ i }}"
         "{% endfor %}{% else %}E{% endfor %}",
         "{}", "12");
}

TEST(jinja_quotients_of_fractions_are_pythons)
{
    same("{{ 1 // 0.1 }} {{ 1 % 0.1 }} {{ -7 // 0.1 }} {{ -1 % 0.1 }}", "{}",
         "9.0 0.09999999999999995 -70.0 5.551115123125783e-17");
    same("{{ 7.5 // 2 }} {{ 7.5 % 2 }} {{ -7.5 // 2 }} {{ -7.5 % 2 }} "
         "{{ 7.5 % -2 }} {{ 4.0 % -2 }} {{ -1.0 // 4 }} {{ 0.0 // -2 }}",
         "{}", "3.0 1.5 -4.0 0.5 -0.5 -0.0 -1.0 -0.0");
}

TEST(jinja_numbers_in_texts_are_pythons)
{
    same("{{ '05'|int }} {{ '-007'|int }} {{ '+5'|int }} {{ ' 00 '|int }} "
         "{{ '1_000'|int }} {{ '5.'|int }} {{ '08.9'|int }} {{ '1e3'|int }}",
         "{}", "5 -7 5 0 1000 5 8 1000");
    same("{{ '05'|float }} {{ '.5'|float }} {{ '+.5e1'|float }} "
         "{{ '1_0.5'|float }} {{ '-inf'|float }}",
         "{}", "5.0 0.5 5.0 10.5 -inf");
    same("{{ ''|int(7) }} {{ '-'|int(7) }} {{ '0x1f'|int(7) }} "
         "{{ '0x1p3'|float(7) }} {{ '1__0'|int(7) }} {{ '_1'|int(7) }} "
         "{{ '1_'|int(7) }} {{ '12a'|int(7) }} {{ '--1'|int(7) }} "
         "{{ 'inf'|int(7) }}",
         "{}", "7 7 7 7 7 7 7 7 7 7");
    same("{{ '9223372036854775807'|int }}", "{}", "9223372036854775807");
    same("{{ '9223372036854775808'|int }}", "{}",
         "!line 1: an integer that does not fit 64 bits");
    same("{{ 1e19|int }}", "{}",
         "!line 1: an integer that does not fit 64 bits");
    same("{{ 'ff'|int(0, 16) }}", "{}", "!line 1: 'int' reads base 10 alone");
}

/* A call without tools has "tool_calls": null. */
TEST(jinja_of_what_is_false_nothing_is_mapped)
{
    same("{{ n|map(attribute='a')|list }} {{ n|map('upper')|join }}"
         "{{ n|select('odd')|list }} {{ false|reject|list }} "
         "{{ 0|selectattr('a')|list }} {{ 0.0|rejectattr('a')|list }} "
         "{{ u|map('upper')|list }}",
         "{\"n\": null}", "[] [] [] [] [] []");
    same("{{ 1|select|list }}", "{}", "!line 1: cannot loop over an integer");
    same("{{ none|list }}", "{}", "!line 1: cannot loop over None");
}

TEST(jinja_odd_and_even_are_of_all_numbers)
{
    same("{{ true is odd }} {{ false is even }} {{ true is even }}", "{}",
         "True True False");
    same("{{ 2.0 is even }} {{ 3.5 is odd }} {{ -3.0 is odd }} {{ -3 is odd }}",
         "{}", "True False True True");
    same("{{ '2' is even }}", "{}",
         "!line 1: 'even' and 'odd' need a number, not a string");
}

TEST(jinja_indents_lines_as_python_has_them)
{
    same("{{ s|indent(2) }}", "{\"s\": \"a\\r\\nb\\rc\\u2028d\"}",
         "a\n  b\n  c\n  d");
    same("[{{ s|indent(2) }}]", "{\"s\": \"a\\n\\n\"}", "[a\n\n]");
    same("[{{ s|indent(2) }}]", "{\"s\": \"a\\r\"}", "[a]");
    same("[{{ s|indent(2, true, true) }}]", "{\"s\": \"a\\n\"}", "[  a\n  ]");
    same("[{{ s|indent(2, true) }}]", "{\"s\": \"\\na\\n\\nb\"}",
         "[  \n  a\n\n  b]");
    same("[{{ ''|indent(2, true) }}][{{ ''|indent(2) }}]", "{}", "[  ][]");
}

TEST(jinja_words_are_letters_and_digits)
{
    same("{{ 'a_b c-d é1'|wordcount }} {{ ' - '|wordcount }} "
         "{{ \"it's\"|wordcount }}",
         "{}", "4 0 2");
}

TEST(jinja_blocks_keep_what_they_set)
{
    same("{% set a = 0 %}{% set b %}{% set a = 1 %}x{{ a }}{% endset %}"
         "{{ a }}{{ b }}",
         "{}", "0x1");
    same("{% set a = 0 %}{% filter upper %}{% set a = 1 %}x{{ a }}"
         "{% endfilter %}{{ a }}",
         "{}", "X10");
    same("{% for i in [1, 2] %}{% set b %}{% set i = 5 %}{{ i }}{% endset %}"
         "{{ b }}{{ i }} {% endfor %}",
         "{}", "51 52 ");
    same("{% set ns = namespace(n=0) %}{% set b %}{% set ns.n = 1 %}"
         "{% endset %}{{ ns.n }}",
         "{}", "1");
}

TEST(jinja_with)
{
    same("{% set a = 5 %}{% with a = 1, b = a %}{{ a }}{{ b }}{% endwith %}"
         "{{ a }}",
         "{}", "155");
    same("{% with %}{% set a = 1 %}{{ a }}{% endwith %}[{{ a }}]", "{}", "1[]");
    same("{% with a, b = (1, 2) %}{{ a }}{{ b }}{% endwith %}", "{}", "12");
    same("{% for i in [1, 2, 3] %}{% with a = i %}{% if a == 2 %}{% break %}"
         "{% endif %}{{ a }}{{ loop.index }}{% endwith %}{% endfor %}",
         "{}", "11");
    same("{% with a %}{% endwith %}", "{}",
         "!line 1: expected '=' before the end of the tag");
    same("{% with a = 1 b = 2 %}{% endwith %}", "{}",
         "!line 1: expected ',', got 'b'");
    same("{% with a = 1 %}", "{}",
         "!line 1: the template ends without 'endwith'");
}

#define TREE                                                                \
    "{\"t\": [{\"n\": \"a\", \"c\": [{\"n\": \"b\", \"c\": []}, "           \
    "{\"n\": \"c\", \"c\": [{\"n\": \"d\", \"c\": []}]}]}, {\"n\": \"e\", " \
    "\"c\": []}]}"

TEST(jinja_recursive_loops)
{
    same("{% for i in t recursive %}{{ i.n }}{{ loop.depth }}"
         "({{ loop(i.c) }}){{ loop.index }}{% endfor %}",
         TREE, "a1(b2()1c2(d3()1)2)1e1()2");
    same("{% for i in t if i.n != 'b' recursive %}{{ i.n }}{{ loop(i.c) }}"
         "{% else %}.{% endfor %}",
         TREE, "acd.e.");
    same("{% for i in t recursive %}{{ i.n|upper ~ loop(i.c)|upper }}"
         "{% endfor %}",
         TREE, "ABCDE");
    same("{% for i in t recursive %}{% set up = loop %}{{ i.n }}"
         "{% for j in [1, 2] %}{{ up(i.c) if loop.first }}{{ loop.depth }}"
         "{% endfor %}{% endfor %}",
         TREE, "ab11cd111111e11");
    same("{% for i in t %}{{ loop(i.c) }}{% endfor %}", TREE,
         "!line 1: only the loop of a 'recursive' for can be called");
    same("{% for i in t recursive %}{{ loop() }}{% endfor %}", TREE,
         "!line 1: 'loop' takes what to loop over");
    ck_assert_ptr_nonnull(strstr(
        render("{% for i in t recursive %}{{ loop(t) }}{% endfor %}", TREE),
        "more than 64 deep"));
}

TEST(jinja_macros)
{
    same("{% macro f(a, b=2) %}{{ a }}-{{ b }}{% endmacro %}"
         "{{ f(1) }} {{ f(1, b=3) }}",
         "{}", "1-2 1-3");
    same("{% macro f(n) %}{{ n }}{% if n %}{{ f(n - 1) }}{% endif %}"
         "{% endmacro %}{{ f(3) }}",
         "{}", "3210");
    same("{% macro f() %}[{{ caller() }}]{% endmacro %}"
         "{% call f() %}x{% endcall %}",
         "{}", "[x]");
    same("{% filter upper %}a{{ 'b' }}{% endfilter %}", "{}", "AB");
    same("{% macro f() %}{{ g }}{% endmacro %}{% set g = 4 %}{{ f() }}", "{}",
         "4");
}

TEST(jinja_macros_take_more)
{
    same("{% macro f(a) %}{{ a }}{{ varargs }}{{ kwargs }}{% endmacro %}"
         "{{ f(1, 2, 3, k=4) }} {{ f() }}",
         "{}", "1(2, 3){'k': 4} (){}");
    same("{% macro f(a) %}{% if a %}{{ kwargs.k }}{% endif %}{% endmacro %}"
         "{{ f(1, k=4, a=5) }}",
         "{}", "4");
    same("{% macro f(a) %}{{ caller(a) }}{{ varargs }}{% endmacro %}"
         "{% call(x) f(1, 9) %}<{{ x }}>{% endcall %}",
         "{}", "<1>(9,)");
    same("{% macro f(kwargs) %}{{ kwargs }}{% endmacro %}{{ f(7) }}", "{}",
         "7");
    same("{{ varargs }}{% macro f(a) %}{{ a }}{% endmacro %}{{ f(1, 2) }}",
         "{}", "!line 1: macro 'f' takes 1 arguments, got 2");
    same("{% macro f(a) %}{{ a }}{{ varargs }}{% endmacro %}{{ f(1, k=2) }}",
         "{}", "!line 1: macro 'f' has no parameter 'k' left");
    same("{% macro f(a) %}{{ a }}{% endmacro %}{{ f(1, a=2) }}", "{}",
         "!line 1: macro 'f' has no parameter 'a' left");
}

TEST(jinja_batch_and_slice)
{
    same("{{ range(5)|batch(3)|list }} {{ range(5)|batch(3, 'z')|list }} "
         "{{ range(6)|batch(linecount=3, fill_with=0)|list }} {{ []|batch(2) "
         "}}",
         "{}",
         "[[0, 1, 2], [3, 4]] [[0, 1, 2], [3, 4, 'z']] "
         "[[0, 1, 2], [3, 4, 5]] []");
    same("{{ range(7)|slice(3)|list }} {{ range(7)|slice(3, 'z')|list }}", "{}",
         "[[0, 1, 2], [3, 4], [5, 6]] [[0, 1, 2], [3, 4, 'z'], [5, 6, 'z']]");
    same("{{ [1]|batch(0) }}", "{}",
         "!line 1: argument 'linecount' must be 1 to 100000");
    same("{{ [1]|slice }}", "{}",
         "!line 1: argument 'slices' must be 1 to 100000");
}

/* As Python's str; of the letters that grow, ß and İ. */
TEST(jinja_letters_of_all_scripts)
{
    same("{{ 'café'|upper }} {{ 'ÀÉÎ'|lower }} {{ 'привет мир'|title }} "
         "{{ 'élan vital'|capitalize }} {{ 'ÿµſ'|upper }}",
         "{}", "CAFÉ àéî Привет Мир Élan vital ŸΜS");
    same("{{ 'straße'.upper() }} {{ 'ß'.title() }} {{ 'İ'.lower()|length }} "
         "{{ 'ΑΣ ΣΑΣΑ'.lower() }} {{ 'ǆ'.upper() }}{{ 'ǆ'.title() }} "
         "{{ 'აბ'.title() }} {{ '中a'.title() }}",
         "{}", "STRASSE Ss 2 ας σασα Ǆǅ აბ 中A");
    same("{{ 'É' is upper }} {{ 'é'.islower() }} {{ 'éA' is lower }} "
         "{{ 'é'.isalpha() }} {{ '中1'.isalnum() }} {{ 'é!'.isalnum() }} "
         "{{ '\u00a0'.isspace() }}",
         "{}", "True True False True True False True");
    same("{{ ['É', 'é']|unique|list }}[{{ '\u00a0x\u3000'|trim }}]"
         "{{ '\u2003a b\u2003c '.split() }}",
         "{}", "['É'][x]['a', 'b', 'c']");
}

TEST(jinja_strings_as_pythons)
{
    same("{{ 'abc'.replace('', '-') }} {{ 'é'|replace('', '-', 1) }} "
         "{{ ''.replace('', '-', 0) }}|{{ 'aaa'.replace('a', 'b', 2) }}",
         "{}", "-a-b-c- -é |bba");
    same("{{ 'a\\nb\\r\\nc\\rd'.splitlines() }} {{ 'a\\r\\nb'.splitlines(true) "
         "}}",
         "{}", "['a', 'b', 'c', 'd'] ['a\\r\\n', 'b']");
    same("{{ s.splitlines() }} {{ s.splitlines(true)|join('-') }}",
         "{\"s\":\"a\\u2028b\\u0085c\\f\\u001cd\"}",
         "['a', 'b', 'c', '', 'd'] a\xE2\x80\xA8-b\xC2\x85-c\f-\x1c-d");
    same("{{ [s] }} {{ {s[0]: s} }}",
         "{\"s\":\"\\u00a0é\\u200b\\u2028 \\ufeff😀\\u0001\\ue000\"}",
         "['\\xa0é\\u200b\\u2028 \\ufeff😀\\x01\\ue000'] "
         "{'\\xa0': '\\xa0é\\u200b\\u2028 \\ufeff😀\\x01\\ue000'}");
    same("{{ '%5s|%-5s|%.2s|%r' % ('é', 'b', 'abc', 'x') }}", "{}",
         "    é|b    |ab|'x'");
    same("{{ '%1001d' % 1 }}", "{}",
         "!line 1: a '%' with a width of more than 1000");
    same("{{ '%.400f'|format(1)|length }}", "{}", "402");
    same("{{ ' 1.5\\n'|float }} {{ '1.5'|float }} {{ 'x'|float(2) }} "
         "{{ dict([('a', 1), ['b', 2]], c=3) }} {{ dict({'a': 1}) }}",
         "{}", "1.5 1.5 2 {'a': 1, 'b': 2, 'c': 3} {'a': 1}");
    same("{{ dict([1]) }}", "{}", "!line 1: cannot loop over an integer");
    same("{{ dict([[1]]) }}", "{}", "!line 1: 'dict' needs pairs");
    same("{{ ' a b'.rsplit(none, 1) }} {{ ' a b'.rsplit() }} "
         "{{ ' a b '.split(none, 1) }}",
         "{}", "[' a', 'b'] ['a', 'b'] ['a', 'b ']");
    same("{% set d = {'a': 1} %}{{ d.setdefault('a', 2) }}"
         "{{ d.setdefault('b', 3) }}{{ d }}{% set l = [1, 2, 1] %}"
         "{{ l.remove(1) }}{{ l }}{{ (1, 2, 1).count(1) }}"
         "{{ (1, 2).index(2) }}",
         "{}", "13{'a': 1, 'b': 3}None[2, 1]21");
}

TEST(jinja_filters)
{
    same("{{ ' a '|trim }}|{{ x|default('d') }}|{{ ''|default('e', true) }}",
         "{}", "a|d|e");
    same("{{ [3,1,2]|sort|join(',') }} {{ ['b','A']|sort }}", "{}",
         "1,2,3 ['A', 'b']");
    same("{{ {'b': 1, 'a': 2}|dictsort }}", "{}", "[('a', 2), ('b', 1)]");
    same(
        "{{ x|map(attribute='a')|list }} {{ x|selectattr('a', 'gt', 1)|list }}",
        "{\"x\": [{\"a\": 1}, {\"a\": 2}]}", "[1, 2] [{'a': 2}]");
    same("{{ x|tojson }} {{ x|tojson(indent=2) }}",
         "{\"x\": {\"a\": [1, \"\\u00e9<\"]}}",
         "{\"a\": [1, \"\xc3\xa9<\"]} {\n  \"a\": [\n    1,\n    "
         "\"\xc3\xa9<\"\n  ]\n}");
    same("{{ 'a\\nb'|indent(2) }} {{ 'aXb'|replace('X', 'y') }}", "{}",
         "a\n  b ayb");
    same(
        "{{ '3'|int + 1 }} {{ 'x'|int }} {{ 2.5|round }} {{ '%03d-%s'|format(7,"
        " 'a') }}",
        "{}", "4 0 2.0 007-a");
    same("{{ 'a b'.split() }} {{ 'a,b,c'.split(',', 1) }} {{ 'x'.upper() }}",
         "{}", "['a', 'b'] ['a', 'b,c'] X");
    same("{{ 'abc'.startswith('a') }} {{ 'abc'|length }} {{ [1,2]|last }}",
         "{}", "True 3 2");
    same("{{ strftime_now('%d %b %Y') }}", "{}", "15 Jan 2026");
}

TEST(jinja_errors_name_the_line)
{
    same("{{ 1", "{}", "!line 1: '{{' without '}}'");
    same("a\n{% if %}", "{}", "!line 2: expected an expression");
    same("{% if x %}", "{}", "!line 1: the template ends without 'endif'");
    same("{% for i in x %}", "{}",
         "!line 1: the template ends without 'endfor'");
    same("{{ x|nope }}", "{}", "!line 1: no such filter 'nope'");
    same("{{ x is nope }}", "{}", "!line 1: no such test 'nope'");
    same("{% nope %}", "{}", "!line 1: no such tag 'nope'");
    same("\n{{ x.a.b }}", "{\"x\": {}}", "!line 2: 'a' is undefined");
    same("{{ raise_exception('be nice') }}", "{}", "!be nice");
    same("{{ 1 // 0 }}", "{}", "!line 1: division by zero");
    same("{{ 9223372036854775807 + 1 }}", "{}",
         "!line 1: an integer that does not fit 64 bits");
    same("{{ 'a' < 1 }}", "{}",
         "!line 1: cannot order a string and an integer");
}

TEST(jinja_hostile_templates_end)
{
    char *deep = t_printf("{{ %0400d1%0400d }}", 0, 0);

    for (char *p = deep; *p; p++)
        if (*p == '0')
            *p = p < deep + 403 ? '(' : ')';
    ck_assert_ptr_nonnull(strstr(render(deep, "{}"), "nested deeper than"));
    ck_assert_ptr_nonnull(
        strstr(render("{% for a in range(99999) %}{% for b in range(99999) %}"
                      "{% endfor %}{% endfor %}",
                      "{}"),
               "more than"));
    ck_assert_ptr_nonnull(
        strstr(render("{% for a in range(90000) %}{% for b in 'abcdefgh' %}"
                      "{% if a == b %}{% endif %}{{ a < 1 and 2 > 3 }}"
                      "{{ a * 2 + 3 * 4 - 5 + a * a + a - a + a - a }}"
                      "{% endfor %}{% endfor %}",
                      "{}"),
               "steps"));
    ck_assert_ptr_nonnull(
        strstr(render("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "{}"),
               "macros call each other"));
    ck_assert_ptr_nonnull(
        strstr(render("{% set ns = namespace(s='xxxxxxxxxxxxxxxx') %}"
                      "{% for i in range(60) %}{% set ns.s = ns.s + ns.s %}"
                      "{% endfor %}",
                      "{}"),
               "a string of more than"));
    ck_assert_ptr_nonnull(
        strstr(render("{{ range(1000000) }}", "{}"), "a range of more than"));
    ck_assert_ptr_nonnull(
        strstr(render("{% set x = [] %}{% for i in range(9) %}"
                      "{% set _ = x.append(x) %}{% endfor %}{{ x|tojson }}",
                      "{}"),
               "nested deeper than"));
    ck_assert_str_eq(render("{{ 1|tojson(indent=1001) }}", "{}"),
                     "!line 1: 'tojson' indents by at most 1000");
}

/* Two lists of two lists of two ..: a few bytes, and 2^40 values to look at. */
TEST(jinja_comparing_ends)
{
    static const char *const how[] = {"a == ns.b", "a in [ns.b]", "a < ns.b",
                                      "a|unique|list"};

    for (size_t i = 0; i < BR_COUNT(how); i++) {
        const char *got = render(
            t_printf("{%% set ns = namespace(a=[1], b=[1]) %%}"
                     "{%% for i in range(40) %%}{%% set ns.a = [ns.a, ns.a] %%}"
                     "{%% set ns.b = [ns.b, ns.b] %%}{%% endfor %%}"
                     "{%% set x = ns.%s %%}",
                     how[i]),
            "{}");

        ck_assert_msg(strstr(got, "runs for more than") != NULL, "%s: %s",
                      how[i], got);
    }
    ck_assert_ptr_nonnull(
        strstr(render("{% set ns = namespace(a=1, b=1) %}"
                      "{% for i in range(200) %}{% set ns.a = [ns.a] %}"
                      "{% set ns.b = [ns.b] %}{% endfor %}{{ ns.a == ns.b }}",
                      "{}"),
               "values nested deeper than 160 are compared"));
    ck_assert_str_eq(render("{% set ns = namespace(a=1, b=1) %}"
                            "{% for i in range(150) %}{% set ns.a = [ns.a] %}"
                            "{% set ns.b = [ns.b] %}{% endfor %}"
                            "{{ ns.a == ns.b }}",
                            "{}"),
                     "True");
}

/* ---- recorded renderings ------------------------------------------------ */

static br_json *
parse_file(br_arena *a, const char *path)
{
    br_status st = {0};
    br_json *j = NULL;
    size_t n;
    char *text = t_read(path, &n);

    ck_assert_msg(br_json_parse(&j, a, text, n, 0, &st) == BR_OK, "%s", st.msg);
    return j;
}

/* The base context, then what the conversation brings. */
static br_json *
context_of(br_arena *a, const br_json *base, const br_json *conv)
{
    br_json *ctx = br_json_new(a, BR_J_OBJ);

    for (const br_json *m = base->child; m; m = m->next) {
        br_json *c = br_arena_dup(a, m, sizeof *m);
        if (strcmp(m->key, "strftime_now") != 0)
            br_json_put(a, ctx, m->key, c);
    }
    for (const br_json *m = conv->child; m; m = m->next) {
        if (!strcmp(m->key, "id") || m->kind == BR_J_NULL)
            continue;
        if (!strcmp(m->key, "extra")) {
            for (const br_json *e = m->child; e; e = e->next)
                br_json_put(a, ctx, e->key, br_arena_dup(a, e, sizeof *e));
            continue;
        }
        br_json_put(a, ctx, m->key, br_arena_dup(a, m, sizeof *m));
    }
    return ctx;
}

static const br_json *
conversation(const br_json *all, const char *id)
{
    for (const br_json *c = all->child; c; c = c->next)
        if (!strcmp(br_json_get(c, "id")->s, id))
            return c;
    ck_abort_msg("no conversation %s", id);
}

/* Empty when the case is as recorded, else what is wrong. */
static const char *
run_case(br_arena *a, const br_json *base, const br_json *convs,
         const br_json *c, const char *dir)
{
    const br_json *want = br_json_get(c, "expected"),
                  *err = br_json_get(c, "error");
    const char *name = br_json_get(c, "template")->s;
    br_json *ctx = context_of(
        a, base, conversation(convs, br_json_get(c, "conversation")->s));
    br_status st = {0};
    br_jinja *t = NULL;
    br_str out = {0};
    const char *bad = "";
    size_t n;
    char *src = t_read(t_printf("%s/%s", dir, name), &n);

    if (br_jinja_compile(&t, src, n, &st) != BR_OK)
        bad = t_printf("compile: %s", st.msg);
    else if (br_jinja_render(t, ctx, NOON, &out, &st) != BR_OK)
        bad = err && !strcmp(err->s, st.msg) ? "" : t_printf("%s", st.msg);
    else if (err)
        bad = "rendered, but an error was recorded";
    else if (out.n != want->n || memcmp(br_str_z(&out), want->s, out.n) != 0)
        bad = t_printf("differs: got [%.600s]", br_str_z(&out));
    br_str_fini(&out);
    br_jinja_free(t);
    return bad;
}

TEST_WITHIN(jinja_recorded_renderings, 120)
{
    const char *dir = t_vectors("templates");
    const br_json *all, *convs;
    int n = 0, bad = 0;
    br_arena a;

    if (!dir)
        t_skip("no ../shared/vectors here");
    br_arena_init(&a, 0);
    all = parse_file(&a, t_printf("%s/cases.json", dir));
    convs = parse_file(&a, t_printf("%s/conversations.json", dir));
    for (const br_json *c = br_json_get(all, "cases")->child; c; c = c->next) {
        const char *what =
            run_case(&a, br_json_get(all, "context"), convs, c, dir);
        n++;
        if (*what && bad++ < 12)
            fprintf(stderr, "%s / %s: %s\n", br_json_get(c, "template")->s,
                    br_json_get(c, "conversation")->s, what);
    }
    br_arena_fini(&a);
    ck_assert_int_gt(n, 500);
    ck_assert_msg(bad == 0, "%d of %d renderings differ", bad, n);
}

TEST_WITHIN(jinja_more_templates_parse_and_render, 120)
{
    const char *dir = t_vectors("templates/more");
    const br_json *convs, *base;
    int rendered = 0;
    br_arena a;
    char **names;

    if (!dir)
        t_skip("no ../shared/vectors here");
    br_arena_init(&a, 0);
    convs = parse_file(
        &a, t_printf("%s/conversations.json", t_vectors("templates")));
    base = br_json_get(
        parse_file(&a, t_printf("%s/cases.json", t_vectors("templates"))),
        "context");
    names = t_ls(dir, ".jinja");
    for (int i = 0; names[i]; i++) {
        size_t n;
        char *src = t_read(t_printf("%s/%s", dir, names[i]), &n);
        br_status st = {0};
        br_jinja *t = NULL;
        ck_assert_msg(br_jinja_compile(&t, src, n, &st) == BR_OK, "%s: %s",
                      names[i], st.msg);
        for (const br_json *c = convs->child; c; c = c->next) {
            br_json *ctx = context_of(&a, base, c);
            br_str out = {0};
            st = (br_status){0};
            if (br_jinja_render(t, ctx, NOON, &out, &st) == BR_OK)
                rendered++;
            else /* the template's own refusal or a mismatch of types */
                ck_assert(st.code == BR_E_REJECTED || st.code == BR_E_FORMAT);
            br_str_fini(&out);
        }
        br_jinja_free(t);
    }
    br_arena_fini(&a);
    ck_assert_int_gt(rendered, 100);
}

static br_code
whole(void *arg, br_status *st)
{
    static const char src[] = "{% macro f(a) %}{{ a|upper }}{% endmacro %}"
                              "{% for i in x %}{{ f(i) ~ loop.index }}"
                              "{% endfor %}{{ x|tojson }}{{ x|sort }}";
    br_jinja *t = NULL;
    br_json *ctx;
    br_str out = {0};
    br_arena a;
    br_code rc;

    (void)arg;
    br_arena_init(&a, 0);
    rc = br_json_parse(&ctx, &a, "{\"x\": [\"b\", \"a\"]}", 17, 0, st);
    if (rc == BR_OK)
        rc = br_jinja_compile(&t, src, sizeof src - 1, st);
    if (rc == BR_OK)
        rc = br_jinja_render(t, ctx, NOON, &out, st);
    br_str_fini(&out);
    br_jinja_free(t);
    br_arena_fini(&a);
    return rc;
}

TEST(jinja_survives_oom)
{
    t_each_oom(whole, NULL);
}

/* ---- brass template ----------------------------------------------------- */

TEST(cli_template_renders_the_demo_model)
{
    const char *dir = t_tmpdir(), *ctx = t_printf("%s/c.json", dir);
    static const char conv[] = "{\"messages\": [{\"role\": \"user\", "
                               "\"content\": \"Hi\"}], "
                               "\"add_generation_prompt\": true}";
    static const char want[] = "<|bos|><|user|>\nHi<|end|>\n<|assistant|>\n";
    t_proc r;

    t_write(ctx, conv, sizeof conv - 1);
    t_run(&r, "template", t_repo("models/demo.gguf"), "--context", ctx);
    ck_assert_int_eq(r.exit, 0);
    ck_assert_str_eq(r.out, want);
    t_run(&r, "template", t_repo("models/demo.gguf"), "--context", ctx, "--now",
          "2026-02-30");
    ck_assert_int_eq(r.exit, 2);
    ck_assert_ptr_nonnull(strstr(r.err, "--now '2026-02-30': expected "));
    t_run(&r, "template", t_repo("models/demo.gguf"), "--context", ctx, "--now",
          "2028-02-29");
    ck_assert_int_eq(r.exit, 0);
}

TEST(cli_template_errors_are_one_line)
{
    t_proc r;

    t_run(&r, "template", "--file", "/nowhere/x.jinja", "--context", "c");
    ck_assert_int_eq(r.exit, 3);
    ck_assert_ptr_nonnull(strstr(r.err, "/nowhere/x.jinja"));
    t_run(&r, "template");
    ck_assert_int_eq(r.exit, 2);
    ck_assert_ptr_nonnull(strstr(r.err, "expected a MODEL or --file"));
}
