#include "prize_search.h"

#include <algorithm>
#include <numeric>

namespace {
constexpr int NEIGHBOURS = 40, CLOSEST = 8;  // for places, and for exchanges of edges
constexpr int PLACES = 6;                    // nodes of the tour beside which a node is tried
constexpr int CANDIDATES = 250;              // at most so many nodes are tried in a round
constexpr double MOST = 20, SHARE = 0.4;  // nodes that a round takes out, and the share of the tour, at most
constexpr double IN_A_ROW = 0.5, ANYWHERE = 0.05;  // how often these are a stretch of the tour, or a few anywhere; otherwise around a node
constexpr int SEGMENT = 3;                   // nodes that Or-opt moves
constexpr double HOT = 0.5, COLD = 0.01;     // temperatures, in mean prizes of the tour
constexpr double WORTH = 0.5;                // of a way that is shorter, beside that of the mean way to a prize
constexpr int LISTED = 1000;                 // so many nodes have all their distances listed
constexpr int64_t CYCLE = 100;               // rounds per node of the first annealing
constexpr int STARTS = 8, DRAWN = 3;         // tours that a search with an end begins with, at most, and the nodes that each is drawn by
constexpr double EXPLORING = 0.5;            // the part of the time that these have
constexpr int64_t LEAST_ROUNDS = 10;         // of each, per node
constexpr double WARM = 0.2;                 // where in its temperatures each of them begins
constexpr int LOOK = 16;                     // rounds between looks at the clock
}  // namespace

PrizeSearch::PrizeSearch(const Distances &given, std::vector<double> worth, double budget, uint64_t seed, const std::vector<int> &start, int first,
                         std::vector<char> out)
    : distance(given.listed_if(LISTED)), prizes(std::move(worth)), budget(budget), n(given.count()), size(std::clamp(n - 1, 0, NEIGHBOURS)), first(first),
      barred(out.empty() ? std::vector<char>(n, 0) : std::move(out)), near(nearest(distance, size)), least(distance.tolerance()), random(seed), place(n, -1),
      taste(n, 1), waits(n, 0), cycle(CYCLE * n), turn((int64_t)(WARM * (double)cycle)) {
    set(start.empty() && first ? std::vector<int>{first} : start);
    this->budget = std::max(budget, length);  // a start may be a rounding longer
    fill();
    leading = {tour.begin() + 1, tour.end()};
    most = collected;
    shortest = length;
}

// The way between two neighbours of a tour of three nodes or more; the one to a fixed first node is never worth giving up.
double PrizeSearch::way(int a, int b) const {
    bool stays = first && ((a == 0 && b == first) || (b == 0 && a == first));
    return stays ? -INFINITY : distance(a, b);
}

void PrizeSearch::set(const std::vector<int> &order) {
    tour.assign(1, 0);
    tour.insert(tour.end(), order.begin(), order.end());
    number(0);
    measure();
}

void PrizeSearch::number(int from) {
    if (from == 0) std::fill(place.begin(), place.end(), -1);
    for (int i = from; i < (int)tour.size(); i++) place[tour[i]] = i;
}

double PrizeSearch::length_of(const std::vector<int> &order) const {
    if (order.empty()) return 0;
    double total = first ? 0 : distance(0, order[0]);
    for (size_t i = 0; i + 1 < order.size(); i++) total += distance(order[i], order[i + 1]);
    return total + distance(order.back(), 0);
}

double PrizeSearch::prize_of(const std::vector<int> &order) const {
    double total = 0;
    for (int node : order) total += prizes[node];
    return total;
}

void PrizeSearch::measure() {
    length = collected = 0;
    for (int i = first ? 1 : 0; i < (int)tour.size() && tour.size() > 1; i++) length += distance(tour[i], after(i));
    for (int node : tour) collected += node ? prizes[node] : 0;
}

bool PrizeSearch::offer(const std::vector<int> &order) {
    double prize = prize_of(order);
    if (prize < most || (prize == most && length_of(order) >= shortest - least)) return false;
    set(order);
    fill();
    lead();
    return true;
}

void PrizeSearch::lead() {
    if (collected < most - 1e-12 * std::abs(most) || (collected <= most && length >= shortest - least)) return;
    leading = {tour.begin() + 1, tour.end()};
    most = collected;
    shortest = length;
}

int64_t PrizeSearch::run(int64_t work, double seconds, std::optional<Progress> progress, Watch &watch) {
    if (n < 2) return work;
    double share = 0;
    int64_t done = 0, enough = work / std::max<int64_t>(1, LEAST_ROUNDS * n);
    int starts = (int)std::clamp<int64_t>(enough, 1, STARTS);
    for (; done < work; done++) {
        if (done % LOOK == 0 && watch.over()) break;
        if (!progress) {
            share = own_share();
        } else if (done % LOOK == 0) {
            double spent = std::max((double)done / (double)work, watch.spent() / seconds);
            share = staged(progress->from + (progress->to - progress->from) * std::min(spent, 1.0), starts);
        }
        round(HOT * std::pow(COLD / HOT, share));
    }
    return done;
}

// How far an annealing of a search without an end is. Each begins with another tour, or goes on from the best.
double PrizeSearch::own_share() {
    if (turn == cycle) {
        cycle *= 2;
        turn = (int64_t)(WARM * (double)cycle);
        begin_stage(stage + 1, stage % 2 != 0);
    }
    return (double)(turn++) / (double)cycle;
}

// How far an annealing is, of those that a search with an end consists of: from several tours, then from the best.
double PrizeSearch::staged(double share, int starts) {
    int now = share < EXPLORING ? (int)(share / EXPLORING * starts) : starts;
    if (now != stage) begin_stage(now, now == starts);
    if (now == starts) return WARM + (1 - WARM) * (share - EXPLORING) / (1 - EXPLORING);
    return share / EXPLORING * starts - now;
}

void PrizeSearch::begin_stage(int now, bool from_best) {
    if (from_best)
        set(leading);
    else if (now > 0)
        start_anew();
    stage = now;
}

// A tour by insertion from some nodes on that are drawn.
void PrizeSearch::start_anew() {
    set(first ? std::vector<int>{first} : std::vector<int>{});
    for (int i = 0; i < DRAWN; i++) {
        Insertion way{1 + random.below(n - 1), 0, 0, 0};
        if (place[way.node] >= 0 || barred[way.node]) continue;
        find_place(way);
        if (way.cost > budget - length) continue;
        tour.insert(tour.begin() + way.behind + 1, way.node);
        number(0);
        measure();
    }
    fill();
}

// One round of removal and reinsertion, which is taken back if it is too bad for the temperature, in mean prizes.
void PrizeSearch::round(double temperature) {
    double price = WORTH * most / std::max(budget, 1e-300);  // of the way
    double before = price * length - collected, old_length = length, old_prize = collected;
    kept_tour = tour;
    ruin();
    recreate(random.below(2) ? 1 : 2 * random.unit(), 0.5 * random.unit(), false);
    shorten();
    recreate(1, 0, false);
    if (length <= budget) lead();
    double warmth = temperature * most / std::max(1.0, (double)leading.size());
    if (price * length - collected < before - warmth * std::log(1 - random.unit()) && length <= budget) return;
    tour = kept_tour;
    number(0);
    length = old_length;
    collected = old_prize;
}

// Takes nodes out: one stretch of the tour, or the tour's nodes around some node, or a few anywhere.
void PrizeSearch::ruin() {
    absent.clear();
    touched.clear();
    int stops = (int)tour.size() - 1;
    if (stops < 1) return;
    int count = 1 + random.below(std::max(1, (int)std::min(MOST, SHARE * stops)));
    double kind = random.unit();
    if (kind < IN_A_ROW) {
        take_segment(1 + random.below(stops), count);
    } else if (kind < IN_A_ROW + ANYWHERE) {
        for (int i = 0; i < (count + 2) / 3; i++) take_segment(1 + random.below(stops), 1);
    } else {
        take_around(random.below(n), count);
    }
    drop_taken();
}

void PrizeSearch::take_segment(int at, int count) {
    for (int i = at; i < std::min(at + count, (int)tour.size()); i++)
        if (tour[i] != first) absent.push_back(tour[i]);
}

void PrizeSearch::take_around(int node, int count) {
    if (node && node != first && place[node] > 0) absent.push_back(node);
    for (int i = 0; i < size && (int)absent.size() < count; i++) {
        int other = near[(size_t)node * size + i];
        if (other && other != first && place[other] > 0 && random.below(4)) absent.push_back(other);
    }
}

void PrizeSearch::drop_taken() {
    for (int node : absent) {
        int at = place[node];
        if (at < 0) continue;
        touched.push_back(tour[at - 1]);
        touched.push_back(after(at));
        place[node] = -1;
    }
    int kept = 1;
    for (int i = 1; i < (int)tour.size(); i++)
        if (place[tour[i]] >= 0) tour[kept++] = tour[i];
    tour.resize(kept);
    for (int i = 0; i < kept; i++) place[tour[i]] = i;
    measure();
}

// How much longer the way becomes by a node behind place i.
double PrizeSearch::detour(int node, int i) const {
    if (first && i == 0) return INFINITY;
    return distance(tour[i], node) + distance(node, after(i)) - distance(tour[i], after(i));
}

// Where a node costs least: beside one of the nearest nodes of the tour.
void PrizeSearch::find_place(Insertion &best) const {
    int node = best.node, tried = 0;
    best.cost = INFINITY;
    auto consider = [&](int i) {
        double cost = detour(node, i);
        if (cost < best.cost) best.cost = cost, best.behind = i;
    };
    auto beside = [&](int i) {
        consider(i);
        consider(i ? i - 1 : (int)tour.size() - 1);
    };
    for (int i = 0; i < size && tried < PLACES; i++) {
        int other = near[(size_t)node * size + i];
        if (place[other] < 0) continue;
        tried++;
        beside(place[other]);
    }
    if (tried < PLACES) beside(0);
}

// Puts nodes into the tour while the budget lasts, those first that bring most for their way. `power` of the prize and some `noise` make rounds differ.
void PrizeSearch::recreate(double power, double noise, bool all) {
    ways.clear();
    double left = budget - length;
    int begin = all || n <= CANDIDATES ? 1 : 1 + random.below(n - 1), tried = 0;
    auto add = [&](int node) {
        if (node == 0 || place[node] >= 0 || barred[node] || waits[node]) return;
        Insertion way{node, 0, 0, 0};
        find_place(way);
        tried++;
        if (way.cost > left) return;
        taste[node] = std::pow(prizes[node], power) * (1 + noise * (2 * random.unit() - 1));
        ways.push_back(way);
        waits[node] = 1;
    };
    if (all || n <= CANDIDATES) {
        for (int node = 1; node < n; node++) add(node);
    } else {  // what lies around the places that changed, then some others
        for (int node : absent) add(node);
        for (size_t t = 0; t < touched.size() && tried < CANDIDATES / 2; t++)
            for (int i = 0; i < size && tried < CANDIDATES / 2; i++) add(near[(size_t)touched[t] * size + i]);
        for (int i = 0; i < CANDIDATES / 8; i++) add(1 + (begin + i) % (n - 1));
    }
    while (!ways.empty()) {
        int chosen = -1;
        double top = -1;
        for (int i = 0; i < (int)ways.size(); i++) {
            double score = taste[ways[i].node] / std::max(ways[i].cost, 1e-9 * budget);
            if (ways[i].cost <= left && score > top) top = score, chosen = i;
        }
        if (chosen < 0) break;
        Insertion way = ways[chosen];
        int at = way.behind + 1;
        tour.insert(tour.begin() + at, way.node);
        number(at);
        touched.push_back(way.node);
        touched.push_back(tour[at - 1]);
        touched.push_back(after(at));
        left -= way.cost;
        waits[way.node] = 0;
        ways[chosen] = ways.back();
        ways.pop_back();
        for (Insertion &other : ways) {
            if (other.behind == at - 1) {
                find_place(other);
                continue;
            }
            if (other.behind >= at) other.behind++;
            for (int i : {at - 1, at}) {
                double cost = detour(other.node, i);
                if (cost < other.cost) other.cost = cost, other.behind = i;
            }
        }
    }
    for (const Insertion &way : ways) waits[way.node] = 0;
    measure();
}

// 2-opt and Or-opt from the nodes where something has changed.
void PrizeSearch::shorten() {
    std::vector<int> &queue = touched;
    for (size_t i = 0; i < queue.size() && i < 100000; i++)
        while (place[queue[i]] >= 0 && tour.size() > 3 && improve(queue[i])) {
        }
    measure();
}

bool PrizeSearch::improve(int node) { return exchange(place[node]) || (place[node] > 0 && move(place[node])); }

// The edge behind or before place i, and one beside a near node, for two shorter ones.
bool PrizeSearch::exchange(int i) {
    int a = tour[i], m = (int)tour.size(), many = std::min(size, CLOSEST);
    for (bool forward : {true, false}) {
        int b = forward ? after(i) : tour[(i + m - 1) % m];
        double gone = way(a, b);
        for (int k = 0; k < many; k++) {
            int c = near[(size_t)a * size + k], j = place[c];
            double gain = gone - distance(a, c);
            if (gain <= least) break;
            if (j < 0) continue;
            int d = forward ? after(j) : tour[(j + m - 1) % m];
            if (c == b || d == a || !(gain + way(c, d) - distance(b, d) > least)) continue;
            auto [low, high] = std::minmax(i, j);
            auto start = tour.begin() + (forward ? low + 1 : low), end = tour.begin() + (forward ? high + 1 : high);
            if (start == tour.begin()) {  // the depot stays in front: the other side is turned
                start = end;
                end = tour.end();
            }
            std::reverse(start, end);
            number((int)(start - tour.begin()));
            for (int each : {a, b, c, d}) touched.push_back(each);
            return true;
        }
    }
    return false;
}

// Up to three nodes from place i on go elsewhere, beside a near node of the first one.
bool PrizeSearch::move(int i) {
    int a = tour[i], m = (int)tour.size(), many = std::min(size, CLOSEST);
    for (int count = 1; count <= SEGMENT; count++) {
        for (bool forward : {true, false}) {
            int low = forward ? i : i - count + 1, high = low + count - 1;
            if (low < 1 || high >= m || (count == 1 && !forward)) continue;
            int last = forward ? tour[high] : tour[low], p = tour[low - 1], q = after(high);
            double freed = way(p, tour[low]) + way(tour[high], q) - way(p, q);
            if (!(freed > least)) continue;
            for (int k = 0; k < many; k++) {
                int c = near[(size_t)a * size + k], j = place[c];
                if (distance(a, c) >= freed) break;
                if (j < 0 || (j >= low && j <= high)) continue;
                for (bool behind : {true, false}) {  // the segment comes between c and the node behind, or before
                    int e = behind ? after(j) : tour[(j + m - 1) % m], at = behind ? j : (j + m - 1) % m;
                    if (place[e] >= low && place[e] <= high) continue;
                    double cost = distance(c, a) + distance(last, e) - way(c, e);
                    if (!(freed - cost > least)) continue;
                    std::vector<int> part(tour.begin() + low, tour.begin() + high + 1);
                    if (behind != forward) std::reverse(part.begin(), part.end());
                    tour.erase(tour.begin() + low, tour.begin() + high + 1);
                    int to = (at > high ? at - count : at) + 1;
                    tour.insert(tour.begin() + to, part.begin(), part.end());
                    number(std::min(low, to));
                    for (int each : {a, last, c, e, p, q}) touched.push_back(each);
                    return true;
                }
            }
        }
    }
    return false;
}

// Uses all of the budget that it can.
void PrizeSearch::fill() {
    for (double before = -1; before < collected;) {
        before = collected;
        absent.clear();
        touched = tour;
        recreate(1, 0, true);
        shorten();
    }
}
