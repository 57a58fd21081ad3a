/* The bound of the tile unit: products of whole tiles, registers only. */
#include "cli/limits.h"
#include <immintrin.h>
#include <stdint.h>
#include <string.h>

enum { TILES = 8, TILE_ROWS = 16, TILE_BYTES = 64, TILE_NUMBERS = TILE_ROWS * TILE_BYTES / 2 };

typedef struct tile_config {
    uint8_t  palette, start_row, reserved[14];
    uint16_t column_bytes[16];
    uint8_t  rows[16];
} tile_config;

/* Four independent sums, more than latency over throughput of the unit, of two by two factors: all tiles there are.  Numbers are as
 * random as those of a model: with numbers that hardly change less is switched, and the clock stays higher. */
void gdn_tiles_amx(long n)
{
    enum { FACTORS = 4 };
    tile_config config = {.palette = 1};
    uint16_t    numbers[FACTORS][TILE_NUMBERS];
    for (int i = 0; i < TILES; i++) {
        config.rows[i] = TILE_ROWS;
        config.column_bytes[i] = TILE_BYTES;
    }
    for (uint32_t i = 0; i < FACTORS * TILE_NUMBERS; i++)
        numbers[i / TILE_NUMBERS][i % TILE_NUMBERS] =
            (uint16_t)(0x3f00 | ((i + 1) * 2654435761u >> 16 & 0x80ff)); /* 0.5 to 2, of either sign */
    __asm__ volatile(""
                     :
                     : "r"(&config), "r"(numbers)
                     : "memory"); /* GCC 12 does not see that the instructions read them */
    _tile_loadconfig(&config);
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    _tile_loadd(4, numbers[0], TILE_BYTES);
    _tile_loadd(5, numbers[1], TILE_BYTES);
    _tile_loadd(6, numbers[2], TILE_BYTES);
    _tile_loadd(7, numbers[3], TILE_BYTES);
    for (; n > 0; n--) {
        _tile_dpbf16ps(0, 4, 6);
        _tile_dpbf16ps(1, 4, 7);
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
    }
    _tile_release();
}
