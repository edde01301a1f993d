#include "route_search.h"

#include <algorithm>
#include <numeric>

#include "searches.h"

namespace {
constexpr int NEIGHBOURS = 100, PLACES = 40;  // for strings, and for places to put a customer
constexpr double REMOVED = 10;                // customers that a round takes out, on average
constexpr double LONGEST_STRING = 10;         // of one route
constexpr double SPLIT = 0.5;                 // how often some customers in the middle of a string stay
constexpr double STAY_ON = 0.99;              // the chance that one more of them does
constexpr double BLINK = 0.01;                // the chance to overlook a place
constexpr double HOT = 0.1, COLD = 0.001;     // temperatures, in widths of the map
constexpr int LISTED = 1000;                  // so many nodes have all their distances listed
constexpr int64_t CYCLE = 100;                // rounds per node of the first annealing
constexpr double WARM = 0.2;                  // where in its temperatures each of them begins
constexpr int LOOK = 16;                      // rounds between looks at the clock
}  // namespace

Plan::Plan(const Distances &distance, const std::vector<int64_t> &demands, const Windows &windows)
    : next(demands.size(), 0), previous(demands.size(), 0), route(demands.size(), -1), distance(&distance), demands(&demands), windows(&windows),
      begin(windows ? demands.size() : 0, 0.0), latest(windows ? demands.size() : 0, 0.0) {}

void Plan::time(int ahead, int back) {
    for (int i = ahead; i; i = next[i]) {
        double at = std::max(leaves(previous[i]) + (*distance)(previous[i], i), windows->opens[i]);
        if (at == begin[i] && i != ahead) break;
        begin[i] = at;
    }
    for (int i = back; i; i = previous[i]) {
        double at = std::min(until(next[i]) - (*distance)(i, next[i]) - windows->service[i], windows->closes[i]);
        if (at == latest[i] && i != back) break;
        latest[i] = at;
    }
}

void Plan::insert(int node, int index, int last) {
    Route &own = routes[index];
    int following = last ? next[last] : own.first;
    previous[node] = last;
    next[node] = following;
    (last ? next[last] : own.first) = node;
    (following ? previous[following] : own.last) = node;
    route[node] = index;
    own.load += (*demands)[node];
    filled += own.size++ == 0;
    if (*windows) time(node, node);
    if (undoing) return;
    length += (*distance)(last, node) + (*distance)(node, following) - (*distance)(last, following);
    journal.push_back({node, index, last, true});
}

void Plan::remove(int node) {
    int index = route[node], last = previous[node], following = next[node];
    Route &own = routes[index];
    (last ? next[last] : own.first) = following;
    (following ? previous[following] : own.last) = last;
    route[node] = -1;
    own.load -= (*demands)[node];
    filled -= --own.size == 0;
    if (*windows) time(following, last);
    if (undoing) return;
    length += (*distance)(last, following) - (*distance)(last, node) - (*distance)(node, following);
    journal.push_back({node, index, last, false});
}

int Plan::empty_route() {
    for (size_t i = 0; filled < (int)routes.size() && i < routes.size(); i++)
        if (routes[i].size == 0) return (int)i;
    routes.emplace_back();
    return (int)routes.size() - 1;
}

void Plan::undo() {
    undoing = true;
    for (; !journal.empty(); journal.pop_back()) {
        Change change = journal.back();
        if (change.inserted)
            remove(change.node);
        else
            insert(change.node, change.route, change.last);
    }
    undoing = false;
    length = kept_length;
}

void Plan::keep() {
    journal.clear();
    kept_length = length;
}

RouteSearch::RouteSearch(const Distances &distance, std::vector<int64_t> given, int64_t capacity, uint64_t seed, const Routes &routes, int stays, Windows given_windows)
    : distance(distance.listed_if(LISTED)), demands(std::move(given)), capacity(capacity), windows(std::move(given_windows)), n(distance.count()), size(std::clamp(n - 1, 0, NEIGHBOURS)), stays(stays),
      near(nearest(this->distance, size)), least(distance.tolerance()), random(seed),
      plan(planned(routes.empty() && !windows ? routes_by_savings(this->distance, demands, capacity, near, size) : routes)), leading(plan), shortest(plan.length), cycle(CYCLE * n), turn((int64_t)(WARM * (double)cycle)) {
    double width = 0;
    for (int i = 1; i < n; i++) width = std::max({width, distance(0, i), distance(i, 0)});
    heat(std::max(HOT * width, 1e-300), std::max(COLD * width, 1e-300));
    if (!windows || !routes.empty()) return;
    for (int i = 1; i < n; i++) absent.push_back(i);
    std::stable_sort(absent.begin(), absent.end(), [&](int a, int b) { return this->distance(0, a) > this->distance(0, b); });
    put_back();
    plan.keep();
    leading = plan;
    shortest = plan.length;
}

void RouteSearch::heat(double first, double last) {
    hot = first;
    cold = last;
}

Plan RouteSearch::planned(const Routes &routes) const {
    Plan result(distance, demands, windows);
    for (const std::vector<int> &each : routes) {
        if (each.empty()) continue;
        result.routes.emplace_back();
        for (int i = 0, last = 0; i < (int)each.size(); last = each[i++]) result.insert(each[i], (int)result.routes.size() - 1, last);
    }
    result.keep();
    return result;
}

Routes RouteSearch::best() const {
    Routes result;
    for (const Plan::Route &route : leading.routes) {
        if (route.size == 0) continue;
        result.emplace_back();
        for (int node = route.first; node; node = leading.next[node]) result.back().push_back(node);
    }
    return result;
}

double RouteSearch::cost_of(const Routes &routes) const {
    double total = 0;
    for (const std::vector<int> &route : routes) {
        int last = 0;
        for (int node : route) {
            total += distance(last, node);
            last = node;
        }
        total += distance(last, 0);
    }
    return total;
}

int first_late(const Distances &distance, const Windows &windows, const std::vector<int> &route) {
    if (!windows) return -1;
    double clock = windows.opens[0];
    int last = 0;
    for (size_t i = 0; i <= route.size(); i++) {
        int node = i < route.size() ? route[i] : 0;
        double at = std::max(clock + distance(last, node), windows.opens[node]);
        if (at > windows.closes[node] + Windows::LENIENT * windows.late) return node;
        clock = at + windows.service[node];
        last = node;
    }
    return -1;
}

bool RouteSearch::offer(const Routes &routes) {
    if (cost_of(routes) >= cost_of(best()) - least) return false;
    plan = leading = planned(routes);
    shortest = plan.length;
    return true;
}

int64_t RouteSearch::run(int64_t work, double seconds, std::optional<Progress> progress, Watch &watch) {
    if (n < 2) return work;
    double warmth = hot;
    int64_t done = 0;
    for (; done < work; done++) {
        if (done % LOOK == 0 && watch.over()) break;
        if (!progress) {
            if (turn == cycle) {
                cycle *= 2;
                turn = (int64_t)(WARM * (double)cycle);
            }
            if (turn % LOOK == 0 || done == 0) warmth = temperature((double)(turn / LOOK * LOOK) / (double)cycle);
            turn++;
        } else if (done % LOOK == 0) {
            double share = std::max((double)done / (double)work, watch.spent() / seconds);
            warmth = temperature(progress->from + (progress->to - progress->from) * std::min(share, 1.0));
        }
        plan.keep();
        double before = plan.length;
        ruin();
        recreate();
        if (plan.length >= before - warmth * std::log(1 - random.unit())) {
            plan.undo();
        } else if (plan.length < shortest - least) {
            leading = plan;
            shortest = plan.length;
        }
    }
    return done;
}

// Takes one string out of each of several routes around a random customer.
void RouteSearch::ruin() {
    absent.clear();
    struck.clear();
    double longest = std::min(LONGEST_STRING, (double)(n - 1) / plan.used());
    int strings = (int)(1 + random.unit() * (4 * REMOVED / (1 + longest) - 1));
    int centre = 1 + random.below(n - 1);
    for (int i = -1; i < size && (int)struck.size() < strings; i++) {
        int node = i < 0 ? centre : near[(size_t)centre * size + i], route = plan.route[node];
        if (node == 0 || route < 0 || std::find(struck.begin(), struck.end(), route) != struck.end()) continue;
        struck.push_back(route);
        take_string(node, (int)(1 + random.unit() * std::min((double)plan.routes[route].size, longest)));
    }
}

// Takes `count` customers of one route out, around a node; some in the middle may stay.
void RouteSearch::take_string(int node, int count) {
    const Plan::Route &route = plan.routes[plan.route[node]];
    count = std::min(count, route.size);
    int stay = 0;
    if (count > 1 && count < route.size && random.unit() < SPLIT)
        for (stay = 1; count + stay < route.size && random.unit() < STAY_ON;) stay++;
    int all = count + stay, place = 0;
    for (int i = node; plan.previous[i] && place < all; i = plan.previous[i]) place++;
    int behind = 0;
    for (int i = node; plan.next[i] && behind < all; i = plan.next[i]) behind++;
    int most = std::min(place, all - 1), fewest = std::max(0, all - 1 - behind);  // how many before the node
    int before = fewest + random.below(most - fewest + 1), gap = stay ? 1 + random.below(count - 1) : count;
    int current = node;
    for (int i = 0; i < before; i++) current = plan.previous[current];
    for (int i = 0; i < all; i++) {
        int following = plan.next[current];
        if (current != stays && (i < gap || i >= gap + stay) && can_go(current)) take(current);
        current = following;
    }
}

void RouteSearch::take(int node) {
    plan.remove(node);
    absent.push_back(node);
}

void RouteSearch::consider(int node, int route, int last, Place &best) {
    int following = last ? plan.next[last] : plan.routes[route].first;
    if (following == stays && stays) return;
    double cost = distance(last, node) + distance(node, following) - distance(last, following);
    if (windows && cost < best.cost && !plan.in_time(last, node, following)) return;
    if (cost < best.cost && random.unit() >= BLINK) best = {cost, route, last};
}

// A customer goes only if nobody is late without it: by some distances the way over it is the shorter one.
bool RouteSearch::can_go(int node) const { return !windows || plan.in_time_without(plan.previous[node], plan.next[node]); }

void RouteSearch::recreate() {
    sort_absent();
    put_back();
}

// Puts the absent customers back, each where it costs least: beside a node near it, or, where none of their routes has room and time, anywhere.
void RouteSearch::put_back() {
    int places = windows ? size : std::min(size, PLACES);
    for (int node : absent) {
        Place best{distance(0, node) + distance(node, 0)};
        bool room = false;
        for (int i = 0; i < places; i++) {
            int other = near[(size_t)node * size + i], route = plan.route[other];
            if (other == 0 || route < 0 || !fits(node, route)) continue;
            room = true;
            if (plan.previous[other] == 0) consider(node, route, 0, best);
            consider(node, route, other, best);
        }
        if (windows) room = best.route >= 0;
        for (int route = 0; !room && route < (int)plan.routes.size(); route++) {
            if (plan.routes[route].size == 0 || !fits(node, route)) continue;
            consider(node, route, 0, best);
            for (int last = plan.routes[route].first; last; last = plan.next[last]) consider(node, route, last, best);
        }
        if (best.route < 0) best.route = plan.empty_route();
        plan.insert(node, best.route, best.last);
    }
}

// In random order, or those of large demand first, or the far ones, or the near ones (4 : 4 : 2 : 1); with windows also those that are open for a short time first,
// or that open early, or that close late (2 : 2 : 2).
void RouteSearch::sort_absent() {
    for (int i = (int)absent.size() - 1; i > 0; i--) std::swap(absent[i], absent[random.below(i + 1)]);
    int way = random.below(windows ? 17 : 11);
    auto by = [&](auto key) { std::stable_sort(absent.begin(), absent.end(), [&](int a, int b) { return key(a) < key(b); }); };
    if (way >= 4 && way < 8) by([&](int node) { return -demands[node]; });
    if (way == 8 || way == 9) by([&](int node) { return -distance(0, node); });
    if (way == 10) by([&](int node) { return distance(0, node); });
    if (way == 11 || way == 12) by([&](int node) { return windows.closes[node] - windows.opens[node]; });
    if (way == 13 || way == 14) by([&](int node) { return windows.opens[node]; });
    if (way > 14) by([&](int node) { return -windows.closes[node]; });
}

Routes routes_by_savings(const Distances &distance, const std::vector<int64_t> &demands, int64_t capacity, const std::vector<int> &near, int size) {
    struct Pair {
        double saving;
        int a, b;
    };
    int n = distance.count();
    std::vector<Pair> pairs;
    for (int a = 1; a < n; a++)
        for (int i = 0; i < size; i++)
            if (int b = near[(size_t)a * size + i]; b > 0) {
                double saving = distance(a, 0) + distance(0, b) - distance(a, b);
                if (saving > 0) pairs.push_back({saving, a, b});
            }
    std::sort(pairs.begin(), pairs.end(), [](const Pair &p, const Pair &q) { return std::tuple(-p.saving, p.a, p.b) < std::tuple(-q.saving, q.a, q.b); });
    std::vector<int> root(n), next(n, 0), previous(n, 0);
    std::vector<int64_t> load = demands;
    std::iota(root.begin(), root.end(), 0);
    auto find = [&](int node) {
        while (root[node] != node) node = root[node] = root[root[node]];
        return node;
    };
    auto turn = [&](int node) {  // the whole path round
        while (next[node]) node = next[node];
        for (int last = 0; node; last = node, node = next[node]) {
            next[node] = previous[node];
            previous[node] = last;
        }
    };
    for (const Pair &pair : pairs) {
        auto [saving, a, b] = pair;
        int one = find(a), other = find(b);
        if (one == other || load[one] + load[other] > capacity || (next[a] && previous[a]) || (next[b] && previous[b])) continue;
        if (next[a]) turn(a);
        if (previous[b]) turn(b);
        next[a] = b;
        previous[b] = a;
        root[other] = one;
        load[one] += load[other];
    }
    Routes routes;
    for (int first = 1; first < n; first++) {
        if (previous[first]) continue;
        routes.emplace_back();
        for (int node = first; node; node = next[node]) routes.back().push_back(node);
    }
    return routes;
}
