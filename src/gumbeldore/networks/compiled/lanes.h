// Rows of matrices as lanes of vectors, and back.

#pragma once

#include <algorithm>
#include <cstring>
#include <utility>

#include "vectors.h"

#define CHANNELS UNROLL for (int c = 0; c < size; c++)

// Lanes of two vectors by a rule that the compiler knows: `Rule::from(lane)` counts on from the first one to the second.
#if defined(__clang__)
template <class Rule, int... lane>
INLINE Vector pick(Vector a, Vector b, std::integer_sequence<int, lane...>) {
    return __builtin_shufflevector(a, b, Rule::from(lane)...);
}
#else
template <class Rule, int... lane>
INLINE Vector pick(Vector a, Vector b, std::integer_sequence<int, lane...>) {
    return __builtin_shuffle(a, b, Integers{Rule::from(lane)...});
}
#endif
template <class Rule>
INLINE Vector pick(Vector a, Vector b) {
    return pick<Rule>(a, b, std::make_integer_sequence<int, LANES>{});
}

template <int width>  // the first lanes of both
struct Joined {
    static constexpr int from(int lane) { return lane % (2 * width) < width ? lane % width : LANES + lane % width; }
};
template <int width, bool second>  // half of a transposition: lanes and vectors that are `width` apart change places
struct Crossed {
    static constexpr int from(int lane) {
        return (lane & width) == 0 ? (second ? lane + width : lane) : LANES + (second ? lane : lane - width);
    }
};

// Square blocks of lanes of so many vectors, transposed.
template <int vectors, int width = 1>
INLINE void transpose(Vector *x) {
    if constexpr (width < vectors) {
        UNROLL for (int i = 0; i < vectors; i++) if ((i & width) == 0) {
            Vector a = x[i], b = x[i + width];
            x[i] = pick<Crossed<width, false>>(a, b);
            x[i + width] = pick<Crossed<width, true>>(a, b);
        }
        transpose<vectors, 2 * width>(x);
    }
}

// Rows that stand side by side in a vector: those at distance `vectors`, `vectors` channels of each.
template <int vectors, int width = LANES>
INLINE Vector side_by_side(const float *from, long row, int i, int last) {
    if constexpr (width == vectors)
        return load(from + std::min(i, last) * row);
    else
        return pick<Joined<width / 2>>(side_by_side<vectors, width / 2>(from, row, i, last),
                                       side_by_side<vectors, width / 2>(from, row, i + width / 2, last));
}

// Up to LANES rows of one head as lanes of `size` vectors; the last row again in further lanes. Reads up to LANES - 1 further.
template <int size>
INLINE void to_lanes(int count, const float *from, long row, Vector *to) {
    constexpr int vectors = size < LANES ? size : LANES;
    UNROLL for (int c = 0; c < size; c += vectors) {
        UNROLL for (int i = 0; i < vectors; i++) to[c + i] = side_by_side<vectors>(from + c, row, i, count - 1);
        transpose<vectors>(to + c);
    }
}

template <int size>
INLINE void from_lanes(int count, Vector *from, float *to, long row) {
    constexpr int vectors = size < LANES ? size : LANES;
    UNROLL for (int c = 0; c < size; c += vectors) {
        transpose<vectors>(from + c);
        for (int i = 0; i < count; i++)
            memcpy(to + i * row + c, (const float *)(from + c + i % vectors) + i / vectors * vectors, vectors * sizeof(float));
    }
}
