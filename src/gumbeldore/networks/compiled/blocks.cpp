// Transformer blocks on a CPU, as `layers.Block` defines them. `native.py` calls the functions at the end.
//
// Compiled once for each kind of processor. Tokens that attend to each other form a segment; segments go through a block a few
// at a time, so that all stays in the cache. No sum over channels, keys or queries depends on what else is computed with it.

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030B0000
#include <Python.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "attention.h"
#include "products.h"
#include "weights.h"

constexpr int CHUNK = 192;  // tokens that go through a block together, at least one segment
constexpr int STRIP = 96;   // of these, tokens whose hidden layer exists at the same time

// Memory of a thread that lives as long as it does; what was dealt out is forgotten with every chunk.
struct Scratch {
    std::vector<float> data;
    Room begin(size_t count) {
        if (count > data.size()) std::vector<float>(count).swap(data);
        return {data.data()};
    }
};
static thread_local Scratch scratch;

// The i-th token of a list; without one they are in their order.
static long token_at(const int *tokens, int i) { return tokens ? tokens[i] : i; }

static void gather(int count, const int *tokens, int first, const float *from, int d, float *to, int row) {
    for (int i = 0; i < count; i++) memcpy(to + (long)i * row, from + token_at(tokens, first + i) * d, d * 4);
}

static void scatter(int count, const int *tokens, int first, const float *from, int row, float *to, int d) {
    for (int i = 0; i < count; i++) memcpy(to + token_at(tokens, first + i) * d, from + (long)i * row, d * 4);
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

static bool has_slopes(const Weights &w, const Layout &layout) { return w.slopes && layout.positions; }

static std::vector<Chunk> chunks_of(const Layout &layout) {
    std::vector<Chunk> chunks;
    for (int begin = 0; begin < layout.segments; begin = chunks.back().end) chunks.emplace_back(layout, begin, layout.segments);
    return chunks;
}

// Calls for each head of each segment of a chunk that has queries: `call(queries, keys, q, k, h)`, where q and k are the first of
// its queries and tokens within the chunk. `scores` holds what the tokens' positions add to the scores, where a block has slopes.
template <class Call>
static void each_head(const Weights &w, const Layout &layout, const Chunk &chunk, float *scores, Call call) {
    for (int s = chunk.begin; s < chunk.end; s++) {
        int first = layout.starts[s], keys = layout.starts[s + 1] - first;
        int q = chunk.query_starts[s] - chunk.first_query, queries = chunk.query_starts[s + 1] - chunk.query_starts[s];
        for (int h = 0; queries && h < w.heads; h++) {
            for (int i = 0; has_slopes(w, layout) && i < keys; i++)
                scores[i] = w.slopes[h] * layout.positions[token_at(layout.token, first + i)];
            call(queries, keys, q, first - chunk.first, h);
        }
    }
}

static void forward(const Weights &w, const Layout &layout, const Chunk &chunk, const Kept *kept, const float *x, float *y) {
    int d = w.d, size = d / w.heads, D = stride(d), R = stride(2 * d), F = stride(w.ff);
    int n = chunk.tokens, m = chunk.queries, q0 = chunk.first_query, t0 = chunk.first;
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
    each_head(w, layout, chunk, scores, [&](int queries, int keys, int q, int k, int h) {
        long at = (long)q * D + h * size, key = (long)k * R + h * size;
        const float *bias = has_slopes(w, layout) ? scores : nullptr;
        float *logs = kept ? kept->logs + (long)(q0 + q) * w.heads + h : nullptr;
        WITH_SIZE(size, attend<SIZE>(queries, keys, query + at, D, rest + key, rest + key + d, R, bias, mixed + at, D, logs, w.heads));
    });
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
    each_head(w, layout, chunk, scores, [&](int queries, int keys, int q, int k, int h) {
        long at = (long)q * D + h * size, key = (long)k * R + h * size;
        for (int i = 0; i < queries; i++) {
            float total = 0;
            for (int c = 0; c < size; c++) total += mixed[at + i * D + c] * of_mixed[at + i * D + c];
            less[i] = kept.logs[(long)(q0 + q + i) * w.heads + h], means[i] = total;
        }
        WITH_SIZE(size, attend_back<SIZE>(queries, keys, query + at, D, rest + key, rest + key + d, R, of_mixed + at, scores, less,
                                          means, of_query + at, of_rest + key, of_rest + key + d, lanes));
    });
    add_outer(n, 2 * d, d, of_rest, R, own, D, sums.rest, D);
    product<SET>(n, 2 * d, d, of_rest, R, w.rest_back, nullptr, of_own, D);
    add_outer(m, d, d, of_query, D, kept.asking + (long)q0 * D, D, sums.query, D);
    add_rows(m, d, of_query, D, sums.query_bias);
    product<ADD>(m, d, d, of_query, D, w.query_back, nullptr, gradient, D);
    scatter(n, layout.token, t0, of_own, D, of_x, d);
    for (int i = 0; i < m; i++) {
        float *to = of_x + token_at(chunk.query_token, q0 + i) * d;
        for (int c = 0; c < d; c++) to[c] += gradient[(long)i * D + c];
    }
}

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
