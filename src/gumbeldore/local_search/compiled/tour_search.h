// Local search for tours: chains of sequential 3-opt moves along neighbour lists (Lin and Kernighan 1973; Helsgaun 2000), iterated with
// double bridges of nearby segments (Martin, Otto and Felten 1991; Applegate, Cook and Rohe 2003).
#pragma once

#include <algorithm>
#include <cmath>

#include "distances.h"
#include "entries.h"
#include "random.h"
#include "tour_array.h"

// The tour that edges make, the shortest first, joined along a curve (greedy matching, Bentley 1992).
std::vector<int> greedy_tour(const Distances &distance, const std::vector<int> &near, int size);

class TourSearch {
  public:
    static constexpr const char *NAME = "tour search";

    // Of an asymmetric matrix the doubled one is searched.
    TourSearch(const Distances &given, uint64_t seed, const std::vector<int> &tour);

    // So many double bridges, or until time is up. Returns how many there were.
    int64_t run(int64_t work, Watch &watch);
    bool offer(const std::vector<int> &tour);
    std::vector<int> best() const { return outside(leads ? tour.order() : kept); }
    int cities() const { return asymmetric ? n / 2 : n; }
    double cost_of(const std::vector<int> &order) const;

  private:
    const bool asymmetric;
    std::vector<int> node, number;  // of a city in here the node outside, and the other way round
    const Distances distance;
    const int n, size;
    const double least;
    std::vector<int> near;
    std::vector<double> away;  // how far
    TourArray tour;
    Random random;
    double length = 0, shortest = 0, heat = 0;
    bool leads = true;      // whether the present tour is the best one
    std::vector<int> kept;  // the best one, otherwise
    std::vector<int> queue;
    size_t begin = 0;
    std::vector<char> waiting;

    struct Move {
        int kind, t2, t3, t4, t5, t6;
        double gain;
    };

    std::vector<int> inside(const std::vector<int> &order) const;
    std::vector<int> outside(const std::vector<int> &order) const;
    double measured() const;
    bool is_fixed(int a, int b) const { return asymmetric && a % (n / 2) == b % (n / 2); }
    void wait(int city);
    int pop();
    void descend(Watch *watch);
    bool improve(int t1, bool forward);
    bool scan(int t1, int t2, double freed, bool forward, Move &best) const;
    void make(int t1, const Move &move);
    bool was_added(int a, int b) const;
    void kick();
    void judge(double before);
    double median_edge() const;
    void lead();
    std::vector<std::pair<int, int>> added;  // edges of the present chain
    std::vector<int> ends;                   // and its cities
};
