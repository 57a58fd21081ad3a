/* text/template.h - a checkpoint's chat template: the part of Jinja that chat templates use, rendered byte for byte as
 * jinja2 does with the settings of transformers (trim_blocks, lstrip_blocks, an immutable sandbox, break and continue,
 * tojson without HTML escapes, raise_exception, strftime_now, generation blocks).
 *
 * Not there, and refused by name: extends, include, import, block, autoescape; the filters filesizeformat, pprint, random,
 * striptags, urlencode, urlize, wordwrap, xmlattr; integers beyond 64 bits; whatever would print a memory address.  Not
 * reproduced: what jinja2 makes of some constant expressions before it runs them (-1 ** x is -(1 ** x), a slice of a constant
 * number is undefined). */
#ifndef GDN_TEXT_TEMPLATE_H
#define GDN_TEXT_TEMPLATE_H
#include "base/status.h"
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

typedef struct gdn_template gdn_template;

/* Bounds of one rendering; a field of 0 takes the default.  A template that passes one is refused, so that a hostile
 * one can neither hang nor take all memory. */
typedef struct gdn_template_limits {
    size_t   max_text_bytes;   /* of the result and of any string on the way to it; 64 MiB */
    size_t   max_memory_bytes; /* 512 MiB */
    uint64_t max_steps;        /* evaluated nodes, and bytes moved by 16; 100 million, about two seconds */
    int      max_depth;        /* of macro calls, expressions and nested values, all together; 800 */
} gdn_template_limits;

/* What a rendering reads; borrowed for the call, and never written. */
typedef struct gdn_template_input {
    const json_t       *vars;      /* an object: messages, tools, add_generation_prompt, enable_thinking, ... */
    const char *const  *trusted;   /* names of top-level string variables whose text counts as the template's, such as
                                    * bos_token; may be NULL */
    int                 n_trusted; /* how many */
    const struct tm    *now;       /* what strftime_now prints; NULL: a template that calls it is refused */
    gdn_template_limits limits;
} gdn_template_input;

/* Bytes offset .. offset+n_bytes-1 of a text.  `trusted`: the template wrote them; otherwise they came, if only by a
 * detour through filters or JSON, out of a variable. */
typedef struct gdn_text_span {
    size_t offset, n_bytes;
    bool   trusted;
} gdn_text_span;

/* A rendered conversation.  The spans cover the text in order, neighbours differing in `trusted`.  Only a special token
 * that lies inside one trusted span is a control token; they mean nothing else, and ordinary text is tokenised across
 * their borders. */
typedef struct gdn_rendered {
    char          *text; /* UTF-8, ends with a NUL that n_bytes does not count; may hold others */
    size_t         n_bytes;
    gdn_text_span *spans;
    size_t         n_spans;
} gdn_rendered;

/* Parse n bytes of template source, at most 1 MiB.  The template keeps no reference to them, does not change afterwards, and
 * may be rendered by several threads at once.  BAD_FILE: the source is not valid; UNSUPPORTED: it uses what is not
 * there; `at` is the line.  Free with gdn_template_close. */
gdn_status gdn_template_open(gdn_template **out, const char *source, size_t n, gdn_error *err);
void       gdn_template_close(gdn_template *t); /* NULL is allowed */

/* Render into *out, to be freed with gdn_rendered_free; it is all zero after a failure.  `at` is the line of the template.
 * BAD_ARGUMENT: the template refuses its input, by raise_exception (the message ends with the template's own words) or by
 * an operation that fails in Python too; UNSUPPORTED: it needs what is not there; BAD_FILE: it passes max_steps or
 * max_depth; NO_MEMORY: it passes another limit, or there is no memory.  With the default depth it takes less than 256 KiB
 * of stack. */
gdn_status gdn_template_render(const gdn_template *t, const gdn_template_input *input, gdn_rendered *out,
                               gdn_error *err);
void       gdn_rendered_free(gdn_rendered *rendered); /* idempotent */

#endif
