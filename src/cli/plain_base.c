#define PLAIN_NAME gdn_plain_base
#include "cli/plain_text.h"
