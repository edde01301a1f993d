// What Python may call of the search for routes. Routes come and go as one list of nodes, with a 0 between two routes.

#include <algorithm>

#include "route_search.h"
#include "searches.h"

namespace {
void check_in_time(const Distances &distance, const Windows &windows, const std::vector<int> &route, const char *what) {
    int node = first_late(distance, windows, route);
    if (node >= 0) throw Refused(std::string(what) + " must be in time, but comes to node " + std::to_string(node) + " after its window has closed.");
}

// Windows of nodes that can be served each by a vehicle of its own.
Windows checked(const Distances &distance, const double *opening, const double *service) {
    Windows windows(opening, service, distance.count());
    for (int node = 0; node < distance.count(); node++)
        if (windows.opens[node] > windows.closes[node])
            throw Refused("`windows` must close after they open, but that of node " + std::to_string(node) + " does not.");
    for (int node = 1; node < distance.count(); node++) check_in_time(distance, windows, {node}, "A vehicle for one customer");
    return windows;
}

Routes checked(View<const int64_t, 1> nodes, const std::vector<int64_t> &demands, int64_t capacity) {
    Routes routes(1);
    std::vector<char> served(demands.size(), 0);
    int64_t load = 0, left = (int64_t)demands.size() - 1;
    nodes.between(0, left);
    for (int64_t node : nodes) {
        if (node == 0) {
            load = 0;
            routes.emplace_back();
            continue;
        }
        if (served[node]++) throw Refused("`routes` must serve every customer once, got node " + std::to_string(node) + " twice.");
        load += demands[node];
        if (load > capacity)
            throw Refused("A route must load at most the capacity, " + std::to_string(capacity) + ", got " + std::to_string(load) + ".");
        routes.back().push_back((int)node);
        left--;
    }
    require(left == 0, "`routes` must serve every customer, " + std::to_string(left) + " are missing.");
    return routes;
}

// Action 2 c + v: customer c (from 0) next, v = 1 via the depot.
Routes routes_of(const int64_t *actions, int64_t count) {
    Routes routes;
    for (int64_t step = 0; step < count; step++) {
        if (step == 0 || actions[step] % 2) routes.emplace_back();
        routes.back().push_back((int)(actions[step] / 2) + 1);
    }
    return routes;
}

// The same the other way; a vehicle that is under way first.
void write(Routes routes, bool under_way, int64_t *actions) {
    if (under_way) std::stable_partition(routes.begin(), routes.end(), [](const std::vector<int> &route) { return route[0] == 1; });
    for (const std::vector<int> &route : routes)
        for (int node : route) *actions++ = 2 * (node - 1) + (node == route[0]);
}
}  // namespace

std::unique_ptr<Held<RouteSearch>> route_search(Held<Distances> *distances, View<const int64_t, 1> demands, int64_t capacity,
                                                std::optional<View<const double, 2>> opening, std::optional<View<const double, 1>> service, int64_t seed,
                                                std::optional<View<const int64_t, 1>> nodes) {
    require(capacity >= 1 && capacity <= LARGEST_LOAD, "`capacity` must be in 1 .. 2^60, got " + std::to_string(capacity) + ".");
    demands.shaped({distances->object.count()}).between(0, capacity);
    std::vector<int64_t> loads(demands.begin(), demands.end());
    Routes routes;
    if (nodes) routes = checked(*nodes, loads, capacity);
    Windows windows;
    require(opening.has_value() == service.has_value(), "`windows` and `service` must be given together.");
    if (opening) {
        opening->shaped({distances->object.count(), 2}).between(-LONGEST, LONGEST);
        service->shaped({distances->object.count()}).between(0, LONGEST);
        windows = checked(distances->object, opening->begin(), service->begin());
    }
    for (const std::vector<int> &route : routes) check_in_time(distances->object, windows, route, "A route");
    return std::make_unique<Held<RouteSearch>>(distances->object, loads, capacity, (uint64_t)seed, routes, 0, windows);
}

int64_t run_routes(Borrowed<RouteSearch> search, int64_t work, double seconds, double from, double to) {
    std::optional<Progress> progress;
    if (!std::isnan(from)) {
        require(from >= 0 && from <= to && to <= 1, "`progress` must rise within 0 .. 1.");
        progress = Progress{from, to};
    }
    Watch watch(seconds, &search.stopped());
    int64_t done = search->run(work, seconds, progress, watch);
    search.stopped() = false;
    return done;
}

double best_routes(Borrowed<RouteSearch> search, View<int64_t, 1> nodes) {
    Routes routes = search->best();
    nodes.shaped({2 * (int64_t)search->nodes()});
    std::fill(nodes.begin(), nodes.end(), 0);
    int64_t *next = nodes.begin();
    for (const std::vector<int> &route : routes) next = std::copy(route.begin(), route.end(), next) + 1;
    return search->cost_of(routes);
}

bool offer_routes(Borrowed<RouteSearch> search, View<const int64_t, 1> nodes) {
    Routes routes = checked(nodes, search->loads(), search->limit());
    for (const std::vector<int> &route : routes)
        if (int node = search->late(route); node >= 0)
            throw Refused("A route must be in time, but comes to node " + std::to_string(node) + " after its window has closed.");
    return search->offer(routes);
}

// Replaces solutions of `nodes` - 1 customers by ones that are not longer, in `rounds` of a temperature that falls from `hot` to `cold`.
// Action 2 c + v: customer c (from 0) next, v = 1 via the depot. With `under_way` customer 1 stays the first of the first route.
void improve_routes(View<const float, 3> points, View<const int64_t, 2> demands, View<const int64_t, 1> capacities,
                    View<const int64_t, 1> seeds, int64_t rounds, double hot, double cold, bool under_way, View<int64_t, 2> actions) {
    int64_t count = actions.size(0), nodes = checked_size(actions.size(1), 1, "customers") + 1;
    points.shaped({count, nodes, 2}).between(-LARGEST_POINT, LARGEST_POINT);
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
        std::vector<double> x, y;
        for (int64_t node = 0; node < nodes; node++) {
            x.push_back(points.part(i)[2 * node]);
            y.push_back(points.part(i)[2 * node + 1]);
        }
        Distances distance(Rule::EXACT, std::move(x), std::move(y));
        Routes routes = routes_of(actions.part(i), nodes - 1);
        RouteSearch search(distance, {demands.part(i), demands.part(i) + nodes}, capacities[i], (uint64_t)seeds[i], routes, under_way ? 1 : 0);
        search.heat(hot, cold);
        search.run(rounds, INFINITY, Progress{0, 1}, watch);
        write(search.best(), under_way, actions.part(i));
    }
}

// The same within time windows, by distances that are travel times: matrices, node by node.
void improve_timed_routes(View<const double, 3> distances, View<const int64_t, 2> demands, View<const int64_t, 1> capacities,
                          View<const double, 3> windows, View<const double, 2> service, View<const int64_t, 1> seeds, int64_t rounds,
                          bool under_way, View<int64_t, 2> actions) {
    int64_t count = actions.size(0), nodes = checked_size(actions.size(1), 1, "customers") + 1;
    distances.shaped({count, nodes, nodes}).between(0, FARTHEST);
    demands.shaped({count, nodes}).between(0, LARGEST_LOAD);
    capacities.shaped({count}).between(1, LARGEST_LOAD);
    windows.shaped({count, nodes, 2}).between(-LONGEST, LONGEST);
    service.shaped({count, nodes}).between(0, LONGEST);
    seeds.shaped({count});
    for (int64_t i = 0; i < count; i++) {
        check_routes(actions.part(i), demands.part(i), capacities[i], nodes);
        require(!under_way || actions.part(i)[0] / 2 == 0, "`actions` must begin with the first customer of a vehicle that is under way.");
    }
    Watch watch;
    for (int64_t i = 0; i < count; i++) {
        Distances distance((int)nodes, {distances.part(i), distances.part(i) + nodes * nodes}, false);
        Windows times = checked(distance, windows.part(i), service.part(i));
        Routes routes = routes_of(actions.part(i), nodes - 1);
        for (const std::vector<int> &route : routes) check_in_time(distance, times, route, "A route");
        RouteSearch search(distance, {demands.part(i), demands.part(i) + nodes}, capacities[i], (uint64_t)seeds[i], routes, under_way ? 1 : 0, times);
        search.run(rounds, INFINITY, Progress{0, 1}, watch);
        write(search.best(), under_way, actions.part(i));
    }
}
