// Local search for tours that collect prizes within a budget (orienteering): nodes around some place are taken out of the tour and others put
// in while the way allows it, 2-opt and Or-opt make the way shorter, and what that leaves of the budget is used; annealed.
#pragma once

#include <optional>

#include "distances.h"
#include "entries.h"
#include "random.h"
#include "route_search.h"

class PrizeSearch {
  public:
    static constexpr const char *NAME = "prize search";

    // Node 0 is the depot. `first` is a node that the tour begins with and that stays, or 0: then the way from the depot to it counts nothing, and
    // `barred` says which nodes are not to be had. Without a tour the search builds its own.
    PrizeSearch(const Distances &distance, std::vector<double> prizes, double budget, uint64_t seed, const std::vector<int> &tour, int first = 0,
                std::vector<char> barred = {});

    // So many rounds, or until time is up; returns how many there were. Temperatures are those of the progress, by the work or by the time,
    // whichever ends first. Without, the search anneals again and again, each time twice as long.
    int64_t run(int64_t work, double seconds, std::optional<Progress> progress, Watch &watch);
    bool offer(const std::vector<int> &tour);
    // Without the depot.
    const std::vector<int> &best() const { return leading; }
    double prize() const { return most; }
    double prize_of(const std::vector<int> &tour) const;
    double length_of(const std::vector<int> &tour) const;
    int nodes() const { return n; }
    double limit() const { return budget; }

  private:
    const Distances distance;
    const std::vector<double> prizes;
    double budget;
    const int n, size, first;
    const std::vector<char> barred;
    const std::vector<int> near;
    const double least;
    Random random;
    std::vector<int> tour, place;  // the depot first; where each node is, -1: absent
    std::vector<int> leading;
    double length = 0, collected = 0, most = 0, shortest = 0;
    std::vector<int> absent, touched, kept_tour;
    std::vector<double> taste;
    std::vector<char> waits;
    int64_t cycle, turn;  // how long the search anneals on its own, and how far it is
    int stage = -1;       // which of its annealings

    struct Insertion {
        int node, behind;  // which place of the tour it comes behind
        double cost, score;
    };
    std::vector<Insertion> ways;

    double way(int a, int b) const;
    int after(int i) const { return i + 1 == (int)tour.size() ? tour[0] : tour[i + 1]; }
    void set(const std::vector<int> &order);
    void measure();
    void number(int from);
    double own_share();
    double staged(double share, int starts);
    void begin_stage(int now, bool from_best);
    void start_anew();
    void round(double temperature);
    void ruin();
    void take_segment(int at, int count);
    void take_around(int node, int count);
    void drop_taken();
    void recreate(double power, double noise, bool all);
    double detour(int node, int i) const;
    void find_place(Insertion &way) const;
    void shorten();
    bool improve(int node);
    bool exchange(int i);
    bool move(int i);
    void fill();
    void lead();
};
