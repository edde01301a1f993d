// Transformer blocks on a CPU: `native.py` says what they compute, `layers.py` defines it.
//
// Compiled once for each kind of processor. Tokens that attend to each other form a segment; segments go through a block a
// few at a time, so that all stays in the cache, and no sum over channels, keys or queries depends on what else is computed
// with it. Vectors are those of GCC and Clang: operators work on all lanes.

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030B0000
#include <Python.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>
#if defined(__AVX2__)
#include <immintrin.h>
#endif

#if defined(__AVX512F__)
constexpr int LANES = 16, WIDE = 4, HIGH = 6;
#elif defined(__AVX2__)
constexpr int LANES = 8, WIDE = 2, HIGH = 6;
#else
constexpr int LANES = 4, WIDE = 4, HIGH = 6;
#endif
// A product computes HIGH rows of WIDE vectors together: its sums, and a few vectors more, fill the registers.
constexpr int PANEL = LANES * WIDE;
constexpr int CHUNK = 192;     // tokens that go through a block together, at least one segment
constexpr int STRIP = 96;      // of these, tokens whose hidden layer exists at the same time
constexpr float LEAST = 1e-15f, MOST = 1e30f;  // sums of weights between have lost no precision
constexpr float LN2 = 0.69314718f;

#define INLINE static inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 16")

typedef float Vector __attribute__((vector_size(LANES * 4), aligned(4)));
typedef int Integers __attribute__((vector_size(LANES * 4), aligned(4)));

INLINE Vector all(float x) { return x - Vector{}; }
INLINE Vector load(const float *from) { return *(const Vector *)from; }
INLINE void store(float *to, Vector x) { *(Vector *)to = x; }

// Written so that an x that is not a number stays so. Compilers do not find the instruction on their own.
#if defined(__AVX512F__)
INLINE Vector at_least(float low, Vector x) { return (Vector)_mm512_max_ps((__m512)all(low), (__m512)x); }
INLINE Vector at_most(float high, Vector x) { return (Vector)_mm512_min_ps((__m512)all(high), (__m512)x); }
#elif defined(__AVX2__)
INLINE Vector at_least(float low, Vector x) { return (Vector)_mm256_max_ps((__m256)all(low), (__m256)x); }
INLINE Vector at_most(float high, Vector x) { return (Vector)_mm256_min_ps((__m256)all(high), (__m256)x); }
#else
INLINE Vector at_least(float low, Vector x) { return x < low ? all(low) : x; }
INLINE Vector at_most(float high, Vector x) { return x > high ? all(high) : x; }
#endif

// Powers of two, to about 1e-7 of their value, of numbers between -126 and 127.
INLINE Vector small_power(Vector x) {
    Vector shifted = x + 12582912.0f;  // 1.5 * 2^23: the last bits hold the nearest integer
    Vector rest = x - (shifted - 12582912.0f);
    Vector y = all(1.3276470e-3f);
    y = y * rest + 9.6755410e-3f;
    y = y * rest + 5.5507135e-2f;
    y = y * rest + 2.4022120e-1f;
    y = y * rest + 6.9314694e-1f;
    y = y * rest + 1.0000001f;
    return (Vector)((Integers)y + ((Integers)shifted << 23));
}

// Of any numbers. None is below 2^-100: products of smaller numbers are slow.
INLINE Vector power(Vector x) { return small_power(at_most(127, at_least(-100, x))); }

INLINE Vector size_of(Vector x) { return (Vector)((Integers)x & 0x7fffffff); }

// The normal distribution's mass below -t, for t between 0 and 6. Its logarithm is nearly a parabola.
INLINE Vector tail(Vector t) {
    Vector y = all(3.1774936e-5f);
    y = y * t - 7.5691630e-4f;
    y = y * t + 8.0369757e-3f;
    y = y * t - 5.3337406e-2f;
    y = y * t - 4.5883432e-1f;
    y = y * t - 1.1511772f;
    y = y * t - 9.9999630e-1f;
    return small_power(y);
}

INLINE Vector gelu(Vector x) {
    Vector t = at_most(6, size_of(x));
    return at_least(0, x) - t * tail(t);
}

INLINE Vector gelu_slope(Vector x) {
    Vector mass = tail(at_most(6, size_of(x)));
    return (x > 0 ? 1 - mass : mass) + x * 0.39894228f * power(x * x * -0.72134752f);
}

// ---------------------------------------------------------------------------------------------------------- products

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

// --------------------------------------------------------------------------------------------------------- attention

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

// -------------------------------------------------------------------------------------------------------- structures

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

// ----------------------------------------------------------------------------------------------------------- folding

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

// ------------------------------------------------------------------------------------------------------------ blocks

// Memory of a thread that lives as long as it does; what was dealt out is forgotten with every chunk.
struct Scratch {
    std::vector<float> data;
    Room begin(size_t count) {
        if (count > data.size()) std::vector<float>(count).swap(data);
        return {data.data()};
    }
};
static thread_local Scratch scratch;

static void gather(int count, const int *tokens, int first, const float *from, int d, float *to, int row) {
    for (int i = 0; i < count; i++) memcpy(to + (long)i * row, from + (long)(tokens ? tokens[first + i] : first + i) * d, d * 4);
}

static void scatter(int count, const int *tokens, int first, const float *from, int row, float *to, int d) {
    for (int i = 0; i < count; i++) memcpy(to + (long)(tokens ? tokens[first + i] : first + i) * d, from + (long)i * row, d * 4);
}

// Segments that go through a block together, and where their tokens and queries are.
struct Chunk {
    int begin, end, first, tokens, first_query, queries;
    const int *query_starts, *query_token, *query_row;

    Chunk(const Layout &layout, int from, int last) : begin(from), end(from + 1) {
        while (end < last && layout.starts[end + 1] - layout.starts[begin] <= CHUNK) end++;
        bool all_ask = !layout.query_starts;
        query_starts = all_ask ? layout.starts : layout.query_starts;
        query_token = all_ask ? layout.token : layout.query_token;
        query_row = all_ask ? layout.token : layout.query_row;
        first = layout.starts[begin], tokens = layout.starts[end] - first;
        first_query = query_starts[begin], queries = query_starts[end] - first_query;
    }
};

static std::vector<Chunk> chunks_of(const Layout &layout) {
    std::vector<Chunk> chunks;
    for (int begin = 0; begin < layout.segments; begin = chunks.back().end) chunks.emplace_back(layout, begin, layout.segments);
    return chunks;
}

static void key_scores(const Layout &layout, float slope, int first, int count, float *scores) {
    for (int i = 0; i < count; i++) scores[i] = slope * layout.positions[layout.token ? layout.token[first + i] : first + i];
}

static void forward(const Weights &w, const Layout &layout, const Chunk &chunk, const Kept *kept, const float *x, float *y) {
    int d = w.d, size = d / w.heads, D = stride(d), R = stride(2 * d), F = stride(w.ff);
    int n = chunk.tokens, m = chunk.queries, q0 = chunk.first_query, t0 = chunk.first;
    bool slopes = w.slopes && layout.positions;
    Room room = scratch.begin((size_t)(n + 4 * m) * D + (size_t)n * R + (size_t)STRIP * F + n + 256);
    float *own = kept ? kept->x + (long)t0 * D : room.take((size_t)n * D);
    float *query = kept ? kept->query + (long)q0 * D : room.take((size_t)m * D);
    float *rest = kept ? kept->rest + (long)t0 * R : room.take((size_t)n * R);
    float *mixed = kept ? kept->mixed + (long)q0 * D : room.take((size_t)m * D);
    float *middle = kept ? kept->middle + (long)q0 * D : room.take((size_t)m * D);
    float *output = kept ? room.take((size_t)m * D) : middle;
    float *hidden = room.take((size_t)STRIP * F), *scores = room.take(n);

    gather(n, layout.token, t0, x, d, own, D);
    gather(m, chunk.query_token, q0, x, d, middle, D);
    if (kept && layout.query_starts) memcpy(kept->asking + (long)q0 * D, middle, (size_t)m * D * 4);
    product<SET>(m, d, d, middle, D, w.query, w.query_bias, query, D);
    product<SET>(n, d, 2 * d, own, D, w.rest, nullptr, rest, R);
    for (int s = chunk.begin; s < chunk.end; s++) {
        int k = layout.starts[s] - t0, keys = layout.starts[s + 1] - t0 - k;
        int q = chunk.query_starts[s] - q0, queries = chunk.query_starts[s + 1] - q0 - q;
        for (int h = 0; queries && h < w.heads; h++) {
            long at = (long)q * D + h * size, key = (long)k * R + h * size;
            if (slopes) key_scores(layout, w.slopes[h], t0 + k, keys, scores);
            WITH_SIZE(size, attend<SIZE>(queries, keys, query + at, D, rest + key, rest + key + d, R, slopes ? scores : nullptr,
                                         mixed + at, D, kept ? kept->logs + (long)(q0 + q) * w.heads + h : nullptr, w.heads));
        }
    }
    product<ADD>(m, d, d, mixed, D, w.out, w.out_bias, middle, D);
    if (kept) memcpy(output, middle, (size_t)m * D * 4);
    for (int i = 0; i < m; i += STRIP) {
        int rows = std::min(STRIP, m - i);
        const float *here = middle + (long)i * D;
        if (kept)
            product<KEEP>(rows, d, w.ff, here, D, w.widen, w.widen_bias, hidden, F, kept->hidden + (long)(q0 + i) * F);
        else
            product<GELU>(rows, d, w.ff, here, D, w.widen, w.widen_bias, hidden, F);
        product<ADD>(rows, w.ff, d, hidden, F, w.narrow, w.narrow_bias, output + (long)i * D, D);
    }
    scatter(m, chunk.query_row, q0, output, D, y, d);
}

static void backward(const Weights &w, const Layout &layout, const Chunk &chunk, const Kept &kept, const Sums &sums,
                     const float *of_y, float *of_x) {
    int d = w.d, size = d / w.heads, D = stride(d), R = stride(2 * d), F = stride(w.ff);
    int n = chunk.tokens, m = chunk.queries, q0 = chunk.first_query, t0 = chunk.first, longest = n + 2 * LANES;
    bool slopes = w.slopes && layout.positions;
    Room room = scratch.begin((size_t)(3 * m + n) * D + (size_t)n * R + (size_t)2 * STRIP * F + (size_t)3 * longest * (1 + size) + 512);
    float *gradient = room.take((size_t)m * D), *of_mixed = room.take((size_t)m * D);
    float *of_query = room.take((size_t)m * D), *of_rest = room.take((size_t)n * R), *of_own = room.take((size_t)n * D);
    float *hidden = room.take((size_t)STRIP * F), *of_hidden = room.take((size_t)STRIP * F);
    float *scores = room.take(longest), *less = room.take(longest), *means = room.take(longest);
    float *lanes = room.take((size_t)3 * longest * size);
    memset(scores, 0, longest * 4), memset(less, 0, longest * 4), memset(means, 0, longest * 4);
    memset(of_rest, 0, (size_t)n * R * 4), memset(of_query, 0, (size_t)m * D * 4), memset(gradient, 0, (size_t)m * D * 4);
    const float *own = kept.x + (long)t0 * D, *query = kept.query + (long)q0 * D, *rest = kept.rest + (long)t0 * R;
    const float *mixed = kept.mixed + (long)q0 * D, *middle = kept.middle + (long)q0 * D;

    gather(m, chunk.query_row, q0, of_y, d, gradient, D);
    for (int i = 0; i < m; i += STRIP) {
        int rows = std::min(STRIP, m - i);
        float *kept_hidden = kept.hidden + (long)(q0 + i) * F, *here = gradient + (long)i * D;
        for (int r = 0; r < rows; r++)
            for (int j = 0; j < w.ff; j += LANES) store(hidden + r * F + j, gelu(load(kept_hidden + r * F + j)));
        add_outer(rows, d, w.ff, here, D, hidden, F, sums.narrow, F);
        add_rows(rows, d, here, D, sums.narrow_bias);
        product<SLOPE>(rows, d, w.ff, here, D, w.narrow_back, nullptr, of_hidden, F, kept_hidden);
        add_outer(rows, w.ff, d, of_hidden, F, middle + (long)i * D, D, sums.widen, D);
        add_rows(rows, w.ff, of_hidden, F, sums.widen_bias);
        product<ADD>(rows, w.ff, d, of_hidden, F, w.widen_back, nullptr, here, D);
    }
    add_outer(m, d, d, gradient, D, mixed, D, sums.out, D);
    add_rows(m, d, gradient, D, sums.out_bias);
    product<SET>(m, d, d, gradient, D, w.out_back, nullptr, of_mixed, D);
    for (int s = chunk.begin; s < chunk.end; s++) {
        int k = layout.starts[s] - t0, keys = layout.starts[s + 1] - t0 - k;
        int q = chunk.query_starts[s] - q0, queries = chunk.query_starts[s + 1] - q0 - q;
        for (int h = 0; queries && h < w.heads; h++) {
            long at = (long)q * D + h * size, key = (long)k * R + h * size;
            if (slopes) key_scores(layout, w.slopes[h], t0 + k, keys, scores);
            for (int i = 0; i < queries; i++) {
                float total = 0;
                for (int c = 0; c < size; c++) total += mixed[at + i * D + c] * of_mixed[at + i * D + c];
                less[i] = kept.logs[(long)(q0 + q + i) * w.heads + h], means[i] = total;
            }
            WITH_SIZE(size, attend_back<SIZE>(queries, keys, query + at, D, rest + key, rest + key + d, R, of_mixed + at, scores,
                                              less, means, of_query + at, of_rest + key, of_rest + key + d, lanes));
        }
    }
    add_outer(n, 2 * d, d, of_rest, R, own, D, sums.rest, D);
    product<SET>(n, 2 * d, d, of_rest, R, w.rest_back, nullptr, of_own, D);
    add_outer(m, d, d, of_query, D, kept.asking + (long)q0 * D, D, sums.query, D);
    add_rows(m, d, of_query, D, sums.query_bias);
    product<ADD>(m, d, d, of_query, D, w.query_back, nullptr, gradient, D);
    scatter(n, layout.token, t0, of_own, D, of_x, d);
    for (int i = 0; i < m; i++) {
        float *to = of_x + (long)(chunk.query_token ? chunk.query_token[q0 + i] : q0 + i) * d;
        for (int c = 0; c < d; c++) to[c] += gradient[(long)i * D + c];
    }
}

// -------------------------------------------------------------------------------------- what is called through ctypes

extern "C" {
// How many numbers the memory must hold that is passed to the functions below.
long gumbeldore_weights_size(const Weights *weights, int back) {
    Room room{nullptr};
    Weights counted = *weights;
    take_weights(counted, room, back);
    return room.used;
}

long gumbeldore_kept_size(const Weights *weights, const Layout *layout) {
    Room room{nullptr};
    Kept(*weights, *layout, room);
    return room.used;
}

long gumbeldore_sums_size(const Weights *weights) {
    Room room{nullptr};
    Sums(*weights, room);
    return room.used;
}

// Folds parameters; `d`, `heads`, `ff` and `slopes` of the weights are given. With `back`, for gradients too.
void gumbeldore_fold(Weights *weights, const Parameters *parameters, int back, float *memory) {
    Room room{memory};
    take_weights(*weights, room, back);
    fold(*weights, *parameters, back);
}

// The block. Without `memory` nothing is kept for gradients. y may be x if all tokens go on.
void gumbeldore_forward(const Weights *weights, const Layout *layout, float *memory, int threads, const float *x, float *y) {
    Room room{memory};
    Kept kept(*weights, *layout, room);
    std::vector<Chunk> chunks = chunks_of(*layout);
    int count = (int)chunks.size();
#pragma omp parallel for schedule(dynamic) num_threads(threads) if (threads > 1)
    for (int i = 0; i < count; i++) forward(*weights, *layout, chunks[i], memory ? &kept : nullptr, x, y);
}

// From the gradient of y, those of x and of the parameters. of_x may be of_y if all tokens go on. Threads have sums of their own.
void gumbeldore_backward(const Weights *weights, const Parameters *parameters, const Layout *layout, float *memory, float *sums,
                         int threads, const float *of_y, float *of_x, const Parameters *of_parameters) {
    Room room{memory};
    Kept kept(*weights, *layout, room);
    std::vector<Chunk> chunks = chunks_of(*layout);
    int count = (int)chunks.size();
    long size = gumbeldore_sums_size(weights);
    memset(sums, 0, threads * size * sizeof(float));
#pragma omp parallel for schedule(static, 1) num_threads(threads) if (threads > 1)
    for (int thread = 0; thread < threads; thread++) {
        Room own{sums + thread * size};
        Sums total(*weights, own);
        for (int i = thread; i < count; i += threads) backward(*weights, *layout, chunks[i], kept, total, of_y, of_x);
    }
    for (int thread = 1; thread < threads; thread++)
        for (long i = 0; i < size; i++) sums[i] += sums[thread * size + i];
    Room all_of_them{sums};
    unfold(*weights, *parameters, Sums(*weights, all_of_them), *of_parameters);
}
}

// An empty Python module, so that tools build, package and find the file. The functions above are called through ctypes.
static PyModuleDef module = {PyModuleDef_HEAD_INIT, GUMBELDORE_MODULE, nullptr, -1, nullptr, nullptr, nullptr, nullptr, nullptr};
PyMODINIT_FUNC GUMBELDORE_INIT(void) { return PyModule_Create(&module); }
