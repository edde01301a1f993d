// Search for orders of permutation flow shops: insertion (Nawaz, Enscore and Ham 1983) with Taillard's acceleration (1990), and iterated greedy
// (Ruiz and Stuetzle 2007). `permutations.py` calls the functions at the end.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

#include "entries.h"
#include "random.h"

namespace {
constexpr int TAKEN = 4;       // jobs that a destruction takes out ...
constexpr double HEAT = 0.04;  // ... and the temperature at which worse orders are accepted, in mean times

class Line {
  public:
    Line(const double *times, int jobs, int machines)
        : jobs(jobs), machines(machines), times(times), heads((size_t)jobs * machines), tails((size_t)(jobs + 1) * machines), job_ends(machines) {}

    struct Place {
        int position;
        double makespan;
    };

    // Where a job fits best into an order, from position `from` on: all places at the cost of one makespan each (Taillard 1990).
    // Of equally good places the first, or with `random` any.
    Place best_place(const std::vector<int> &order, int job, int from, Random *random) {
        int size = (int)order.size();
        measure(order);
        Place best{from, INFINITY};
        int equal = 0;
        for (int position = from; position <= size; position++) {
            const double *before = position ? &heads[(size_t)(position - 1) * machines] : nullptr;
            const double *after = &tails[(size_t)position * machines], *time = &times[(size_t)job * machines];
            double end = 0, makespan = 0;
            for (int m = 0; m < machines; m++) {
                end = std::max(end, before ? before[m] : 0) + time[m];
                makespan = std::max(makespan, end + after[m]);
            }
            if (makespan > best.makespan) continue;
            equal = makespan < best.makespan ? 1 : equal + 1;
            if (equal == 1 || (random && random->below(equal) == 0)) best = {position, makespan};
        }
        return best;
    }

    double makespan(const std::vector<int> &order) {
        std::fill(job_ends.begin(), job_ends.end(), 0);
        for (int job : order) {
            double end = 0;
            for (int m = 0; m < machines; m++) job_ends[m] = end = std::max(end, job_ends[m]) + times[(size_t)job * machines + m];
        }
        return job_ends[machines - 1];
    }

    // Moves jobs behind the first `kept` to their best places until none gets better.
    double insert_all(std::vector<int> &order, int kept, double makespan, Random &random) {
        std::vector<int> turn;
        for (bool better = true; better;) {
            better = false;
            turn.assign(order.begin() + kept, order.end());
            for (int i = (int)turn.size() - 1; i > 0; i--) std::swap(turn[i], turn[random.below(i + 1)]);
            for (int job : turn) {
                auto where = std::find(order.begin() + kept, order.end(), job);
                int was = (int)(where - order.begin());
                order.erase(where);
                Place place = best_place(order, job, kept, &random);
                bool take = place.makespan <= makespan;
                better |= place.makespan < makespan;
                order.insert(order.begin() + (take ? place.position : was), job);
                if (take) makespan = place.makespan;
            }
        }
        return makespan;
    }

    double mean() const { return std::accumulate(times, times + (size_t)jobs * machines, 0.0) / ((double)jobs * machines); }

  private:
    int jobs, machines;
    const double *times;
    std::vector<double> heads, tails;  // when each job of an order ends on each machine; from its start there to the end of all
    std::vector<double> job_ends;

    void measure(const std::vector<int> &order) {
        int size = (int)order.size();
        for (int i = 0; i < size; i++) {
            const double *time = &times[(size_t)order[i] * machines], *before = i ? &heads[(size_t)(i - 1) * machines] : nullptr;
            double *here = &heads[(size_t)i * machines], end = 0;
            for (int m = 0; m < machines; m++) here[m] = end = std::max(end, before ? before[m] : 0) + time[m];
        }
        std::fill(tails.begin() + (size_t)size * machines, tails.begin() + (size_t)(size + 1) * machines, 0);
        for (int i = size - 1; i >= 0; i--) {
            const double *time = &times[(size_t)order[i] * machines], *after = &tails[(size_t)(i + 1) * machines];
            double *here = &tails[(size_t)i * machines], left = 0;
            for (int m = machines - 1; m >= 0; m--) here[m] = left = std::max(left, after[m]) + time[m];
        }
    }
};

// Sizes of jobs and machines, after checks that both functions need.
std::pair<int, int> checked_line(const View<const double, 3> &times, const View<int64_t, 2> &orders) {
    int64_t count = times.size(0), jobs = checked_size(times.size(1), 1, "jobs"), machines = checked_size(times.size(2), 1, "machines");
    checked_size(jobs * machines, 1, "times");
    times.between(0, LONGEST);
    orders.shaped({count, jobs});
    for (int64_t i = 0; i < count; i++) check_permutation(orders.part(i), jobs, "orders");
    return {(int)jobs, (int)machines};
}
}  // namespace

// Replaces orders by ones whose last job ends no later. The first `kept` jobs stay.
void improve_permutations(View<const double, 3> times, View<const int64_t, 1> seeds, int64_t rounds, int64_t kept, View<int64_t, 2> orders) {
    auto [jobs, machines] = checked_line(times, orders);
    seeds.shaped({times.size(0)});
    require(kept >= 0 && kept <= jobs, "`kept` must be in 0 .. " + std::to_string(jobs) + ", got " + std::to_string(kept) + ".");
    if (jobs - kept < 2) return;
    Watch watch;
    for (int64_t i = 0; i < times.size(0); i++) {
        Random random(seeds[i]);
        Line line(times.part(i), jobs, machines);
        int64_t *result = orders.part(i);
        std::vector<int> order(result, result + jobs), out;
        double now = line.insert_all(order, (int)kept, line.makespan(order), random), shortest = now, heat = HEAT * line.mean();
        std::vector<int> best = order;
        int taken = std::min(TAKEN, jobs - (int)kept - 1);
        for (int64_t round = 0; round < rounds; round++) {
            watch.over();
            std::vector<int> next = order;
            out.clear();
            for (int k = 0; k < taken; k++) {
                int place = (int)kept + random.below((int)next.size() - (int)kept);
                out.push_back(next[place]);
                next.erase(next.begin() + place);
            }
            double makespan = 0;
            for (int job : out) {
                Line::Place place = line.best_place(next, job, (int)kept, &random);
                next.insert(next.begin() + place.position, job);
                makespan = place.makespan;
            }
            makespan = line.insert_all(next, (int)kept, makespan, random);
            if (makespan <= now || random.unit() < std::exp((now - makespan) / heat)) {
                order = next;
                now = makespan;
            }
            if (makespan < shortest) {
                best = next;
                shortest = makespan;
            }
        }
        std::copy(best.begin(), best.end(), result);
    }
}

// Replaces orders by those that come about if jobs are inserted in this order, each where it fits best.
void insert_jobs(View<const double, 3> times, View<int64_t, 2> orders) {
    auto [jobs, machines] = checked_line(times, orders);
    for (int64_t i = 0; i < times.size(0); i++) {
        Line line(times.part(i), jobs, machines);
        int64_t *result = orders.part(i);
        std::vector<int> order;
        for (int k = 0; k < jobs; k++) {
            Line::Place place = line.best_place(order, (int)result[k], 0, nullptr);
            order.insert(order.begin() + place.position, (int)result[k]);
        }
        std::copy(order.begin(), order.end(), result);
    }
}
