#define PLAIN_NAME gdn_plain_avx2
#include "cli/plain_text.h"
