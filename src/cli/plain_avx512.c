#define PLAIN_NAME gdn_plain_avx512
#include "cli/plain_text.h"
