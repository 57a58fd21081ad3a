/* base/status.h - filling a gdn_error. */
#ifndef GDN_BASE_STATUS_H
#define GDN_BASE_STATUS_H
#include "gdn/status.h"

/* Write the error, if one is wanted, and return `code`.  The message is cut to the field. */
__attribute__((format(printf, 4, 5))) gdn_status gdn_fail(gdn_error *err, gdn_status code, long long at,
                                                          const char *format, ...);

#endif
