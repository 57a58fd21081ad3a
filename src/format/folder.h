/* format/folder.h - the files of a model. */
#ifndef GDN_FORMAT_FOLDER_H
#define GDN_FORMAT_FOLDER_H
#include "base/status.h"
#include <limits.h>
#include <stdbool.h>

typedef struct gdn_path {
    char text[PATH_MAX];
} gdn_path;

/* The path of file `name` of a model, which is given as its folder or as one of the files in it.  IO: it would be too long. */
gdn_status gdn_model_path(gdn_path *path, const char *model, const char *name, gdn_error *err);

bool gdn_path_is_folder(const char *path);
bool gdn_path_exists(const char *path);

const char *gdn_path_name(const char *path); /* what follows the last slash */

#endif
