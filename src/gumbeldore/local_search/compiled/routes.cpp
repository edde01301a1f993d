// Local search for vehicle routes: slack induction by string removals (Christiaens and Vanden Berghe 2020) with simulated
// annealing. `improve.py` calls the function at the end.
//
// A round takes strings of customers out of neighbouring routes and puts each back where it costs least; one in a hundred places
// is overlooked, so that rounds differ. Node 0 is the depot.

#include "entries.h"
#include "plane.h"
#include "random.h"

namespace {
constexpr double REMOVED = 10;         // customers that a round takes out, on average
constexpr double LONGEST_STRING = 10;  // of one route
constexpr double SPLIT = 0.5;          // how often some customers in the middle of a string stay
constexpr double STAY_ON = 0.99;       // the chance that one more of them does
constexpr double BLINK = 0.01;         // the chance to overlook a place

struct Route {
    int first = 0, size = 0;
    int64_t load = 0;
};

// Routes as linked lists of customers, 0 at both ends.
struct Plan {
    std::vector<int> next, previous, route;
    std::vector<Route> routes;
    double length = 0;
};

class Search {
  public:
    // `stays` is a customer that remains the first of its route, or 0.
    Search(const float *points, const int64_t *demands, int64_t capacity, int nodes, uint64_t seed, int stays)
        : n(nodes), demands(demands), capacity(capacity), stays(stays), distance(points, nodes),
          near(distance.neighbours(1, nodes - 2)), random(seed) {}

    // Action 2 c + v: customer c (from 0) next, v = 1 via the depot.
    Plan read(const int64_t *actions) {
        Plan plan{std::vector<int>(n, 0), std::vector<int>(n, 0), std::vector<int>(n, -1), {}, 0};
        for (int i = 0, last = 0; i < n - 1; i++) {
            if (actions[i] % 2 || i == 0) {
                plan.routes.emplace_back();
                last = 0;
            }
            int node = (int)(actions[i] / 2 + 1);
            insert(plan, node, (int)plan.routes.size() - 1, last);
            last = node;
        }
        return plan;
    }

    static void write(const Plan &plan, int64_t *actions) {
        for (const Route &route : plan.routes)
            for (int node = route.first; node; node = plan.next[node]) *actions++ = 2 * (node - 1) + (node == route.first);
    }

    Plan anneal(Plan plan, int64_t rounds, double hot, double cold, Watch &watch) {
        Plan best = plan, trial;
        double cooling = std::pow(cold / hot, 1.0 / (double)std::max<int64_t>(1, rounds));
        for (double heat = hot; rounds > 0; rounds--, heat *= cooling) {
            watch.over();
            trial = plan;
            ruin(trial);
            recreate(trial);
            if (trial.length >= plan.length - heat * std::log(1 - random.unit())) continue;
            std::swap(plan, trial);
            if (plan.length < best.length) best = plan;
        }
        return best;
    }

  private:
    int n;
    const int64_t *demands, capacity;
    int stays;
    Plane distance;
    std::vector<int> near, absent, struck;
    Random random;

    // Puts a node behind `last` (0: first) into a route.
    void insert(Plan &plan, int node, int index, int last) {
        Route &route = plan.routes[index];
        int following = last ? plan.next[last] : route.first;
        plan.previous[node] = last;
        plan.next[node] = following;
        (last ? plan.next[last] : route.first) = node;
        if (following) plan.previous[following] = node;
        plan.route[node] = index;
        route.load += demands[node];
        route.size++;
        plan.length += distance(last, node) + distance(node, following) - distance(last, following);
    }

    void remove(Plan &plan, int node) {
        Route &route = plan.routes[plan.route[node]];
        int last = plan.previous[node], following = plan.next[node];
        (last ? plan.next[last] : route.first) = following;
        if (following) plan.previous[following] = last;
        plan.route[node] = -1;
        route.load -= demands[node];
        route.size--;
        plan.length += distance(last, following) - distance(last, node) - distance(node, following);
        absent.push_back(node);
    }

    // Takes one string out of each of several routes around a random customer.
    void ruin(Plan &plan) {
        absent.clear();
        struck.clear();
        int used = 0;
        for (const Route &route : plan.routes) used += route.size > 0;
        double longest = std::min(LONGEST_STRING, (double)(n - 1) / used);
        int strings = (int)(1 + random.unit() * (4 * REMOVED / (1 + longest) - 1));
        int centre = 1 + random.below(n - 1);
        for (int i = -1; i < n - 2 && (int)struck.size() < strings; i++) {
            int node = i < 0 ? centre : near[(size_t)(centre - 1) * (n - 2) + i], route = plan.route[node];
            if (route < 0 || std::find(struck.begin(), struck.end(), route) != struck.end()) continue;
            struck.push_back(route);
            take_string(plan, node, (int)(1 + random.unit() * std::min((double)plan.routes[route].size, longest)));
        }
    }

    // Takes `count` customers of one route out, around a node; some in the middle may stay.
    void take_string(Plan &plan, int node, int count) {
        const Route &route = plan.routes[plan.route[node]];
        count = std::min(count, route.size);
        int stay = 0;
        if (count > 1 && count < route.size && random.unit() < SPLIT)
            for (stay = 1; count + stay < route.size && random.unit() < STAY_ON;) stay++;
        int all = count + stay, place = 0;
        for (int i = node; plan.previous[i]; i = plan.previous[i]) place++;
        int least = std::max(0, place - all + 1), most = std::min(place, route.size - all);
        int begin = least + random.below(most - least + 1), gap = stay ? 1 + random.below(count - 1) : count;
        int current = route.first;
        for (int i = 0; i < begin; i++) current = plan.next[current];
        for (int i = 0; i < all; i++) {
            int following = plan.next[current];
            if (current != stays && (i < gap || i >= gap + stay)) remove(plan, current);
            current = following;
        }
    }

    // Puts the absent customers back, each where it costs least.
    void recreate(Plan &plan) {
        sort_absent();
        for (int node : absent) {
            float least = 2 * distance(0, node);
            int index = -1, place = 0, empty = -1;
            for (int i = 0; i < (int)plan.routes.size(); i++) {
                const Route &route = plan.routes[i];
                if (route.size == 0) empty = i;
                if (route.size == 0 || route.load + demands[node] > capacity) continue;
                int begun = route.first == stays ? stays : 0;
                for (int a = begun, b = begun ? plan.next[begun] : route.first;; a = b, b = plan.next[b]) {
                    float cost = distance(node, a) + distance(node, b) - distance(a, b);
                    if (cost < least && random.unit() >= BLINK) {
                        least = cost;
                        index = i;
                        place = a;
                    }
                    if (!b) break;
                }
            }
            if (index < 0) index = empty >= 0 ? empty : (plan.routes.emplace_back(), (int)plan.routes.size() - 1);
            insert(plan, node, index, place);
        }
    }

    // In random order, or those of large demand first, or the far ones, or the near ones (4 : 4 : 2 : 1).
    void sort_absent() {
        for (int i = (int)absent.size() - 1; i > 0; i--) std::swap(absent[i], absent[random.below(i + 1)]);
        int way = random.below(11);
        auto by = [&](auto key) { std::sort(absent.begin(), absent.end(), [&](int a, int b) { return key(a) < key(b); }); };
        if (way >= 4 && way < 8) by([&](int node) { return -demands[node]; });
        if (way == 8 || way == 9) by([&](int node) { return -distance(0, node); });
        if (way == 10) by([&](int node) { return distance(0, node); });
    }
};
}  // namespace

// Replaces solutions of `nodes` - 1 customers by ones that are not longer, in `rounds` of a temperature that falls from `hot` to `cold`.
// With `under_way` customer 1 stays the first of the first route.
void improve_routes(View<const float, 3> points, View<const int64_t, 2> demands, View<const int64_t, 1> capacities,
                    View<const int64_t, 1> seeds, int64_t rounds, double hot, double cold, bool under_way, View<int64_t, 2> actions) {
    int64_t count = actions.size(0), nodes = checked_size(actions.size(1), 1, "customers") + 1;
    points.shaped({count, nodes, 2}).between(-LARGEST, LARGEST);
    demands.shaped({count, nodes}).between(0, LARGEST_LOAD);
    capacities.shaped({count}).between(1, LARGEST_LOAD);
    seeds.shaped({count});
    require(hot > 0 && cold > 0 && std::isfinite(hot) && std::isfinite(cold), "Temperatures must be above 0 and finite.");
    for (int64_t i = 0; i < count; i++) {
        check_routes(actions.part(i), demands.part(i), capacities[i], nodes);
        require(!under_way || actions.part(i)[0] / 2 == 0, "`actions` must begin with the first customer of a vehicle that is under way.");
    }
    Watch watch;
    for (int64_t i = 0; i < count; i++) {
        Search search(points.part(i), demands.part(i), capacities[i], (int)nodes, seeds[i], under_way ? 1 : 0);
        Search::write(search.anneal(search.read(actions.part(i)), rounds, hot, cold, watch), actions.part(i));
    }
}
