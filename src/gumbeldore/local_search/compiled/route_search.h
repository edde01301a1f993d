// Local search for vehicle routes: slack induction by string removals (Christiaens and Vanden Berghe 2020) with simulated annealing.
//
// A round takes strings of customers out of neighbouring routes and puts each back where it costs least, beside one of the nodes near it; one in
// a hundred places is overlooked, so that rounds differ. Node 0 is the depot. With time windows every node knows when service begins there and when it must
// at the latest, so that whether a customer may be put somewhere takes a few comparisons; distances are travel times.
#pragma once

#include "distances.h"
#include "entries.h"
#include "random.h"
#include "windows.h"

// Routes as linked lists of customers, 0 at both ends.
class Plan {
  public:
    struct Route {
        int first = 0, last = 0, size = 0;
        int64_t load = 0;
    };
    std::vector<int> next, previous, route;  // by node; route is -1 where a customer is absent
    std::vector<Route> routes;
    double length = 0;

    Plan(const Distances &distance, const std::vector<int64_t> &demands, const Windows &windows);
    // Puts a customer behind `last` (0: first) into a route.
    void insert(int node, int index, int last);
    void remove(int node);
    int empty_route();
    // Takes back what was done since `keep`.
    void undo();
    void keep();
    int used() const { return filled; }
    // Whether a customer behind `last` and before `following` (0: the depot) delays nobody too much; whether it can be left out there.
    bool in_time(int last, int node, int following) const {
        double at = std::max(leaves(last) + (*distance)(last, node), windows->opens[node]);
        return at <= windows->closes[node] + windows->late && at + windows->service[node] + (*distance)(node, following) <= until(following) + windows->late;
    }
    bool in_time_without(int last, int following) const { return leaves(last) + (*distance)(last, following) <= until(following) + windows->late; }

  private:
    struct Change {
        int node, route, last;
        bool inserted;
    };
    const Distances *distance;
    const std::vector<int64_t> *demands;
    const Windows *windows;
    std::vector<double> begin, latest;  // by node: when service begins, and when it must; of no use without windows
    std::vector<Change> journal;
    double kept_length = 0;
    int filled = 0;
    bool undoing = false;

    double leaves(int node) const { return node ? begin[node] + windows->service[node] : windows->opens[0]; }
    double until(int node) const { return node ? latest[node] : windows->closes[0]; }
    // Computes times anew, forwards from one node on and backwards from another one on, as far as they change.
    void time(int ahead, int back);
};

using Routes = std::vector<std::vector<int>>;

// The first node of a route that is reached too late, the depot included, or -1; without windows none is.
int first_late(const Distances &distance, const Windows &windows, const std::vector<int> &route);

// Routes by savings (Clarke and Wright 1964) of nodes that are near each other.
Routes routes_by_savings(const Distances &distance, const std::vector<int64_t> &demands, int64_t capacity, const std::vector<int> &near, int size);

// How far an annealing is at the beginning and at the end of some work, from 0 to 1.
struct Progress {
    double from, to;
};

class RouteSearch {
  public:
    static constexpr const char *NAME = "route search";

    // `stays` is a customer that remains the first of its route, or 0. Without routes they begin by savings.
    // With windows they begin by insertion; all routes must be in time.
    RouteSearch(const Distances &distance, std::vector<int64_t> demands, int64_t capacity, uint64_t seed, const Routes &routes, int stays = 0, Windows windows = {});

    // So many rounds, or until time is up; returns how many there were. Temperatures are those of the progress, by the work or by the time,
    // whichever ends first. Without, the search anneals again and again, each time twice as long.
    int64_t run(int64_t work, double seconds, std::optional<Progress> progress, Watch &watch);
    bool offer(const Routes &routes);
    Routes best() const;
    double cost_of(const Routes &routes) const;
    double cost() const { return shortest; }
    // The first node of a route that is reached too late, as below.
    int late(const std::vector<int> &route) const { return first_late(distance, windows, route); }
    void heat(double first, double last);
    const std::vector<int64_t> &loads() const { return demands; }
    int64_t limit() const { return capacity; }
    int nodes() const { return distance.count(); }

  private:
    const Distances distance;
    const std::vector<int64_t> demands;
    const int64_t capacity;
    const Windows windows;
    const int n, size, stays;
    const std::vector<int> near;
    const double least;
    Random random;
    Plan plan, leading;
    double shortest, hot, cold;
    std::vector<int> absent, struck;
    int64_t cycle, turn;  // how long the search anneals on its own, and how far it is

    double temperature(double share) const { return hot * std::pow(cold / hot, share); }

    Plan planned(const Routes &routes) const;
    void ruin();
    void take_string(int node, int count);
    void take(int node);
    void recreate();
    void put_back();
    bool can_go(int node) const;
    void sort_absent();
    struct Place {
        double cost;
        int route = -1, last = 0;
    };
    void consider(int node, int route, int last, Place &best);
    bool fits(int node, int route) const { return plan.routes[route].load + demands[node] <= capacity; }
};
