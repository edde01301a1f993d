// What the greedy rule of prize per way says of each node that could come next: how much a tour collects that goes there first.

#include <algorithm>
#include <cmath>
#include <vector>

#include "entries.h"

namespace {
constexpr int FEATURES = 4;
constexpr int FIRST = 3;       // nodes of the rule's own tour that are tried in any case
constexpr float LEAST = 1e-6f;  // the shortest way that counts

// Tours of one row that go on to the node with the most prize per way, while the depot, the last token, can be reached.
class Walks {
  public:
    Walks(const float *ways, const float *prizes, int tokens, int count) : ways(ways), home(ways + (size_t)(tokens - 1) * tokens), prizes(prizes), tokens(tokens), count(count) {}

    // From a node on; returns what it collects, and adds its nodes to `stops`.
    double walk(int here, double left, std::vector<int> *stops) {
        free.clear();
        for (int node = 1; node <= count; node++)
            if (node != here) free.push_back(node);
        for (double collected = 0;;) {
            const float *from = ways + (size_t)here * tokens;
            size_t kept = 0, chosen = 0;
            float top = -1;
            for (int node : free) {
                if (from[node] + home[node] > left) continue;  // so it is from anywhere else
                float score = prizes[node] / std::max(from[node], LEAST);
                if (score > top) top = score, chosen = kept;
                free[kept++] = node;
            }
            free.resize(kept);
            if (kept == 0) return collected;
            here = free[chosen];
            left -= from[here];
            collected += prizes[here];
            if (stops) stops->push_back(here);
            free.erase(free.begin() + (int)chosen);
        }
    }
    float way(int a, int b) const { return ways[(size_t)a * tokens + b]; }

  private:
    const float *ways, *home, *prizes;
    int tokens, count;
    std::vector<int> free;
};
}  // namespace

// Tokens are the origin, `counts` nodes that may come next, padding, and the depot. Of each token: whether it was tried; how much less than the best of those
// tried a tour collects that goes there first; whether it is on the rule's own tour; and how early, from 1 down to 0.
void look_ahead_by_walks(View<const float, 3> ways, View<const float, 2> prizes, View<const float, 1> budgets, View<const int32_t, 1> counts, int64_t tries,
                         View<float, 3> result) {
    int64_t rows = ways.size(0), tokens = checked_size(ways.size(1), 2, "tokens");
    ways.shaped({rows, tokens, tokens}).between(0, LARGEST_POINT);
    prizes.shaped({rows, tokens}).between(0, LARGEST_POINT);
    budgets.shaped({rows}).between(-LARGEST_POINT, LARGEST_POINT);
    counts.shaped({rows}).between(0, (int32_t)tokens - 2);
    result.shaped({rows, tokens, FEATURES});
    require(tries >= 1, "`tries` must be at least 1, got " + std::to_string(tries) + ".");
    Watch watch;
    for (int64_t row = 0; row < rows; row++) {
        if (watch.over()) return;
        const float *worth = prizes.part(row);
        float *own = result.part(row);
        std::fill(own, own + tokens * FEATURES, 0.0f);
        Walks walks(ways.part(row), worth, (int)tokens, counts[row]);
        std::vector<int> tour, tried;
        walks.walk(0, budgets[row], &tour);
        for (size_t i = 0; i < tour.size(); i++) {
            own[tour[i] * FEATURES + 2] = 1;
            own[tour[i] * FEATURES + 3] = 1.0f / (float)(1 + i);
            if (i < FIRST) tried.push_back(tour[i]);
        }
        std::vector<std::pair<float, int>> others;
        for (int node = 1; node <= counts[row]; node++)
            if (std::find(tried.begin(), tried.end(), node) == tried.end()) others.push_back({-worth[node] / std::max(walks.way(0, node), LEAST), node});
        std::sort(others.begin(), others.end());
        for (size_t i = 0; i < others.size() && (int64_t)tried.size() < tries; i++) tried.push_back(others[i].second);
        std::vector<double> total;
        for (int node : tried) total.push_back(worth[node] + walks.walk(node, (double)budgets[row] - walks.way(0, node), nullptr));
        double most = total.empty() ? 0 : *std::max_element(total.begin(), total.end());
        for (size_t i = 0; i < tried.size(); i++) {
            own[tried[i] * FEATURES] = 1;
            own[tried[i] * FEATURES + 1] = (float)(most - total[i]);
        }
    }
}
