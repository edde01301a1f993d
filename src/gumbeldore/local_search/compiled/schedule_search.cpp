#include "schedule_search.h"

#include "searches.h"

namespace {
constexpr int64_t PATIENCE = 5000;  // moves without improvement after which the search goes on from elsewhere
constexpr size_t ELITE = 8;          // so many schedules are kept
}  // namespace

ScheduleSearch::ScheduleSearch(std::vector<double> given, std::vector<int32_t> visits, int jobs, int operations, uint64_t seed,
                               const int64_t *actions, int64_t kept)
    : times(std::move(given)), machines(std::move(visits)), job_count(jobs), operation_count(operations), kept(kept),
      begun(actions, actions + kept), random(seed), shop(times.data(), machines.data(), jobs, operations, actions, kept),
      leading(shop.sequences()), own(leading), shortest(shop.makespan), shortest_own(shortest) {}

int64_t ScheduleSearch::run(int64_t work, Watch &watch) {
    int64_t made = 0;
    for (; made < work && !done && !watch.over(); made++, now++) {
        bool moved = shop.step(now, shortest_own, random);
        if (moved && shop.makespan < shortest_own) {
            lead();
        } else if (!moved || ++since == PATIENCE) {
            done = !moved && shop.is_bound();
            end();
            begin();
        }
    }
    return made;
}

void ScheduleSearch::lead() {
    since = 0;
    own = shop.sequences();
    shortest_own = shop.makespan;
    if (shortest_own >= shortest) return;
    leading = own;
    shortest = shortest_own;
}

// The best schedule since the search began is kept if it is among the best, and not there yet.
void ScheduleSearch::end() {
    auto same = [&](const Known &each) { return each.makespan == shortest_own && each.sequences == own; };
    if (std::any_of(elite.begin(), elite.end(), same)) return;
    shop.restore(own);
    if (elite.size() < ELITE) {
        elite.push_back({own, shop.starts(), shortest_own});
        return;
    }
    auto longer = [](const Known &one, const Known &other) { return one.makespan < other.makespan; };
    auto worst = std::max_element(elite.begin(), elite.end(), longer), best = std::min_element(elite.begin(), elite.end(), longer);
    if (shortest_own <= worst->makespan) *worst = {own, shop.starts(), shortest_own};
    if (worst->makespan == best->makespan) elite.clear();  // they have become one another's like
}

// From a random schedule until there are enough, then from between two of them.
void ScheduleSearch::begin() {
    if (elite.size() < ELITE) {
        std::vector<int64_t> actions = active_schedule(times, machines, job_count, operation_count, &random, begun.data(), kept);
        shop.restore(Shop(times.data(), machines.data(), job_count, operation_count, actions.data(), kept).sequences());
    } else {
        shop.restore(between());
    }
    own = shop.sequences();
    shortest_own = shop.makespan;
    since = 0;
    now += shop.memory();
}

// Operations in the order of their mean starts in two schedules. Those that have the same order in both keep it, so no cycle can come about.
std::vector<int> ScheduleSearch::between() {
    int one = random.below((int)elite.size()), other = random.below((int)elite.size() - 1);
    other += other >= one;
    std::vector<double> keys = elite[one].starts;
    for (size_t o = 0; o < keys.size(); o++) keys[o] += elite[other].starts[o];
    return shop.ordered(keys);
}

bool ScheduleSearch::offer(const int64_t *actions) {
    Shop given(times.data(), machines.data(), job_count, operation_count, actions, kept);
    if (given.makespan >= shortest) return false;
    end();
    shop.restore(given.sequences());
    shortest_own = shortest;
    lead();
    now += shop.memory();
    return true;
}

void ScheduleSearch::best(int64_t *actions) const {
    Shop same = shop;
    same.restore(leading);
    same.write(actions);
}

std::vector<int64_t> active_schedule(const std::vector<double> &times, const std::vector<int32_t> &machines, int jobs, int operations,
                                     Random *random, const int64_t *begun, int64_t kept) {
    std::vector<double> job_free(jobs, 0), machine_free(operations, 0), left(jobs, 0);
    std::vector<int> next(jobs, 0);
    std::vector<int64_t> actions;
    for (int o = 0; o < jobs * operations; o++) left[o / operations] += times[o];
    auto start = [&](int job) { return std::max(job_free[job], machine_free[machines[job * operations + next[job]]]); };
    auto end = [&](int job) { return start(job) + times[job * operations + next[job]]; };
    auto append = [&](int job) {
        job_free[job] = machine_free[machines[job * operations + next[job]]] = end(job);
        left[job] -= times[job * operations + next[job]++];
        actions.push_back(job);
    };
    for (int64_t i = 0; i < kept; i++) append((int)begun[i]);
    while ((int)actions.size() < jobs * operations) {
        int soonest = -1, chosen = -1, seen = 0;
        for (int job = 0; job < jobs; job++)
            if (next[job] < operations && (soonest < 0 || end(job) < end(soonest))) soonest = job;
        int machine = machines[soonest * operations + next[soonest]];
        double earliest = end(soonest);
        for (int job = 0; job < jobs; job++) {
            if (next[job] == operations || machines[job * operations + next[job]] != machine || (start(job) >= earliest && job != soonest)) continue;
            if (random ? random->below(++seen) == 0 : chosen < 0 || left[job] > left[chosen]) chosen = job;
        }
        append(chosen);
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
        actions = active_schedule(durations, visits, (int)jobs, (int)operations);
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
