// Products of matrices that lie in the cache.

#pragma once

#include "vectors.h"

enum Ending {
    SET,
    ADD,
    GELU,  // set the GELU of the sums
    KEEP,  // the same, and keep the sums
    SLOPE  // set the sums times the slope of the GELU at what was kept
};

// A few rows of a product with one panel of columns: a by rows, or with `across` by columns.
template <int high, Ending ending, bool across>
INLINE void tile(int inner, const float *a, long row_a, const float *b, long row_b, const float *bias, float *c, long row_c,
                 float *kept) {
    Vector sum[high][WIDE];
    UNROLL for (int i = 0; i < high; i++)
        UNROLL for (int j = 0; j < WIDE; j++) sum[i][j] = bias ? load(bias + j * LANES) : Vector{};
    for (int k = 0; k < inner; k++) {
        Vector column[WIDE];
        UNROLL for (int j = 0; j < WIDE; j++) column[j] = load(b + k * row_b + j * LANES);
        UNROLL for (int i = 0; i < high; i++) {
            Vector factor = all(across ? a[k * row_a + i] : a[i * row_a + k]);
            UNROLL for (int j = 0; j < WIDE; j++) sum[i][j] += factor * column[j];
        }
    }
    UNROLL for (int i = 0; i < high; i++)
        UNROLL for (int j = 0; j < WIDE; j++) {
            long at = i * row_c + j * LANES;
            Vector x = sum[i][j];
            if (ending == KEEP) store(kept + at, x);
            if (ending == SLOPE) x *= gelu_slope(load(kept + at));
            if (ending == ADD) x += load(c + at);
            if (ending == GELU || ending == KEEP) x = gelu(x);
            store(c + at, x);
        }
}

template <int high, Ending ending, bool across>
INLINE void tiles(int rows, int inner, const float *a, long row_a, const float *b, long row_b, const float *bias, float *c,
                  long row_c, float *kept) {
    if (rows >= high)
        tile<high, ending, across>(inner, a, row_a, b, row_b, bias, c, row_c, kept);
    else if constexpr (high > 1)
        tiles<high - 1, ending, across>(rows, inner, a, row_a, b, row_b, bias, c, row_c, kept);
}

// c = a b, or another ending. b lies in panels, each `inner` rows of PANEL columns. Rows of c have room for whole panels.
template <Ending ending>
static void product(int rows, int inner, int columns, const float *a, long row_a, const float *b, const float *bias, float *c,
                    long row_c, float *kept = nullptr) {
    for (int j = 0; j < columns; j += PANEL)
        for (int i = 0; i < rows; i += HIGH) {
            long at = i * row_c + j;
            tiles<HIGH, ending, false>(rows - i, inner, a + i * row_a, row_a, b + (long)j * inner, PANEL, bias ? bias + j : bias,
                                       c + at, row_c, kept ? kept + at : kept);
        }
}

// c += transposed a times b, all by rows: the gradient of weights, summed over tokens.
static void add_outer(int tokens, int rows, int columns, const float *a, long row_a, const float *b, long row_b, float *c,
                      long row_c) {
    for (int j = 0; j < columns; j += PANEL)
        for (int i = 0; i < rows; i += HIGH)
            tiles<HIGH, ADD, true>(rows - i, tokens, a + i, row_a, b + j, row_b, nullptr, c + i * row_c + j, row_c, nullptr);
}

static void add_rows(int rows, int columns, const float *a, long row_a, float *c) {
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < columns; j++) c[j] += a[i * row_a + j];
}
