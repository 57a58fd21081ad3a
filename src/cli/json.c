#include "cli/json.h"
#include "cli/cli.h"
#include "text/tokenizer_nfc.h"
#include <stdio.h>
#include <stdlib.h>

json_t *gdn_json_piece(const gdn_tokenizer *tokenizer, int32_t id)
{
    size_t      n;
    bool        broken;
    const char *bytes = gdn_tokenizer_bytes(tokenizer, id, &n);
    gdn_text    repaired = {0};
    if (!bytes) bytes = "";
    if (!gdn_text_repair(&repaired, bytes, n, &broken)) return NULL;
    json_t *piece = broken ? json_pack("{s:i,s:s%}", "id", (int)id, "piece", repaired.bytes, repaired.n)
                           : json_pack("{s:i,s:s%}", "id", (int)id, "piece", bytes, n);
    free(repaired.bytes);
    if (broken) {
        json_t *list = json_array();
        for (size_t i = 0; i < n; i++) json_array_append_new(list, json_integer((unsigned char)bytes[i]));
        json_object_set_new(piece, "bytes", list);
    }
    return piece;
}

int gdn_json_print(const char *verb, json_t *value, const char *end)
{
    char *line = value ? json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(7)) : NULL;
    json_decref(value);
    if (!line) return gdn_cli_fail(GDN_EXIT_FAILED, verb, "no memory for the output");
    printf("%s%s", line, end);
    free(line);
    return GDN_EXIT_OK;
}
