// Transformer blocks on a CPU, as `layers.Block` defines them. `native.py` calls the functions at the end.
//
// Compiled once for each kind of processor. Tokens that attend to each other form a segment; segments go through a block a few
// at a time, so that all stays in the cache. No sum over channels, keys or queries depends on what else is computed with it.

#include <algorithm>
#include <cstring>
#include <vector>

#include "attention.h"
#include "boundary.h"
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

// What Python may call. Matrices are output by input, as `layers.Block` has them.

using boundary::Refused;
using boundary::require;
using boundary::View;
template <class T, int axes> using Maybe = std::optional<View<T, axes>>;
using Floats = View<const float, 1>;
using Matrix = View<const float, 2>;
using Indices = Maybe<const int32_t, 1>;

static float *writable(const float *data) { return const_cast<float *>(data); }

static Weights shape(int64_t d, int64_t heads, int64_t ff) {
    constexpr int64_t MOST = 1 << 16;
    require(d >= 1 && d <= MOST && ff >= 1 && ff <= MOST, "`d` and `ff` must be in 1 .. 65536, got " + std::to_string(d) + " and " + std::to_string(ff) + ".");
    require(heads >= 1 && d % heads == 0, "`heads` must divide `d`, got " + std::to_string(heads) + " and " + std::to_string(d) + ".");
    int64_t size = d / heads;
    require(size == 4 || size == 8 || size == 16 || size == 32, "Heads must have 4, 8, 16 or 32 channels, got " + std::to_string(size) + ".");
    Weights weights{};
    weights.d = (int)d, weights.heads = (int)heads, weights.ff = (int)ff;
    return weights;
}

template <class T> static void require_room(const View<T, 1> &memory, int64_t wanted) {
    require(memory.size(0) >= wanted, "`" + memory.called() + "` must hold " + std::to_string(wanted) + " numbers, got " + std::to_string(memory.size(0)) + ".");
}

// How many numbers the memory must hold that is passed to the functions below.
// How many numbers the memory must hold that is passed to the functions below.
static int64_t kept_size(int64_t d, int64_t heads, int64_t ff, int64_t tokens, int64_t queries, bool some_ask) {
    Room room{nullptr};
    Layout layout{};
    int asking = 0;
    layout.tokens = (int)tokens, layout.queries = (int)queries, layout.query_starts = some_ask ? &asking : nullptr;
    Kept(shape(d, heads, ff), layout, room);
    return room.used;
}

static int64_t sums_size(int64_t d, int64_t heads, int64_t ff) {
    Room room{nullptr};
    Sums(shape(d, heads, ff), room);
    return room.used;
}

// A block whose weights are folded.
struct Folded {
    static constexpr const char *NAME = "folded block";
    Weights weights;
    bool back;
    std::vector<float> memory, slopes;
    Folded(const Weights &sizes, bool back) : weights(sizes), back(back) {
        Room counted{nullptr};
        take_weights(weights, counted, back);
        memory.resize(counted.used);
        Room room{memory.data()};
        take_weights(weights, room, back);
    }
};

// Which tokens attend to each other.
struct Segments {
    static constexpr const char *NAME = "layout";
    Layout layout;
    std::vector<int32_t> indices;
    std::vector<float> positions;
};
using boundary::Held;

static Parameters parameters(const Weights &w, const Matrix &in_weight, const Floats &in_bias, const Matrix &out_weight, const Floats &out_bias,
                             const Matrix &widen_weight, const Floats &widen_bias, const Matrix &narrow_weight, const Floats &narrow_bias,
                             const Maybe<const float, 1> &scale) {
    return {writable(in_weight.shaped({3 * w.d, w.d}).data()),     writable(in_bias.shaped({3 * w.d}).data()),
            writable(out_weight.shaped({w.d, w.d}).data()),        writable(out_bias.shaped({w.d}).data()),
            writable(widen_weight.shaped({w.ff, w.d}).data()),     writable(widen_bias.shaped({w.ff}).data()),
            writable(narrow_weight.shaped({w.d, w.ff}).data()),    writable(narrow_bias.shaped({w.d}).data()),
            scale ? writable(scale->shaped({1}).data()) : nullptr};
}

// Starts of segments, which rise from 0 to at most the number of what there is.
static void check_starts(const View<const int32_t, 1> &starts, int64_t listed) {
    int64_t segments = starts.size(0) - 1;
    bool rise = segments >= 0 && starts[0] == 0 && starts[segments] <= listed;
    for (int64_t i = 0; rise && i < segments; i++) rise = starts[i] <= starts[i + 1];
    require(rise, "`" + starts.called() + "` must rise from 0 to at most " + std::to_string(listed) + ".");
}

static std::unique_ptr<Held<Segments>> layout_of(int64_t tokens, View<const int32_t, 1> starts, Indices token, Indices query_starts,
                                                Indices query_token, Indices query_row, Maybe<const float, 1> positions) {
    require(tokens >= 0 && tokens <= 1 << 30, "`x` must have at most 1073741824 tokens, got " + std::to_string(tokens) + ".");
    check_starts(starts, token ? token->size(0) : tokens);
    int64_t segments = starts.size(0) - 1, queries = query_token ? query_token->size(0) : tokens;
    if (token) token->between(0, (int)tokens - 1);
    if (positions) positions->shaped({tokens});
    bool some = query_starts.has_value();
    require(some == query_token.has_value() && some == query_row.has_value(), "`query_starts`, `query_tokens` and `query_rows` must be given together.");
    if (some) {
        check_starts(query_starts->shaped({segments + 1}), queries);
        query_token->between(0, (int)tokens - 1);
        query_row->shaped({queries}).between(0, (int)queries - 1);
    }
    require((token ? token->size(0) : 0) <= tokens && queries <= tokens, "`tokens` and `query_tokens` must list each token at most once.");
    auto made = std::make_unique<Held<Segments>>();
    Segments &own = made->object;
    size_t total = starts.count();
    for (const Indices *each : {&token, &query_starts, &query_token, &query_row}) total += *each ? (*each)->count() : 0;
    own.indices.reserve(total);
    auto keep = [&](const View<const int32_t, 1> &view) {
        own.indices.insert(own.indices.end(), view.begin(), view.end());
        return (const int *)own.indices.data() + own.indices.size() - view.count();
    };
    auto keep_some = [&](const Indices &view) { return view ? keep(*view) : nullptr; };
    if (positions) own.positions.assign(positions->begin(), positions->end());
    const int *first = keep(starts), *listed = keep_some(token), *asked = keep_some(query_starts), *asking = keep_some(query_token);
    own.layout = {(int)segments, (int)tokens, (int)queries, first, listed, asked, asking, keep_some(query_row),
                  positions ? own.positions.data() : nullptr};
    return made;
}

static int team_of(int64_t threads) {
    require(threads >= 1 && threads <= 4096, "`threads` must be in 1 .. 4096, got " + std::to_string(threads) + ".");
    return (int)threads;
}

// With `back`, for gradients too.
static std::unique_ptr<Held<Folded>> fold_block(int64_t d, int64_t heads, int64_t ff, bool back, Maybe<const float, 1> slopes, Matrix in_weight,
                                                Floats in_bias, Matrix out_weight, Floats out_bias, Matrix widen_weight, Floats widen_bias,
                                                Matrix narrow_weight, Floats narrow_bias, Maybe<const float, 1> scale) {
    auto made = std::make_unique<Held<Folded>>(shape(d, heads, ff), back);
    Folded &own = made->object;
    if (slopes) own.slopes.assign(slopes->shaped({heads}).begin(), slopes->end());
    own.weights.slopes = slopes ? own.slopes.data() : nullptr;
    fold(own.weights, parameters(own.weights, in_weight, in_bias, out_weight, out_bias, widen_weight, widen_bias, narrow_weight, narrow_bias, scale), back);
    return made;
}

// The block. Without `kept` nothing is kept for gradients. y may be x if all tokens go on.
static void forward_block(Held<Folded> *block, Held<Segments> *segments, Maybe<float, 1> kept, int64_t threads, Matrix x, View<float, 2> y) {
    const Weights &weights = block->object.weights;
    const Layout &layout = segments->object.layout;
    x.shaped({layout.tokens, weights.d});
    y.shaped({layout.queries, weights.d});
    Room room{kept ? kept->data() : nullptr};
    Kept parts(weights, layout, room);
    if (kept) require_room(*kept, room.used);
    std::vector<Chunk> chunks = chunks_of(layout);
    int count = (int)chunks.size(), team = team_of(threads);
    boundary::Errors errors;
#pragma omp parallel for schedule(dynamic) num_threads(team) if (team > 1)
    for (int i = 0; i < count; i++) errors.run([&] { forward(weights, layout, chunks[i], kept ? &parts : nullptr, x.data(), y.data()); });
    errors.rethrow();
}

// From the gradient of y, that of x, and sums that `unfold_block` turns into those of the parameters; threads have sums of their own, which
// are added up in the first. of_x may be of_y if all tokens go on.
static void backward_block(Held<Folded> *block, Held<Segments> *segments, View<float, 1> kept, View<float, 1> sums, int64_t threads,
                           Matrix of_y, View<float, 2> of_x) {
    require(block->object.back, "Blocks must be folded with `back` for gradients.");
    const Weights &weights = block->object.weights;
    const Layout &layout = segments->object.layout;
    of_x.shaped({layout.tokens, weights.d});
    of_y.shaped({layout.queries, weights.d});
    Room room{kept.data()};
    Kept parts(weights, layout, room);
    require_room(kept, room.used);
    std::vector<Chunk> chunks = chunks_of(layout);
    int64_t size = sums_size(weights.d, weights.heads, weights.ff);
    int count = (int)chunks.size(), team = team_of(threads);
    require_room(sums, team * size);
    memset(sums.data(), 0, team * size * sizeof(float));
    boundary::Errors errors;
#pragma omp parallel for schedule(static, 1) num_threads(team) if (team > 1)
    for (int thread = 0; thread < team; thread++)
        errors.run([&] {
            Room own{sums.data() + thread * size};
            Sums total(weights, own);
            for (int i = thread; i < count; i += team) backward(weights, layout, chunks[i], parts, total, of_y.data(), of_x.data());
        });
    errors.rethrow();
    for (int thread = 1; thread < team; thread++)
        for (int64_t i = 0; i < size; i++) sums[i] += sums[thread * size + i];
}

// The gradients of parameters, into arrays like these.
static void unfold_block(int64_t d, int64_t heads, int64_t ff, View<float, 1> sums, Matrix in_weight, Floats in_bias, Matrix out_weight,
                         Floats out_bias, Matrix widen_weight, Floats widen_bias, Matrix narrow_weight, Floats narrow_bias,
                         Maybe<const float, 1> scale, View<float, 2> of_in_weight, View<float, 1> of_in_bias, View<float, 2> of_out_weight,
                         View<float, 1> of_out_bias, View<float, 2> of_widen_weight, View<float, 1> of_widen_bias,
                         View<float, 2> of_narrow_weight, View<float, 1> of_narrow_bias, Maybe<float, 1> of_scale) {
    Weights w = shape(d, heads, ff);
    require_room(sums, sums_size(d, heads, ff));
    require(scale.has_value() == of_scale.has_value(), "`scale` and `of_scale` must be given together.");
    Room room{sums.data()};
    Parameters given = parameters(w, in_weight, in_bias, out_weight, out_bias, widen_weight, widen_bias, narrow_weight, narrow_bias, scale);
    auto data = [](const auto &view, std::initializer_list<int64_t> sizes) { return view.shaped(sizes).data(); };
    Parameters found{data(of_in_weight, {3 * d, d}),  data(of_in_bias, {3 * d}),     data(of_out_weight, {d, d}),
                     data(of_out_bias, {d}),          data(of_widen_weight, {ff, d}), data(of_widen_bias, {ff}),
                     data(of_narrow_weight, {d, ff}), data(of_narrow_bias, {d}),      of_scale ? data(*of_scale, {1}) : nullptr};
    unfold(w, given, Sums(w, room), found);
}

PyMODINIT_FUNC GUMBELDORE_INIT(void) {
    using boundary::entry;
    static PyMethodDef methods[] = {
        entry<layout_of>("layout(count, starts, tokens, query_starts, query_tokens, query_rows, positions)"),
        entry<kept_size>("kept_size(d, heads, ff, tokens, queries, some_ask)"),
        entry<sums_size>("sums_size(d, heads, ff)"),
        entry<fold_block>("fold(d, heads, ff, back, slopes, in_weight, in_bias, out_weight, out_bias, widen_weight, widen_bias, "
                          "narrow_weight, narrow_bias, scale)"),
        entry<forward_block>("forward(block, layout, kept, threads, x, y)"),
        entry<backward_block>("backward(block, layout, kept, sums, threads, of_y, of_x)"),
        entry<unfold_block>("unfold(d, heads, ff, sums, in_weight, in_bias, out_weight, out_bias, widen_weight, widen_bias, narrow_weight, "
                            "narrow_bias, scale, of_in_weight, of_in_bias, of_out_weight, of_out_bias, of_widen_weight, of_widen_bias, "
                            "of_narrow_weight, of_narrow_bias, of_scale)"),
        boundary::END,
    };
    static PyModuleDef module = {PyModuleDef_HEAD_INIT, GUMBELDORE_MODULE, nullptr, -1, methods, nullptr, nullptr, nullptr, nullptr};
    return PyModule_Create(&module);
}
