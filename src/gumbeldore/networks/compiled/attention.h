// One head's attention within one segment, and its gradient. Nothing is stored but the means: scores stay in registers.

#pragma once

#include "lanes.h"

constexpr float LEAST = 1e-15f, MOST = 1e30f;  // sums of weights between have lost no precision
constexpr float LN2 = 0.69314718f;

// Calls for 0 .. count - 1, four at a time as far as possible; how many is known to the compiler.
template <int n>
struct Count {
    constexpr operator int() const { return n; }
};

template <class Call>
INLINE void by_fours(int count, Call call) {
    int k = 0;
    for (; k + 4 <= count; k += 4) call(Count<4>{}, k);
    if (count & 2) call(Count<2>{}, k), k += 2;
    if (count & 1) call(Count<1>{}, k);
}

// LANES queries over some keys. Scores are logarithms to base 2; `shift` is subtracted from them.
template <int size, int keys>
INLINE void some_scores(const Vector *query, const float *key, long row, const float *bias, Vector shift, Vector *score) {
    UNROLL for (int j = 0; j < keys; j++) score[j] = (bias ? all(bias[j]) : Vector{}) - shift;
    CHANNELS UNROLL for (int j = 0; j < keys; j++) score[j] += query[c] * key[j * row + c];
}

template <int size, int keys>
INLINE void mix_some(const Vector *query, const float *key, const float *value, long row, const float *bias, Vector shift,
                     Vector &total, Vector *mixed) {
    Vector weight[keys];
    some_scores<size, keys>(query, key, row, bias, shift, weight);
    UNROLL for (int j = 0; j < keys; j++) weight[j] = power(weight[j]);
    UNROLL for (int j = 0; j < keys; j++) total += weight[j];
    CHANNELS UNROLL for (int j = 0; j < keys; j++) mixed[c] += weight[j] * value[j * row + c];
}

template <int size>
INLINE void mix(int keys, const Vector *query, const float *key, const float *value, long row, const float *bias, Vector shift,
                Vector &total, Vector *result) {
    Vector mixed[size];
    total = Vector{};
    CHANNELS mixed[c] = Vector{};
    auto some = [&](auto count, int k) {
        mix_some<size, count>(query, key + k * row, value + k * row, row, bias ? bias + k : bias, shift, total, mixed);
    };
    by_fours(keys, some);
    CHANNELS result[c] = mixed[c];
}

// One head of one segment: the mean of the values, and for each query the logarithm of the sum of its weights.
template <int size>
static void attend(int queries, int keys, const float *query, long row_q, const float *key, const float *value, long row,
                   const float *bias, float *out, long row_o, float *logs, long row_l) {
    for (int q = 0; q < queries; q += LANES) {
        int count = std::min(LANES, queries - q);
        Vector lanes[size], mixed[size], total, shift{};
        to_lanes<size>(count, query + q * row_q, row_q, lanes);
        mix<size>(keys, lanes, key, value, row, bias, shift, total, mixed);
        Integers safe = (total > LEAST) & (total < MOST);
        int lost = 0;
        for (int i = 0; i < LANES; i++) lost |= ~safe[i];
        if (lost) {  // the same with the largest score taken away first
            shift = all(-1e30f);
            for (int k = 0; k < keys; k++) {
                Vector score;
                some_scores<size, 1>(lanes, key + k * row, row, bias ? bias + k : bias, Vector{}, &score);
                shift = score > shift ? score : shift;
            }
            mix<size>(keys, lanes, key, value, row, bias, shift, total, mixed);
        }
        Vector share = 1 / total;
        CHANNELS mixed[c] *= share;
        from_lanes<size>(count, mixed, out + q * row_o, row_o);
        if (logs)
            for (int i = 0; i < count; i++) logs[(q + i) * row_l] = shift[i] + __builtin_log2f(total[i]);
    }
}

// For LANES queries and a few keys: weights, the gradients of scores, and what these add to the gradient of the queries.
template <int size, int keys>
INLINE void score_back(const Vector *query, const Vector *gradient, const float *key, const float *value, long row,
                       const float *score, Vector less, Vector mean, Vector *weight, Vector *of_score, Vector *of_query) {
    Vector w[keys], g[keys];
    UNROLL for (int j = 0; j < keys; j++) w[j] = score[j] - less, g[j] = -mean;
    CHANNELS UNROLL for (int j = 0; j < keys; j++) {
        w[j] += query[c] * key[j * row + c];
        g[j] += gradient[c] * value[j * row + c];
    }
    UNROLL for (int j = 0; j < keys; j++) weight[j] = w[j] = power(w[j]), of_score[j] = g[j] *= w[j] * LN2;
    CHANNELS UNROLL for (int j = 0; j < keys; j++) of_query[c] += g[j] * key[j * row + c];
}

// sum[c] += the rows' channel c, each times its vector.
template <int size>
INLINE void add_rows_times(int rows, const float *from, long row, const Vector *factor, Vector *sum) {
    Vector total[size];
    CHANNELS total[c] = sum[c];
    for (int i = 0; i < rows; i++) CHANNELS total[c] += factor[i] * from[i * row + c];
    CHANNELS sum[c] = total[c];
}

// The gradients of queries, keys and values, given that of `attend`'s means. `score` are the keys' biases; `less` and `mean`
// hold, by query, the logarithm of its weights' sum, and the product of its mean and that mean's gradient. Weights are computed
// with queries as lanes, and transposed for the keys. `room`: 3 * size numbers for each query, and LANES queries more.
template <int size>
static void attend_back(int queries, int keys, const float *query, long row_q, const float *key, const float *value, long row,
                        const float *gradient, const float *score, const float *less, const float *mean, float *of_query,
                        float *of_key, float *of_value, float *room) {
    Vector *lanes = (Vector *)room;
    for (int q = 0; q < queries; q += LANES) {
        Vector *here = lanes + q / LANES * 3 * size;
        int count = std::min(LANES, queries - q);
        to_lanes<size>(count, query + q * row_q, row_q, here);
        to_lanes<size>(count, gradient + q * row_q, row_q, here + size);
        CHANNELS here[2 * size + c] = Vector{};
    }
    for (int k = 0; k < keys; k += LANES) {
        Vector of_keys[size]{}, of_values[size]{};
        int count = std::min(LANES, keys - k);
        for (int q = 0; q < queries; q += LANES) {
            Vector *here = lanes + q / LANES * 3 * size, weight[LANES]{}, of_score[LANES]{}, total[size];
            CHANNELS total[c] = here[2 * size + c];
            Vector l = load(less + q), m = load(mean + q);
            by_fours(count, [&](auto some, int j) {
                score_back<size, some>(here, here + size, key + (k + j) * row, value + (k + j) * row, row, score + k + j, l, m,
                                       weight + j, of_score + j, total);
            });
            CHANNELS here[2 * size + c] = total[c];
            transpose<LANES>(weight), transpose<LANES>(of_score);
            int asking = std::min(LANES, queries - q);
            add_rows_times<size>(asking, gradient + q * row_q, row_q, weight, of_values);
            add_rows_times<size>(asking, query + q * row_q, row_q, of_score, of_keys);
        }
        from_lanes<size>(count, of_keys, of_key + k * row, row);
        from_lanes<size>(count, of_values, of_value + k * row, row);
    }
    for (int q = 0; q < queries; q += LANES)
        from_lanes<size>(std::min(LANES, queries - q), lanes + q / LANES * 3 * size + 2 * size, of_query + q * row_q, row_q);
}

#define WITH_SIZE(size, call) \
    switch (size) { \
        case 4: { constexpr int SIZE = 4; call; break; } \
        case 8: { constexpr int SIZE = 8; call; break; } \
        case 16: { constexpr int SIZE = 16; call; break; } \
        case 32: { constexpr int SIZE = 32; call; break; } \
    }
