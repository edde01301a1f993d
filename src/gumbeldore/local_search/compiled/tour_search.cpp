#include "tour_search.h"

#include <numeric>

#include "searches.h"

namespace {
constexpr int NEIGHBOURS = 10, CLOSEST = 5;  // of the first, and of the second city of a move
constexpr int LINKS = 2;                    // moves of a chain
constexpr int SEGMENT = 50;                 // cities of a segment that a double bridge moves
constexpr int LISTEN = 64;                  // cities between looks at the watch
constexpr double HEAT = 10;  // hundredths of a usual edge by which a tour may become longer, on average
constexpr int LARGE = 12000;  // beyond, there is no time to lose any
enum Kind { NONE, TWO, TURNED, APART, SWAPPED, BOTH_TURNED };

std::vector<int> checked_tour(View<const int64_t, 1> tour, int cities) {
    check_permutation(tour.shaped({cities}).data(), cities, "tour");
    return {tour.begin(), tour.end()};
}

std::vector<int> numbers_of(const std::vector<int> &nodes) {
    std::vector<int> numbers(nodes.size());
    for (size_t i = 0; i < nodes.size(); i++) numbers[nodes[i]] = (int)i;
    return numbers;
}
}  // namespace

TourSearch::TourSearch(const Distances &outer, uint64_t seed, const std::vector<int> &start)
    : asymmetric(!outer.symmetric()), node(along_curve(outer)), number(numbers_of(node)),
      distance(asymmetric ? outer.doubled() : outer.permuted(node)), n(distance.count()), size(std::min(NEIGHBOURS + asymmetric, n - 1)),
      least(distance.tolerance()), near(near_all_around(distance, size)),
      tour(start.empty() && !asymmetric ? greedy_tour(distance, near, size) : inside(start)), random(seed), waiting(n, 0) {
    away.reserve(near.size());
    for (int i = 0; i < n; i++)
        for (int j = 0; j < size; j++) away.push_back(distance(i, near[(size_t)i * size + j]));
    length = shortest = measured();
    for (int city : tour.order()) wait(city);
    heat = n <= LARGE ? HEAT / 100 * median_edge() : 0;
}

double TourSearch::cost_of(const std::vector<int> &order) const {
    double total = 0;
    for (size_t i = 0; i < order.size(); i++) {
        int a = order[i], b = order[i + 1 == order.size() ? 0 : i + 1];
        if (a != b) total += asymmetric ? distance(a, n / 2 + b) : distance(number[a], number[b]);
    }
    return total;
}

double TourSearch::measured() const {
    double total = 0;
    for (int i = 0; i < n; i++) total += distance(tour.city(i), tour.city(i + 1));
    return total;
}

double TourSearch::median_edge() const {
    std::vector<double> edges;
    for (int i = 0; i < n; i++)
        if (!is_fixed(tour.city(i), tour.city(i + 1))) edges.push_back(std::max(0.0, distance(tour.city(i), tour.city(i + 1))));
    if (edges.empty()) return 0;
    auto middle = edges.begin() + (int)edges.size() / 2;
    std::nth_element(edges.begin(), middle, edges.end());
    return *middle;
}

// Of an asymmetric tour each city is reached, n + i, and left, i. Without one it begins as the nodes are.
std::vector<int> TourSearch::inside(const std::vector<int> &order) const {
    std::vector<int> result;
    for (int i = 0; i < cities(); i++) {
        int city = order.empty() ? i : order[i];
        if (asymmetric) result.push_back(cities() + city);
        result.push_back(asymmetric ? city : number[city]);
    }
    return result;
}

std::vector<int> TourSearch::outside(const std::vector<int> &order) const {
    std::vector<int> result;
    if (!asymmetric)
        for (int city : order) result.push_back(node[city]);
    else
        for (int city : order)
            if (city < n / 2) result.push_back(city);
    if (asymmetric && order[0] % (n / 2) != order[order[0] < n / 2 ? n - 1 : 1] % (n / 2)) std::reverse(result.begin(), result.end());
    std::rotate(result.begin(), std::find(result.begin(), result.end(), 0), result.end());
    return result;
}

void TourSearch::wait(int city) {
    if (waiting[city]) return;
    waiting[city] = 1;
    queue.push_back(city);
}

int TourSearch::pop() {
    int city = queue[begin++];
    waiting[city] = 0;
    if (begin == queue.size()) {
        queue.clear();
        begin = 0;
    }
    return city;
}

// Makes improving moves until no city that waits has one, or time is up.
void TourSearch::descend(Watch *watch) {
    for (int turn = 1; !queue.empty(); turn++) {
        if (watch && turn % LISTEN == 0 && watch->over()) return;
        int city = pop();
        while (improve(city, true) || improve(city, false)) {
        }
    }
}

// A chain of moves from the edge of a city to the one that follows, or that comes before; made if it makes the tour shorter.
bool TourSearch::improve(int t1, bool forward) {
    size_t before = tour.exchanges();
    added.clear();
    int t2 = forward ? tour.next(t1) : tour.previous(t1);
    double freed = distance(t1, t2);
    ends.assign({t1, t2});
    for (int link = 0; link < LINKS; link++) {
        Move best{};
        bool closes = scan(t1, t2, freed, forward, best);
        if (best.kind == NONE) break;
        make(t1, best);
        for (int city : {best.t3, best.t4, best.t5, best.t6})
            if (city >= 0) ends.push_back(city);
        if (closes) {
            length -= best.gain;
            for (int city : ends) wait(city);
            return true;
        }
        added.push_back({best.t2, best.t3});
        added.push_back({best.t4, best.t5});
        t2 = best.t6;
        freed = best.gain;
        forward = tour.next(t1) == t2;
    }
    tour.undo(before);
    return false;
}

bool TourSearch::was_added(int a, int b) const {
    for (auto &[one, other] : added)
        if ((one == a && other == b) || (one == b && other == a)) return true;
    return false;
}

// Looks for a move that begins with the edge from t1 to t2, whose length and all that was won before is `freed`. True if it found one that makes
// the tour shorter; otherwise `best` is the one after which most is left to win with, if there is any.
bool TourSearch::scan(int t1, int t2, double freed, bool forward, Move &best) const {
    auto after = [&](int city) { return forward ? tour.next(city) : tour.previous(city); };
    auto before = [&](int city) { return forward ? tour.previous(city) : tour.next(city); };
    auto way = [&](int city) { return forward ? tour.way(t2, city) : tour.way(city, t2); };
    int second = after(t2), closest = std::min(size, CLOSEST + asymmetric);
    best.kind = NONE;
    best.gain = least;
    const int *near2 = &near[(size_t)t2 * size];
    const double *away2 = &away[(size_t)t2 * size];
    for (int i = 0; i < size; i++) {
        int t3 = near2[i];
        double won = freed - away2[i];
        if (won <= least) break;
        if (t3 == t1 || t3 == second) continue;
        int place3 = way(t3);
        for (bool beyond : {false, true}) {
            int t4 = beyond ? after(t3) : before(t3);
            if (was_added(t3, t4)) continue;
            double left = won + distance(t3, t4);
            if (!beyond) {
                double gain = left - distance(t4, t1);
                if (gain > least) {
                    best = {TWO, t2, t3, t4, -1, -1, gain};
                    return true;
                }
            }
            const int *near4 = &near[(size_t)t4 * size];
            const double *away4 = &away[(size_t)t4 * size];
            for (int j = 0; j < closest; j++) {
                int t5 = near4[j];
                double rest = left - away4[j];
                if (rest <= least) break;
                if (t5 == t3 || t5 == after(t4) || t5 == before(t4)) continue;
                bool inside = way(t5) <= place3;
                auto attempt = [&](Kind kind, int t6) {
                    double open = rest + distance(t5, t6), gain = open - distance(t6, t1);
                    if (gain > least) {
                        best = {kind, t2, t3, t4, t5, t6, gain};
                        return true;
                    }
                    if (open > best.gain && !was_added(t5, t6)) best = {kind, t2, t3, t4, t5, t6, open};
                    return false;
                };
                if (!beyond) {
                    if (t5 == t1) continue;
                    if (attempt(inside ? APART : TURNED, inside ? after(t5) : before(t5))) return true;
                } else if (inside) {
                    if (attempt(SWAPPED, after(t5))) return true;
                    if (t5 != t2 && attempt(BOTH_TURNED, before(t5))) return true;
                }
            }
        }
    }
    return false;
}

void TourSearch::make(int t1, const Move &move) {
    auto [kind, t2, t3, t4, t5, t6, gain] = move;
    if (kind == SWAPPED) {
        tour.exchange(t1, t2, t3, t4);
        tour.exchange(t1, t3, t6, t5);
        tour.exchange(t3, t5, t2, t4);
    } else if (kind == BOTH_TURNED) {
        tour.exchange(t1, t2, t6, t5);
        tour.exchange(t2, t5, t3, t4);
    } else {
        tour.exchange(t1, t2, t4, t3);
        if (kind != TWO) tour.exchange(t1, t4, t6, t5);
    }
}

// Three neighbouring segments in the opposite order, none of them turned round.
void TourSearch::kick() {
    // Of an asymmetric tour only every other edge may be given up.
    int step = asymmetric ? 2 : 1, longest = std::min(SEGMENT, (n - 2) / 3) / step, first = random.below(n);
    if (is_fixed(tour.city(first), tour.city(first + 1))) first++;
    int cut[4] = {first};
    for (int i = 1; i < 4; i++) cut[i] = cut[i - 1] + step * (1 + random.below(longest));
    auto end = [&](int i) { return tour.city(cut[i] % n); };
    auto start = [&](int i) { return tour.city((cut[i] + 1) % n); };
    int a = end(0), b1 = start(0), b2 = end(1), c1 = start(1), c2 = end(2), d1 = start(2), d2 = end(3), e = start(3);
    length += distance(a, d1) + distance(d2, c1) + distance(c2, b1) + distance(b2, e) - distance(a, b1) - distance(b2, c1) - distance(c2, d1) -
              distance(d2, e);
    tour.exchange(a, b1, d2, e);
    tour.exchange(a, d2, d1, c2);
    tour.exchange(d2, c2, c1, b2);
    tour.exchange(c2, b2, b1, e);
    for (int city : {a, b1, b2, c1, c2, d1, d2, e}) wait(city);
}

int64_t TourSearch::run(int64_t work, Watch &watch) {
    if (n < 4) return work;
    descend(&watch);
    if (!queue.empty()) return 0;
    if (length < shortest - least) lead();
    if (n < (asymmetric ? 8 : 5)) return work;
    int64_t done = 0;
    for (; done < work && !watch.over(); done++) {
        double before = length;
        tour.keep();
        kick();
        descend(nullptr);
        judge(before);
    }
    return done;
}

// Goes on from the tour after a double bridge, or from the one before. A little longer ones are taken, too.
void TourSearch::judge(double before) {
    if (length > before + least && (heat == 0 || length > before - heat * std::log(1 - random.unit()))) {
        tour.undo();
        length = before;
    } else if (length < shortest - least) {
        lead();
    } else if (leads && length > shortest + least) {  // the best one is left behind
        kept = tour.earlier();
        leads = false;
    }
}

void TourSearch::lead() {
    shortest = length;
    leads = true;
}

bool TourSearch::offer(const std::vector<int> &order) {
    double cost = cost_of(order);
    if (cost >= cost_of(best()) - least) return false;
    std::vector<int> before = tour.order(), after = inside(order);
    TourArray old = tour;
    tour = TourArray(after);
    for (int city : after)
        if (old.next(city) != tour.next(city) && old.previous(city) != tour.next(city)) {
            wait(city);
            wait(tour.next(city));
        }
    length = measured();
    lead();
    return true;
}

std::vector<int> greedy_tour(const Distances &distance, const std::vector<int> &near, int size) {
    struct Edge {
        double length;
        int a, b;
    };
    int n = distance.count();
    std::vector<Edge> edges;
    for (int a = 0; a < n; a++)
        for (int i = 0; i < size; i++)
            if (int b = near[(size_t)a * size + i]; a < b || std::find(&near[(size_t)b * size], &near[(size_t)b * size] + size, a) == &near[(size_t)b * size] + size)
                edges.push_back({distance(a, b), a, b});
    std::sort(edges.begin(), edges.end(),
              [](const Edge &one, const Edge &other) { return std::tuple(one.length, one.a, one.b) < std::tuple(other.length, other.a, other.b); });
    std::vector<int> root(n), link(2 * (size_t)n, -1);
    std::iota(root.begin(), root.end(), 0);
    auto find = [&](int city) {
        while (root[city] != city) city = root[city] = root[root[city]];
        return city;
    };
    for (const Edge &edge : edges) {
        int one = find(edge.a), other = find(edge.b);
        if (one == other || link[2 * edge.a + 1] >= 0 || link[2 * edge.b + 1] >= 0) continue;
        root[one] = other;
        link[2 * edge.a + (link[2 * edge.a] >= 0)] = edge.b;
        link[2 * edge.b + (link[2 * edge.b] >= 0)] = edge.a;
    }
    std::vector<int> order;
    std::vector<char> seen(n, 0);
    for (int begin = 0; begin < n; begin++) {  // nodes are numbered along the curve, so are the ends of paths
        if (seen[begin] || link[2 * begin + 1] >= 0) continue;
        for (int city = begin, last = -1; city >= 0;) {
            seen[city] = 1;
            order.push_back(city);
            int next = link[2 * city] != last ? link[2 * city] : link[2 * city + 1];
            last = city;
            city = next >= 0 && !seen[next] ? next : -1;
        }
    }
    return order;
}

std::unique_ptr<Held<TourSearch>> tour_search(Held<Distances> *distances, int64_t seed, std::optional<View<const int64_t, 1>> tour) {
    std::vector<int> order;
    if (tour) order = checked_tour(*tour, distances->object.count());
    return std::make_unique<Held<TourSearch>>(distances->object, (uint64_t)seed, order);
}

int64_t run_tours(Borrowed<TourSearch> search, int64_t work, double seconds) {
    Watch watch(seconds, &search.stopped());
    int64_t done = search->run(work, watch);
    search.stopped() = false;
    return done;
}

double best_tour(Borrowed<TourSearch> search, View<int64_t, 1> tour) {
    std::vector<int> order = search->best();
    tour.shaped({(int64_t)order.size()});
    std::copy(order.begin(), order.end(), tour.begin());
    return search->cost_of(order);
}

bool offer_tour(Borrowed<TourSearch> search, View<const int64_t, 1> tour) { return search->offer(checked_tour(tour, search->cities())); }
