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

// Operations are numbered job by job: o = job * operations + step.
class Shop {
  public:
    // The operations of the first `kept` actions stay where they are: the first ones of their machines.
    Shop(const double *times, const int *machines, int jobs, int operations, const int64_t *actions, int64_t kept)
        : jobs(jobs), steps(operations), count(jobs * operations), time(times), machine(machines), at((size_t)count),
          place(count), head(count), tail(count), order(count), open(count), tabu((size_t)count * jobs, 0), fixed(operations, 0),
          stays(count, 0) {
        std::vector<int> filled(operations, 0), next(jobs, 0);
        for (int i = 0; i < count; i++) {
            int job = (int)actions[i], o = job * steps + next[job]++;
            put(machine[o], filled[machine[o]]++, o);
            if (i >= kept) continue;
            fixed[machine[o]]++;
            stays[o] = 1;
        }
        measure();
    }

    double makespan = 0;
    std::vector<int> sequences() const { return at; }
    void restore(const std::vector<int> &known) {
        for (int m = 0; m < steps; m++)
            for (int i = 0; i < jobs; i++) put(m, i, known[m * jobs + i]);
        measure();
    }

    // One step of the tabu search, or a random one. False if the schedule is optimal: its critical path leaves nothing to move.
    bool step(int64_t now, double best, bool anywhere, Random &random) {
        find_moves(now, best, random);
        if (moves.empty()) return false;
        const ShopMove *chosen = nullptr;
        for (const ShopMove &move : moves)
            if (!move.tabu && (chosen == nullptr || move.makespan < chosen->makespan)) chosen = &move;
        if (anywhere || chosen == nullptr) chosen = &moves[random.below((int)moves.size())];
        int tenure = 10 + jobs / steps;
        make(*chosen, now + tenure + random.below(1 + (jobs <= 2 * steps ? 2 : 1) * tenure / 5));
        measure();
        return true;
    }

    // Jobs in the order in which an active schedule is built that keeps to the orders of the machines where it can; no operation begins later
    // (Giffler and Thompson 1960; `active.py` has the same rule). Only operations that may move are written.
    void write(int64_t *actions) {
        std::vector<double> job_free(jobs, 0), machine_free(steps, 0);
        std::vector<int> next(jobs, 0), line(fixed);
        std::vector<char> done(stays);
        int left = 0;
        for (int o = 0; o < count; o++) {
            left += !stays[o];
            if (!stays[o]) continue;
            next[o / steps]++;
            for (double *free : {&job_free[o / steps], &machine_free[machine[o]]}) *free = std::max(*free, end(o));
        }
        auto start = [&](int o) { return std::max(job_free[o / steps], machine_free[machine[o]]); };
        for (; left > 0; left--) {
            int soonest = -1;
            double earliest = 0;
            for (int job = 0; job < jobs; job++) {
                if (next[job] == steps) continue;
                int o = job * steps + next[job];
                double ends = start(o) + time[o];
                if (soonest >= 0 && (ends > earliest || (ends == earliest && machine[o] >= machine[soonest]))) continue;
                soonest = o;
                earliest = ends;
            }
            int m = machine[soonest];
            while (done[at[m * jobs + line[m]]]) line[m]++;
            int o = at[m * jobs + line[m]], job = o / steps;
            bool may = o == job * steps + next[job] && (start(o) < earliest || start(o) + time[o] == earliest);
            if (!may) o = soonest;  // there is room for it
            job_free[o / steps] = machine_free[m] = start(o) + time[o];
            next[o / steps]++;
            done[o] = 1;
            *actions++ = o / steps;
        }
    }

  private:
    int jobs, steps, count;
    const double *time;
    const int *machine;
    std::vector<int> at, place;        // the operation at [machine * jobs + position], and its position
    std::vector<double> head, tail;    // the longest way to the start of an operation, and from its start to the end
    std::vector<int> order, open;      // operations so that each comes after those it waits for; how many it waits for
    std::vector<int64_t> tabu;         // [machine][job a][job b]: until when a may not come before b again
    std::vector<int> fixed;            // how many operations of a machine stay
    std::vector<char> stays;           // whether an operation does
    std::vector<ShopMove> moves;
    std::vector<int> path;
    std::vector<double> heads;

    void put(int m, int position, int o) {
        at[m * jobs + position] = o;
        place[o] = position;
    }
    int before_in_job(int o) const { return o % steps ? o - 1 : -1; }
    int after_in_job(int o) const { return (o + 1) % steps ? o + 1 : -1; }
    int before_on_machine(int o) const { return place[o] ? at[machine[o] * jobs + place[o] - 1] : -1; }
    int after_on_machine(int o) const { return place[o] + 1 < jobs ? at[machine[o] * jobs + place[o] + 1] : -1; }
    double end(int o) const { return o < 0 ? 0 : head[o] + time[o]; }
    double after(int o) const { return o < 0 ? 0 : tail[o]; }
    int64_t &forbidden(int a, int b) { return tabu[((size_t)machine[a] * jobs + a / steps) * jobs + b / steps]; }

    // Heads, tails and the makespan of the present orders.
    void measure() {
        int last = 0;
        for (int o = 0; o < count; o++)
            if ((open[o] = (o % steps != 0) + (place[o] != 0)) == 0) order[last++] = o;
        makespan = 0;
        for (int i = 0; i < last; i++) {
            int o = order[i];
            head[o] = std::max(end(before_in_job(o)), end(before_on_machine(o)));
            makespan = std::max(makespan, head[o] + time[o]);
            for (int next : {after_in_job(o), after_on_machine(o)})
                if (next >= 0 && --open[next] == 0) order[last++] = next;
        }
        for (int i = last - 1; i >= 0; i--) {
            int o = order[i];
            tail[o] = time[o] + std::max(after(after_in_job(o)), after(after_on_machine(o)));
        }
    }

    // A critical path; where it forks, a random branch.
    void find_path(Random &random) {
        path.clear();
        int o = -1, seen = 0;
        for (int i = 0; i < count; i++)
            if (is_critical(order[i], 0) && random.below(++seen) == 0) o = order[i];
        while (o >= 0) {
            path.push_back(o);
            int job = after_in_job(o), other = after_on_machine(o);
            bool by_job = job >= 0 && is_critical(job, end(o)), by_machine = other >= 0 && is_critical(other, end(o));
            o = by_job && by_machine ? (random.below(2) ? job : other) : by_job ? job : by_machine ? other : -1;
        }
    }
    bool is_critical(int o, double start) const { return head[o] == start && head[o] + tail[o] >= makespan * (1 - ROUNDING); }

    // Operations of a block to its end or its beginning, and its ends to anywhere in it, where that cannot make a cycle.
    void find_moves(int64_t now, double best, Random &random) {
        find_path(random);
        moves.clear();
        for (size_t first = 0, last; first < path.size(); first = last + 1) {
            for (last = first; last + 1 < path.size() && machine[path[last + 1]] == machine[path[first]]; last++) {
            }
            int m = machine[path[first]], begin = std::max(place[path[first]], fixed[m]), finish = place[path[last]];
            bool opens = first == 0, closes = last + 1 == path.size();
            for (int i = begin; i < finish; i++) {
                if (!closes) forward(m, i, finish, now, best);
                if (!opens) backward(m, i + 1, begin, now, best);
            }
            for (int i = begin + 1; i < finish; i++) {
                if (!opens) forward(m, begin, i, now, best);
                if (!closes) backward(m, finish, i, now, best);
            }
        }
    }

    // Whether an operation may be bound to one beyond it: its way is longer, or as long, if it takes no time itself.
    bool may_wait(int o, double way, double other) const { return way > other || (o >= 0 && way == other && time[o] == 0); }

    // Move the operation at `from` right behind that at `to` > `from`.
    void forward(int m, int from, int to, int64_t now, double best) {
        const int *line = &at[m * jobs];
        int u = line[from], v = line[to];
        if (may_wait(after_in_job(u), after(after_in_job(u)), tail[v])) return;
        int size = to - from;
        heads.resize(size + 1);
        double free = end(before_on_machine(u));
        bool is_tabu = false;
        for (int i = 1; i <= size; i++) {
            int o = line[from + i];
            heads[i] = std::max(end(before_in_job(o)), free);
            free = heads[i] + time[o];
            is_tabu |= forbidden(o, u) > now;
        }
        heads[0] = std::max(end(before_in_job(u)), free);
        double rest = time[u] + std::max(after(after_in_job(u)), after(after_on_machine(v))), estimate = heads[0] + rest;
        for (int i = size; i >= 1; i--) {
            int o = line[from + i];
            rest = time[o] + std::max(after(after_in_job(o)), rest);
            estimate = std::max(estimate, heads[i] + rest);
        }
        moves.push_back({m, from, to, estimate, is_tabu && estimate >= best});
    }

    // Move the operation at `from` right before that at `to` < `from`.
    void backward(int m, int from, int to, int64_t now, double best) {
        const int *line = &at[m * jobs];
        int v = line[from], u = line[to];
        if (may_wait(before_in_job(v), end(before_in_job(v)), end(u))) return;
        int size = from - to;
        heads.resize(size + 1);
        heads[0] = std::max(end(before_in_job(v)), end(before_on_machine(u)));
        double free = heads[0] + time[v];
        bool is_tabu = false;
        for (int i = 0; i < size; i++) {
            int o = line[to + i];
            heads[i + 1] = std::max(end(before_in_job(o)), free);
            free = heads[i + 1] + time[o];
            is_tabu |= forbidden(v, o) > now;
        }
        double rest = after(after_on_machine(v)), estimate = 0;
        for (int i = size - 1; i >= 0; i--) {
            int o = line[to + i];
            rest = time[o] + std::max(after(after_in_job(o)), rest);
            estimate = std::max(estimate, heads[i + 1] + rest);
        }
        estimate = std::max(estimate, heads[0] + time[v] + std::max(after(after_in_job(v)), rest));
        moves.push_back({m, from, to, estimate, is_tabu && estimate >= best});
    }

    // Carries a move out. Until `until` no pair of operations whose order it changes may go back.
    void make(const ShopMove &move, int64_t until) {
        int o = at[move.machine * jobs + move.from], direction = move.to > move.from ? 1 : -1;
        for (int i = move.from; i != move.to; i += direction) {
            int other = at[move.machine * jobs + i + direction];
            (direction > 0 ? forbidden(o, other) : forbidden(other, o)) = until;
            put(move.machine, i, other);
        }
        put(move.machine, move.to, o);
    }
};
