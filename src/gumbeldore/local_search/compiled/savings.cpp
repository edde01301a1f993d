// Routes by savings (Clarke and Wright 1964) of what is left to do, and what they cost after each of some actions. `problems/cvrp/savings.py` calls the
// function at the end, and defines what it computes.

#include "entries.h"
#include "plane.h"

namespace {
using Load = int64_t;
enum Feature { NEXT, MINE, END, LOAD, ON_TRIED, ON_REGRET, BACK_TRIED, BACK_REGRET, FEATURES };

// A vehicle stands at node 0 and has loaded demands[0]; the customers are the nodes 1 .. n - 1, the depot is node n.
class Savings {
  public:
    Savings(const float *points, const Load *demands, Load capacity, int nodes)
        : n(nodes), capacity(capacity), demands(demands), distance(points, nodes + 1), joined(n), route(n), load(n) {
        for (int a = 0; a < n; a++)
            for (int b = a + 1; b < n; b++) {
                float saving = distance(n, a) + distance(n, b) - distance(a, b);
                if (saving > 0) pairs.push_back({saving, a, b});
            }
        std::sort(pairs.begin(), pairs.end(), [](const Pair &p, const Pair &q) {
            return p.saving != q.saving ? p.saving > q.saving : p.a != q.a ? p.a < q.a : p.b < q.b;
        });
    }

    // What routes would cost from here on, and who ends them.
    void describe(float *result) {
        join(0, demands[0]);
        for (int v = 0, mine = find(0); v < n; v++) {
            float *own = result + FEATURES * v;
            own[NEXT] = v > 0 && v == next;
            own[MINE] = find(v) == mine;
            own[END] = joined[v] < 2;
            own[LOAD] = (float)load[find(v)] / capacity;
        }
    }

    // What each of some actions would lead to: on to customers that are near, or that savings go to; and back to the depot and on to the farthest end of a route, and,
    // where that is not much worse, to customers that are far. Returns the least of all costs. To be called after `describe`, which says where savings go.
    double look_ahead(int near, int far, float close, float *result) {
        std::vector<std::pair<float, int>> fitting, all;
        bool under_way = demands[0] > 0 || distance(0, n) > 0;  // not at the depot
        for (int v = 1; v < n; v++) {
            if (under_way && demands[0] + demands[v] <= capacity) fitting.emplace_back(distance(0, v), v);
            all.emplace_back(-distance(n, v), v);
        }
        std::sort(fitting.begin(), fitting.end());
        std::sort(all.begin(), all.end());
        int expected = next;
        double least = INFINITY;
        for (int i = 0; i < (int)fitting.size(); i++)
            if (int v = fitting[i].second; i < near || v == expected)
                least = std::min(least, attempt(v, distance(0, v), demands[0] + demands[v], result + FEATURES * v + ON_TRIED));
        join(-1, 0);
        auto end = std::find_if(all.begin(), all.end(), [&](auto &each) { return joined[each.second] < 2; });
        if (end == all.end()) return least;  // no customer is left
        double home = attempt_by_depot(end->second, result);
        least = std::min(least, home);
        if (home - least > close * least / n) return least;
        for (int i = 0; i < std::min(far, (int)all.size()); i++)
            if (int v = all[i].second; v != end->second) least = std::min(least, attempt_by_depot(v, result));
        return least;
    }

  private:
    struct Pair {
        float saving;
        int a, b;
    };
    int n, next = -1;
    Load capacity;
    const Load *demands;
    Plane distance;
    std::vector<Pair> pairs;
    std::vector<int> joined, route;
    std::vector<Load> load;

    // Joins ends of routes, the largest saving first. One of them is that of a vehicle that begins at `start` with a load; -1: there is none. Returns what all of them
    // cost.
    double join(int start, Load loaded) {
        std::fill(joined.begin(), joined.end(), 0);
        std::iota(route.begin(), route.end(), 0);
        std::copy_n(demands, n, load.begin());
        if (start != 0) joined[0] = 2;  // left out
        double cost = 0;
        for (int v = 1; v < n; v++)
            if (v != start) cost += 2.0 * distance(n, v);
        if (start >= 0) {
            joined[start] = 1;
            load[start] = loaded;
            cost += distance(n, start);
        }
        next = -1;
        for (const Pair &pair : pairs) {
            if (joined[pair.a] > 1 || joined[pair.b] > 1) continue;
            int one = find(pair.a), other = find(pair.b);
            if (one == other || load[one] + load[other] > capacity) continue;
            route[other] = one;
            load[one] += load[other];
            joined[pair.a]++;
            joined[pair.b]++;
            cost -= pair.saving;
            if (pair.a == start || pair.b == start) next = pair.a + pair.b - start;
        }
        return cost;
    }

    double attempt(int v, double way, Load loaded, float *tried) {
        double cost = way + join(v, loaded);
        tried[0] = 1;
        tried[1] = (float)cost;
        return cost;
    }

    double attempt_by_depot(int v, float *result) {
        return attempt(v, (double)distance(0, n) + distance(n, v), demands[v], result + FEATURES * v + BACK_TRIED);
    }

    int find(int node) {
        while (route[node] != node) node = route[node] = route[route[node]];
        return node;
    }
};
}  // namespace

// Of each row the first `counts[r]` of its `places` points are where a vehicle stands, all customers, and the depot; the first demand is what the
// vehicle has loaded. `result` are the features of each node.
void look_ahead_by_savings(View<const float, 3> points, View<const int64_t, 2> demands, View<const int64_t, 1> capacities,
                           View<const int32_t, 1> counts, int64_t near, int64_t far, double close, int64_t threads, View<float, 3> result) {
    int64_t rows = demands.size(0), places = checked_size(demands.size(1), 2, "places");
    points.shaped({rows, places, 2}).between(-LARGEST_POINT, LARGEST_POINT);
    demands.between(0, LARGEST_LOAD);
    capacities.shaped({rows}).between(1, LARGEST_LOAD);
    counts.shaped({rows}).between(2, (int)places);
    result.shaped({rows, places, FEATURES});
    int team = checked_threads(threads), nearest = (int)std::clamp<int64_t>(near, 0, places), farthest = (int)std::clamp<int64_t>(far, 0, places);
    Watch watch;
    boundary::Errors errors;
#pragma omp parallel for schedule(dynamic, 8) num_threads(team) if (team > 1)
    for (int64_t r = 0; r < rows; r++)
        errors.run([&] {
            watch.over();
            float *own = result.part(r);
            std::fill_n(own, (size_t)FEATURES * places, 0.0f);
            int nodes = counts[r] - 1;
            Savings savings(points.part(r), demands.part(r), capacities[r], nodes);
            savings.describe(own);
            double least = savings.look_ahead(nearest, farthest, (float)close, own);
            double unit = std::max(least / nodes, 1e-9);
            for (int v = 0; v < nodes; v++)
                for (int kind : {ON_TRIED, BACK_TRIED})
                    if (float *tried = own + FEATURES * v + kind; tried[0] > 0) tried[1] = (float)(std::max(tried[1] - least, 0.0) / unit);
        });
    errors.rethrow();
}
