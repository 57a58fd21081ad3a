#define PLAIN_NAME gdn_plain_neon
#include "cli/plain_text.h"
