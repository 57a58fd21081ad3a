#include "cli/cli.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

int gdn_cli_read(gdn_text *text, const char *verb, const char *file)
{
    char        chunk[16384];
    size_t      n;
    const bool  is_input = !file || !strcmp(file, "-");
    const char *name = is_input ? "standard input" : file;
    FILE       *f = is_input ? stdin : fopen(file, "rb");
    if (!f)
        return gdn_cli_fail(GDN_EXIT_FAILED, verb, "%s cannot be opened: %s; check the path", name, strerror(errno));
    int status = GDN_EXIT_OK;
    errno = 0;
    while (!status && (n = fread(chunk, 1, sizeof chunk, f)))
        if (!gdn_text_append(text, chunk, n))
            status = gdn_cli_fail(GDN_EXIT_FAILED, verb, "no memory for the bytes of %s; split it", name);
    if (!status && ferror(f))
        status = gdn_cli_fail(GDN_EXIT_FAILED, verb, "%s cannot be read: %s", name, strerror(errno));
    if (f != stdin) fclose(f);
    return status;
}
