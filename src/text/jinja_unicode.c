/* Characters, with Python's classes and case mappings over utf8proc's tables. */
#include "text/jinja.h"
#include <string.h>
#include <utf8proc.h>

/* ---- UTF-8 --------------------------------------------------------------------------------------------------------- */

uint32_t gdn_jinja_char(const char *bytes, size_t *i)
{
    const unsigned char *b = (const unsigned char *)bytes + *i;
    const int            n = b[0] < 0x80 ? 1 : b[0] < 0xE0 ? 2 : b[0] < 0xF0 ? 3 : 4;
    uint32_t             c = n == 1 ? b[0] : b[0] & (0x7Fu >> n);
    for (int k = 1; k < n; k++) c = c << 6 | (b[k] & 0x3F);
    *i += (size_t)n;
    return c;
}

size_t gdn_jinja_char_before(const char *bytes, size_t i)
{
    do i--;
    while (((unsigned char)bytes[i] & 0xC0) == 0x80);
    return i;
}

size_t gdn_jinja_encode(uint32_t c, char *bytes)
{
    return (size_t)utf8proc_encode_char((utf8proc_int32_t)c, (utf8proc_uint8_t *)bytes);
}

size_t gdn_jinja_count(const char *bytes, size_t n)
{
    size_t n_chars = 0;
    for (size_t i = 0; i < n; i++) n_chars += ((unsigned char)bytes[i] & 0xC0) != 0x80;
    return n_chars;
}

size_t gdn_jinja_offset(const jinja_string *string, size_t n_chars)
{
    if (string->n == string->n_chars) return n_chars;
    size_t i = 0;
    while (n_chars-- > 0) gdn_jinja_char(string->bytes, &i);
    return i;
}

bool gdn_jinja_is_utf8(const char *bytes, size_t n, size_t *at)
{
    for (*at = 0; *at < n;) {
        utf8proc_int32_t       c;
        const utf8proc_ssize_t length =
            utf8proc_iterate((const utf8proc_uint8_t *)bytes + *at, (utf8proc_ssize_t)(n - *at), &c);
        if (length <= 0) return false;
        *at += (size_t)length;
    }
    return true;
}

/* ---- classes ------------------------------------------------------------------------------------------------------- */

static utf8proc_category_t category(uint32_t c) { return utf8proc_category((utf8proc_int32_t)c); }

bool gdn_jinja_is_space(uint32_t c)
{
    if (c < 0x80) return (c >= 9 && c <= 13) || (c >= 28 && c <= 32);
    return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 ||
           c == 0x202F || c == 0x205F || c == 0x3000;
}

bool gdn_jinja_is_alpha(uint32_t c)
{
    const utf8proc_category_t k = category(c);
    return k >= UTF8PROC_CATEGORY_LU && k <= UTF8PROC_CATEGORY_LO;
}

bool gdn_jinja_is_digit(uint32_t c) { return category(c) == UTF8PROC_CATEGORY_ND; }

bool gdn_jinja_is_alnum(uint32_t c)
{
    const utf8proc_category_t k = category(c);
    return gdn_jinja_is_alpha(c) || (k >= UTF8PROC_CATEGORY_ND && k <= UTF8PROC_CATEGORY_NO);
}

bool gdn_jinja_is_mark(uint32_t c)
{
    const utf8proc_category_t k = category(c);
    return (k >= UTF8PROC_CATEGORY_MN && k <= UTF8PROC_CATEGORY_ME) || k == UTF8PROC_CATEGORY_PC;
}

static uint32_t simple_upper(uint32_t c) { return (uint32_t)utf8proc_toupper((utf8proc_int32_t)c); }
static uint32_t simple_lower(uint32_t c) { return (uint32_t)utf8proc_tolower((utf8proc_int32_t)c); }
static uint32_t simple_title(uint32_t c) { return (uint32_t)utf8proc_totitle((utf8proc_int32_t)c); }

typedef struct range {
    uint32_t first, last;
} range;

static bool in_ranges(const range *ranges, size_t n, uint32_t c)
{
    for (size_t i = 0; i < n; i++)
        if (c >= ranges[i].first && c <= ranges[i].last) return true;
    return false;
}

bool gdn_jinja_is_upper(uint32_t c)
{
    static const range others[] = {{0x1F130, 0x1F149}, {0x1F150, 0x1F169}, {0x1F170, 0x1F189}}; /* Other_Uppercase */
    return category(c) == UTF8PROC_CATEGORY_LU || (simple_lower(c) != c && !gdn_jinja_is_title(c)) ||
           in_ranges(others, sizeof others / sizeof others[0], c);
}

bool gdn_jinja_is_lower(uint32_t c)
{
    static const range others[] = {{0xAA, 0xAA},      {0xBA, 0xBA},       {0x2B0, 0x2B8},     {0x2C0, 0x2C1},
                                   {0x2E0, 0x2E4},    {0x37A, 0x37A},     {0x1D2C, 0x1D6A},   {0x1D78, 0x1D78},
                                   {0x1D9B, 0x1DBF},  {0x2071, 0x2071},   {0x207F, 0x207F},   {0x2090, 0x209C},
                                   {0x2C7C, 0x2C7D},  {0xA69C, 0xA69D},   {0xA770, 0xA770},   {0xA7F8, 0xA7F9},
                                   {0xAB5C, 0xAB5F},  {0x10780, 0x10780}, {0x10783, 0x10785}, {0x10787, 0x107B0},
                                   {0x107B2, 0x107BA}}; /* Other_Lowercase */
    return category(c) == UTF8PROC_CATEGORY_LL || (simple_upper(c) != c && !gdn_jinja_is_title(c)) ||
           in_ranges(others, sizeof others / sizeof others[0], c);
}

/* isdigit(): decimal digits, and others that stand for a digit. */
bool gdn_jinja_is_any_digit(uint32_t c)
{
    static const range others[] = {{0xB2, 0xB3},       {0xB9, 0xB9},       {0x1369, 0x1371},   {0x19DA, 0x19DA},
                                   {0x2070, 0x2070},   {0x2074, 0x2079},   {0x2080, 0x2089},   {0x2460, 0x2468},
                                   {0x2474, 0x247C},   {0x2488, 0x2490},   {0x24EA, 0x24EA},   {0x24F5, 0x24FD},
                                   {0x24FF, 0x24FF},   {0x2776, 0x277E},   {0x2780, 0x2788},   {0x278A, 0x2792},
                                   {0x10A40, 0x10A43}, {0x10E60, 0x10E68}, {0x11052, 0x1105A}, {0x1F100, 0x1F10A}};
    return gdn_jinja_is_digit(c) || in_ranges(others, sizeof others / sizeof others[0], c);
}

bool gdn_jinja_is_title(uint32_t c) { return category(c) == UTF8PROC_CATEGORY_LT; }

bool gdn_jinja_is_printable(uint32_t c)
{
    switch (category(c)) {
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP: return false;
    case UTF8PROC_CATEGORY_ZS: return c == ' ';
    default: return true;
    }
}

/* ---- case ---------------------------------------------------------------------------------------------------------- */

enum { MAX_MAPPED = 4, SIGMA = 0x3A3, FINAL_SIGMA = 0x3C2, IOTA = 0x3B9, IOTA_SUBSCRIPT = 0x345, DOTTED_I = 0x130 };

static bool is_cased(uint32_t c) { return gdn_jinja_is_upper(c) || gdn_jinja_is_lower(c) || gdn_jinja_is_title(c); }

/* The mappings of one character to several are not in utf8proc's tables, but they are the mappings of its case folding,
 * which is.  Returns its length; 1 where a character maps to one. */
static int fold(uint32_t c, utf8proc_int32_t folded[MAX_MAPPED])
{
    int last = UTF8PROC_BOUNDCLASS_START;
    if (category(c) == UTF8PROC_CATEGORY_LU) return 1;
    return (int)utf8proc_decompose_char((utf8proc_int32_t)c, folded, MAX_MAPPED, UTF8PROC_CASEFOLD, &last);
}

static int upper(uint32_t c, uint32_t mapped[MAX_MAPPED])
{
    utf8proc_int32_t folded[MAX_MAPPED];
    const int        n = fold(c, folded);
    if (n < 2 || n > MAX_MAPPED) {
        mapped[0] = simple_upper(c);
        return 1;
    }
    for (int i = 0; i < n; i++) mapped[i] = simple_upper((uint32_t)folded[i]);
    return n;
}

static int title(uint32_t c, uint32_t mapped[MAX_MAPPED])
{
    utf8proc_int32_t folded[MAX_MAPPED];
    const int        n = fold(c, folded);
    if (n < 2 || n > MAX_MAPPED || gdn_jinja_is_title(simple_title(c))) {
        mapped[0] = simple_title(c);
        return 1;
    }
    bool raised = false; /* the first letter that has an upper case takes it */
    for (int i = 0; i < n; i++) {
        mapped[i] = raised ? (uint32_t)folded[i] : simple_upper((uint32_t)folded[i]);
        if (raised && mapped[i] == IOTA) mapped[i] = IOTA_SUBSCRIPT;
        raised = raised || mapped[i] != (uint32_t)folded[i];
    }
    return n;
}

/* Characters that case looks through: marks, format characters, modifiers, and what may stand inside a word. */
static bool is_case_ignorable(uint32_t c)
{
    static const uint16_t inside_words[] = {0x27,   0x2E,   0x3A,   0xB7,   0x387,  0x55F,  0x5F4,  0x2018, 0x2019,
                                            0x2024, 0x2027, 0xFE13, 0xFE52, 0xFE55, 0xFF07, 0xFF0E, 0xFF1A};
    for (size_t i = 0; i < sizeof inside_words / sizeof inside_words[0]; i++)
        if (inside_words[i] == c) return true;
    switch (category(c)) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_SK: return true;
    default: return false;
    }
}

/* Whether the sigma at `start`, which ends at `end`, ends a word. */
static bool is_final(const jinja_string *s, size_t from, size_t start, size_t end, size_t to)
{
    uint32_t c = ' ';
    while (start > from) {
        size_t i = start = gdn_jinja_char_before(s->bytes, start);
        c = gdn_jinja_char(s->bytes, &i);
        if (!is_case_ignorable(c)) break;
    }
    if (!is_cased(c) || is_case_ignorable(c)) return false;
    c = ' ';
    while (end < to) {
        c = gdn_jinja_char(s->bytes, &end);
        if (!is_case_ignorable(c)) break;
    }
    return !is_cased(c) || is_case_ignorable(c);
}

static int lower(const jinja_string *s, size_t from, size_t start, size_t end, size_t to, uint32_t mapped[MAX_MAPPED])
{
    size_t         i = start;
    const uint32_t c = gdn_jinja_char(s->bytes, &i);
    mapped[0] = c == SIGMA && is_final(s, from, start, end, to) ? FINAL_SIGMA : simple_lower(c);
    if (c != DOTTED_I) return 1;
    mapped[0] = 'i';
    mapped[1] = 0x307;
    return 2;
}

bool gdn_jinja_put_case(jinja_run *run, jinja_text *text, const jinja_string *s, size_t from, size_t to, jinja_case how)
{
    bool after_cased = false;
    if (!gdn_jinja_charge(run, to - from)) return false;
    for (size_t start = from, end = from; start < to; start = end) {
        const uint32_t c = gdn_jinja_char(s->bytes, &end);
        uint32_t       mapped[MAX_MAPPED];
        int            n;
        if (how == JINJA_UPPER || (how == JINJA_SWAPCASE && gdn_jinja_is_lower(c))) n = upper(c, mapped);
        else if ((how == JINJA_CAPITALIZE && start == from) || (how == JINJA_TITLE && !after_cased))
            n = title(c, mapped);
        else if (how != JINJA_SWAPCASE || gdn_jinja_is_upper(c)) n = lower(s, from, start, end, to, mapped);
        else mapped[0] = c, n = 1;
        after_cased = is_cased(c);
        const uint8_t mark = gdn_jinja_mark_at(s, start);
        for (int k = 0; k < n; k++) {
            char bytes[4];
            if (!gdn_jinja_put(run, text, bytes, gdn_jinja_encode(mapped[k], bytes), mark)) return false;
        }
    }
    return true;
}
