#include "format/folder.h"
#include "base/status.h"
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool gdn_path_is_folder(const char *path)
{
    struct stat st;
    return !stat(path, &st) && S_ISDIR(st.st_mode);
}

bool gdn_path_exists(const char *path) { return access(path, F_OK) == 0; }

const char *gdn_path_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

gdn_status gdn_model_path(gdn_path *path, const char *model, const char *name, gdn_error *err)
{
    const bool   folder = gdn_path_is_folder(model);
    const size_t n_model = folder ? strlen(model) : (size_t)(gdn_path_name(model) - model);
    const char  *joint = folder && n_model && model[n_model - 1] != '/' ? "/" : "";
    const size_t length = n_model + strlen(joint) + strlen(name);
    if (length >= sizeof path->text)
        return gdn_fail(err, GDN_IO, 0, "the path %.100s... is too long; use a shorter one", model);
    snprintf(path->text, sizeof path->text, "%.*s%s%s", (int)n_model, model, joint, name);
    return GDN_OK;
}
