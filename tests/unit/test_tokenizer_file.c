/* tokenizer.json: what is read from it, and what is refused, by name. */
#include "unit/tokenizer_json.h"

/* A copy of `json` in which `from`, which is there once, is `to`. */
static char *edited(const char *json, const char *from, const char *to)
{
    const char *at = strstr(json, from);
    if (!at || strstr(at + 1, from)) fail_msg("'%s' is not there once", from);
    char *copy = malloc(strlen(json) + strlen(to) + 1);
    assert_non_null(copy);
    sprintf(copy, "%.*s%s%s", (int)(at - json), json, to, at + strlen(from));
    return copy;
}

static void assert_refused(const char *json, size_t n, gdn_status status, const char *says)
{
    gdn_tokenizer   *tokenizer = NULL;
    gdn_error        err = {GDN_OK, 0, ""};
    const gdn_status got = gdn_tokenizer_parse(&tokenizer, json, n, "test.json", &err);
    if (got != status || !strstr(err.message, says) || strncmp(err.message, "test.json", 9) != 0)
        fail_msg("status %d, '%s'; expected status %d and '%s'", (int)got, err.message, (int)status, says);
    assert_int_equal(err.code, status);
    assert_null(tokenizer);
}

typedef struct edit {
    const char *from, *to;
    gdn_status  status;
    const char *says;
} edit;

static void test_edits(void **state)
{
    (void)state;
    static const edit edits[] = {
        {"\"BPE\"", "\"Unigram\"", GDN_UNSUPPORTED, "model is Unigram"},
        {"\"type\":\"BPE\",", "", GDN_UNSUPPORTED, "model is without a type"},
        {"\"dropout\":null", "\"dropout\":0.1", GDN_UNSUPPORTED, "'dropout'"},
        {"\"unk_token\":null", "\"unk_token\":\"<unk>\"", GDN_UNSUPPORTED, "'unk_token'"},
        {"\"byte_fallback\":false", "\"byte_fallback\":true", GDN_UNSUPPORTED, "'byte_fallback'"},
        {"\"byte_fallback\":false", "\"ignore_merges\":true", GDN_UNSUPPORTED, "'ignore_merges'"},
        {"\"byte_fallback\":false", "\"end_of_word_suffix\":\"</w>\"", GDN_UNSUPPORTED, "'end_of_word_suffix'"},
        {"\"NFC\"", "\"NFKC\"", GDN_UNSUPPORTED, "normalizer is NFKC"},
        {"{\"type\":\"NFC\"}", "7", GDN_UNSUPPORTED, "normalizer is without a type"},
        {"\"Sequence\"", "\"Metaspace\"", GDN_UNSUPPORTED, "pre-tokeniser is Metaspace"},
        {"{\"type\":\"Split\"", "{},{\"type\":\"Split\"", GDN_UNSUPPORTED, "Split and ByteLevel"},
        {"\"Isolated\"", "\"Removed\"", GDN_UNSUPPORTED, "Split is Removed"},
        {"\"invert\":false", "\"invert\":true", GDN_UNSUPPORTED, "inverted"},
        {"\"use_regex\":false", "\"use_regex\":true", GDN_UNSUPPORTED, "splits again"},
        {"\"add_prefix_space\":false", "\"add_prefix_space\":true", GDN_UNSUPPORTED, "adds a space"},
        {"|'m|", "|'n|", GDN_UNSUPPORTED, "its pattern '(?i:'s|'t|'re|'ve|'n|"},
        {"{\"Regex\":", "{\"String\":", GDN_UNSUPPORTED, "not a regex"},
        {"\"post_processor\":null", "\"post_processor\":{\"type\":\"TemplateProcessing\"}", GDN_UNSUPPORTED,
         "TemplateProcessing"},
        {"\"decoder\":{\"type\":\"ByteLevel\"}", "\"decoder\":{\"type\":\"Metaspace\"}", GDN_UNSUPPORTED,
         "decoder is Metaspace"},
        {"\"decoder\":{\"type\":\"ByteLevel\"}", "\"decoder\":null", GDN_UNSUPPORTED, "decoder is null"},
        {"\"1.0\"", "\"2.0\"", GDN_UNSUPPORTED, "version"},
        {"\"model\":", "\"modem\":", GDN_BAD_FILE, "no 'model'"},
        {"\"merges\":", "\"merger\":", GDN_BAD_FILE, "no 'merges'"},
        {"\"vocab\":", "\"vocal\":", GDN_BAD_FILE, "no 'vocab'"},
        {"\"padding\":null", "\"version\":\"1.0\"", GDN_BAD_FILE, "'version' comes twice"},
        {"\"padding\":null", "\"model\":{}", GDN_BAD_FILE, "'model' comes twice"},
        {"\"byte_fallback\":false", "\"merges\":[]", GDN_BAD_FILE, "'merges' comes twice"},
        {"\"a\":97,", "", GDN_BAD_FILE, "no token for the byte 0x61"},
        {"\"a\":97,", "\"\\u0105\":97,", GDN_BAD_FILE, "in its vocabulary twice"},
        {"\"a\":97,", "\"a\":98,", GDN_BAD_FILE, "the id 98 has two tokens"},
        {"\"a\":97,", "\"a\":-1,", GDN_BAD_FILE, "a whole number"},
        {"\"a\":97,", "\"a\":97.0,", GDN_BAD_FILE, "a whole number"},
        {"\"a\":97,", "\"a\":097,", GDN_BAD_FILE, "a number"},
        {"\"a\":97,", "\"a\":4294967296,", GDN_BAD_FILE, "a whole number"},
        {"\"a\":97,", "\"a\":4294967295,", GDN_BAD_FILE, "ids are below"},
        {"\"h e\"", "\"he\"", GDN_BAD_FILE, "no space"},
        {"\"h e\"", "\"h h\"", GDN_BAD_FILE, "not in the vocabulary"},
        {"\"h e\"", "\" e\"", GDN_BAD_FILE, "not in the vocabulary"},
        {"\"h e\"", "\"h e \"", GDN_BAD_FILE, "stand for no byte"},
        {"\"h e\"", "[\"h\",\"e\",\"e\"]", GDN_BAD_FILE, "more than two sides"},
        {"\"h e\"", "[\"he\"]", GDN_BAD_FILE, "not in the vocabulary"},
        {"\"h e\"", "[\"h\",1]", GDN_BAD_FILE, "a string"},
        {"\"h e\"", "12", GDN_BAD_FILE, "a list"},
        {"\"content\":\"<|im_end|>\"", "\"content\":\"\"", GDN_BAD_FILE, "an added token has no id, no content"},
        {"\"content\":\"<|im_end|>\"", "\"content\":\"<think>\"", GDN_BAD_FILE, "twice"},
        {"{\"id\":259,", "{\"id\":300,", GDN_BAD_FILE,
         "'<|im_end|>' has the id 300, but its place in the list makes it 259"},
        {"\"content\":\"<|im_end|>\"", "\"content\":\"he\"", GDN_BAD_FILE, "makes it 257"},
        {"\"content\":\"<|im_end|>\",\"single_word\":false", "\"content\":\"<|im_end|>\",\"single_word\":true",
         GDN_UNSUPPORTED, "'single_word' of the added token '<|im_end|>'"},
    };
    char *json = json_of(common);
    for (size_t i = 0; i < sizeof edits / sizeof edits[0]; i++) {
        char *copy = edited(json, edits[i].from, edits[i].to);
        assert_refused(copy, strlen(copy), edits[i].status, edits[i].says);
        free(copy);
    }
    free(json);
}

static void test_rules_of_added_tokens(void **state)
{
    (void)state;
    static const char *const rules[] = {"single_word", "lstrip", "rstrip", "normalized"};
    for (size_t i = 0; i < 4; i++) {
        parts p = common;
        char  rule[32], added[256], says[64];
        sprintf(rule, "\"%s\":false", rules[i]);
        char *changed = edited(ADDED("259", "<|im_end|>", "true"), rule, "\"other\":0");
        sprintf(added, "%s", changed);
        sprintf(says, "'%s' of the added token '<|im_end|>' is not false", rules[i]);
        p.added = added;
        char *json = json_of(p);
        assert_refused(json, strlen(json), GDN_UNSUPPORTED, says);
        free(json);
        free(changed);
    }
}

/* Anything that is not JSON, wherever it is. */
static void test_damage(void **state)
{
    (void)state;
    static const char *const values[] = {
        "",
        "nul",
        "nulll",
        "'x'",
        "\"x",
        "\"\\x\"",
        "\"\\u12\"",
        "\"\\ud800\"",
        "\"\t\"",
        "01",
        "-",
        "1.",
        ".5",
        "1e",
        "[1,]",
        "[1 2]",
        "[,1]",
        "{\"a\"}",
        "{\"a\":1,}",
        "{a:1}",
        "{\"a\" 1}",
        "[}",
        "\"\\udc00\"",
        "\"\\ud800\\u0041\"",
        "\"\xff\"",
        "\"\xc0\x80\"",
        "\"\xed\xa0\x80\"",
        "+1",
        "1,",
        "\"\\",
        "tru",
        "[[1]",
    };
    char *json = json_of(common);
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        char value[64];
        sprintf(value, "\"padding\":%s", values[i]);
        char *copy = edited(json, "\"padding\":null", value);
        assert_refused(copy, strlen(copy), GDN_BAD_FILE, "byte ");
        free(copy);
    }
    char          *copy = edited(json, "\"padding\":null",
                                 "\"padding\":[0,-0.5e+7,1E2,\"\\u00e9\\ud83d\\ude00\\n\",{},[],{\"a\":[true,false]}]");
    gdn_tokenizer *tokenizer;
    assert_int_equal(gdn_tokenizer_parse(&tokenizer, copy, strlen(copy), "test.json", NULL), GDN_OK);
    gdn_tokenizer_close(tokenizer);
    free(copy);
    free(json);
}

/* Every beginning of a file, read from a block of exactly its length. */
static void test_cut(void **state)
{
    (void)state;
    char        *json = json_of(common);
    const size_t n = strlen(json);
    for (size_t cut = 0; cut < n; cut++) {
        char *copy = malloc(cut + 1);
        assert_non_null(copy);
        memcpy(copy + 1, json, cut);
        assert_refused(copy + 1, cut, GDN_BAD_FILE, ", byte ");
        free(copy);
    }
    free(json);
}

static void test_depth(void **state)
{
    (void)state;
    char *json = json_of(common), value[256] = "\"padding\":";
    for (int depth = 64; depth <= 65; depth++) {
        memset(value + 10, '[', (size_t)depth);
        memset(value + 10 + depth, ']', (size_t)depth);
        value[10 + 2 * depth] = 0;
        char          *copy = edited(json, "\"padding\":null", value);
        gdn_tokenizer *tokenizer;
        if (depth == 64) {
            assert_int_equal(gdn_tokenizer_parse(&tokenizer, copy, strlen(copy), "test.json", NULL), GDN_OK);
            gdn_tokenizer_close(tokenizer);
        } else assert_refused(copy, strlen(copy), GDN_BAD_FILE, "more than 64");
        free(copy);
    }
    free(json);
}

/* The same tokenizer, however it is written. */
static void test_forms(void **state)
{
    (void)state;
    static const edit edits[] = {
        {"\"h e\"", "[\"h\",\"e\"]", GDN_OK, ""},
        {"\"h e\"", " [ \"\\u0068\" , \"e\" ] \n", GDN_OK, ""},
        {"\"he\":257", "\"\\u0068\\u0065\" : 257", GDN_OK, ""},
        {"\"unk_token\":null", "\"unk_token\":null,\"fuse_unk\":true,\"end_of_word_suffix\":\"\",\"something\":{}",
         GDN_OK, ""},
        {"\"dropout\":null", "\"dropout\":0", GDN_OK, ""},
        {"\"version\":\"1.0\",", "", GDN_OK, ""},
        {"\"post_processor\":null", "\"post_processor\":{\"type\":\"ByteLevel\",\"trim_offsets\":true}", GDN_OK, ""},
        {"\"truncation\":null", "\"truncation\":{\"max_length\":1}", GDN_OK, ""},
    };
    char *json = json_of(common);
    for (size_t i = 0; i < sizeof edits / sizeof edits[0]; i++) {
        char          *copy = edited(json, edits[i].from, edits[i].to);
        gdn_tokenizer *t;
        gdn_error      err;
        if (gdn_tokenizer_parse(&t, copy, strlen(copy), "test.json", &err)) fail_msg("%s", err.message);
        ASSERT_ENCODES(t, "he the<|im_end|>", true, 257, 258, 259);
        gdn_tokenizer_close(t);
        free(copy);
    }
    free(json);
}

/* Tokens that are both of the vocabulary and added, one of them written in characters that stand for no byte. */
static void test_added_in_vocabulary(void **state)
{
    (void)state;
    parts p = common;
    p.vocab = ",\"he\":256,\"<\xef\xbd\x9c>\":257";
    p.merges = "\"h e\"";
    p.added = ADDED("257", "<\xef\xbd\x9c>", "true") "," ADDED("256", "he", "false") "," ADDED("258", "x y", "false");
    gdn_tokenizer *t = opened(p);
    ASSERT_ENCODES(t, "he<\xef\xbd\x9c>x y", true, 256, 257, 258);
    ASSERT_ENCODES(t, "he<\xef\xbd\x9c>", false, 256, '<', 0xef, 0xbd, 0x9c, '>');
    assert_int_equal(gdn_tokenizer_size(t), 259);
    assert_true(gdn_tokenizer_is_special(t, 257) && gdn_tokenizer_is_added(t, 256) &&
                !gdn_tokenizer_is_special(t, 256));
    assert_int_equal(gdn_tokenizer_find(t, "<\xef\xbd\x9c>", 5), 257);
    size_t n;
    assert_memory_equal(gdn_tokenizer_bytes(t, 257, &n), "<\xef\xbd\x9c>", 5);
    assert_memory_equal(gdn_tokenizer_bytes(t, 258, &n), "x y", 3);
    gdn_tokenizer_close(t);
}

/* Ids that are not in the order of the merges: the token after "aa" starts like what the next merge makes. */
static void test_order_of_ids(void **state)
{
    (void)state;
    parts p = common;
    p.vocab = ",\"aa\":256,\"abc\":257,\"ab\":258";
    p.merges = "\"a a\",\"a b\",\"ab c\"";
    p.added = "";
    gdn_tokenizer *t = opened(p);
    ASSERT_ENCODES(t, "aab abc", true, 256, 'b', ' ', 257);
    ASSERT_ENCODES(t, "abx", true, 258, 'x');
    gdn_tokenizer_close(t);
}

static void test_paths(void **state)
{
    (void)state;
    gdn_tokenizer *t = NULL;
    gdn_error      err;
    assert_int_equal(gdn_tokenizer_open(&t, "tests/no_such_file.json", &err), GDN_IO);
    assert_non_null(strstr(err.message, "no_such_file.json"));
    assert_int_equal(gdn_tokenizer_open(&t, "tests", &err), GDN_BAD_FILE);
    assert_int_equal(gdn_tokenizer_open(&t, "tests/unit/test_tokenizer_file.c", &err), GDN_BAD_FILE);
    assert_null(t);
    gdn_tokenizer_close(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_edits),
        cmocka_unit_test(test_rules_of_added_tokens),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_cut),
        cmocka_unit_test(test_depth),
        cmocka_unit_test(test_forms),
        cmocka_unit_test(test_added_in_vocabulary),
        cmocka_unit_test(test_order_of_ids),
        cmocka_unit_test(test_paths),
    };
    return cmocka_run_group_tests_name("tokenizer file", tests, NULL, NULL);
}
