#include "cli/cli.h"
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#ifndef GDN_DEMO_DIR
#define GDN_DEMO_DIR "/usr/local/share/gdn/demo"
#endif

/* ---- the demo model ------------------------------------------------------------------------------------------------ */

static bool has_config(const char *folder)
{
    gdn_path path;
    return gdn_path_is_folder(folder) && !gdn_model_path(&path, folder, "config.json", NULL) &&
           gdn_path_exists(path.text);
}

/* Beside the folder that this program was built in; empty if that cannot be said. */
static void beside_program(gdn_path *path)
{
    char *program = realpath("/proc/self/exe", NULL);
    char *slash = program ? strrchr(program, '/') : NULL;
    path->text[0] = 0;
    if (slash) {
        *slash = 0;
        int n = snprintf(path->text, sizeof path->text, "%s/../models/demo", program);
        if (n < 0 || (size_t)n >= sizeof path->text) path->text[0] = 0;
    }
    free(program);
}

static int find_demo(gdn_path *model, const char *verb)
{
    gdn_path beside;
    beside_program(&beside);
    const char *const places[] = {"models/demo", beside.text, GDN_DEMO_DIR};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        if (!has_config(places[i])) continue;
        snprintf(model->text, sizeof model->text, "%s", places[i]);
        return GDN_EXIT_OK;
    }
    return gdn_cli_fail(GDN_EXIT_FAILED, verb,
                        "the demo model is neither in ./models/demo nor in %s; name a model, or run 'make install'",
                        GDN_DEMO_DIR);
}

/* ---- the Hugging Face cache ---------------------------------------------------------------------------------------- */

/* How well an id fits what the user wrote. */
typedef enum fit { FIT_NOT, FIT_PART, FIT_NAME, FIT_WHOLE } fit;

static fit fit_of(const char *id, const char *wanted)
{
    const char *slash = strchr(id, '/');
    if (!strcasecmp(id, wanted)) return FIT_WHOLE;
    if (slash && !strcasecmp(slash + 1, wanted)) return FIT_NAME;
    return strcasestr(id, wanted) ? FIT_PART : FIT_NOT;
}

/* The models that fit best. */
typedef struct search {
    const char *wanted;
    fit         best;
    int         n;
    char        folder[NAME_MAX + 1]; /* of the last one */
    char        ids[512];             /* of all, as far as there is room */
} search;

/* Take note of a folder "models--Qwen--Qwen3.5-0.8B". */
static void consider(search *s, const char *folder)
{
    static const char prefix[] = "models--";
    char              id[NAME_MAX + 1];
    if (strncmp(folder, prefix, sizeof prefix - 1) != 0) return;
    snprintf(id, sizeof id, "%s", folder + sizeof prefix - 1);
    char *joint = strstr(id, "--");
    if (joint) {
        *joint = '/';
        memmove(joint + 1, joint + 2, strlen(joint + 2) + 1);
    }
    fit f = fit_of(id, s->wanted);
    if (f == FIT_NOT || f < s->best) return;
    if (f > s->best) s->n = 0;
    if (!s->n) s->ids[0] = 0;
    s->best = f;
    size_t length = strlen(s->ids);
    snprintf(s->ids + length, sizeof s->ids - length, "%s%s", s->n++ ? ", " : "", id);
    snprintf(s->folder, sizeof s->folder, "%s", folder);
}

/* Where the Hugging Face tools keep what they download: as they do, ask these variables in this order. */
static bool cache_folder(gdn_path *hub)
{
    static const struct {
        const char *variable, *below;
    } places[] = {{"HF_HUB_CACHE", ""},
                  {"HF_HOME", "/hub"},
                  {"XDG_CACHE_HOME", "/huggingface/hub"},
                  {"HOME", "/.cache/huggingface/hub"}};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        const char *folder = getenv(places[i].variable);
        if (!folder || !*folder) continue;
        const int n = snprintf(hub->text, sizeof hub->text, "%s%s", folder, places[i].below);
        return n > 0 && (size_t)n < sizeof hub->text;
    }
    return false;
}

/* Append "/NAME"; false if it does not fit. */
static bool append(gdn_path *path, const char *name)
{
    size_t length = strlen(path->text), n = strlen(name);
    if (length + 1 + n >= sizeof path->text) return false;
    path->text[length] = '/';
    memcpy(path->text + length + 1, name, n + 1);
    return true;
}

/* Make path, a repository's folder, the snapshot that its refs/main names, if that is there. */
static bool main_snapshot(gdn_path *path)
{
    const size_t length = strlen(path->text);
    char         commit[NAME_MAX + 1] = "";
    FILE        *f = append(path, "refs/main") ? fopen(path->text, "r") : NULL;
    path->text[length] = 0;
    if (!f) return false;
    const bool found = fgets(commit, sizeof commit, f) != NULL;
    fclose(f);
    commit[strcspn(commit, " \r\n")] = 0;
    if (found && *commit && *commit != '.' && !strchr(commit, '/') && append(path, "snapshots") &&
        append(path, commit) && gdn_path_is_folder(path->text))
        return true;
    path->text[length] = 0;
    return false;
}

/* Make path, a folder of snapshots, the newest of them; of equally new ones the last by name. */
static bool newest_snapshot(gdn_path *path)
{
    char            name[NAME_MAX + 1] = "";
    struct timespec newest = {0};
    DIR            *dir = opendir(path->text);
    if (!dir) return false;
    for (struct dirent *entry; (entry = readdir(dir));) {
        struct stat st;
        if (entry->d_name[0] == '.' || fstatat(dirfd(dir), entry->d_name, &st, 0) || !S_ISDIR(st.st_mode)) continue;
        const long long seconds = (long long)st.st_mtim.tv_sec - newest.tv_sec;
        const long long order = seconds ? seconds : (long long)st.st_mtim.tv_nsec - newest.tv_nsec;
        if (*name && (order < 0 || (!order && strcmp(entry->d_name, name) < 0))) continue;
        newest = st.st_mtim;
        snprintf(name, sizeof name, "%s", entry->d_name);
    }
    closedir(dir);
    return *name && append(path, name);
}

static int find_in_cache(gdn_path *model, const char *verb, const char *name)
{
    search s = {.wanted = name};
    DIR   *dir = cache_folder(model) ? opendir(model->text) : NULL;
    if (!dir) {
        return gdn_cli_fail(GDN_EXIT_FAILED, verb,
                            "there is no folder '%s', and no Hugging Face cache to look in; give the folder of a model",
                            name);
    }
    for (struct dirent *entry; (entry = readdir(dir));) consider(&s, entry->d_name);
    closedir(dir);
    if (!s.n) {
        return gdn_cli_fail(GDN_EXIT_FAILED, verb,
                            "there is no folder '%s', and no model of this name in %s; give the folder of a model",
                            name, model->text);
    }
    if (s.n > 1)
        return gdn_cli_fail(GDN_EXIT_FAILED, verb, "'%s' fits %d models, %s; write more of it", name, s.n, s.ids);
    const bool fits = append(model, s.folder);
    if (fits && main_snapshot(model)) return GDN_EXIT_OK;
    if (!fits || !append(model, "snapshots") || !newest_snapshot(model)) {
        return gdn_cli_fail(GDN_EXIT_FAILED, verb, "%s has no snapshot of %s; download the model again", model->text,
                            s.ids);
    }
    return GDN_EXIT_OK;
}

int gdn_cli_find_model(gdn_path *model, const char *verb, const char *name)
{
    if (!name) return find_demo(model, verb);
    if (!*name) return gdn_cli_fail(GDN_EXIT_FAILED, verb, "the name of the model is empty; give its folder or id");
    if (!gdn_path_exists(name)) return find_in_cache(model, verb, name);
    const char *end = gdn_path_is_folder(name) ? name + strlen(name) : gdn_path_name(name);
    size_t      n = (size_t)(end - name);
    while (n > 1 && name[n - 1] == '/') n--;
    if (n >= sizeof model->text) return gdn_cli_fail(GDN_EXIT_FAILED, verb, "the path %.100s... is too long", name);
    memcpy(model->text, n ? name : ".", n ? n : 1);
    model->text[n ? n : 1] = 0;
    return GDN_EXIT_OK;
}
