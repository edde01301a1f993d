// A block's weights: as parameters, folded for products, and their gradients.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <vector>

#include "vectors.h"

// The parameters of `layers.Block`, matrices output by input; or their gradients. Without ReZero there is no `scale`.
struct Parameters {
    float *in_weight, *in_bias, *out_weight, *out_bias, *widen_weight, *widen_bias, *narrow_weight, *narrow_bias, *scale;
};

// A block's weights, ready for products: matrices in panels, ReZero scalar and scale of the scores multiplied in. Scores are
// logarithms to base 2. A bias of the keys changes no softmax; one of the values is part of that of the output. Matrices with
// `back` are for gradients. `slopes` may be null: by them the keys' positions change the scores of each head.
struct Weights {
    int d, heads, ff;
    const float *slopes;
    float *query, *query_bias, *rest, *out, *out_bias, *widen, *widen_bias, *narrow, *narrow_bias;
    float *query_back, *rest_back, *out_back, *widen_back, *narrow_back;
};

// Segment s has the tokens `token[starts[s]] .. token[starts[s + 1] - 1]`; without `token`, these numbers themselves. If
// only some tokens attend to others and go on, `query_starts`, `query_token` and, for their rows in the output, `query_row`.
struct Layout {
    int segments, tokens, queries;
    const int *starts, *token, *query_starts, *query_token, *query_row;
    const float *positions;  // by token; or null
};

static int padded(int columns) { return (columns + PANEL - 1) / PANEL * PANEL; }

// The length of a row of so many columns: whole panels, and a bit more so that rows do not compete for places in the cache.
static int stride(int columns) { return padded(columns) + 16; }

// Memory that is dealt out; without any, it is only counted.
struct Room {
    float *data;
    size_t used = 0;
    float *take(size_t count) {
        float *here = data ? data + used : nullptr;
        used += (count + 15) / 16 * 16;
        return here;
    }
};

// Gradients of folded matrices, output by input, in rows of `stride`.
struct Sums {
    float *query, *query_bias, *rest, *out, *out_bias, *widen, *widen_bias, *narrow, *narrow_bias;
    Sums(const Weights &w, Room &room) {
        size_t d = w.d, ff = w.ff, D = stride(w.d), F = stride(w.ff);
        query = room.take(d * D), query_bias = room.take(D), rest = room.take(2 * d * D);
        out = room.take(d * D), out_bias = room.take(D);
        widen = room.take(ff * D), widen_bias = room.take(F), narrow = room.take(d * F), narrow_bias = room.take(D);
    }
};

// What gradients need, in the order of the segments, in rows of `stride`.
struct Kept {
    float *x, *asking, *query, *rest, *mixed, *logs, *middle, *hidden;
    Kept(const Weights &w, const Layout &layout, Room &room) {
        size_t n = layout.tokens, m = layout.queries, D = stride(w.d);
        x = room.take(n * D), asking = layout.query_starts ? room.take(m * D) : x, query = room.take(m * D);
        rest = room.take(n * stride(2 * w.d)), mixed = room.take(m * D), logs = room.take(m * w.heads);
        middle = room.take(m * D), hidden = room.take(m * stride(w.ff));
    }
};

// A matrix that multiplies rows from the right, times a factor, in panels.
static void pack(int inner, int columns, const float *from, float factor, float *to) {
    for (int panel = 0; panel < columns; panel += PANEL)
        for (int k = 0; k < inner; k++, to += PANEL) {
            int width = std::min(PANEL, columns - panel);
            for (int j = 0; j < width; j++) to[j] = from[(long)k * columns + panel + j] * factor;
            for (int j = width; j < PANEL; j++) to[j] = 0;
        }
}

// The same for a transposed matrix, as parameters are.
static void pack_transposed(int inner, int columns, const float *from, float factor, float *to) {
    for (int panel = 0; panel < columns; panel += PANEL, to += (long)inner * PANEL)
        for (int j = 0; j < PANEL; j++)
            for (int k = 0; k < inner; k++)
                to[(long)k * PANEL + j] = panel + j < columns ? from[(long)(panel + j) * inner + k] * factor : 0;
}

static void pack_vector(int columns, const float *from, float factor, float *to) {
    for (int j = 0; j < padded(columns); j++) to[j] = j < columns ? from[j] * factor : 0;
}

static float score_factor(const Weights &w) { return 1.44269504f / __builtin_sqrtf((float)(w.d / w.heads)); }

static void take_weights(Weights &w, Room &room, bool back) {
    size_t d = w.d, ff = w.ff, D = padded(w.d), F = padded(w.ff);
    w.query = room.take(d * D), w.query_bias = room.take(D), w.rest = room.take(d * padded(2 * w.d));
    w.out = room.take(d * D), w.out_bias = room.take(D);
    w.widen = room.take(d * F), w.widen_bias = room.take(F), w.narrow = room.take(ff * D), w.narrow_bias = room.take(D);
    if (!back) return;
    w.query_back = room.take(d * D), w.rest_back = room.take(2 * d * D), w.out_back = room.take(d * D);
    w.widen_back = room.take(ff * D), w.narrow_back = room.take(d * F);
}

static void fold(Weights &w, const Parameters &p, bool back) {
    int d = w.d, ff = w.ff;
    float factor = score_factor(w), scale = p.scale ? *p.scale : 1;
    const float *rest = p.in_weight + (long)d * d, *value_bias = p.in_bias + 2 * d;
    pack_transposed(d, d, p.in_weight, factor, w.query), pack_vector(d, p.in_bias, factor, w.query_bias);
    pack_transposed(d, 2 * d, rest, 1, w.rest);
    pack_transposed(d, d, p.out_weight, scale, w.out);
    std::vector<float> bias(d);
    for (int i = 0; i < d; i++) {
        bias[i] = p.out_bias[i];
        for (int j = 0; j < d; j++) bias[i] += p.out_weight[(long)i * d + j] * value_bias[j];
    }
    pack_vector(d, bias.data(), scale, w.out_bias);
    pack_transposed(d, ff, p.widen_weight, 1, w.widen), pack_vector(ff, p.widen_bias, 1, w.widen_bias);
    pack_transposed(ff, d, p.narrow_weight, scale, w.narrow), pack_vector(d, p.narrow_bias, scale, w.narrow_bias);
    if (!back) return;
    pack(d, d, p.in_weight, factor, w.query_back), pack(2 * d, d, rest, 1, w.rest_back);
    pack(d, d, p.out_weight, scale, w.out_back);
    pack(ff, d, p.widen_weight, 1, w.widen_back), pack(d, ff, p.narrow_weight, scale, w.narrow_back);
}

static void unpack(int rows, int columns, const float *from, float factor, float *to) {
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < columns; j++) to[(long)i * columns + j] = from[(long)i * stride(columns) + j] * factor;
}

// The sum of the products of the gradient's elements and the matrix's.
static float inner_product(int rows, int columns, const float *gradient, const float *matrix) {
    float total = 0;
    for (int i = 0; i < rows; i++) {
        Vector parts{};
        int j = 0;
        for (; j + LANES <= columns; j += LANES) parts += load(gradient + j) * load(matrix + j);
        for (; j < columns; j++) total += gradient[j] * matrix[j];
        for (int lane = 0; lane < LANES; lane++) total += parts[lane];
        gradient += stride(columns), matrix += columns;
    }
    return total;
}

// The gradients of the parameters, from those of the folded matrices.
static void unfold(const Weights &w, const Parameters &p, const Sums &sums, const Parameters &to) {
    int d = w.d, ff = w.ff;
    float factor = score_factor(w), scale = p.scale ? *p.scale : 1;
    const float *value_bias = p.in_bias + 2 * d;
    float *of_value_bias = to.in_bias + 2 * d;
    unpack(d, d, sums.query, factor, to.in_weight), unpack(2 * d, d, sums.rest, 1, to.in_weight + (long)d * d);
    unpack(d, d, sums.out, scale, to.out_weight);
    unpack(ff, d, sums.widen, 1, to.widen_weight), unpack(d, ff, sums.narrow, scale, to.narrow_weight);
    float of_scale = inner_product(d, d, sums.out, p.out_weight) + inner_product(d, ff, sums.narrow, p.narrow_weight);
    memset(to.in_bias + d, 0, 2 * d * sizeof(float));
    for (int i = 0; i < d; i++) {
        float gradient = sums.out_bias[i], bias = p.out_bias[i];
        for (int j = 0; j < d; j++) {
            float weight = p.out_weight[(long)i * d + j];
            bias += weight * value_bias[j];
            of_value_bias[j] += weight * gradient * scale;
            to.out_weight[(long)i * d + j] += gradient * value_bias[j] * scale;
        }
        of_scale += gradient * bias + sums.narrow_bias[i] * p.narrow_bias[i];
        to.in_bias[i] = sums.query_bias[i] * factor;
        to.out_bias[i] = gradient * scale;
        to.narrow_bias[i] = sums.narrow_bias[i] * scale;
    }
    memcpy(to.widen_bias, sums.widen_bias, ff * sizeof(float));
    if (to.scale) *to.scale = of_scale;
}
