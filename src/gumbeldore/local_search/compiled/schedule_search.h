// Tabu search for job shops that stays in memory: from its best schedule it goes on by a short random walk whenever it finds nothing for a while.
#pragma once

#include "entries.h"
#include "shop.h"

// Jobs in the order in which an active schedule is built, those with the most work left first (Giffler and Thompson 1960).
std::vector<int64_t> by_most_work(const std::vector<double> &times, const std::vector<int32_t> &machines, int jobs, int operations);

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
    const std::vector<double> times;
    const std::vector<int32_t> machines;
    const int job_count, operation_count;
    const int64_t kept;
    Random random;
    Shop shop;
    std::vector<int> leading;
    double shortest;
    int64_t now = 1;
    int since = 0, walk = 0;
    bool done = false;
};
