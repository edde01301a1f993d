#include "schedule_search.h"

#include "searches.h"

namespace {
constexpr int PATIENCE = 400;  // moves without improvement after which the search goes back to the best schedule ...
constexpr int WALK = 8;        // ... and makes so many random ones
}  // namespace

ScheduleSearch::ScheduleSearch(std::vector<double> given, std::vector<int32_t> visits, int jobs, int operations, uint64_t seed,
                               const int64_t *actions, int64_t kept)
    : times(std::move(given)), machines(std::move(visits)), job_count(jobs), operation_count(operations), kept(kept), random(seed),
      shop(times.data(), machines.data(), jobs, operations, actions, kept), leading(shop.sequences()), shortest(shop.makespan) {}

int64_t ScheduleSearch::run(int64_t work, Watch &watch) {
    int64_t made = 0;
    for (; made < work && !done && !watch.over(); made++, now++) {
        if (!shop.step(now, shortest, walk > 0, random)) {
            done = shop.makespan <= shortest;
            if (!done) shop.restore(leading);
            break;
        }
        walk -= walk > 0;
        if (shop.makespan < shortest) {
            leading = shop.sequences();
            shortest = shop.makespan;
            since = 0;
        } else if (++since == PATIENCE) {
            shop.restore(leading);
            walk = WALK;
            since = 0;
        }
    }
    return made;
}

bool ScheduleSearch::offer(const int64_t *actions) {
    Shop other(times.data(), machines.data(), job_count, operation_count, actions, kept);
    if (other.makespan >= shortest) return false;
    leading = other.sequences();
    shortest = other.makespan;
    shop.restore(leading);
    since = walk = 0;
    return true;
}

void ScheduleSearch::best(int64_t *actions) const {
    Shop same = shop;
    same.restore(leading);
    same.write(actions);
}

std::vector<int64_t> by_most_work(const std::vector<double> &times, const std::vector<int32_t> &machines, int jobs, int operations) {
    std::vector<double> job_free(jobs, 0), machine_free(operations, 0), left(jobs, 0);
    std::vector<int> next(jobs, 0);
    std::vector<int64_t> actions;
    for (int o = 0; o < jobs * operations; o++) left[o / operations] += times[o];
    auto start = [&](int job) { return std::max(job_free[job], machine_free[machines[job * operations + next[job]]]); };
    auto end = [&](int job) { return start(job) + times[job * operations + next[job]]; };
    while ((int)actions.size() < jobs * operations) {
        int soonest = -1, chosen = -1;
        for (int job = 0; job < jobs; job++)
            if (next[job] < operations && (soonest < 0 || end(job) < end(soonest))) soonest = job;
        int machine = machines[soonest * operations + next[soonest]];
        double earliest = end(soonest);
        for (int job = 0; job < jobs; job++) {
            if (next[job] == operations || machines[job * operations + next[job]] != machine || (start(job) >= earliest && job != soonest)) continue;
            if (chosen < 0 || left[job] > left[chosen]) chosen = job;
        }
        job_free[chosen] = machine_free[machine] = end(chosen);
        left[chosen] -= times[chosen * operations + next[chosen]++];
        actions.push_back(chosen);
    }
    return actions;
}

std::unique_ptr<Held<ScheduleSearch>> schedule_search(View<const double, 2> times, View<const int32_t, 2> machines, int64_t seed,
                                                      std::optional<View<const int64_t, 1>> schedule) {
    int64_t jobs = checked_size(times.size(0), 1, "jobs"), operations = checked_size(times.size(1), 1, "operations");
    checked_size(jobs * operations, 1, "operations");
    times.between(0, LONGEST);
    machines.shaped({jobs, operations});
    std::vector<double> durations(times.begin(), times.end());
    std::vector<int32_t> visits(machines.begin(), machines.end());
    check_machines(visits.data(), jobs, operations);
    std::vector<int64_t> actions;
    if (schedule) {
        check_schedule(schedule->shaped({jobs * operations}).data(), jobs, operations);
        actions.assign(schedule->begin(), schedule->end());
    } else {
        actions = by_most_work(durations, visits, (int)jobs, (int)operations);
    }
    return std::make_unique<Held<ScheduleSearch>>(durations, visits, (int)jobs, (int)operations, (uint64_t)seed, actions.data());
}

int64_t run_schedules(Borrowed<ScheduleSearch> search, int64_t work, double seconds) {
    Watch watch(seconds, &search.stopped());
    int64_t done = search->run(work, watch);
    search.stopped() = false;
    return done;
}

double best_schedule(Borrowed<ScheduleSearch> search, View<int64_t, 1> schedule) {
    schedule.shaped({(int64_t)search->jobs() * search->operations()});
    search->best(schedule.data());
    return search->makespan();
}

bool offer_schedule(Borrowed<ScheduleSearch> search, View<const int64_t, 1> schedule) {
    int64_t jobs = search->jobs(), operations = search->operations();
    check_schedule(schedule.shaped({jobs * operations}).data(), jobs, operations);
    return search->offer(schedule.data());
}

bool schedule_is_optimal(Borrowed<ScheduleSearch> search) { return search->finished(); }

// Replaces schedules, as the jobs whose next operations are appended one by one, by active ones that are not longer.
// The first `kept` of them stay.
void improve_schedules(View<const double, 3> times, View<const int32_t, 3> machines, View<const int64_t, 1> seeds, int64_t rounds,
                       int64_t kept, View<int64_t, 2> actions) {
    int64_t count = times.size(0), jobs = checked_size(times.size(1), 1, "jobs"), operations = checked_size(times.size(2), 1, "operations");
    int64_t size = checked_size(jobs * operations, 1, "operations");
    times.between(0, LONGEST);
    machines.shaped({count, jobs, operations});
    seeds.shaped({count});
    actions.shaped({count, size});
    require(kept >= 0 && kept <= size, "`kept` must be in 0 .. " + std::to_string(size) + ", got " + std::to_string(kept) + ".");
    for (int64_t i = 0; i < count; i++) {
        check_machines(machines.part(i), jobs, operations);
        check_schedule(actions.part(i), jobs, operations);
    }
    Watch watch;
    for (int64_t i = 0; i < count; i++) {
        ScheduleSearch search({times.part(i), times.part(i) + size}, {machines.part(i), machines.part(i) + size}, (int)jobs, (int)operations,
                              (uint64_t)seeds[i], actions.part(i), kept);
        search.run(rounds, watch);
        search.best(actions.part(i) + kept);
    }
}
