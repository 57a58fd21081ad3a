#include "support/json.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char *json_load(const char *path)
{
    FILE *f = fopen(path, "rb");
    char *text = NULL;
    long  size;
    if (f && fseek(f, 0, SEEK_END) == 0 && (size = ftell(f)) >= 0 && fseek(f, 0, SEEK_SET) == 0) {
        text = malloc((size_t)size + 1);
        if (text && fread(text, 1, (size_t)size, f) == (size_t)size) {
            text[size] = 0;
        } else {
            free(text);
            text = NULL;
        }
    }
    if (f) fclose(f);
    if (!text) fprintf(stderr, "cannot read %s\n", path);
    return text;
}

static const char *skip_space(const char *p) { return p + strspn(p, " \t\r\n"); }

/* Past the string that begins at p; NULL if it does not end. */
static const char *skip_string(const char *p)
{
    if (*p != '"') return NULL;
    for (p++; *p && *p != '"'; p++)
        if (*p == '\\' && p[1]) p++;
    return *p ? p + 1 : NULL;
}

/* Past the value that begins at p: to the comma or bracket, at its own depth, that ends it. */
static const char *skip_value(const char *p)
{
    int depth = 0;
    while (p && *p) {
        if (*p == '"') {
            p = skip_string(p);
            continue;
        }
        if (depth == 0 && strchr(",]}", *p)) return p;
        if (*p == '[' || *p == '{') depth++;
        if (*p == ']' || *p == '}') depth--;
        p++;
    }
    return NULL;
}

/* The value of the key name[0..n) in the object at p. */
static const char *member(const char *p, const char *name, size_t n)
{
    if (*p != '{') return NULL;
    p = skip_space(p + 1);
    while (*p == '"') {
        const char *key = p + 1, *end = skip_string(p);
        if (!end) return NULL;
        p = skip_space(end);
        if (*p != ':') return NULL;
        p = skip_space(p + 1);
        if ((size_t)(end - 1 - key) == n && !memcmp(key, name, n)) return p;
        p = skip_value(p);
        if (!p || *p != ',') return NULL;
        p = skip_space(p + 1);
    }
    return NULL;
}

double *json_numbers(const char *text, const char *name, size_t *count)
{
    const char *p = skip_space(text);
    *count = 0;
    for (;;) {
        const size_t n = strcspn(name, ".");
        p = member(p, name, n);
        if (!p) return NULL;
        if (!name[n]) break;
        name += n + 1;
    }
    const char *end = skip_value(p);
    if (!end) return NULL;
    double *numbers = malloc(((size_t)(end - p) / 2 + 1) * sizeof *numbers); /* a number and its comma: 2 characters */
    const int array = *p == '[';
    size_t    n = 0;
    if (array) p = skip_space(p + 1);
    while (numbers) {
        char *after;
        numbers[n] = strtod(p, &after);
        if (after == p) break;
        n++;
        p = skip_space(after);
        if (!array || *p != ',') break;
        p = skip_space(p + 1);
    }
    if (n == 0 || (array ? *p != ']' : p != end)) {
        free(numbers);
        return NULL;
    }
    *count = n;
    return numbers;
}
