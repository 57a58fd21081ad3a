/* The bound of the tile unit: products of whole tiles, registers only. */
#include "cli/limits.h"
#include <immintrin.h>
#include <stdint.h>
#include <string.h>

enum { TILES = 8, TILE_ROWS = 16, TILE_BYTES = 64 };

typedef struct tile_config {
    uint8_t  palette, start_row, reserved[14];
    uint16_t column_bytes[16];
    uint8_t  rows[16];
} tile_config;

/* Six independent sums: more than latency over throughput of the unit, and with the two factors all tiles there are. */
void gdn_tiles_amx(long n)
{
    tile_config config = {.palette = 1};
    uint16_t    numbers[TILE_ROWS * TILE_BYTES / 2];
    for (int i = 0; i < TILES; i++) {
        config.rows[i] = TILE_ROWS;
        config.column_bytes[i] = TILE_BYTES;
    }
    for (int i = 0; i < TILE_ROWS * TILE_BYTES / 2; i++) numbers[i] = (uint16_t)(0x3a80 + i % 128); /* about 1e-3 */
    __asm__ volatile(""
                     :
                     : "r"(&config), "r"(numbers)
                     : "memory"); /* GCC 12 does not see that the instructions read them */
    _tile_loadconfig(&config);
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    _tile_zero(4);
    _tile_zero(5);
    _tile_loadd(6, numbers, TILE_BYTES);
    _tile_loadd(7, numbers, TILE_BYTES);
    for (; n > 0; n--) {
        _tile_dpbf16ps(0, 6, 7);
        _tile_dpbf16ps(1, 6, 7);
        _tile_dpbf16ps(2, 6, 7);
        _tile_dpbf16ps(3, 6, 7);
        _tile_dpbf16ps(4, 6, 7);
        _tile_dpbf16ps(5, 6, 7);
    }
    _tile_release();
}
