/* Safetensors files, whole and damaged: what is read, and the sentence for each kind of damage. */
#include "unit/files.h"
#include "base/half.h"
#include "format/image.h"
#include "format/safetensors.h"
#include <math.h>
#include <sys/stat.h>

static gdn_tensors set;

/* ---- what is read -------------------------------------------------------------------------------------------------- */

static void reads_a_file(void **unused)
{
    (void)unused;
    const uint8_t data[] = {0, 0, 0x80, 0x3f, 0x40, 0xc0, 0, 0x3c, 1, 0, 0, 0, 0x20, 0xc1, 7};
    store_image("a.safetensors",
                " {\"__metadata__\":{\"format\":\"pt\",\"\\u00e9\":{\"x\":[1,null]}},"
                "\"b.weight\" : {\"dtype\":\"BF16\",\"shape\":[3, 1],\"data_offsets\":[0,6]},"
                "\"a\\u0041\\\"\":{\"shape\":[2],\"data_offsets\":[6,10],\"dtype\":\"F16\"},"
                "\"s\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[10,14]},"
                "\"e\":{\"dtype\":\"I64\",\"shape\":[4,0],\"data_offsets\":[14,14]},"
                "\"z\":{\"dtype\":\"F4\",\"shape\":[2],\"data_offsets\":[14,15]}} \n ",
                data, sizeof data);
    ACCEPTED(gdn_tensors_open(&set, in_folder("a.safetensors"), &err));
    assert_int_equal(set.n, 5);
    assert_string_equal(set.source, "a.safetensors");
    for (size_t i = 1; i < set.n; i++) assert_true(strcmp(set.all[i - 1].name, set.all[i].name) < 0);

    const gdn_tensor *t = gdn_tensors_find(&set, "b.weight");
    assert_non_null(t);
    assert_string_equal(t->file, "a.safetensors");
    assert_int_equal(t->type, GDN_TENSOR_BF16);
    assert_int_equal(t->n_dims, 2);
    assert_int_equal(t->shape[0], 3);
    assert_int_equal(t->shape[1], 1);
    assert_int_equal(t->n_bytes, 6);
    assert_memory_equal(t->data, data, 6);
    float values[3];
    ACCEPTED(gdn_tensor_to_f32(values, t, 0, 3, &err));
    assert_true(values[0] == 0 && values[1] == 1 && values[2] == -3);

    t = gdn_tensors_find(&set, "aA\"");
    assert_non_null(t);
    ACCEPTED(gdn_tensor_to_f32(values, t, 0, 2, &err));
    assert_true(values[0] == 1 && values[1] == 0x1p-24f);
    uint16_t halves[2];
    ACCEPTED(gdn_tensor_to_bf16(halves, t, 1, 1, &err));
    assert_int_equal(halves[0], 0x3380);
    assert_int_equal(gdn_tensor_to_bf16(halves, t, 1, 2, NULL), GDN_BAD_ARGUMENT);
    assert_int_equal(gdn_tensor_to_bf16(halves, t, SIZE_MAX, 2, NULL), GDN_BAD_ARGUMENT);

    t = gdn_tensors_find(&set, "s");
    assert_int_equal(gdn_tensor_elements(t), 1);
    ACCEPTED(gdn_tensor_to_f32(values, t, 0, 1, &err));
    assert_true(values[0] == -10);
    ACCEPTED(gdn_tensor_to_bf16(halves, t, 0, 1, &err));
    assert_int_equal(halves[0], 0xc120);

    t = gdn_tensors_find(&set, "e");
    assert_int_equal(gdn_tensor_elements(t), 0);
    REFUSED(gdn_tensor_to_f32(values, t, 0, 0, &err), GDN_UNSUPPORTED,
            "a.safetensors: tensor e has type I64; gdn computes with BF16, F16 and F32");
    assert_null(gdn_tensors_find(&set, "b"));
    assert_null(gdn_tensors_find(&set, "zz"));
    for (size_t i = 0; i < set.n; i++) {
        gdn_tensor_expect(&set.all[i]);
        gdn_tensor_release(&set.all[i]);
    }
    assert_memory_equal(gdn_tensors_find(&set, "b.weight")->data, data, 6);
    gdn_tensors_close(&set);
    gdn_tensors_close(&set);
    assert_null(gdn_tensors_find(&set, "s"));
}

/* Every half against its definition, sign (-1)^s, 2^(e-15) * 1.m; and back from f32 over halfway cases. */
static void converts_halves(void **unused)
{
    (void)unused;
    for (uint32_t h = 0; h < 65536; h++) {
        const int    e = (int)(h >> 10 & 31), m = (int)(h & 1023);
        const double magnitude = e == 31 ? (m ? NAN : INFINITY) : e ? ldexp(1024 + m, e - 25) : ldexp(m, -24);
        const double want = h & 0x8000 ? -magnitude : magnitude;
        const float  got = gdn_f32_of_f16((uint16_t)h), copy = gdn_f32_of_bf16((uint16_t)h);
        if (isnan(want)) assert_true(isnan(got));
        else assert_true((double)got == want && !signbit(got) == !signbit(want));
        if (isnan(copy)) assert_true(isnan(gdn_f32_of_bf16(gdn_bf16_of_f32(copy))));
        else assert_int_equal(gdn_bf16_of_f32(copy), h);
        if (isinf(copy) || isnan(copy) || isinf(gdn_f32_of_bf16((uint16_t)(h + 1)))) continue;
        /* halfway to the next of the same sign goes to the even one, a little more or less to the nearer */
        const float half = (float)(((double)copy + (double)gdn_f32_of_bf16((uint16_t)(h + 1))) / 2);
        if (h == 0x7fff || h == 0xffff) continue;
        assert_int_equal(gdn_bf16_of_f32(half), h & 1 ? h + 1 : h);
        assert_int_equal(gdn_bf16_of_f32(nextafterf(half, copy)), h);
        assert_int_equal(gdn_bf16_of_f32(nextafterf(half, h & 0x8000 ? -INFINITY : INFINITY)), h + 1);
    }
    assert_int_equal(gdn_bf16_of_f32(3.4e38f), 0x7f80); /* beyond the largest bf16: infinity */
}

static void writes_shapes(void **unused)
{
    (void)unused;
    char text[16];
    gdn_shape_text(text, sizeof text, NULL, 0);
    assert_string_equal(text, "[]");
    gdn_shape_text(text, sizeof text, (uint64_t[]){12, 3}, 2);
    assert_string_equal(text, "[12, 3]");
    gdn_shape_text(text, sizeof text, (uint64_t[]){123456789, 987654321, 5}, 3);
    assert_string_equal(text, "[123456789, 987");
}

/* ---- damage of one file -------------------------------------------------------------------------------------------- */

static const uint8_t zeros[64];

/* Two tensors of 8 and 4 bytes; the header is changed as told. */
static const char good[] = "{\"x\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
                           "\"y\":{\"dtype\":\"BF16\",\"shape\":[1,2],\"data_offsets\":[8,12]}}";

static const struct damage {
    const char *old, *new;
    size_t      n_data;
    const char *sentence;
} damages[] = {
    {"[8,12]", "[8,12]", 11,
     "m.safetensors is truncated: tensor y ends at byte 12 of the data, which has 11; get the file again"},
    {"[8,12]", "[8,12]", 14,
     "m.safetensors: the data from byte 12 to its end at 14 belongs to no tensor; get the file again"},
    {"[0,8]", "[8,0]", 12, "m.safetensors: tensor x ends at byte 0 before it begins at 8"},
    {"[8,12]", "[6,10]", 12, "m.safetensors: the data of tensors x and y overlap at byte 6"},
    {"[8,12]", "[0,4]", 12, "m.safetensors: the data of tensors y and x overlap at byte 0"},
    {"[8,12]", "[9,13]", 13,
     "m.safetensors: the data from byte 8 to 9, before tensor y, belongs to no tensor; get the file again"},
    {"[0,8]", "[4,12]", 12,
     "m.safetensors: the data from byte 0 to 4, before tensor x, belongs to no tensor; get the file again"},
    {"[8,12]", "[8,18446744073709551615]", 12,
     "m.safetensors is truncated: tensor y ends at byte 18446744073709551615 of the data, which has 12; get the file "
     "again"},
    {"[8,12]", "[8,18446744073709551616]", 12,
     "m.safetensors: the header is damaged at byte 133, where a number below 2^64 should stand; get the file again"},
    {"[8,12]", "[8]", 12,
     "m.safetensors: the header is damaged at byte 114, where two offsets should stand; get the file again"},
    {"[8,12]", "[8,12,13]", 12,
     "m.safetensors: the header is damaged at byte 117, where the end of two offsets should stand; get the file again"},
    {"\"y\":", "\"x\":", 12, "m.safetensors: the header has tensor x twice"},
    {"\"BF16\"", "\"Q4_K\"", 12, "m.safetensors: tensor y has type 'Q4_K', which the safetensors format does not have"},
    {"[2]", "[3]", 12, "m.safetensors: tensor x has 8 bytes; its shape [3] with F32 takes 12"},
    {"[2]", "[-2]", 12,
     "m.safetensors: the header is damaged at byte 37, where a whole number, 0 or more should stand; get the file "
     "again"},
    {"[2]", "[2.0]", 12,
     "m.safetensors: the header is damaged at byte 38, where a whole number should stand; get the file again"},
    {"[2]", "[02]", 12,
     "m.safetensors: the header is damaged at byte 39, where a number without leading zeros should stand; get the file "
     "again"},
    {"[2]", "[4294967296,4294967296]", 12,
     "m.safetensors: tensor x cannot have the shape [4294967296, 4294967296] with type F32"},
    {"[1,2]", "[1,1,1,1,1,1,1,1,2]", 12, "m.safetensors: tensor y has more than 8 dimensions"},
    {"\"F32\",\"shape\":[2]", "\"F4\",\"shape\":[3]", 12,
     "m.safetensors: tensor x cannot have the shape [3] with type F4"},
    {"\"shape\":[2],", "", 12, "m.safetensors: the entry of tensor x has no shape"},
    {"\"shape\":[2]", "\"shape\":[2],\"shape\":[2]", 12,
     "m.safetensors: the entry of tensor x has the key 'shape' twice; it has dtype, shape and data_offsets, each once"},
    {"\"shape\":[2]", "\"scale\":[2]", 12,
     "m.safetensors: the entry of tensor x has the key 'scale' of another format; it has dtype, shape and "
     "data_offsets, each once"},
    {"{\"x\"", "[\"x\"", 12,
     "m.safetensors: the header is damaged at byte 8, where an object should stand; get the file again"},
    {"\"x\"", "\"x\\u00e9\"", 12,
     "m.safetensors: the header is damaged at byte 17, where a name of printable ASCII characters should stand; get "
     "the file again"},
    {"\"x\"", "\"x\x1b[2J\"", 12,
     "m.safetensors: the header is damaged at byte 12, where a name of printable ASCII characters should stand; get "
     "the file again"},
    {"[8,12]}}", "[8,12]}", 12,
     "m.safetensors: the header is damaged at byte 118, where a comma or a closing brace should stand; get the file "
     "again"},
    {"[8,12]}}", "[8,12]}}{", 12,
     "m.safetensors: the header is damaged at byte 119, where nothing more should stand; get the file again"},
    {"{\"x\"", "{\"__metadata__\":[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[0]]]],\"x\"", 12,
     "m.safetensors: the header is damaged at byte 56, where fewer values inside one another should stand; get the "
     "file again"},
};

static void refuses_damaged_headers(void **unused)
{
    (void)unused;
    store_image("m.safetensors", good, zeros, 12);
    ACCEPTED(gdn_tensors_open(&set, in_folder("m.safetensors"), &err));
    gdn_tensors_close(&set);
    for (size_t i = 0; i < sizeof damages / sizeof *damages; i++) {
        char *header = replaced(good, damages[i].old, damages[i].new);
        store_image("m.safetensors", header, zeros, damages[i].n_data);
        free(header);
        REFUSED(gdn_tensors_open(&set, in_folder("m.safetensors"), &err), GDN_BAD_FILE, damages[i].sentence);
        assert_int_equal(set.n, 0);
    }
}

/* Every prefix of a file is refused, and nothing outside it is read (the sanitizers look). */
static void refuses_every_cut(void **unused)
{
    (void)unused;
    size_t n;
    store_image("m.safetensors", good, zeros, 12);
    char *bytes = load(in_folder("m.safetensors"), &n);
    for (size_t cut = 0; cut < n; cut++) {
        char *part = malloc(cut ? cut : 1);
        assert_non_null(part);
        memcpy(part, bytes, cut);
        assert_int_equal(gdn_tensors_parse(&set, "m", part, cut, &err), GDN_BAD_FILE);
        free(part);
    }
    free(bytes);
    store("m.safetensors", "", 0);
    REFUSED(gdn_tensors_open(&set, in_folder("m.safetensors"), &err), GDN_BAD_FILE,
            "m.safetensors is empty; get the file again");
    store("m.safetensors", "\1\0\0\0\0", 5);
    REFUSED(gdn_tensors_open(&set, in_folder("m.safetensors"), &err), GDN_BAD_FILE,
            "m.safetensors has only 5 bytes; get the file again");
    store("m.safetensors", "\xff\xff\xff\xff\xff\xff\xff\xff{}", 10);
    REFUSED(gdn_tensors_open(&set, in_folder("m.safetensors"), &err), GDN_BAD_FILE,
            "m.safetensors has 10 bytes and a header of 18446744073709551615: it is truncated or not a safetensors "
            "file; get it again");
}

/* A header beyond the limit is refused before it is looked at: a sparse file. */
static void refuses_huge_headers(void **unused)
{
    (void)unused;
    const uint64_t n_header = 100000001;
    store("m.safetensors", &n_header, sizeof n_header);
    assert_int_equal(truncate(in_folder("m.safetensors"), 200000000), 0);
    REFUSED(gdn_tensors_open(&set, in_folder("m.safetensors"), &err), GDN_BAD_FILE,
            "m.safetensors has a header of 100000001 bytes; at most 100000000 are allowed");
}

/* ---- folders and shards -------------------------------------------------------------------------------------------- */

#define INDEX "model.safetensors.index.json"
#define FIRST "model-00001-of-00002.safetensors"
#define SECOND "model-00002-of-00002.safetensors"

static const char first[] = "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}";
static const char second[] = "{\"b\":{\"dtype\":\"BF16\",\"shape\":[1],\"data_offsets\":[0,2]},"
                             "\"c\":{\"dtype\":\"BF16\",\"shape\":[2],\"data_offsets\":[2,6]}}";
static const char index_text[] =
    "{\"metadata\":{\"total_size\":14},\"weight_map\":{\"a\":\"" FIRST "\",\"c\":\"" SECOND "\",\"b\":\"" SECOND "\"}}";

static void store_shards(void)
{
    const uint8_t numbers[] = {1, 2, 3, 4, 5, 6, 7, 8};
    store_image(FIRST, first, numbers, 8);
    store_image(SECOND, second, numbers, 6);
    store_text(INDEX, index_text);
}

static void reads_shards(void **unused)
{
    (void)unused;
    store_shards();
    ACCEPTED(gdn_tensors_open(&set, folder, &err));
    assert_int_equal(set.n, 3);
    assert_int_equal(set.n_files, 2);
    assert_string_equal(set.source, INDEX);
    assert_string_equal(gdn_tensors_find(&set, "a")->file, FIRST);
    assert_string_equal(gdn_tensors_find(&set, "c")->file, SECOND);
    assert_memory_equal(gdn_tensors_find(&set, "c")->data, ((uint8_t[]){3, 4, 5, 6}), 4);
    gdn_tensors_close(&set);
}

static void refuses_wrong_indexes(void **unused)
{
    (void)unused;
    static const struct {
        const char *old, *new, *sentence;
    } wrong[] = {
        {FIRST, "../" FIRST,
         INDEX ": tensor a is said to be in '../" FIRST
               "', which is not the name of a .safetensors file in this folder"},
        {FIRST, "/etc/" FIRST,
         INDEX ": tensor a is said to be in '/etc/" FIRST
               "', which is not the name of a .safetensors file in this folder"},
        {FIRST, "passwd",
         INDEX ": tensor a is said to be in 'passwd', which is not the name of a .safetensors file in this folder"},
        {FIRST, ".safetensors",
         INDEX
         ": tensor a is said to be in '.safetensors', which is not the name of a .safetensors file in this folder"},
        {FIRST, "model-3.safetensors",
         INDEX ": the shard model-3.safetensors, which should hold tensor a, is not in the folder; download it"},
        {FIRST, SECOND, INDEX ": tensor a should be in " SECOND ", which does not have it"},
        {"\"c\":\"" SECOND, "\"c\":\"" FIRST, INDEX ": tensor c should be in " FIRST " but is in " SECOND},
        {"\"c\":", "\"d\":", INDEX ": tensor d should be in " SECOND ", which does not have it"},
        {"\"c\":", "\"b\":", INDEX ": tensor b stands there twice"},
        {"weight_map", "weight_mop", INDEX " has no tensor in its weight_map; get the file again"},
        {"{\"a\"", "[\"a\"", INDEX " is damaged at byte 43, where an object should stand; get the file again"},
        {"\"" FIRST "\"", "7", INDEX " is damaged at byte 48, where a string should stand; get the file again"},
        {"\"metadata\":{\"total_size\":14}", "\"weight_map\":{\"a\":\"" FIRST "\"}",
         INDEX " has two weight_maps; get it again"},
    };
    store_shards();
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char *text = replaced(index_text, wrong[i].old, wrong[i].new);
        store_text(INDEX, text);
        free(text);
        REFUSED(gdn_tensors_open(&set, folder, &err), GDN_BAD_FILE, wrong[i].sentence);
    }
    store(INDEX, index_text, 60);
    REFUSED(gdn_tensors_open(&set, folder, &err), GDN_BAD_FILE,
            INDEX " is damaged at byte 60, where the end of a string should stand; get the file again");
}

static void refuses_wrong_shards(void **unused)
{
    (void)unused;
    store_shards();
    forget(SECOND);
    REFUSED(gdn_tensors_open(&set, folder, &err), GDN_BAD_FILE,
            INDEX ": the shard " SECOND ", which should hold tensor b, is not in the folder; download it");
    char *twice = replaced(second, "\"c\"", "\"a\"");
    store_image(SECOND, twice, zeros, 6);
    free(twice);
    REFUSED(gdn_tensors_open(&set, folder, &err), GDN_BAD_FILE,
            "tensor a is in " FIRST " and again in " SECOND "; it must be in one file");
    store_image(SECOND, second, zeros, 5);
    REFUSED(gdn_tensors_open(&set, folder, &err), GDN_BAD_FILE,
            SECOND " is truncated: tensor c ends at byte 6 of the data, which has 5; get the file again");
    forget(SECOND);
    assert_int_equal(mkdir(in_folder(SECOND), 0700), 0);
    assert_int_equal(gdn_tensors_open(&set, folder, NULL), GDN_BAD_FILE);
    assert_int_equal(rmdir(in_folder(SECOND)), 0);
}

/* model.safetensors goes before an index; a folder with neither is no model. */
static void chooses_the_file(void **unused)
{
    (void)unused;
    store_shards();
    store_image("model.safetensors", first, zeros, 8);
    ACCEPTED(gdn_tensors_open(&set, folder, &err));
    assert_string_equal(set.source, "model.safetensors");
    assert_int_equal(set.n, 1);
    gdn_tensors_close(&set);
    forget("model.safetensors");
    forget(INDEX);
    char sentence[240];
    snprintf(sentence, sizeof sentence,
             "%s has no model.safetensors and no " INDEX "; name the folder of a Hugging Face checkpoint", folder);
    REFUSED(gdn_tensors_open(&set, folder, &err), GDN_IO, sentence);
    assert_int_equal(gdn_tensors_open(&set, in_folder("nowhere"), &err), GDN_IO);
}

/* Three thousand tensors, as the largest single headers have. */
static void reads_many_tensors(void **unused)
{
    (void)unused;
    enum { N = 3000, ENTRY = 160 };
    char *header = malloc(N * ENTRY), *end = header;
    assert_non_null(header);
    for (int i = 0; i < N; i++)
        end += snprintf(end, ENTRY,
                        "%c\"model.language_model.layers.%d.mlp.experts.%d.up_proj.weight\":{\"dtype\":\"BF16\","
                        "\"shape\":[1,1],\"data_offsets\":[%d,%d]}",
                        i ? ',' : '{', i % 60, i, 2 * i, 2 * i + 2);
    snprintf(end, 2, "}");
    uint16_t data[N];
    for (int i = 0; i < N; i++) data[i] = (uint16_t)i;
    store_image("model.safetensors", header, data, sizeof data);
    free(header);
    ACCEPTED(gdn_tensors_open(&set, folder, &err));
    assert_int_equal(set.n, N);
    for (int i = 0; i < N; i++) {
        char name[96];
        snprintf(name, sizeof name, "model.language_model.layers.%d.mlp.experts.%d.up_proj.weight", i % 60, i);
        const gdn_tensor *t = gdn_tensors_find(&set, name);
        assert_non_null(t);
        assert_memory_equal(t->data, &data[i], 2);
    }
    gdn_tensors_close(&set);
    forget("model.safetensors");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_a_file),         cmocka_unit_test(converts_halves),
        cmocka_unit_test(writes_shapes),        cmocka_unit_test(refuses_damaged_headers),
        cmocka_unit_test(refuses_every_cut),    cmocka_unit_test(refuses_huge_headers),
        cmocka_unit_test(reads_shards),         cmocka_unit_test(refuses_wrong_indexes),
        cmocka_unit_test(refuses_wrong_shards), cmocka_unit_test(chooses_the_file),
        cmocka_unit_test(reads_many_tensors),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
