// Tabu search for job shops that stays in memory, and brings up a few good schedules: when it finds nothing for a while it goes on from the
// midpoint of two of them (path relinking, as in Peng, Lü and Cheng 2015).
#pragma once

#include "entries.h"
#include "shop.h"

// Jobs in the order in which an active schedule is built, those with the most work left first, or at random (Giffler and Thompson 1960). The first
// `kept` of `actions` come first.
std::vector<int64_t> active_schedule(const std::vector<double> &times, const std::vector<int32_t> &machines, int jobs, int operations,
                                     Random *random = nullptr, const int64_t *actions = nullptr, int64_t kept = 0);

class ScheduleSearch {
  public:
    static constexpr const char *NAME = "schedule search";

    // A schedule is the jobs whose next operations are appended one by one; the first `kept` of them stay.
    ScheduleSearch(std::vector<double> times, std::vector<int32_t> machines, int jobs, int operations, uint64_t seed, const int64_t *actions,
                   int64_t kept = 0);

    // So many moves, or until time is up, or the schedule is optimal; returns how many there were.
    int64_t run(int64_t work, Watch &watch);
    bool offer(const int64_t *actions);
    // The best schedule, made active, without what stays. Its makespan is not longer.
    void best(int64_t *actions) const;
    double makespan() const { return shortest; }
    bool finished() const { return done; }
    int jobs() const { return job_count; }
    int operations() const { return operation_count; }
    const std::vector<int32_t> &visits() const { return machines; }

  private:
    struct Known {
        std::vector<int> sequences;
        std::vector<double> starts;
        double makespan;
    };
    const std::vector<double> times;
    const std::vector<int32_t> machines;
    const int job_count, operation_count;
    const int64_t kept;
    const std::vector<int64_t> begun;  // the actions that stay
    Random random;
    Shop shop;
    std::vector<int> leading, own;  // the best schedule, and the best since the search began from another one
    double shortest, shortest_own;
    std::vector<Known> elite;
    int64_t now = 1, since = 0;
    bool done = false;

    void begin();
    void end();
    void lead();
    void admit();
    std::vector<int> between();
};
