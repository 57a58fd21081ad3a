/* json.h - reads arrays of numbers out of a small trusted JSON file (the recordings in tests/golden). */
#ifndef TESTS_SUPPORT_JSON_H
#define TESTS_SUPPORT_JSON_H
#include <stddef.h>

/* The whole file as a string, to free with free; NULL with a line on stderr if it cannot be read. */
char *json_load(const char *path);

/* The numbers at `name`, keys joined by dots ("prefill.q"): an array of numbers, or a lone number as an array of one.
 * Returns them, to free with free, and their count; NULL and 0 if there is no such entry or it holds anything else. */
double *json_numbers(const char *text, const char *name, size_t *count);

#endif
