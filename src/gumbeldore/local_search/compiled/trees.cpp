// Lower bounds of paths by spanning trees (Held and Karp 1971). `problems/tsp/trees.py` calls the function at the end, and defines what it
// computes.

#include "entries.h"
#include "plane.h"

#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__linux__)
#define FOR_EACH_PROCESSOR __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define FOR_EACH_PROCESSOR
#endif

namespace {
constexpr int LANES = 16;  // rows of matrices are padded to a multiple of these
constexpr float FORBIDDEN = INFINITY;
enum Feature { PRICE, AHEAD, BEHIND, DEGREE, FIRST, LAST, TRIED, REGRET, FEATURES };

// Joins a node to a tree: who of the others is nearest to the tree by it. Returns the next one, the first of those with the least weight.
FOR_EACH_PROCESSOR
int join(int width, const float *__restrict distance, const float *__restrict price, float own, int node, const float *__restrict closed,
         float *__restrict key, int *__restrict parent) {
    width = width / LANES * LANES;  // the compiler need not care for the rest
    float least = INFINITY;
#pragma omp simd reduction(min : least)
    for (int i = 0; i < width; i++) {
        float weight = distance[i] + own + price[i] + closed[i];
        bool nearer = weight < key[i];
        key[i] = nearer ? weight : key[i];
        parent[i] = nearer ? node : parent[i];
        least = key[i] < least ? key[i] : least;
    }
    int next = width;
#pragma omp simd reduction(min : next)
    for (int i = 0; i < width; i++) {
        int found = key[i] == least ? i : width;
        next = found < next ? found : next;
    }
    return next;
}

// A tree over the nodes 0, where a path begins, to n - 1, where it ends. If it begins elsewhere, at `root`, node 0 is left out.
class Tree {
  public:
    explicit Tree(int most) {
        size_t padded = most + LANES;
        distances.resize(padded * padded);
        for (auto *each : {&price, &key, &closed}) each->resize(padded);
        for (auto *each : {&parent, &order, &degree}) each->resize(padded);
    }

    void begin(const float *points, int nodes) {
        n = nodes;
        root = 0;
        width = (n + LANES - 1) / LANES * LANES;
        for (int i = 0; i < n; i++)
            for (int j = 0; j < n; j++) {
                float x = points[2 * i] - points[2 * j], y = points[2 * i + 1] - points[2 * j + 1];
                distance(i, j) = std::sqrt(x * x + y * y);
            }
        if (n > 2) distance(0, n - 1) = distance(n - 1, 0) = FORBIDDEN;  // a path that leaves all others out
        std::fill_n(price.begin(), width, 0.0f);
    }

    // The shortest one at the present prices (Prim 1957).
    void grow() {
        std::fill_n(key.begin(), width, INFINITY);
        std::fill_n(closed.begin(), n, 0.0f);
        std::fill(closed.begin() + n, closed.begin() + width, INFINITY);
        std::fill_n(degree.begin(), n, 0);
        closed[0] = INFINITY;
        for (int step = 0, node = root, last = n - 1 - (root != 0);; step++) {
            order[step] = node;
            key[node] = closed[node] = INFINITY;
            if (step == last) break;
            node = join(width, &distance(node, 0), price.data(), price[node], node, closed.data(), key.data(), parent.data());
            degree[node]++;
            degree[parent[node]]++;
        }
    }

    float mean_edge() {
        float sum = 0;
        for (int i = 1; i < n; i++) sum += distance(order[i], parent[order[i]]);
        return std::max(sum / (n - 1), 1e-9f);
    }

    // Makes nodes dearer that have more edges than a path, and those cheaper that have fewer.
    void charge(float size) {
        for (int v = root != 0; v < n; v++) price[v] += size * excess(v);
    }

    // The length of the tree without what a path pays: no path is shorter.
    float bound() {
        float sum = 0;
        for (int v = root != 0; v < n; v++) {
            if (v != root) sum += weight(v, parent[v]);
            sum -= wanted(v) * price[v];
        }
        return sum;
    }

    // A bound of all paths that go to a node first, by some more trees.
    float bound_by(int node, int rounds, float size) {
        float open = distance(node, n - 1), best = -INFINITY;
        if (n > 3) distance(node, n - 1) = distance(n - 1, node) = FORBIDDEN;
        std::vector<float> before = price;
        root = node;
        for (int round = 0; round < rounds; round++) {
            grow();
            best = std::max(best, bound());
            float left = 1 - (float)round / rounds;
            charge(size * left * left);
        }
        root = 0;
        price.swap(before);
        distance(node, n - 1) = distance(n - 1, node) = open;
        return distance(0, node) + best;
    }

    // Adds the neighbours of both ends.
    void count(float share, float *result) const {
        for (int v = 1; v < n; v++) {
            if (parent[v] == 0) result[FEATURES * v + FIRST] += share;
            if (parent[v] == n - 1) result[FEATURES * v + LAST] += share;
        }
        result[FEATURES * parent[n - 1] + LAST] += share;
    }

    void describe(float scale, float *result) {
        std::vector<float> &ahead = key, &behind = closed;  // the heaviest edge on the way through the tree from either end
        std::fill_n(behind.begin(), n, INFINITY);
        behind[n - 1] = ahead[0] = -INFINITY;
        for (int v = n - 1; v != 0; v = parent[v]) behind[parent[v]] = std::max(behind[v], weight(v, parent[v]));
        for (int i = 1; i < n; i++) {
            int v = order[i], u = parent[v];
            ahead[v] = std::max(ahead[u], weight(v, u));
            if (behind[v] == INFINITY) behind[v] = std::max(behind[u], weight(v, u));
        }
        for (int v = 0; v < n; v++, result += FEATURES) {
            bool between = v > 0 && v < n - 1;
            result[PRICE] = price[v] / scale;
            result[AHEAD] = between ? std::max(weight(0, v) - ahead[v], 0.0f) / scale : 0;
            result[BEHIND] = between ? std::max(weight(n - 1, v) - behind[v], 0.0f) / scale : 0;
            result[DEGREE] = excess(v);
        }
    }

  private:
    int n, width, root;
    std::vector<float> distances, price, key, closed;
    std::vector<int> parent, order, degree;

    float &distance(int a, int b) { return distances[(size_t)a * width + b]; }
    float weight(int a, int b) { return distance(a, b) + price[a] + price[b]; }
    int wanted(int v) const { return v == root || v == n - 1 ? 1 : 2; }
    float excess(int v) const { return degree[v] - wanted(v); }
};

// Tries the nodes that seem best as the next one after the first.
void try_some(Tree &tree, int n, int tries, int rounds, float size, float scale, float *result) {
    std::vector<int> nodes(std::max(0, n - 2));
    std::iota(nodes.begin(), nodes.end(), 1);
    auto likes = [&](int v) { return result[FEATURES * v + FIRST] - result[FEATURES * v + AHEAD] / (1 + result[FEATURES * v + AHEAD]); };
    int count = std::min(tries, (int)nodes.size());
    std::partial_sort(nodes.begin(), nodes.begin() + count, nodes.end(),
                      [&](int a, int b) { return std::pair(-likes(a), a) < std::pair(-likes(b), b); });
    float least = INFINITY;
    for (int i = 0; i < count; i++) {
        float *own = result + FEATURES * nodes[i];
        own[TRIED] = 1;
        own[REGRET] = tree.bound_by(nodes[i], rounds, size);
        least = std::min(least, own[REGRET]);
    }
    for (int i = 0; i < count; i++) result[FEATURES * nodes[i] + REGRET] = (result[FEATURES * nodes[i] + REGRET] - least) / scale;
}
}  // namespace

// Of each row the first `counts[r]` of its `places` points are the nodes of a path: its first, those between, its last. In each of `rounds`
// trees prices change by less. `result` are the features of each node, the shares of those beside the ends over the later half of all trees.
void bound_paths(View<const float, 3> points, View<const int32_t, 1> counts, int64_t rounds, double stride, int64_t tries,
                 int64_t more_rounds, double more_stride, int64_t threads, View<float, 3> result, View<float, 1> scales) {
    int64_t rows = points.size(0), places = checked_size(points.size(1), 2, "places");
    points.shaped({rows, places, 2}).between(-LARGEST_POINT, LARGEST_POINT);
    counts.shaped({rows}).between(2, (int)places);
    result.shaped({rows, places, FEATURES});
    scales.shaped({rows});
    for (int64_t each : {rounds, more_rounds}) require(each >= 1 && each < INT32_MAX, "`rounds` must be at least 1, got " + std::to_string(each) + ".");
    int team = checked_threads(threads), most = (int)std::clamp<int64_t>(tries, 0, places);
    Watch watch;
    boundary::Errors errors;
#pragma omp parallel num_threads(team) if (team > 1)
    {
        std::optional<Tree> tree;
        errors.run([&] { tree.emplace((int)places); });
#pragma omp for schedule(dynamic, 8)
        for (int64_t r = 0; r < rows; r++)
            errors.run([&] {
                float *own = result.part(r), scale = 0;
                std::fill_n(own, (size_t)FEATURES * places, 0.0f);
                tree->begin(points.part(r), counts[r]);
                for (int round = 0;; round++) {
                    watch.over();
                    tree->grow();
                    if (round == 0) scale = tree->mean_edge();
                    if (round >= rounds / 2) tree->count(1.0f / (rounds - rounds / 2), own);
                    if (round + 1 == rounds) break;
                    float left = 1 - (float)round / rounds;
                    tree->charge((float)stride * scale * left * left);
                }
                tree->describe(scale, own);
                try_some(*tree, counts[r], most, (int)more_rounds, (float)more_stride * scale, scale, own);
                scales[r] = scale;
            });
    }
    errors.rethrow();
}
