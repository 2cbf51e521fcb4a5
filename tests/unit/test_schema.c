/* test_schema.c - schemas as grammars: what they let through, and what not.
 * SPDX-License-Identifier: Apache-2.0 */
#include "grammar_kit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

T_ONE_THREAD();

TEST(schemas_that_cannot_be_enforced_are_refused)
{
    static const struct {
        const char *schema, *says;
    } rows[] = {
        {"{\"type\":\"object\",\"properties\":{\"a\":{\"not\":{}}},"
         "\"required\":[\"a\"]}",
         "'not' at '#/properties/a'"},
        {"{\"not\":{\"type\":\"null\"}}", "'not'"},
        {"{\"allOf\":[{\"type\":\"null\"},{\"not\":{\"const\":1}}]}", "'not'"},
        {"{\"if\":{}}", "'if'"},
        {"{\"type\\u0000x\":\"string\"}", "holds a NUL"},
        {"{\"type\":\"string\\u0000x\"}", "no such type"},
        {"{\"format\":\"date\\u0000x\"}", "'format'"},
        {"{\"properties\":{\"a\":{}},\"required\":[\"a\\u0000b\"]}",
         "holds a NUL"},
        {"{\"$ref\":\"#\\u0000x\"}", "holds a NUL"},
        {"{\"patternProperties\":{}}", "'patternProperties'"},
        {"{\"patternProperties\":{\"a\":{},\"b\":{}}}", "'patternProperties'"},
        {"{\"patternProperties\":{\"a\":{}},\"properties\":{\"a\":{}}}",
         "'patternProperties'"},
        {"{\"patternProperties\":{\"a\":{}},\"allOf\":[{"
         "\"additionalProperties\":{\"type\":\"null\"}}]}",
         "'patternProperties'"},
        {"{\"allOf\":[{\"pattern\":\"a)(b\"},{\"pattern\":\"c\"}]}",
         "'pattern'"},
        {"{\"type\":\"array\",\"uniqueItems\":true}", "'uniqueItems'"},
        {"{\"type\":\"array\",\"uniqueItems\":true,\"items\":{\"enum\":[1,"
         "1.0]}}",
         "'uniqueItems'"},
        {"{\"type\":\"array\",\"uniqueItems\":true,\"minItems\":2,\"items\":{"
         "\"enum\":[1,1]}}",
         "'minItems'"},
        {"{\"type\":\"number\",\"multipleOf\":0}", "'multipleOf'"},
        {"{\"type\":\"number\",\"multipleOf\":-2}", "'multipleOf'"},
        {"{\"type\":\"number\",\"multipleOf\":1e-10}", "'multipleOf'"},
        {"{\"type\":\"number\",\"multipleOf\":1e300}", "'multipleOf'"},
        {"{\"type\":\"number\",\"multipleOf\":\"1\"}", "'multipleOf'"},
        {"{\"type\":\"integer\",\"multipleOf\":99991}", "over 2048 rules"},
        {"{\"type\":\"integer\",\"multipleOf\":7,\"minimum\":8,\"maximum\":13}",
         "no number"},
        {"{\"type\":\"number\",\"minimum\":[]}", "'minimum'"},
        {"{\"type\":\"integer\",\"minimum\":1e18}",
         "no number of at most 18 digits"},
        {"{\"type\":\"string\",\"format\":\"regex\"}", "'format'"},
        {"{\"type\":\"string\",\"format\":\"lowercase\"}", "'format'"},
        {"{\"type\":\"string\",\"contentEncoding\":\"uuid\"}",
         "'contentEncoding'"},
        {"{\"contentMediaType\":\"image/png\"}", "'contentMediaType'"},
        {"{\"type\":\"string\",\"pattern\":\"(?=a)\"}", "(?"},
        {"{\"type\":\"string\",\"pattern\":\"a{2,1}\"}",
         "'pattern' at '#': a repetition with less at most than at least"},
        {"{\"type\":\"string\",\"pattern\":\"^a$\",\"minLength\":2}",
         "no text is left"},
        {"{\"type\":\"string\",\"pattern\":\"^(?=a|b)c\"}", "(?"},
        {"{\"type\":\"string\",\"pattern\":\"^(?!a)c|d\"}", "(?"},
        {"{\"type\":\"string\",\"pattern\":\"^a(?!b)\"}", "(?"},
        {"{\"type\":\"string\",\"format\":\"email\",\"maxLength\":60}",
         "over 2048 rules"},
        {"{\"type\":\"object\",\"propertyNames\":{\"type\":\"number\"}}",
         "'propertyNames'"},
        {"{\"type\":\"object\",\"propertyNames\":{\"enum\":[\"a\"]},"
         "\"properties\":{\"b\":{}}}",
         "'propertyNames'"},
        {"{\"allOf\":[]}", "'allOf'"},
        {"{\"allOf\":[{\"type\":\"null\"},{\"type\":\"string\"}]}",
         "no value is left"},
        {"{\"allOf\":[{\"additionalProperties\":false,\"properties\":{\"a\":{}}"
         "},"
         "{\"required\":[\"b\"],\"properties\":{\"b\":{}}}]}",
         "no value is left"},
        {"{\"allOf\":[{\"multipleOf\":2},{\"multipleOf\":3}]}", "twice"},
        {"{\"allOf\":[{\"properties\":{},\"unevaluatedProperties\":false},{"
         "\"properties\":{}}]}",
         "'unevaluatedProperties'"},
        {"{\"allOf\":[{\"items\":{}},{\"prefixItems\":[{}]}]}", "twice"},
        {"{\"enum\":[\"a\"],\"minLength\":1}", "'enum'"},
        {"{\"$ref\":\"#/$defs/a\",\"type\":\"null\",\"$defs\":{\"a\":{\"$ref\":"
         "\"#/$defs/a\",\"type\":\"null\"}}}",
         "too many schemas"},
        {"{\"oneOf\":[{\"type\":\"number\"},{\"type\":\"integer\"}]}",
         "'oneOf'"},
        {"{\"oneOf\":[{\"const\":1},{\"const\":1.0}]}", "'oneOf'"},
        {"{\"$ref\":\"#/nothing\"}", "'$ref'"},
        {"{\"$ref\":\"#/$defs/a%2\",\"$defs\":{\"a%2\":{}}}", "'$ref'"},
        {"{\"$ref\":\"#/$defs/a%zz\",\"$defs\":{\"a%zz\":{}}}", "'$ref'"},
        {"{\"$ref\":\"#/$defs/a%00\",\"$defs\":{\"a\":{}}}", "'$ref'"},
        {"{\"$ref\":\"#/$defs/a\",\"type\":\"string\",\"$defs\":{}}", "'$ref'"},
        {"{\"type\":\"thing\"}", "'type'"},
        {"{\"enum\":[]}", "'enum'"},
        {"{\"enum\":[1],\"type\":\"string\"}", "'enum'"},
        {"{\"type\":\"object\",\"required\":[\"a\"],"
         "\"additionalProperties\":false}",
         "'required'"},
        {"{\"type\":\"object\",\"minProperties\":2}", "'minProperties'"},
        {"{\"type\":\"integer\",\"minimum\":3,\"maximum\":2}", "no number"},
        {"{\"items\":[{}]}", "a schema is an object"},
        {"false", "no value"},
    };

    br_status limit = {0};

    gk_schema(
        "{\"type\":\"null\",\"anyOf\":[{\"$ref\":\"#\"},{\"$ref\":\"#\"}]}",
        BR_E_LIMIT, &limit);
    for (size_t i = 0; i < BR_COUNT(rows); i++) {
        br_status st = {0};

        gk_schema(rows[i].schema, BR_E_UNSUPPORTED, &st);
        ck_assert_msg(strstr(st.msg, rows[i].says), "%s: %s", rows[i].schema,
                      st.msg);
    }
}

typedef struct schema_job {
    br_json *schema;
    size_t n; /* bytes of its rules; 0: not known yet */
} schema_job;

static br_code
make_rules(void *arg, br_status *st)
{
    schema_job *w = arg;
    br_str out = {0};
    br_code code = br_schema_grammar(w->schema, &out, st);

    if (code == BR_OK && w->n) /* a part of it would let through more */
        ck_assert_uint_eq(out.n, w->n);
    if (code == BR_OK)
        w->n = out.n;
    br_str_fini(&out);
    return code;
}

/* A schema of two keywords, in a place where it is read. */
static void
odd_one(const char *const *place, const char *const *key,
        const char *const *value)
{
    br_str text = {0}, out = {0};
    br_status st = {0};
    br_arena arena;
    br_json *tree;
    br_code code;

    br_str_printf(&text, "%s{\"%s\":%s,\"%s\":%s}%s", place[0], key[0],
                  value[0], key[1], value[1], place[1]);
    br_arena_init(&arena, 0);
    t_ok(br_json_parse(&tree, &arena, br_str_z(&text), text.n, 0, &st), &st);
    code = br_schema_grammar(tree, &out, &st);
    if (code != BR_OK && (code != BR_E_UNSUPPORTED || !st.msg[0]))
        ck_abort_msg("%s: %s", br_str_z(&text), st.msg);
    br_arena_fini(&arena);
    br_str_fini(&text);
    br_str_fini(&out);
}

/* Each two keywords with values of every kind: a grammar, or what is wrong. */
TEST(schemas_of_odd_values_are_refused_by_name)
{
    static const char *const rows[][2] = {
#define X(name, group) {name, #group},
#include "run/schema.def"
#undef X
    };
    const char *keys[BR_COUNT(rows)];
    size_t n = 0;
    static const char *const values[] = {
        "null", "true",          "7",
        "-1.5", "1e300",         "\"string\"",
        "[]",   "[\"a\"]",       "[{},[\"a\"]]",
        "{}",   "{\"a\":\"b\"}", "{\"enum\":\"string\"}"};
    static const char *const places[][2] = {
        {"", ""},
        {"{\"type\":\"object\",\"propertyNames\":", "}"},
        {"{\"type\":\"object\",\"required\":[\"a\"],\"propertyNames\":", "}"},
        {"{\"allOf\":[", ",{\"type\":[\"string\",\"object\"]}]}"}};
    enum { V = BR_COUNT(values) };

    for (size_t i = 0; i < BR_COUNT(rows); i++)
        if (strcmp(rows[i][1], "NOTE") != 0)
            keys[n++] = rows[i][0];
    for (size_t p = 0; p < BR_COUNT(places); p++)
        for (size_t a = 0; a < n * V; a++)
            for (size_t b = a / V * V + V; b < n * V; b++)
                odd_one(places[p], (const char *[]){keys[a / V], keys[b / V]},
                        (const char *[]){values[a % V], values[b % V]});
}

TEST(schemas_are_whole_or_out_of_memory)
{
    static const char schema[] =
        "{\"$ref\":\"#/$defs/"
        "P\",\"required\":[\"b\"],\"allOf\":[{\"properties\":{"
        "\"a\":{\"maximum\":9},\"b\":{\"items\":{\"enum\":[1,2,3]},"
        "\"uniqueItems\":true}}}],\"oneOf\":[{\"properties\":{\"k\":{\"const\":"
        "1}}},"
        "{\"properties\":{\"k\":{\"enum\":[2,3]}}}],\"$defs\":{\"P\":{\"type\":"
        "\"object\","
        "\"properties\":{\"a\":{\"type\":\"integer\",\"minimum\":1},\"k\":{"
        "\"type\":"
        "\"integer\",\"enum\":[1,2]},\"t\":{\"allOf\":[{\"pattern\":\"^a\"},{"
        "\"pattern\":\"b$\"},{\"type\":\"string\"}]},\"m\":{\"format\":"
        "\"hostname\",\"maxLength\":50}},\"required\":[\"k\"]}}}";
    schema_job w = {0};
    br_status st = {0};
    br_json *tree;
    br_arena a;

    br_arena_init(&a, 0);
    t_ok(br_json_parse(&tree, &a, schema, sizeof schema - 1, 0, &st), &st);
    w.schema = tree;
    t_ok(make_rules(&w, &st), &st);
    t_each_oom(make_rules, &w);
    br_arena_fini(&a);
}

TEST(schemas_let_through_what_they_say)
{
    static const struct {
        const char *schema, *yes[4], *no[4];
    } rows[] = {
        {"{\"type\":\"string\",\"pattern\":\"^[a-z]+\\\\d{2}(-x)?$\"}",
         {"\"ab12\"", "\"a00-x\""},
         {"\"a1\"", "\"1\"", "\"ab12 \""}},
        {"{\"type\":\"string\",\"pattern\":\"b\\\"\"}",
         {"\"b\\\"\"", "\"ab\\\"c\""},
         {"\"b\"", "\"\""}},
        {"{\"$ref\":\"#/$defs/Pick%3CA%2c%20%22b%22%3e\",\"$defs\":{"
         "\"Pick<A, \\\"b\\\">\":{\"const\":1}}}",
         {"1"},
         {"2"}},
        {"{\"$ref\":\"#%2F$defs/a~1%C3%A4%25\",\"$defs\":{\"a/\u00e4%\":{"
         "\"const\":1}}}",
         {"1"},
         {"2"}},
        {"{\"type\":\"integer\",\"minimum\":1e15}",
         {"1000000000000000", "999999999999999999"},
         {"999999999999999", "1000000000000000000", "-1"}},
        {"{\"type\":\"integer\",\"maximum\":-9007199254740993,"
         "\"minimum\":-9007199254740996,\"multipleOf\":2}",
         {"-9007199254740994", "-9007199254740996"},
         {"-9007199254740993", "-9007199254740992", "0"}},
        {"{\"type\":\"integer\",\"minimum\":999999999999998}",
         {"999999999999998", "999999999999999"},
         {"1000000000000000", "1"}},
        {"{\"type\":\"object\",\"required\":[\"a\",\"a\"]}",
         {"{\"a\":1}"},
         {"{}", "{\"a\":1,\"a\":1}"}},
        {"{\"allOf\":[{\"required\":[\"b\",\"a\"]},{\"type\":\"object\","
         "\"required\":[\"a\",\"c\"]}],\"properties\":{\"c\":{\"const\":1}}}",
         {"{\"c\":1,\"b\":2,\"a\":3}"},
         {"{\"c\":1,\"b\":2}", "{\"c\":2,\"b\":2,\"a\":3}"}},
        {"{\"type\":\"string\",\"format\":\"date\"}",
         {"\"2024-02-28\"", "\"1999-12-31\""},
         {"\"2024-02-30\"", "\"2024-13-01\""}},
        {"{\"type\":\"string\",\"format\":\"uuid\"}",
         {"\"01234567-89ab-cdef-0123-456789abcdef\""},
         {"\"0\""}},
        {"{\"type\":\"string\",\"format\":\"ipv6\"}",
         {"\"::\"", "\"2001:db8::1\"", "\"1:2:3:4:5:6:7:8\"", "\"fe80::\""},
         {"\"1::2::3\"", "\"1:2:3:4:5:6:7\"", "\"1:2:3:4:5:6:7:8:9\"",
          "\"12345::\""}},
        {"{\"type\":\"string\",\"format\":\"ipv6\"}",
         {"\"1:2:3:4:5:6:7::\"", "\"::2:3:4:5:6:7:8\"", "\"1::3:4:5:6:7:8\"",
          "\"1:2:3:4:5:6::8\""},
         {"\"1:2:3:4:5:6:7::8\"", "\":1\"", "\"1:\"", "\"1:2:3:4:5:6:7:8::\""}},
        {"{\"type\":\"string\",\"format\":\"duration\"}",
         {"\"P1Y2M3DT4H5M6S\"", "\"PT15M\"", "\"P4W\"", "\"P1DT12H\""},
         {"\"P\"", "\"PT\"", "\"P1W2D\"", "\"P1DT\""}},
        {"{\"type\":\"string\",\"format\":\"duration\"}",
         {"\"PT1H\"", "\"P3M\"", "\"P0D\"", "\"PT2M10S\""},
         {"\"1D\"", "\"P1Y3D\"", "\"PT1H10S\"", "\"PT1D\""}},
        {"{\"type\":\"string\",\"format\":\"json-pointer\"}",
         {"\"\"", "\"/a/0\"", "\"/\""},
         {"\"a\"", "\"/~\""}},
        {"{\"type\":\"integer\",\"multipleOf\":7}",
         {"0", "7", "-14", "994"},
         {"1", "13", "-0", "07"}},
        {"{\"type\":\"number\",\"multipleOf\":0.01}",
         {"0.01", "19.99", "20", "3.5"},
         {"0.001", "1.999", "1.", ".5"}},
        {"{\"type\":\"number\",\"multipleOf\":0.25,\"exclusiveMaximum\":2}",
         {"0.25", "1.5", "1.75", "-3"},
         {"0.3", "2", "1.7", "-0.0"}},
        {"{\"type\":\"number\",\"minimum\":0.5,\"maximum\":0.95}",
         {"0.5", "0.95", "0.949999", "0.50"},
         {"0.49", "0.951", "1", "0"}},
        {"{\"type\":\"integer\",\"minimum\":-9007199254740991,"
         "\"maximum\":9007199254740991}",
         {"0", "-999999999999999", "42"},
         {"1.0", "-"}},
        {"{\"type\":\"integer\",\"minimum\":1.5,\"exclusiveMaximum\":3.5}",
         {"2", "3"},
         {"1", "4"}},
        {"{\"type\":\"integer\",\"multipleOf\":1.5,\"maximum\":6}",
         {"3", "6", "-3"},
         {"1", "9", "2"}},
        {"{\"type\":\"string\",\"pattern\":\"^[a-z]+$\",\"minLength\":2,"
         "\"maxLength\":3}",
         {"\"ab\"", "\"abc\""},
         {"\"a\"", "\"abcd\"", "\"AB\"", "\"\""}},
        {"{\"type\":\"string\",\"pattern\":\"q\",\"maxLength\":3}",
         {"\"q\"", "\"\\u0041q\"", "\"éqü\"", "\"\\n\\nq\""},
         {"\"abcq\"", "\"abc\"", "\"q"}},
        {"{\"type\":\"string\",\"format\":\"uuid\",\"pattern\":\"^[0-9a-f]{8}-"
         "[0-9a-f]{4}-4\"}",
         {"\"01234567-89ab-4def-0123-456789ABCDEF\""},
         {"\"01234567-89ab-5def-0123-456789abcdef\"",
          "\"0123456A-89ab-4def-0123-456789abcdef\""}},
        {"{\"type\":\"string\",\"pattern\":\"^(?!\\\\.)(?!.*\\\\.\\\\.)[a-z.]+$"
         "\"}",
         {"\"a.b\"", "\"a.b.\"", "\"a\""},
         {"\".a\"", "\"a..b\"", "\"\""}},
        {"{\"type\":\"string\",\"pattern\":\"^(?!a)(?=.{2}$)\"}",
         {"\"bb\"", "\"b\\t\"", "\"é\\\\\""},
         {"\"ab\"", "\"bbb\"", "\"\\u0061b\"", "\"b\""}},
        {"{\"type\":\"string\",\"pattern\":\"^(?!a)\"}",
         {"\"b\"", "\"\"", "\"\\nb\"", "\"éa\""},
         {"\"ab\"", "\"\\u0061\"", "\"\\/\""}},
        {"{\"type\":\"string\",\"format\":\"uri\",\"minLength\":1,"
         "\"maxLength\":2083}",
         {"\"http://a.de\"", "\"https://a-b.example.org:8080/x/?q=1&r=2\""},
         {"\"\"", "\"ftp://a.de\"", "\"http://a.de/ b\"",
          "\"http://a.de:0/\""}},
        {"{\"type\":\"string\",\"pattern\":\"^(?!^[-+.]*$)[+-]?0*\\\\d*\\\\.?"
         "\\\\d*$\"}",
         {"\"-0.5\"", "\"12\"", "\".5\""},
         {"\"-.\"", "\"\"", "\"+\"", "\"1.2.3\""}},
        {"{\"type\":\"string\",\"pattern\":\"^[ab]*$\",\"minLength\":1}",
         {"\"a\"", "\"abab\""},
         {"\"\"", "\"c\""}},
        {"{\"type\":\"string\",\"pattern\":\"^(\\\\\\\\|b)+$\",\"maxLength\":"
         "2}",
         {"\"\\\\b\"", "\"\\\\\\\\\""},
         {"\"bbb\"", "\"\\\\\\\\b\""}},
        {"{\"discriminator\":{\"propertyName\":\"k\"},\"oneOf\":[{\"$ref\":\"#/"
         "$defs/"
         "A\"},{\"$ref\":\"#/$defs/B\"}],\"$defs\":{\"A\":{\"type\":\"object\","
         "\"properties\":{\"k\":{\"const\":\"a\"}},\"required\":[\"k\"]},\"B\":"
         "{"
         "\"type\":\"object\",\"properties\":{\"k\":{\"const\":\"b\"}},"
         "\"required\":["
         "\"k\"]}}}",
         {"{\"k\":\"a\"}", "{\"k\":\"b\"}"},
         {"{\"k\":\"c\"}", "{}"}},
        {"{\"type\":\"object\",\"propertyNames\":{\"type\":\"string\","
         "\"pattern\":"
         "\"^[a-z]$\"},\"additionalProperties\":{\"type\":\"null\"}}",
         {"{}", "{\"a\":null}", "{\"a\":null,\"b\": null}"},
         {"{\"ab\":null}", "{\"A\":null}"}},
        {"{\"type\":\"object\",\"propertyNames\":{\"type\":\"string\",\"enum\":"
         "[\"a\",\"b\"]},\"additionalProperties\":{\"type\":\"null\"},"
         "\"required\":[\"a\"]}",
         {"{\"a\":null}"},
         {"{}", "{\"b\":null}", "{\"c\":null}"}},
        {"{\"type\":\"string\",\"format\":\"base64\",\"contentEncoding\":"
         "\"base64\"}",
         {"\"\"", "\"YWI=\"", "\"YWJj\"", "\"YQ==\""},
         {"\"YWI\"", "\"Y\"", "\"YW=I\""}},
        {"{\"oneOf\":[{\"const\":1},{\"enum\":[2,null]},{\"const\":\"1\"}]}",
         {"1", "2", "null", "\"1\""},
         {"3"}},
        {"{\"oneOf\":[{\"properties\":{\"k\":{\"const\":\"a\"}},\"required\":["
         "\"k\"],\"type\":\"object\"},{\"type\":\"object\",\"properties\":{"
         "\"k\":{\"const\":\"b\"},\"n\":{\"type\":\"null\"}},\"required\":["
         "\"k\"]}]}",
         {"{\"k\":\"a\"}", "{\"k\": \"b\", \"n\": null}"},
         {"{\"k\":\"a\",\"n\":null}", "{\"k\":\"c\"}"}},
        {"{\"type\":\"integer\",\"minimum\":9,\"maximum\":120}",
         {"9", "10", "120", "99"},
         {"8", "121", "-9", "09"}},
        {"{\"type\":\"number\",\"exclusiveMinimum\":-1,\"maximum\":10}",
         {"-0.5", "10.0", "0.25", "9.999"},
         {"-1", "10.01", "-1.0", "11"}},
        {"{\"type\":\"number\",\"minimum\":1700000000000,\"maximum\":1e15}",
         {"1700000000000", "1700000000000.5", "9999999999999.125"},
         {"1699999999999.9", "1000000000000000.1", "0"}},
        {"{\"type\":\"number\",\"exclusiveMaximum\":-1e16}",
         {"-10000000000000000.1", "-99999999999999999.9"},
         {"-10000000000000000", "-1", "1"}},
        {"{\"type\":\"integer\",\"exclusiveMinimum\":0}",
         {"1", "123456"},
         {"0", "-1", "-0"}},
        {"{\"type\":\"object\",\"additionalProperties\":{\"type\":\"integer\"},"
         "\"minProperties\":1,\"maxProperties\":2}",
         {"{\"a\":1}", "{\"a\":1,\"b\":2}"},
         {"{}", "{\"a\":\"x\"}", "{\"a\":1,\"b\":2,\"c\":3}"}},
        {"{\"properties\":{\"a\":{\"type\":\"null\"},\"b\":{\"type\":\"null\"},"
         "\"c\":{\"type\":\"null\"}},\"required\":[\"b\"]}",
         {"{\"b\":null}", "{\"a\":null,\"b\":null}", "{\"b\":null,\"c\":null}"},
         {"{}", "{\"a\":null}", "{\"b\":null,\"a\":null}", "{,\"b\":null}"}},
        {"{\"allOf\":[{\"$ref\":\"#/$defs/"
         "P\"},{\"properties\":{\"b\":{\"type\":"
         "\"integer\"}},\"required\":[\"b\"]}],\"$defs\":{\"P\":{\"type\":"
         "\"object\",\"properties\":{\"n\":{\"type\":\"null\"}},\"required\":"
         "[\"n\"]}}}",
         {"{\"n\":null,\"b\":1}"},
         {"{\"n\":null}", "{\"b\":1}", "{\"n\":null,\"b\":null}"}},
        {"{\"allOf\":[{\"minimum\":1,\"maximum\":9},{\"maximum\":5,\"minimum\":"
         "-3},{\"type\":\"number\"},{\"type\":[\"integer\",\"null\"]}]}",
         {"1", "5"},
         {"0", "6", "1.5", "null"}},
        {"{\"type\":\"object\",\"properties\":{\"k\":{\"enum\":[\"a\",\"b\"]}},"
         "\"required\":[\"k\"],\"anyOf\":[{\"properties\":{\"k\":{\"const\":"
         "\"a\"}}},{\"properties\":{\"k\":{\"const\":\"b\"},\"v\":{\"type\":"
         "\"null\"}},\"required\":[\"v\"]},{\"properties\":{\"k\":{\"const\":"
         "\"c\"}}}]}",
         {"{\"k\":\"a\"}", "{\"k\":\"b\",\"v\":null}"},
         {"{\"k\":\"b\"}", "{\"k\":\"c\"}", "{\"k\":\"a\",\"v\":null}"}},
        {"{\"oneOf\":[{\"allOf\":[{\"$ref\":\"#/$defs/P\"},{\"properties\":{"
         "\"k\":{\"const\":\"a\"}}}]},{\"allOf\":[{\"$ref\":\"#/$defs/P\"},{"
         "\"properties\":{\"k\":{\"const\":\"b\"}}}]}],\"$defs\":{\"P\":{"
         "\"type\":\"object\",\"properties\":{\"k\":{\"type\":\"string\"}},"
         "\"required\":[\"k\"]}}}",
         {"{\"k\":\"a\"}", "{\"k\":\"b\"}"},
         {"{\"k\":\"c\"}", "{}"}},
        {"{\"type\":\"string\",\"allOf\":[{\"pattern\":\"^ab.*\"},{\"pattern\":"
         "\".*z$\"},{\"pattern\":\"q|y\"}]}",
         {"\"abqz\"", "\"abyz\"", "\"abzyz\""},
         {"\"abz\"", "\"abq\"", "\"qz\"", "\"xabqz\""}},
        {"{\"$ref\":\"#/$defs/S\",\"maxLength\":2,\"description\":\"d\","
         "\"$defs\":{\"S\":{\"type\":\"string\",\"minLength\":1}}}",
         {"\"a\"", "\"ab\""},
         {"\"\"", "\"abc\""}},
        {"{\"type\":\"array\",\"uniqueItems\":true,\"items\":{\"$ref\":\"#/"
         "$defs/"
         "E\"},\"minItems\":1,\"maxItems\":2,\"$defs\":{\"E\":{\"type\":"
         "\"string\","
         "\"enum\":[\"a\",\"b\",\"a\",\"c\",1]}}}",
         {"[\"a\"]", "[\"c\"]", "[\"a\", \"c\"]", "[ \"b\",\"c\"]"},
         {"[]", "[\"a\",\"a\"]", "[\"a\",\"b\",\"c\"]", "[1]"}},
        {"{\"type\":\"array\",\"uniqueItems\":true,\"items\":{\"enum\":[1,null,"
         "true]}}",
         {"[]", "[1,null,true]", "[null]", "[1, true]"},
         {"[1,1]", "[,1]", "[1,]"}},
        {"{\"type\":\"object\",\"patternProperties\":{\"^x-\":{\"type\":"
         "\"null\"}"
         "}}",
         {"{}", "{\"x-a\":null}", "{\"x-a\":null,\"x-\":null}"},
         {"{\"a\":null}", "{\"x-a\":1}"}},
        {"{\"type\":\"integer\",\"format\":\"uint8\",\"minimum\":0.0}",
         {"0", "255"},
         {"256", "-1"}},
        {"{\"type\":\"string\",\"format\":\"ends_with\",\"allOf\":[{"
         "\"pattern\":"
         "\"^ab.*\"},{\"pattern\":\".*z$\"}]}",
         {"\"abz\"", "\"ab z\""},
         {"\"ab\"", "\"z\""}},
        {"{\"type\":\"string\",\"format\":\"email\",\"maxLength\":100}",
         {"\"a.b@example.org\"", "\"abc@mail.example.org\""},
         {"\"@example.org\"", "\"a@b\""}},
        {"{\"type\":\"string\",\"format\":\"uri\",\"maxLength\":200}",
         {"\"https://example.org/a?b=c\""},
         {"\"example.org\""}},
        {"{\"type\":\"string\",\"format\":\"int64\"}",
         {"\"-12\"", "\"0\"", "\"123456789012345678\""},
         {"12", "\"012\"", "\"-0\""}},
        {"{\"type\":\"integer\",\"format\":\"int32\"}",
         {"-2147483648", "2147483647"},
         {"2147483648", "-2147483649"}},
        {"{\"const\":\"cat\",\"enum\":[\"cat\"],\"type\":\"string\"}",
         {"\"cat\""},
         {"\"dog\""}},
        {"{\"type\":\"string\",\"nullable\":true,\"x-order\":3,\"enum\":[\"a\","
         "null]}",
         {"\"a\"", "null"},
         {"1"}},
        {"{\"type\":\"integer\",\"nullable\":true}", {"7", "null"}, {"\"a\""}},
        {"{\"properties\":{\"a\":{\"not\":{}},\"b\":false}}",
         {"{}"},
         {"{\"a\":1}", "{\"b\":1}", "{\"c\":1}"}},
        {"{\"allOf\":[{\"type\":\"object\",\"properties\":{\"a\":{\"type\":"
         "\"null\"}}},{\"type\":\"object\",\"properties\":{\"b\":{\"type\":"
         "\"null\"}},\"required\":[\"b\",\"c\"]}],\"unevaluatedProperties\":{"
         "\"type\":\"boolean\"}}",
         {"{\"a\":null,\"b\":null,\"c\":true}", "{\"b\":null,\"c\":false}"},
         {"{\"b\":null}", "{\"b\":null,\"c\":1}"}},
        {"{\"additionalProperties\":{\"type\":\"integer\"},\"allOf\":[{"
         "\"properties\":{\"a\":{\"minimum\":3}}}]}",
         {"{\"a\":3}", "{}"},
         {"{\"a\":2}", "{\"a\":\"x\"}"}},
        {"{\"items\":{\"type\":\"null\"},\"minItems\":1,\"maxItems\":2}",
         {"[null]", "[null, null]"},
         {"[]", "[null,null,null]", "[null,]"}},
    };

    gk_open();
    for (size_t i = 0; i < BR_COUNT(rows); i++) {
        br_status st = {0};
        br_grammar *g = gk_grammar(gk_schema(rows[i].schema, BR_OK, &st));

        for (size_t k = 0; k < 4 && rows[i].yes[k]; k++)
            ck_assert_msg(gk_matches(g, rows[i].yes[k]), "%s: %s",
                          rows[i].schema, rows[i].yes[k]);
        for (size_t k = 0; k < 4 && rows[i].no[k]; k++)
            ck_assert_msg(!gk_matches(g, rows[i].no[k]), "%s: not %s",
                          rows[i].schema, rows[i].no[k]);
        br_grammar_free(g);
    }
    gk_close();
}

/* Every number of few digits, against what the schema says of it in units of
 * 0.001: those that are right may come, no other. */
static void
try_numbers(bool real, int64_t lo, int64_t hi, int64_t step)
{
    char schema[200], text[40];
    br_status st = {0};
    br_grammar *g;

    snprintf(schema, sizeof schema,
             "{\"type\":\"%s\",\"minimum\":%.3f,\"exclusiveMaximum\":%.3f,"
             "\"multipleOf\":%.3f}",
             real ? "number" : "integer", (double)lo / 1000, (double)hi / 1000,
             (double)step / 1000);
    g = gk_grammar(gk_schema(schema, BR_OK, &st));
    for (int64_t n = lo - 300; n < hi + 300; n++) {
        bool whole = n % 1000 == 0, in = n >= lo && n < hi && n % step == 0;
        uint64_t m = (uint64_t)(n < 0 ? -n : n);
        const char *sign = n < 0 ? "-" : "";

        snprintf(text, sizeof text, "%s%llu.%03llu", sign,
                 (unsigned long long)(m / 1000),
                 (unsigned long long)(m % 1000));
        /* Behind the digits that the step has only zeros could come. */
        while (real && text[strlen(text) - 1] == '0' && !whole)
            text[strlen(text) - 1] = 0;
        if (whole)
            text[strlen(text) - 4] = 0;
        ck_assert_msg(gk_matches(g, text) == (in && (real || whole)), "%s: %s",
                      schema, text);
    }
    br_grammar_free(g);
}

TEST(schemas_of_numbers_allow_all_that_are_right)
{
    uint64_t seed = 11;

    gk_open();
    for (int i = 0; i < (t_sanitized() ? 4 : 40);) {
        static const int64_t steps[] = {1,   5,    10,   25,   30,
                                        70,  100,  125,  250,  500,
                                        750, 1000, 1500, 3000, 7000};
        int64_t lo = (int64_t)(t_rand(&seed) % 6000) - 3000;
        int64_t hi = lo + 1 + (int64_t)(t_rand(&seed) % 2000);
        int64_t step = steps[t_rand(&seed) % BR_COUNT(steps)];
        bool real = t_rand(&seed) % 2, some = false;

        for (int64_t n = lo; n < hi; n++)
            some |= n % step == 0 && (real || n % 1000 == 0);
        if (!some)
            continue;
        try_numbers(real, lo, hi, step);
        i++;
    }
    gk_close();
}

/* What two schemas of a text say together, against what each says. */
TEST(schemas_of_texts_say_what_each_keyword_says)
{
    static const struct {
        const char *a, *b;
        bool not_b; /* b is the pattern, and both begins with (?!it) */
        const char *both;
    } rows[] = {
        {"\"pattern\":\"^[ab1]+-?[ab1]*$\"", "\"minLength\":2,\"maxLength\":4",
         false,
         "\"pattern\":\"^[ab1]+-?[ab1]*$\",\"minLength\":2,\"maxLength\":4"},
        {"\"pattern\":\"é|b.b\"", "\"maxLength\":5", false,
         "\"pattern\":\"é|b.b\",\"maxLength\":5"},
        {"\"pattern\":\"(a|-)b*$\"", "\"format\":\"base64url\"", false,
         "\"pattern\":\"(a|-)b*$\",\"format\":\"base64url\""},
        {"\"pattern\":\"^[^b]*b?[^b]*$\"", "\"pattern\":\"^.*1.*1\"", true,
         "\"pattern\":\"^(?!.*1.*1)[^b]*b?[^b]*$\""},
        {"\"pattern\":\"^\\\\W|a\"", "\"format\":\"json-pointer\"", false,
         "\"pattern\":\"^\\\\W|a\",\"format\":\"json-pointer\""},
    };
    static const char *const bits[] = {"a", "b",    "1",   "-",    ".", "/",
                                       "é", "\\\\", "\\n", "\\\"", "€", "😀"};
    uint64_t seed = 3;

    gk_open();
    for (size_t i = 0; i < BR_COUNT(rows); i++) {
        char a[200], b[200], both[200];
        br_status st = {0};
        br_grammar *ga, *gb, *g;
        size_t n_yes = 0;

        snprintf(a, sizeof a, "{\"type\":\"string\",%s}", rows[i].a);
        snprintf(b, sizeof b, "{\"type\":\"string\",%s}", rows[i].b);
        snprintf(both, sizeof both, "{\"type\":\"string\",%s}", rows[i].both);
        ga = gk_grammar(gk_schema(a, BR_OK, &st));
        gb = gk_grammar(gk_schema(b, BR_OK, &st));
        g = gk_grammar(gk_schema(both, BR_OK, &st));
        for (int n = 0; n < (t_sanitized() ? 200 : 3000); n++) {
            char text[64] = "\"";
            bool want;

            for (uint64_t k = t_rand(&seed) % 8; k; k--)
                strcat(text, bits[t_rand(&seed) % BR_COUNT(bits)]);
            strcat(text, "\"");
            want =
                gk_matches(ga, text) && gk_matches(gb, text) != rows[i].not_b;
            n_yes += want;
            ck_assert_msg(gk_matches(g, text) == want, "%s: %s", both, text);
        }
        ck_assert_msg(n_yes > 2 || t_sanitized(), "%s: nothing matched", both);
        br_grammar_free(ga);
        br_grammar_free(gb);
        br_grammar_free(g);
    }
    gk_close();
}

/* The whole text, as it is: no quotes, no escapes of JSON. */

/* Of n properties, in each of which a number tells it from the others. */
static void
many(const char *before, const char *after, int n, br_code want, br_status *st)
{
    br_str s = {0};

    br_str_puts(&s, "{\"type\":\"object\",\"properties\":{");
    for (int i = 0; i < n; i++)
        br_str_printf(&s, "%s\"p%d\":{\"type\":\"string\",%s%d%s}",
                      i ? "," : "", i, before, i + 200, after);
    br_str_puts(&s, "}}");
    (void)gk_schema(br_str_z(&s), want, st);
    br_str_fini(&s);
}

/* A server reads schemas while its clients wait. */
TEST(schemas_take_bounded_work)
{
    br_status st = {0};

    /* what one format says of lengths is found once */
    many("\"format\":\"uri\",\"maxLength\":", "", 300, BR_OK, &st);
    many("\"minLength\":1,\"pattern\":\"^x{", "}(a?b?c?){150}$\"", 60,
         BR_E_UNSUPPORTED, &st);
    ck_assert_msg(strstr(st.msg, "takes too much work"), "%s", st.msg);
}

/* "pN", n of them. */
static void
put_many(br_str *s, const char *before, char c, int n, const char *after)
{
    br_str_puts(s, before);
    for (int i = 0; i < n; i++)
        br_str_printf(s, "%s\"%c%d\"", i ? "," : "", c, i);
    br_str_puts(s, after);
}

static void
is_refused(br_str *s, br_code want, const char *says)
{
    br_status st = {0};
    br_str out = {0};
    br_json *tree;
    br_arena a;

    br_arena_init(&a, 0);
    t_ok(br_json_parse(&tree, &a, s->at, s->n, 0, &st), &st);
    ck_assert_int_eq(br_schema_grammar(tree, &out, &st), want);
    ck_assert_msg(strstr(st.msg, says), "%s", st.msg);
    br_str_fini(&out);
    br_str_clear(s);
    br_arena_fini(&a);
}

/* Lists of a body's size, each held against each other: they took minutes. */
TEST(schemas_of_long_lists_take_bounded_work)
{
    br_str s = {0};

    put_many(&s, "{\"oneOf\":[{\"enum\":[", 'a', 20000, "]},");
    put_many(&s, "{\"enum\":[", 'b', 20000, "]}]}");
    is_refused(&s, BR_E_UNSUPPORTED, "'oneOf' at '#': takes too much work");
    br_str_puts(&s, "{\"$defs\":{\"last\":{}");
    for (int i = 0; i < 20000; i++)
        br_str_printf(&s, ",\"d%d\":{}", i);
    br_str_puts(&s, ",\"d\":{\"const\":1}},\"anyOf\":[{}");
    for (int i = 0; i < 20000; i++)
        br_str_puts(&s, ",{\"$ref\":\"#/$defs/d\"}");
    br_str_puts(&s, "]}");
    is_refused(&s, BR_E_UNSUPPORTED, "'$ref' at '#/anyOf/");
    put_many(&s, "{\"type\":\"object\",\"required\":[", 'p', 200000,
             "],\"properties\":{\"a\":{},\"a1\":{}},");
    put_many(&s, "\"allOf\":[{\"required\":[", 'q', 200000, "]}]}");
    is_refused(&s, BR_E_LIMIT, "its grammar is over");

    put_many(&s, "{\"type\":\"object\",\"required\":[", 'p', 200000,
             "],\"properties\":{");
    for (int i = 200000; i-- > 0;)
        br_str_printf(&s, "\"p%d\":{}%s", i, i ? "," : "");
    put_many(&s, "},\"propertyNames\":{\"enum\":[", 'p', 200000, "]}}");
    is_refused(&s, BR_E_LIMIT, "its grammar is over");
    put_many(&s, "{\"enum\":[", 'p', 200000, "]}");
    is_refused(&s, BR_E_LIMIT, "its grammar is over");
    br_str_fini(&s);
}
