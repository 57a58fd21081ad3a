#include "base/status.h"
#include <stdarg.h>
#include <stdio.h>

const char *gdn_status_name(gdn_status status)
{
    switch (status) {
#define X(name, value, text) \
    case GDN_##name: return #name;
        GDN_STATUS_LIST(X)
#undef X
    }
    return "UNKNOWN";
}

const char *gdn_status_text(gdn_status status)
{
    switch (status) {
#define X(name, value, text) \
    case GDN_##name: return text;
        GDN_STATUS_LIST(X)
#undef X
    }
    return "unknown status";
}

gdn_status gdn_fail(gdn_error *err, gdn_status code, long long at, const char *format, ...)
{
    if (err) {
        va_list ap;
        va_start(ap, format);
        err->code = code;
        err->at = at;
        vsnprintf(err->message, sizeof err->message, format, ap);
        va_end(ap);
    }
    return code;
}
