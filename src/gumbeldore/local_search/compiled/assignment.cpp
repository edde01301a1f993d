#include "assignment.h"

#include <algorithm>
#include <numeric>

#include "distances.h"
#include "entries.h"

Assignment::Assignment(int count, std::vector<double> costs)
    : next(count, -1), previous(count, -1), leaving(count, 0), reaching(count, NEVER), n(count), cost(std::move(costs)), far(count), from(count) {
    std::vector<int> least(n, -1);
    for (int a = 0; a < n; a++)
        for (int b = 0; b < n; b++)
            if ((*this)(a, b) < reaching[b]) {
                reaching[b] = (*this)(a, b);
                least[b] = a;
            }
    for (int b = 0; b < n; b++)
        if (int a = least[b]; next[a] < 0) {
            next[a] = b;
            previous[b] = a;
        }
    for (int a = 0; a < n; a++) {
        if (next[a] >= 0) continue;
        int best = 0;
        for (int b = 1; b < n; b++)
            if (reduced(a, b) < reduced(a, best)) best = b;
        leaving[a] = (*this)(a, best) - reaching[best];
        if (previous[best] >= 0) continue;
        next[a] = best;
        previous[best] = a;
    }
    for (int a = 0; a < n; a++)
        if (next[a] < 0) augment(a, -1);
}

double Assignment::total() const {
    double sum = 0;
    for (int a = 0; a < n; a++) sum += (*this)(a, next[a]);
    return sum;
}

void Assignment::augment(int free, int without) {
    std::fill(far.begin(), far.end(), NEVER);
    open.resize(n);
    std::iota(open.begin(), open.end(), 0);
    int left = n, row = free, column = -1;
    if (without >= 0) {
        open[next[without]] = n - 1;  // swapped with the last one, and left out
        open[n - 1] = next[without];
        left--;
    }
    int usable = left;
    double reached = 0;
    for (;;) {
        const double *costs = &cost[(size_t)row * n];
        double base = reached - leaving[row], least = NEVER;
        int where = 0;
        for (int i = 0; i < left; i++) {
            int b = open[i];
            double way = base + costs[b] - reaching[b];
            if (way < far[b]) {
                far[b] = way;
                from[b] = row;
            }
            if (far[b] < least) {
                least = far[b];
                where = i;
            }
        }
        boundary::require(least < NEVER, "There is no assignment of these costs.");
        reached = least;
        column = open[where];
        std::swap(open[where], open[--left]);
        row = previous[column];
        if (row < 0) break;
    }
    for (int i = left; i < usable; i++) {
        int b = open[i];
        if (b == column) continue;
        leaving[previous[b]] += reached - far[b];
        reaching[b] -= reached - far[b];
    }
    leaving[free] += reached;
    for (int a = -1; a != free;) {
        a = from[column];
        previous[column] = a;
        std::swap(next[a], column);
    }
}

std::vector<double> Assignment::ways(bool outwards) const {
    std::vector<double> away(n, NEVER);
    std::vector<char> done(n, 0);
    away[0] = 0;
    for (int row = 0; row >= 0;) {
        done[row] = 1;
        int near = -1;
        for (int a = 0; a < n; a++) {
            if (done[a]) continue;
            double step = outwards ? reduced(row, next[a]) : reduced(a, next[row]);
            away[a] = std::min(away[a], away[row] + std::max(0.0, step));
            if (away[a] < NEVER && (near < 0 || away[a] < away[near])) near = a;
        }
        row = near;
    }
    return away;
}

std::vector<double> Assignment::regrets() const {
    std::vector<double> away = ways(false), result(n);
    for (int b = 0; b < n; b++) result[b] = b == next[0] ? 0 : std::max(0.0, reduced(0, b)) + away[previous[b]];
    return result;
}

void Assignment::centre() {
    if (n < 3) return;
    std::vector<double> in = ways(false), out = ways(true), moved(n);
    double first = leaving[0];
    for (int a = 0; a < n; a++) moved[a] = (in[a] - out[a]) / 2 - first;
    for (int a = 0; a < n; a++) {
        leaving[a] += moved[a];
        reaching[next[a]] -= moved[a];
    }
}

void Assignment::force(int follower) {
    int before = previous[follower], after = next[0];
    if (before == 0) return;
    next[0] = follower;
    previous[follower] = 0;
    next[before] = previous[after] = -1;
    augment(before, 0);
}

std::vector<int> Assignment::cycles(std::vector<int> &sizes) const {
    std::vector<int> cycle(n, -1);
    sizes.clear();
    for (int begin = 0; begin < n; begin++) {
        if (cycle[begin] >= 0) continue;
        int size = 0;
        for (int a = begin; cycle[a] < 0; a = next[a], size++) cycle[a] = (int)sizes.size();
        sizes.push_back(size);
    }
    return cycle;
}

void Assignment::patch(bool keeps) {
    std::vector<int> sizes;
    std::vector<int> cycle = cycles(sizes);
    std::vector<std::vector<int>> members(sizes.size());
    for (int a = 0; a < n; a++) members[cycle[a]].push_back(a);
    auto length = [&](const std::vector<int> &nodes) {
        double sum = 0;
        for (int a : nodes) sum += (*this)(a, next[a]);
        return sum;
    };
    // Of equally large ones the shorter first, so that it does not matter which node has which number.
    std::stable_sort(members.begin(), members.end(), [&](auto &one, auto &other) {
        return one.size() != other.size() ? one.size() > other.size() : length(one) < length(other);
    });
    for (size_t i = 1; i < members.size(); i++) {
        double least = NEVER;
        int one = -1, other = -1;
        for (int a : members[0]) {
            if (keeps && a == 0) continue;
            double lost = (*this)(a, next[a]);
            for (int b : members[i]) {
                if (keeps && b == 0) continue;
                double added = (*this)(a, next[b]) + (*this)(b, next[a]) - lost - (*this)(b, next[b]);
                if (added < least) {
                    least = added;
                    one = a;
                    other = b;
                }
            }
        }
        boundary::require(one >= 0, "There is no tour of these costs.");
        std::swap(next[one], next[other]);
        previous[next[one]] = one;
        previous[next[other]] = other;
        members[0].insert(members[0].end(), members[i].begin(), members[i].end());
    }
}

void Assignment::improve(bool keeps) {
    double size = 0;
    for (int a = 0; a < n; a++) size += std::abs((*this)(a, next[a]));
    while (improve_once(tour(), keeps, 1e-9 * size)) {
    }
}

// From a on, the way a b .. c d .. e f becomes a d .. e b .. c f.
bool Assignment::improve_once(const std::vector<int> &order, bool keeps, double least) {
    std::vector<int> place(n);
    for (int i = 0; i < n; i++) place[order[i]] = i;
    for (int a : order) {
        int b = next[a];
        double lost = reduced(a, b);
        if (lost <= least || (keeps && a == 0)) continue;
        for (int i = 2; i < n; i++) {
            int d = order[(place[a] + i) % n], c = previous[d];
            double won = lost - reduced(a, d);
            if (won <= least || (keeps && c == 0)) continue;
            won += reduced(c, d);
            double best = least;
            int where = -1;
            for (int j = i + 1; j <= n; j++) {
                int f = order[(place[a] + j) % n], e = previous[f];
                if (keeps && e == 0) continue;
                double gain = won + reduced(e, f) - reduced(c, f) - reduced(e, b);
                if (gain > best) {
                    best = gain;
                    where = f;
                }
            }
            if (where < 0) continue;
            int e = previous[where];
            next[a] = d;
            next[e] = b;
            next[c] = where;
            previous[d] = a;
            previous[b] = e;
            previous[where] = c;
            return true;
        }
    }
    return false;
}

std::vector<int> Assignment::tour() const {
    std::vector<int> order;
    for (int a = 0; order.empty() || a != 0; a = next[a]) order.push_back(a);
    return order;
}

namespace {
constexpr double FARTHEST = 1e15;
enum Feature { REGRET, TRIED, DETOUR, PIECES, LEAVE, RETURN, NEXT, LAST, WITHIN, CYCLE, LEAVING, REACHING, FOLLOWER, FEATURES };

Assignment of_matrix(const double *matrix, int n) {
    std::vector<double> costs(matrix, matrix + (size_t)n * n);
    for (int i = 0; i < n; i++) costs[(size_t)i * n + i] = Assignment::NEVER;
    return {n, std::move(costs)};
}

// What is left of a tour is a smaller one: node 0 is left as the current city, and reached as the first one.
Assignment of_rest(const double *matrix, int cities, const std::vector<int> &leave, const std::vector<int> &reach) {
    int n = (int)leave.size();
    std::vector<double> costs((size_t)n * n);
    for (int a = 0; a < n; a++)
        for (int b = 0; b < n; b++) costs[(size_t)a * n + b] = a == b ? Assignment::NEVER : matrix[(size_t)leave[a] * cities + reach[b]];
    return {n, std::move(costs)};
}

void describe(Assignment rest, int tries, float *result, float &unit) {
    int n = rest.count();
    rest.centre();
    std::vector<double> regret = rest.regrets();
    std::vector<int> count, sizes, cycle = rest.cycles(count), order;
    for (int b = 1; b < n; b++) order.push_back(b);
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return regret[a] < regret[b]; });
    order.resize(std::min<size_t>(order.size(), tries));
    std::vector<double> patched, pieces;
    for (int b : order) {
        Assignment trial = rest;
        trial.force(b);
        trial.cycles(sizes);
        pieces.push_back((double)sizes.size());
        trial.patch(true);
        trial.improve(true);
        patched.push_back(trial.total());
    }
    double least = *std::min_element(patched.begin(), patched.end());
    double scale = std::max(least / n, 1e-9);
    unit = (float)scale;
    for (int b = 1; b < n; b++) {
        float *own = result + (size_t)FEATURES * (b - 1);
        own[REGRET] = (float)(regret[b] / scale);
        own[LEAVE] = (float)(rest.reduced(0, b) / scale);
        own[RETURN] = (float)(rest.reduced(b, 0) / scale);
        own[NEXT] = rest.next[0] == b;
        own[LAST] = rest.next[b] == 0;
        own[WITHIN] = cycle[b] == 0;
        own[CYCLE] = (float)count[cycle[b]] / n;
        own[LEAVING] = (float)(rest.leaving[b] / scale);
        own[REACHING] = (float)(rest.reaching[b] / scale);
        own[FOLLOWER] = (float)(rest.next[b] - 1);
    }
    for (size_t i = 0; i < order.size(); i++) {
        float *own = result + (size_t)FEATURES * (order[i] - 1);
        own[TRIED] = 1;
        own[PIECES] = (float)pieces[i];
        own[DETOUR] = (float)((patched[i] - least) / scale);
    }
}
}  // namespace

// Of each matrix: who follows whom at the least cost, the prices of leaving and of reaching nodes, and a tour by joining cycles.
void assign(View<const double, 3> distances, View<int64_t, 2> followers, View<double, 3> prices, View<int64_t, 2> tours) {
    int64_t count = distances.size(0), n = checked_size(distances.size(1), 2, "cities");
    distances.shaped({count, n, n}).between(-FARTHEST, FARTHEST);
    followers.shaped({count, n});
    prices.shaped({count, 2, n});
    tours.shaped({count, n});
    Watch watch;
    for (int64_t i = 0; i < count; i++) {
        watch.over();
        Assignment found = of_matrix(distances.part(i), (int)n);
        std::copy(found.next.begin(), found.next.end(), followers.part(i));
        std::copy(found.leaving.begin(), found.leaving.end(), prices.part(i));
        std::copy(found.reaching.begin(), found.reaching.end(), prices.part(i) + n);
        found.patch(false);
        found.improve(false);
        std::vector<int> tour = found.tour();
        std::copy(tour.begin(), tour.end(), tours.part(i));
    }
}

// Of each row, which stands at a city and has to come to all those of `left` (-1 after them) and then to its first city: what assignments of
// what is left say of each of them. `result` are the features of each place of `left`, `scales` a mean edge.
void look_ahead_by_assignment(View<const double, 3> distances, View<const int64_t, 1> instances, View<const int64_t, 2> ends,
                              View<const int64_t, 2> left, int64_t tries, int64_t threads, View<float, 3> result, View<float, 1> scales) {
    int64_t rows = left.size(0), places = left.size(1), n = checked_size(distances.size(1), 2, "cities");
    distances.shaped({-1, n, n}).between(-FARTHEST, FARTHEST);
    instances.shaped({rows}).between(0, distances.size(0) - 1);
    ends.shaped({rows, 2}).between(0, n - 1);
    left.between(-1, n - 1);
    result.shaped({rows, places, FEATURES});
    scales.shaped({rows});
    require(tries >= 1, "`tries` must be at least 1, got " + std::to_string(tries) + ".");
    int team = checked_threads(threads), most = (int)std::min<int64_t>(tries, n);
    Watch watch;
    boundary::Errors errors;
#pragma omp parallel for schedule(dynamic, 4) num_threads(team) if (team > 1)
    for (int64_t r = 0; r < rows; r++)
        errors.run([&] {
            watch.over();
            std::fill_n(result.part(r), (size_t)FEATURES * places, 0.0f);
            scales[r] = 1;
            std::vector<int> leave{(int)ends.part(r)[0]}, reach{(int)ends.part(r)[1]};
            for (int64_t i = 0; i < places && left.part(r)[i] >= 0; i++) {
                leave.push_back((int)left.part(r)[i]);
                reach.push_back((int)left.part(r)[i]);
            }
            if (leave.size() > 1) describe(of_rest(distances.part(instances[r]), (int)n, leave, reach), most, result.part(r), scales[r]);
        });
    errors.rethrow();
}
