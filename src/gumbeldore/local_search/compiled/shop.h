// A job shop's schedule as one order of jobs per machine, and tabu search in it: insertions within the blocks of a critical path (Nowicki and
// Smutnicki 1996; Balas and Vazacopoulos 1998; lists and tenures as in Zhang et al. 2007).
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "random.h"

constexpr double ROUNDING = 1e-12;  // of makespans

struct ShopMove {
    int machine, from, to;  // the operation at position `from` of the machine goes to position `to`
    double makespan;        // an estimate, exact for most
    bool tabu;
};

// Operations are numbered job by job: o = job * operations + step. One more, `nobody`, takes no time and stands where there is none.
class Shop {
  public:
    // The operations of the first `kept` actions stay where they are: the first ones of their machines.
    Shop(const double *times, const int *machines, int jobs, int operations, const int64_t *actions, int64_t kept);

    double makespan = 0;
    const std::vector<int> &sequences() const { return at; }
    void restore(const std::vector<int> &known);
    // The longest way to the start of each operation.
    std::vector<double> starts() const;

    // One step of the tabu search: the best move that is not tabu, or leads to a schedule better than `best`, or else any. False if there is none.
    bool step(int64_t now, double best, Random &random);
    // Steps after which nothing is tabu any more.
    int64_t memory() const { return 2 * (10 + jobs / steps); }
    // Whether the critical path of the last step leaves nothing to gain: one job or one machine is busy all the time.
    bool is_bound() const;

    // Jobs in the order in which an active schedule is built that keeps to the orders of the machines where it can; no operation begins later
    // (Giffler and Thompson 1960; `active.py` has the same rule). Only operations that may move are written.
    void write(int64_t *actions) const;
    // The orders of machines in which operations come by their keys; those that stay come first. Keys rise with the steps of a job.
    std::vector<int> ordered(const std::vector<double> &keys) const;

  private:
    struct Operation {
        double time, head, tail;  // the longest way to its start, and from its start to the end
        int job_before, job_after, before, after;  // the last two on the machine
    };
    int jobs, steps, count, nobody;
    const int *machine;
    std::vector<Operation> all;
    std::vector<int> at, place;     // the operation at [machine * jobs + position], and its position
    std::vector<int> order, rank;   // operations so that each comes after those it waits for, and where each of them is
    std::vector<int64_t> tabu;      // [machine][job a][job b]: until when a may not come before b again
    std::vector<int> fixed;         // how many operations of a machine stay
    std::vector<char> stays;        // whether an operation does
    std::vector<ShopMove> moves;
    std::vector<int> path, open, rest, dragged;
    std::vector<char> marked;
    std::vector<double> heads;

    double end(int o) const { return all[o].head + all[o].time; }
    double tail(int o) const { return all[o].tail; }
    int64_t &forbidden(int a, int b) { return tabu[((size_t)machine[a] * jobs + a / steps) * jobs + b / steps]; }
    bool is_critical(int o, double start) const { return all[o].head == start && all[o].head + all[o].tail >= makespan * (1 - ROUNDING); }

    void link(int m, int first, int last);
    void measure();
    void measure(int first, int last);
    void find_path(Random &random);
    void find_moves(int64_t now, double best, Random &random);
    void forward(int m, int from, int to, int64_t now, double best);
    void backward(int m, int from, int to, int64_t now, double best);
    void make(const ShopMove &move, int64_t until);
    void reorder(int first, int last, int moved, bool later);
};
