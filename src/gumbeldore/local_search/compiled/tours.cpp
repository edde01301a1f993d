// Local search for tours: 2-opt and Or-opt moves along neighbour lists (Bentley 1992), iterated with small double bridges
// (Martin, Otto and Felten 1991). `improve.py` calls the function at the end.

#include "entries.h"
#include "plane.h"
#include "random.h"

namespace {
constexpr int NEIGHBOURS = 8;
constexpr int LONGEST_MOVED = 3;  // cities that an Or-opt move takes along
constexpr int LISTEN = 64;        // cities between looks at the watch
constexpr int BRIDGE = 50;        // positions within which a double bridge lies
constexpr float LEAST = 1e-6f;    // a smaller gain is none, in a unit square or as a share of a larger one

// An open tour is a path whose ends stay: a tour in which the edge from its last city to its first is never given up.
class Tour {
  public:
    Tour(const float *points, int cities, const int64_t *order, bool open)
        : n(cities), size(std::min(NEIGHBOURS, cities - 1)), first(order[0]), last(order[cities - 1]), distance(points, cities),
          near(distance.neighbours(0, size)), least(LEAST * std::max(1.0f, distance.extent())), at(order, order + cities), place(cities), waiting(cities, 0) {
        for (int i = 0; i < n; i++) place[at[i]] = i;
        for (int i = n - 1; i >= 0; i--) wait(at[i]);
        for (int i = 0; i < n - open; i++) length += distance(at[i], after(i));
        if (open) distance.set(first, last, -INFINITY);  // no move that gives it up gains anything
    }

    // Makes improving moves until no city that waits has one.
    void descend(Watch &watch) {
        for (int turn = 1; !queue.empty(); turn++) {
            if (turn % LISTEN == 0) watch.over();
            int city = queue.back();
            queue.pop_back();
            waiting[city] = 0;
            while (two_opt(city, 1) || two_opt(city, -1) || or_opt(city, 1) || or_opt(city, -1)) {
            }
        }
    }

    // Exchanges two neighbouring stretches of the tour.
    void kick(Random &random) {
        int cut[3], reach = std::min(n - 1, BRIDGE) - 1, start = random.below(n);
        auto stays = [&](int c) { return distance(at[wrap(start + c - 1)], at[wrap(start + c)]) < 0; };
        do {
            for (int &c : cut) c = 1 + random.below(reach);
            std::sort(cut, cut + 3);
        } while (cut[0] == cut[1] || cut[1] == cut[2] || std::any_of(cut, cut + 3, stays));
        std::vector<int> &stretch = spare;
        stretch.clear();
        for (int i = cut[1]; i < cut[2]; i++) stretch.push_back(at[wrap(start + i)]);
        for (int i = cut[0]; i < cut[1]; i++) stretch.push_back(at[wrap(start + i)]);
        int ends[6];
        for (int i = 0; i < 3; i++) {
            ends[2 * i] = at[wrap(start + cut[i] - 1)];
            ends[2 * i + 1] = at[wrap(start + cut[i])];
            length -= distance(ends[2 * i], ends[2 * i + 1]);
        }
        length += distance(ends[0], ends[3]) + distance(ends[4], ends[1]) + distance(ends[2], ends[5]);
        for (int i = 0; i < (int)stretch.size(); i++) put(wrap(start + cut[0] + i), stretch[i]);
        for (int city : ends) wait(city);
    }

    std::vector<int> order() const { return at; }

    // The same cities from the first one on; the last one of a path comes last.
    std::vector<int> begun(std::vector<int> order) const {
        std::rotate(order.begin(), std::find(order.begin(), order.end(), first), order.end());
        if (order.back() != last && order[1] == last) std::reverse(order.begin() + 1, order.end());
        return order;
    }
    void restore(const std::vector<int> &order, double known) {
        for (int i = 0; i < n; i++) put(i, order[i]);
        length = known;
    }

    double length = 0;
    float least_gain() const { return least; }

  private:
    int n, size, first, last;
    Plane distance;
    std::vector<int> near;
    float least;
    std::vector<int> at, place, queue, spare, moved;
    std::vector<char> waiting;

    int wrap(int position) const { return position >= n ? position - n : position < 0 ? position + n : position; }
    int after(int position) const { return at[wrap(position + 1)]; }
    int beside(int city, int steps) const { return at[wrap(place[city] + steps)]; }
    void put(int position, int city) {
        at[position] = city;
        place[city] = position;
    }
    void wait(int city) {
        if (!waiting[city]) {
            waiting[city] = 1;
            queue.push_back(city);
        }
    }

    // Replaces the edge from a in one direction, and that from c, by (a, c) and one between their ends.
    bool two_opt(int a, int direction) {
        int b = beside(a, direction);
        for (int i = 0; i < size; i++) {
            int c = near[a * size + i];
            float won = distance(a, b) - distance(a, c);
            if (won <= 0) return false;
            int d = beside(c, direction);
            float gain = won + distance(c, d) - distance(b, d);
            if (c == b || d == a || gain <= least) continue;
            direction > 0 ? reverse(place[b], place[c]) : reverse(place[c], place[b]);
            length -= gain;
            for (int city : {a, b, c, d}) wait(city);
            return true;
        }
        return false;
    }

    // Moves a and up to two cities beyond it between two others, one of them near a, either way round.
    bool or_opt(int a, int direction) {
        for (int count = 1; count <= LONGEST_MOVED && count < n - 2; count++) {
            int last = beside(a, direction * (count - 1)), before = beside(a, -direction), behind = beside(last, direction);
            float freed = distance(before, a) + distance(last, behind) - distance(before, behind);
            if (before == behind || freed <= least) continue;
            for (int i = 0; i < size; i++) {
                int c = near[a * size + i];
                if (freed <= distance(a, c)) break;
                if (within(c, a, direction, count)) continue;
                for (int side : {-direction, direction}) {
                    int d = beside(c, side);
                    if (within(d, a, direction, count)) continue;
                    float gain = freed - distance(a, c) - distance(last, d) + distance(c, d);
                    if (gain <= least) continue;
                    move(a, behind, direction, count, c, d);
                    length -= gain;
                    for (int city : {a, last, before, behind, c, d}) wait(city);
                    return true;
                }
            }
        }
        return false;
    }

    // Whether a city is one of `count` from `first` on.
    bool within(int city, int first, int direction, int count) const {
        int offset = direction * (place[city] - place[first]);
        return (offset < 0 ? offset + n : offset) < count;
    }

    // Writes the tour anew: all that stays, from `behind` on, with the moved cities between c and d, a next to c.
    void move(int a, int behind, int direction, int count, int c, int d) {
        moved.clear();
        spare.clear();
        for (int i = 0, p = place[a]; i < count; i++, p = wrap(p + direction)) moved.push_back(at[p]);
        for (int i = 0, p = place[behind]; i < n - count; i++) {
            int city = at[p], next = at[p = wrap(p + direction)];
            spare.push_back(city);
            if (i + 1 == n - count) break;
            if (city == c && next == d) spare.insert(spare.end(), moved.begin(), moved.end());
            if (city == d && next == c) spare.insert(spare.end(), moved.rbegin(), moved.rend());
        }
        for (int i = 0; i < n; i++) put(i, spare[i]);
    }

    // Turns the cities between two positions round, or all others, whichever are fewer.
    void reverse(int first, int last) {
        int count = wrap(last - first) + 1;
        if (2 * count > n) {
            std::swap(first, last);
            first = wrap(first + 1);
            last = wrap(last - 1);
            count = n - count;
        }
        for (int i = 0; i < count / 2; i++) {
            int a = at[first], b = at[last];
            put(first, b);
            put(last, a);
            first = wrap(first + 1);
            last = wrap(last - 1);
        }
    }
};
}  // namespace

// Replaces tours by ones that are not longer: a descent, then `rounds` of kick and descent, each of which is taken back unless it made
// the tour shorter. Below 8 cities there is only the descent. With `open` they are paths, whose first and last city stay.
void improve_tours(View<const float, 3> points, View<const int64_t, 1> seeds, int64_t rounds, bool open, View<int64_t, 2> tours) {
    int64_t count = tours.size(0), cities = checked_size(tours.size(1), 1, "cities");
    points.shaped({count, cities, 2}).between(-LARGEST_POINT, LARGEST_POINT);
    seeds.shaped({count});
    for (int64_t i = 0; i < count; i++) check_permutation(tours.part(i), cities, "tours");
    Watch watch;
    for (int64_t i = 0; i < count; i++) {
        Random random(seeds[i]);
        Tour tour(points.part(i), (int)cities, tours.part(i), open);
        tour.descend(watch);
        std::vector<int> best = tour.order();
        double shortest = tour.length, least = tour.least_gain();
        for (int64_t round = 0; cities >= 8 && round < rounds; round++) {
            watch.over();
            tour.kick(random);
            tour.descend(watch);
            if (tour.length < shortest - least) {
                best = tour.order();
                shortest = tour.length;
            } else {
                tour.restore(best, shortest);
            }
        }
        if (open) best = tour.begun(best);
        std::copy(best.begin(), best.end(), tours.part(i));
    }
}
