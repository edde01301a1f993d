#include "shop.h"

#include <numeric>
#include <tuple>

Shop::Shop(const double *times, const int *machines, int jobs, int operations, const int64_t *actions, int64_t kept)
    : jobs(jobs), steps(operations), count(jobs * operations), nobody(count), machine(machines), all(count + 1), at(count), place(count),
      order(count), rank(count), tabu((size_t)count * jobs, 0), fixed(operations, 0), stays(count, 0), open(count), marked(count + 1, 0),
      heads(jobs + 1) {
    all[nobody] = {0, 0, 0, nobody, nobody, nobody, nobody};
    for (int o = 0; o < count; o++) all[o] = {times[o], 0, 0, o % steps ? o - 1 : nobody, (o + 1) % steps ? o + 1 : nobody, nobody, nobody};
    std::vector<int> filled(operations, 0), next(jobs, 0);
    for (int i = 0; i < count; i++) {
        int job = (int)actions[i], o = job * steps + next[job]++;
        at[machine[o] * jobs + filled[machine[o]]++] = o;
        if (i >= kept) continue;
        fixed[machine[o]]++;
        stays[o] = 1;
    }
    restore(at);
}

void Shop::restore(const std::vector<int> &known) {
    at = known;
    for (int m = 0; m < steps; m++) link(m, 0, jobs - 1);
    measure();
}

// Tells the operations of a machine at some positions, and their neighbours, who is next to them.
void Shop::link(int m, int first, int last) {
    const int *line = &at[m * jobs];
    for (int i = first; i <= last; i++) {
        int o = line[i], earlier = i > 0 ? line[i - 1] : nobody, later = i + 1 < jobs ? line[i + 1] : nobody;
        place[o] = i;
        all[o].before = earlier;
        all[o].after = later;
        if (earlier != nobody) all[earlier].after = o;
        if (later != nobody) all[later].before = o;
    }
}

std::vector<double> Shop::starts() const {
    std::vector<double> result;
    for (int o = 0; o < count; o++) result.push_back(all[o].head);
    return result;
}

std::vector<int> Shop::ordered(const std::vector<double> &keys) const {
    std::vector<int> operations(count), result(count), filled(steps, 0);
    std::iota(operations.begin(), operations.end(), 0);
    auto key = [&](int o) { return std::tuple(!stays[o], stays[o] ? place[o] : 0, stays[o] ? 0 : keys[o], o); };
    std::sort(operations.begin(), operations.end(), [&](int a, int b) { return key(a) < key(b); });
    for (int o : operations) result[machine[o] * jobs + filled[machine[o]]++] = o;
    return result;
}

// Heads, tails and the makespan of the present orders.
void Shop::measure() {
    int last = 0;
    for (int o = 0; o < count; o++)
        if ((open[o] = (all[o].job_before != nobody) + (all[o].before != nobody)) == 0) order[last++] = o;
    for (int i = 0; i < last; i++) {
        int o = order[i];
        rank[o] = i;
        for (int next : {all[o].job_after, all[o].after})
            if (next != nobody && --open[next] == 0) order[last++] = next;
    }
    measure(0, count - 1);
}

// The same after a change between two places of the order: heads from the first one on, tails from the last one back.
void Shop::measure(int first, int last) {
    for (int i = first; i < count; i++) {
        Operation &own = all[order[i]];
        own.head = std::max(end(own.job_before), end(own.before));
    }
    makespan = 0;
    for (int o = steps - 1; o < count; o += steps) makespan = std::max(makespan, end(o));
    for (int i = last; i >= 0; i--) {
        Operation &own = all[order[i]];
        own.tail = own.time + std::max(tail(own.job_after), tail(own.after));
    }
}

bool Shop::step(int64_t now, double best, Random &random) {
    find_moves(now, best, random);
    if (moves.empty()) return false;
    const ShopMove *chosen = nullptr;
    for (const ShopMove &move : moves)
        if (!move.tabu && (chosen == nullptr || move.makespan < chosen->makespan)) chosen = &move;
    if (chosen == nullptr) chosen = &moves[random.below((int)moves.size())];
    int tenure = 10 + jobs / steps;
    make(*chosen, now + tenure + random.below(1 + (jobs <= 2 * steps ? 2 : 1) * tenure / 5));
    return true;
}

bool Shop::is_bound() const {
    auto alone = [&](auto of) { return std::all_of(path.begin(), path.end(), [&](int o) { return of(o) == of(path[0]); }); };
    return alone([&](int o) { return o / steps; }) || alone([&](int o) { return machine[o]; });
}

// A critical path; where it forks, a random branch.
void Shop::find_path(Random &random) {
    path.clear();
    int o = nobody, seen = 0;
    for (int first = 0; first < count; first += steps)
        if (is_critical(first, 0) && random.below(++seen) == 0) o = first;
    while (o != nobody) {
        path.push_back(o);
        int job = all[o].job_after, other = all[o].after;
        bool by_job = job != nobody && is_critical(job, end(o)), by_machine = other != nobody && is_critical(other, end(o));
        o = by_job && by_machine ? (random.below(2) ? job : other) : by_job ? job : by_machine ? other : nobody;
    }
}

// Operations of a block to its end or its beginning, and its ends to anywhere in it, where that cannot make a cycle.
void Shop::find_moves(int64_t now, double best, Random &random) {
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

namespace {
// Whether there may be a way from an operation of a job to another one: its own is longer, or as long, if it takes no time that could be seen.
bool may_wait(double way, double other, double time) { return way > other || (way == other && other + time == other); }
}  // namespace

// Move the operation at `from` right behind that at `to` > `from`.
void Shop::forward(int m, int from, int to, int64_t now, double best) {
    const int *line = &at[m * jobs];
    int u = line[from], v = line[to], next = all[u].job_after;
    if (next != nobody && may_wait(tail(next), tail(v), all[next].time)) return;
    int size = to - from;
    double free = end(all[u].before);
    bool is_tabu = false;
    for (int i = 1; i <= size; i++) {
        const Operation &own = all[line[from + i]];
        heads[i] = std::max(end(own.job_before), free);
        free = heads[i] + own.time;
        is_tabu |= forbidden(line[from + i], u) > now;
    }
    heads[0] = std::max(end(all[u].job_before), free);
    double left = all[u].time + std::max(tail(next), tail(all[v].after)), estimate = heads[0] + left;
    for (int i = size; i >= 1; i--) {
        const Operation &own = all[line[from + i]];
        left = own.time + std::max(tail(own.job_after), left);
        estimate = std::max(estimate, heads[i] + left);
    }
    moves.push_back({m, from, to, estimate, is_tabu && estimate >= best});
}

// Move the operation at `from` right before that at `to` < `from`.
void Shop::backward(int m, int from, int to, int64_t now, double best) {
    const int *line = &at[m * jobs];
    int v = line[from], u = line[to], last = all[v].job_before;
    if (last != nobody && may_wait(end(last), end(u), all[last].time)) return;
    int size = from - to;
    heads[0] = std::max(end(last), end(all[u].before));
    double free = heads[0] + all[v].time;
    bool is_tabu = false;
    for (int i = 0; i < size; i++) {
        const Operation &own = all[line[to + i]];
        heads[i + 1] = std::max(end(own.job_before), free);
        free = heads[i + 1] + own.time;
        is_tabu |= forbidden(v, line[to + i]) > now;
    }
    double left = tail(all[v].after), estimate = 0;
    for (int i = size - 1; i >= 0; i--) {
        const Operation &own = all[line[to + i]];
        left = own.time + std::max(tail(own.job_after), left);
        estimate = std::max(estimate, heads[i + 1] + left);
    }
    estimate = std::max(estimate, heads[0] + all[v].time + std::max(tail(all[v].job_after), left));
    moves.push_back({m, from, to, estimate, is_tabu && estimate >= best});
}

// Carries a move out. Until `until` no pair of operations whose order it changes may go back.
void Shop::make(const ShopMove &move, int64_t until) {
    int *line = &at[move.machine * jobs], o = line[move.from], other = line[move.to], direction = move.to > move.from ? 1 : -1;
    for (int i = move.from; i != move.to; i += direction) {
        line[i] = line[i + direction];
        (direction > 0 ? forbidden(o, line[i]) : forbidden(line[i], o)) = until;
    }
    line[move.to] = o;
    link(move.machine, std::min(move.from, move.to), std::max(move.from, move.to));
    int first = std::min(rank[o], rank[other]), last = std::max(rank[o], rank[other]);
    reorder(first, last, o, direction > 0);
    measure(first, last);
}

// Puts an operation behind the one it waits for now, or before the one that waits for it, with all between the two that it drags along.
void Shop::reorder(int first, int last, int moved, bool later) {
    rest.clear();
    dragged.clear();
    int begin = later ? first : last, direction = later ? 1 : -1;
    for (int i = begin, left = last - first; left >= 0; i += direction, left--) {
        int o = order[i], job = later ? all[o].job_before : all[o].job_after, other = later ? all[o].before : all[o].after;
        bool follows = o == moved || marked[job] || marked[other];
        (follows ? dragged : rest).push_back(o);
        marked[o] = follows;
    }
    int i = begin;
    for (auto *part : {&rest, &dragged})
        for (int o : *part) {
            order[i] = o;
            rank[o] = i;
            marked[o] = 0;
            i += direction;
        }
}

void Shop::write(int64_t *actions) const {
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
            double ends = start(o) + all[o].time;
            if (soonest >= 0 && (ends > earliest || (ends == earliest && machine[o] >= machine[soonest]))) continue;
            soonest = o;
            earliest = ends;
        }
        int m = machine[soonest];
        while (done[at[m * jobs + line[m]]]) line[m]++;
        int o = at[m * jobs + line[m]], job = o / steps;
        bool may = o == job * steps + next[job] && (start(o) < earliest || start(o) + all[o].time == earliest);
        if (!may) o = soonest;  // there is room for it
        job_free[o / steps] = machine_free[m] = start(o) + all[o].time;
        next[o / steps]++;
        done[o] = 1;
        *actions++ = o / steps;
    }
}
