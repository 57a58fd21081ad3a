#include "kernel/simd/vec_neon.h"

#include "kernel/simd/conv_silu.h"
#include "kernel/simd/delta.h"
#include "kernel/simd/gated_norm.h"
#include "kernel/simd/gates.h"
#include "kernel/simd/qk_norm.h"
