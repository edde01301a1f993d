// Assignments: every node gets another one to follow it, at the least cost (Jonker and Volgenant 1987). Their cost bounds that of tours, which
// they become by joining cycles (Karp 1979).
#pragma once

#include <cstddef>
#include <limits>
#include <vector>

class Assignment {
  public:
    static constexpr double NEVER = std::numeric_limits<double>::infinity();

    // Costs from nodes (rows) to nodes (columns), `NEVER` where one may not follow; there must be some assignment.
    Assignment(int count, std::vector<double> costs);

    int count() const { return n; }
    double operator()(int a, int b) const { return cost[(size_t)a * n + b]; }
    // What is left of a cost by prices of both ends: never negative, 0 where one follows the other.
    double reduced(int a, int b) const { return (*this)(a, b) - leaving[a] - reaching[b]; }
    double total() const;

    // By how much the total grows if each node follows node 0, found by one search from the node that does.
    std::vector<double> regrets() const;
    // Another node follows node 0 from now on; the rest is the best for that.
    void force(int follower);
    // The cycles as the number of one for each node; node 0 is in cycle 0.
    std::vector<int> cycles(std::vector<int> &sizes) const;
    // Joins the two largest cycles until one is left. `keeps`: what follows node 0 does so still.
    void patch(bool keeps);
    // Moves segments of the tour that the cycles have become, as long as that makes it shorter (Or-3opt: nothing is turned round), along what prices
    // leave of costs: of most of its edges, nothing.
    void improve(bool keeps);
    // Other prices that prove the same: those in the middle between the ones that node 0 sees from either side, which do not depend on the
    // order of nodes.
    void centre();
    // The nodes as they follow each other, from node 0 on, which must be one cycle.
    std::vector<int> tour() const;

    std::vector<int> next, previous;
    std::vector<double> leaving, reaching;  // prices

  private:
    int n;
    std::vector<double> cost;
    // Makes a free row part of the assignment, along the shortest way. Row `without` and what follows it stay out.
    void augment(int row, int without);
    std::vector<double> far;
    std::vector<int> from;
    std::vector<int> open;
    // How far all are from a row that has lost its column, or the column of node 0 from them.
    std::vector<double> ways(bool from) const;
    bool improve_once(const std::vector<int> &order, bool keeps, double least);
};
