// Local search for flexible job shops: tabu search that moves critical operations to where they fit best, on any of their machines
// (Mastrolilli and Gambardella 2000, "Effective neighbourhood functions for the flexible job shop problem"). `flexible.py` calls the
// function at the end.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "entries.h"
#include "random.h"

namespace {
constexpr int PATIENCE = 400;  // moves without improvement after which the search goes back to the best schedule ...
constexpr int WALK = 6;        // ... and makes so many random ones
constexpr double ROUNDING = 1e-12;

struct Insertion {
    int operation, machine, position;  // among the others of the machine
    double makespan;
    bool tabu;
};

struct Plan {  // a schedule: a machine and a place on it for every operation
    std::vector<std::vector<int>> lines;
    double makespan;
};

// Operations are numbered job by job. `first[j]` is the first one of job j.
class Flexible {
  public:
    // `times` are those of all operations on all machines, by job and step; negative where there is none. The first `kept` actions stay.
    Flexible(const double *times, int jobs, int steps, int machines, const int64_t *actions, int64_t depth, int64_t kept)
        : jobs(jobs), machines(machines), first(jobs + 1, 0), lines(machines), fixed(machines, 0) {
        for (int j = 0; j < jobs; j++)
            for (int l = 0; l < steps; l++) {
                const double *row = times + ((size_t)j * steps + l) * machines;
                if (*std::max_element(row, row + machines) < 0) break;
                time.push_back(row);
                job.push_back(j);
                first[j + 1] = (int)time.size();
            }
        for (int j = 0; j < jobs; j++) first[j + 1] = std::max(first[j + 1], first[j]);
        count = (int)time.size();
        for (auto *numbers : {&head, &tail, &free_head, &free_tail}) numbers->assign(count, 0);
        following.assign(count, 0);
        for (int o = count - 2; o >= 0; o--)
            if (job[o] == job[o + 1]) following[o] = following[o + 1] + shortest(o + 1);
        for (auto *numbers : {&on, &place, &open, &rank}) numbers->assign(count, 0);
        stays.assign(count, 0);
        tabu.assign((size_t)count * machines, 0);
        std::vector<int> next(first.begin(), first.end() - 1);
        for (int64_t i = 0; i < depth && actions[i] >= 0; i++) {
            int o = next[actions[i] / machines]++, m = (int)(actions[i] % machines);
            lines[m].push_back(o);
            if (i >= kept) continue;
            stays[o] = 1;
            fixed[m]++;
        }
        measure();
    }

    double makespan = 0;
    Plan plan() const { return {lines, makespan}; }
    void restore(const Plan &known) {
        lines = known.lines;
        measure();
    }
    int movable() const { return count - (int)std::count(stays.begin(), stays.end(), 1); }

    // One step of the tabu search, or a random one. False if nothing can be moved.
    bool step(int64_t now, double best, bool anywhere, Random &random) {
        find_insertions(now, best, random);
        if (insertions.empty()) return false;
        const Insertion *chosen = nullptr;
        int equal = 0;
        for (const Insertion &move : insertions) {
            if (move.tabu || (chosen != nullptr && move.makespan > chosen->makespan)) continue;
            equal = chosen != nullptr && move.makespan == chosen->makespan ? equal + 1 : 1;
            if (random.below(equal) == 0) chosen = &move;
        }
        if (anywhere || chosen == nullptr) chosen = &insertions[random.below((int)insertions.size())];
        make(*chosen, now, random);
        return true;
    }

    // Actions in the order in which operations begin; of those that begin together first the one with most work left in its job. Where one could
    // run in the time before the next one begins, it does.
    void write(int64_t *actions) {
        std::vector<double> job_free(jobs, 0), machine_free(machines, 0);
        std::vector<int> next(first.begin(), first.end() - 1), line(machines, 0);
        std::vector<char> done(stays);
        for (int o : order) {
            if (!stays[o]) continue;
            next[job[o]]++;
            for (double *free : {&job_free[job[o]], &machine_free[on[o]]}) *free = std::max(*free, head[o] + took(o));
        }
        for (int left = movable(); left > 0; left--) {
            int chosen = -1, where = -1, soonest = -1, there = -1;
            double start = 0, earliest = 0, longest = 0;
            for (int j = 0; j < jobs; j++) {
                int o = next[j];
                if (o == first[j + 1]) continue;
                for (int m = 0; m < machines; m++) {
                    if (time[o][m] < 0) continue;
                    double ends = std::max(job_free[j], machine_free[m]) + time[o][m];
                    if (soonest >= 0 && ends >= earliest) continue;
                    soonest = o;
                    there = m;
                    earliest = ends;
                }
                int m = on[o];
                while (line[m] < (int)lines[m].size() && done[lines[m][line[m]]]) line[m]++;
                if (lines[m][line[m]] != o) continue;
                double begins = std::max(job_free[j], machine_free[m]);
                double left_in_job = took(o) + following[o];
                if (chosen >= 0 && (begins > start || (begins == start && left_in_job <= longest))) continue;
                chosen = o;
                where = m;
                start = begins;
                longest = left_in_job;
            }
            if (chosen < 0 || (start >= earliest && start + time[chosen][where] > earliest)) {
                chosen = soonest;
                where = there;
            }
            int j = job[chosen];
            job_free[j] = machine_free[where] = std::max(job_free[j], machine_free[where]) + time[chosen][where];
            next[j]++;
            done[chosen] = 1;
            *actions++ = (int64_t)j * machines + where;
        }
    }

  private:
    int jobs, machines, count;
    std::vector<int> first;
    std::vector<std::vector<int>> lines;  // the operations of each machine in order
    std::vector<int> fixed;               // how many of a machine's stay
    std::vector<const double *> time;     // of an operation on each machine
    std::vector<int> job, on, place, open;
    std::vector<int> order, rank;            // operations so that each comes after those it waits for; their places in it
    std::vector<double> head, tail;          // the longest way to the start of an operation, and from its end to the end
    std::vector<double> following;             // the shortest times of all that follow in the job
    std::vector<double> free_head, free_tail;  // the same without one operation
    std::vector<char> stays;
    std::vector<int64_t> tabu;  // [operation][machine]: until when it may not go there
    std::vector<Insertion> insertions;
    std::vector<int> path;

    double shortest(int o) const {
        double least = -1;
        for (int m = 0; m < machines; m++)
            if (time[o][m] >= 0 && (least < 0 || time[o][m] < least)) least = time[o][m];
        return least;
    }
    double took(int o) const { return time[o][on[o]]; }
    int before_in_job(int o) const { return o > first[job[o]] ? o - 1 : -1; }
    int after_in_job(int o) const { return o + 1 < first[job[o] + 1] ? o + 1 : -1; }
    int before_on_machine(int o) const { return place[o] ? lines[on[o]][place[o] - 1] : -1; }
    int after_on_machine(int o) const { return place[o] + 1 < (int)lines[on[o]].size() ? lines[on[o]][place[o] + 1] : -1; }
    double end(int o) const { return o < 0 ? 0 : head[o] + took(o); }
    double rest(int o) const { return o < 0 ? 0 : took(o) + tail[o]; }

    // Heads, tails and the makespan. False if operations wait for each other in a circle.
    bool measure() {
        for (int m = 0; m < machines; m++)
            for (int i = 0; i < (int)lines[m].size(); i++) {
                on[lines[m][i]] = m;
                place[lines[m][i]] = i;
            }
        order.clear();
        for (int o = 0; o < count; o++) {
            open[o] = (before_in_job(o) >= 0) + (before_on_machine(o) >= 0);
            if (open[o] == 0) order.push_back(o);
        }
        makespan = 0;
        for (int i = 0; i < (int)order.size(); i++) {
            int o = order[i];
            rank[o] = i;
            head[o] = std::max(end(before_in_job(o)), end(before_on_machine(o)));
            makespan = std::max(makespan, end(o));
            for (int later : {after_in_job(o), after_on_machine(o)})
                if (later >= 0 && --open[later] == 0) order.push_back(later);
        }
        if ((int)order.size() < count) return false;
        for (int i = count - 1; i >= 0; i--) tail[order[i]] = std::max(rest(after_in_job(order[i])), rest(after_on_machine(order[i])));
        return true;
    }

    // A critical path, of several any one.
    void find_path(Random &random) {
        path.clear();
        double slack = makespan * (1 - ROUNDING);
        auto critical = [&](int o) { return o >= 0 && head[o] + took(o) + tail[o] >= slack; };
        int o = -1, found = 0;
        for (int i : order)
            if (head[i] == 0 && critical(i) && random.below(++found) == 0) o = i;
        while (o >= 0) {
            path.push_back(o);
            int in_job = after_in_job(o), on_machine = after_on_machine(o);
            auto follows = [&](int next) { return critical(next) && head[next] <= end(o) * (1 + ROUNDING); };
            bool a = follows(in_job), b = on_machine != in_job && follows(on_machine);
            o = a && b ? (random.below(2) ? in_job : on_machine) : a ? in_job : b ? on_machine : -1;
        }
    }

    void find_insertions(int64_t now, double best, Random &random) {
        insertions.clear();
        find_path(random);
        for (int v : path)
            if (!stays[v]) find_insertions_of(v, now, best, random);
    }

    // Heads and tails of all others if operation v took no time and no machine. The longest way that is left.
    double without(int v) {
        free_head = head;
        free_tail = tail;
        auto before = [&](int o) { int p = before_on_machine(o); return p == v ? before_on_machine(v) : p; };
        auto after = [&](int o) { int s = after_on_machine(o); return s == v ? after_on_machine(v) : s; };
        auto took_now = [&](int o) { return o == v ? 0 : took(o); };
        auto ends = [&](int o) { return o < 0 ? 0 : free_head[o] + took_now(o); };
        auto left = [&](int o) { return o < 0 ? 0 : free_tail[o] + took_now(o); };
        free_head[v] = ends(before_in_job(v));
        for (int i = rank[v] + 1; i < count; i++) free_head[order[i]] = std::max(ends(before_in_job(order[i])), ends(before(order[i])));
        free_tail[v] = left(after_in_job(v));
        for (int i = rank[v] - 1; i >= 0; i--) free_tail[order[i]] = std::max(left(after_in_job(order[i])), left(after(order[i])));
        double longest = 0;
        for (int o = 0; o < count; o++) longest = std::max(longest, ends(o) + free_tail[o]);
        return longest;
    }

    void find_insertions_of(int v, int64_t now, double best, Random &random) {
        double others = without(v);
        for (int m = 0; m < machines; m++) {
            if (time[v][m] < 0) continue;
            const std::vector<int> &line = lines[m];
            int size = (int)line.size() - (m == on[v]);
            auto at = [&](int i) { return line[m == on[v] && i >= place[v] ? i + 1 : i]; };
            auto ends = [&](int i) { return free_head[at(i)] + time[at(i)][m]; };
            auto left = [&](int i) { return free_tail[at(i)] + time[at(i)][m]; };
            int late = fixed[m], early = fixed[m];  // the first that ends after v may begin; behind the last that must begin before v must end
            while (late < size && ends(late) <= free_head[v]) late++;
            while (early < size && left(early) > free_tail[v]) early++;
            int from = std::min(late, early), to = std::max(late, early);
            if (late >= early) from = to = from + random.below(to - from + 1);  // all the same
            for (int i = from; i <= to; i++) {
                if (m == on[v] && i == place[v]) continue;
                double begin = std::max(free_head[v], i > 0 ? ends(i - 1) : 0), rest = std::max(free_tail[v], i < size ? left(i) : 0);
                double makespan = std::max(others, begin + time[v][m] + rest);
                insertions.push_back({v, m, i, makespan, tabu[(size_t)v * machines + m] > now && makespan >= best});
            }
        }
    }

    // Carries a move out; the operation may not come back to its machine for a while. What would make a circle is not done: operations that take
    // no time can.
    void make(const Insertion &move, int64_t now, Random &random) {
        int v = move.operation, from = on[v], was = place[v];
        int alternatives = (int)std::count_if(time[v], time[v] + machines, [](double t) { return t >= 0; });
        tabu[(size_t)v * machines + from] = now + (int)path.size() / 2 + alternatives + random.below(1 + (int)path.size() / 2);
        lines[from].erase(lines[from].begin() + was);
        lines[move.machine].insert(lines[move.machine].begin() + move.position, v);
        if (measure()) return;
        lines[move.machine].erase(lines[move.machine].begin() + move.position);
        lines[from].insert(lines[from].begin() + was, v);
        measure();
    }
};

// Refuses an operation without a machine in between others, and actions that are not every job's operations, each on a machine that can do it.
void check_flexible(const double *times, const int64_t *actions, int64_t jobs, int64_t steps, int64_t machines, int64_t depth) {
    std::vector<int64_t> count(jobs, 0), done(jobs, 0);
    int64_t all = 0, i = 0;
    for (int64_t job = 0; job < jobs; job++)
        for (int64_t step = 0; step < steps; step++) {
            const double *row = times + (job * steps + step) * machines;
            if (*std::max_element(row, row + machines) < 0) continue;
            require(count[job]++ == step, "`times` must give operations one after the other, got none before one of job " + std::to_string(job) + ".");
            all++;
        }
    for (; i < depth && actions[i] >= 0; i++) {
        int64_t job = actions[i] / machines, machine = actions[i] % machines;
        require(job < jobs, "`actions` must be below " + std::to_string(jobs * machines) + ", got " + std::to_string(actions[i]) + ".");
        require(done[job] < count[job], "`actions` must hold every operation once, got job " + std::to_string(job) + " more often.");
        bool able = times[(job * steps + done[job]++) * machines + machine] >= 0;
        require(able, "`actions` must put operations on machines that can do them, got " + std::to_string(machine) + " for job " + std::to_string(job) + ".");
    }
    require(i == all, "`actions` must hold " + std::to_string(all) + " operations, got " + std::to_string(i) + ".");
}
}  // namespace

// Replaces schedules, as actions job * machines + machine that end with -1, by ones that are not longer, in the order in which operations
// begin. The first `kept` actions stay. `rounds` are moves.
void improve_flexible(View<const double, 4> times, View<const int64_t, 1> seeds, int64_t rounds, int64_t kept, View<int64_t, 2> actions) {
    int64_t count = times.size(0), jobs = checked_size(times.size(1), 1, "jobs"), steps = checked_size(times.size(2), 1, "operations");
    int64_t machines = checked_size(times.size(3), 1, "machines"), depth = actions.size(1);
    checked_size(jobs * steps * machines, 1, "times");
    times.between(-1, LONGEST);
    seeds.shaped({count});
    actions.shaped({count, depth});
    require(kept >= 0 && kept <= depth, "`kept` must be in 0 .. " + std::to_string(depth) + ", got " + std::to_string(kept) + ".");
    for (int64_t i = 0; i < count; i++) check_flexible(times.part(i), actions.part(i), jobs, steps, machines, depth);
    Watch watch;
    for (int64_t i = 0; i < count; i++) {
        Random random(seeds[i]);
        Flexible shop(times.part(i), (int)jobs, (int)steps, (int)machines, actions.part(i), depth, kept);
        if (shop.movable() == 0) continue;
        Plan best = shop.plan();
        int since = 0, walk = 0;
        for (int64_t now = 1; now <= rounds; now++) {
            watch.over();
            if (!shop.step(now, best.makespan, walk > 0, random)) break;
            walk -= walk > 0;
            if (shop.makespan < best.makespan) {
                best = shop.plan();
                since = 0;
            } else if (++since == PATIENCE) {
                shop.restore(best);
                walk = WALK;
                since = 0;
            }
        }
        shop.restore(best);
        shop.write(actions.part(i) + kept);
    }
}
