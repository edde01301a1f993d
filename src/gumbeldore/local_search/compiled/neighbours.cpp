// Who is near whom: by a k-d tree (Bentley 1975) for points, by rows for a matrix; and an order along a curve.

#include <algorithm>
#include <array>
#include <numeric>

#include "distances.h"

namespace {
using Point = std::array<double, 3>;

// On the sphere the straight line through the earth is as good as the way around it.
std::vector<Point> places(const Distances &distance) {
    const auto &x = distance.xs(), &y = distance.ys();
    std::vector<Point> points(x.size());
    for (size_t i = 0; i < x.size(); i++)
        points[i] = distance.on_sphere() ? Point{std::cos(x[i]) * std::cos(y[i]), std::cos(x[i]) * std::sin(y[i]), std::sin(x[i])}
                                         : Point{x[i], y[i], 0};
    return points;
}

double squared(const Point &a, const Point &b) {
    double sum = 0;
    for (int axis = 0; axis < 3; axis++) sum += (a[axis] - b[axis]) * (a[axis] - b[axis]);
    return sum;
}

class Tree {
    static constexpr int LEAF = 8;

  public:
    explicit Tree(const std::vector<Point> &points) : points(points), order(points.size()) {
        std::iota(order.begin(), order.end(), 0);
        split(0, (int)order.size());
    }

    // The nearest points to one of them, itself left out; of equally near ones the first. With a quadrant, 0 to 3, of those that lie in it.
    std::vector<int> near(int centre, int size, int part = -1) {
        found.clear();
        wanted = size;
        quadrant = part;
        search(centre, 0, (int)order.size());
        std::sort_heap(found.begin(), found.end());
        std::vector<int> result;
        for (auto &each : found) result.push_back(each.second);
        return result;
    }

  private:
    const std::vector<Point> &points;
    std::vector<int> order;
    std::vector<std::pair<double, int>> found;  // a heap, the farthest one first
    int wanted = 0, quadrant = -1;

    // Whether the quadrant takes numbers from that of the centre on, or those below.
    bool above(int axis) const { return quadrant >> axis & 1; }
    bool lies_in(int centre, int point) const {
        for (int axis = 0; quadrant >= 0 && axis < 2; axis++)
            if ((points[point][axis] >= points[centre][axis]) != above(axis)) return false;
        return true;
    }
    // Whether a part with numbers from `middle` on, or up to it, has nothing of the quadrant.
    bool misses(int axis, double beyond, bool right) const {
        return quadrant >= 0 && axis < 2 && (right ? !above(axis) && beyond <= 0 : above(axis) && beyond > 0);
    }

    int widest(int begin, int end) const {
        Point low = points[order[begin]], high = low;
        for (int i = begin; i < end; i++)
            for (int axis = 0; axis < 3; axis++) {
                low[axis] = std::min(low[axis], points[order[i]][axis]);
                high[axis] = std::max(high[axis], points[order[i]][axis]);
            }
        int best = 0;
        for (int axis = 1; axis < 3; axis++)
            if (high[axis] - low[axis] > high[best] - low[best]) best = axis;
        return best;
    }

    std::vector<char> axes;  // by the middle of a part
    void split(int begin, int end) {
        if (axes.empty()) axes.resize(points.size());
        if (end - begin <= LEAF) return;
        int middle = (begin + end) / 2, axis = widest(begin, end);
        std::nth_element(order.begin() + begin, order.begin() + middle, order.begin() + end,
                         [&](int a, int b) { return std::pair(points[a][axis], a) < std::pair(points[b][axis], b); });
        axes[middle] = (char)axis;
        split(begin, middle);
        split(middle, end);
    }

    void search(int centre, int begin, int end) {
        if (end - begin <= LEAF) {
            for (int i = begin; i < end; i++)
                if (order[i] != centre && lies_in(centre, order[i])) take({squared(points[centre], points[order[i]]), order[i]});
            return;
        }
        int middle = (begin + end) / 2, axis = axes[middle];
        double beyond = points[centre][axis] - points[order[middle]][axis];
        bool right = beyond >= 0;
        if (!misses(axis, beyond, right)) search(centre, right ? middle : begin, right ? end : middle);
        if (misses(axis, beyond, !right)) return;
        if ((int)found.size() < wanted || beyond * beyond <= found.front().first)
            search(centre, right ? begin : middle, right ? middle : end);
    }

    void take(std::pair<double, int> candidate) {
        if ((int)found.size() == wanted) {
            if (wanted == 0 || candidate >= found.front()) return;
            std::pop_heap(found.begin(), found.end());
            found.pop_back();
        }
        found.push_back(candidate);
        std::push_heap(found.begin(), found.end());
    }
};
}  // namespace

std::vector<int> nearest(const Distances &distance, int size) {
    int n = distance.count();
    std::vector<int> result, all;
    result.reserve((size_t)n * size);
    auto add = [&](int node, std::vector<int>::iterator begin, std::vector<int>::iterator end) {
        std::sort(begin, end, [&](int a, int b) { return std::pair(distance(node, a), a) < std::pair(distance(node, b), b); });
        result.insert(result.end(), begin, end);
    };
    if (!distance.xs().empty()) {
        std::vector<Point> points = places(distance);
        Tree tree(points);
        for (int i = 0; i < n; i++) {
            std::vector<int> near = tree.near(i, size);
            add(i, near.begin(), near.end());
        }
        return result;
    }
    for (int i = 0; i < n; i++) {
        all.resize(n);
        std::iota(all.begin(), all.end(), 0);
        std::swap(all[i], all.back());
        std::nth_element(all.begin(), all.begin() + std::max(0, size - 1), all.end() - 1,
                         [&](int a, int b) { return std::pair(distance(i, a), a) < std::pair(distance(i, b), b); });
        add(i, all.begin(), all.begin() + size);
    }
    return result;
}

std::vector<int> near_all_around(const Distances &distance, int size) {
    constexpr int SIDES = 4;
    if (distance.xs().empty() || size <= SIDES) return nearest(distance, size);
    int n = distance.count();
    std::vector<int> every = nearest(distance, size), result;
    std::vector<Point> points(n);
    for (int i = 0; i < n; i++) points[i] = {distance.xs()[i], distance.ys()[i], 0};
    Tree tree(points);
    result.reserve(every.size());
    for (int i = 0; i < n; i++) {
        std::vector<int> own(every.begin() + (size_t)i * size, every.begin() + (size_t)i * size + size - SIDES);
        auto add = [&](int other) {
            if ((int)own.size() < size && std::find(own.begin(), own.end(), other) == own.end()) own.push_back(other);
        };
        for (int part = 0; part < SIDES; part++)
            for (int other : tree.near(i, 1, part)) add(other);
        for (int j = size - SIDES; j < size; j++) add(every[(size_t)i * size + j]);
        std::sort(own.begin(), own.end(), [&](int a, int b) { return std::pair(distance(i, a), a) < std::pair(distance(i, b), b); });
        result.insert(result.end(), own.begin(), own.end());
    }
    return result;
}

std::vector<int> along_curve(const Distances &distance) {
    constexpr int LEVELS = 16;
    int n = distance.count();
    std::vector<int> order(n);
    std::iota(order.begin(), order.end(), 0);
    const auto &x = distance.xs(), &y = distance.ys();
    if (x.empty()) return order;
    auto [left, right] = std::minmax_element(x.begin(), x.end());
    auto [low, high] = std::minmax_element(y.begin(), y.end());
    double size = std::max({*right - *left, *high - *low, 1e-300});
    std::vector<uint64_t> key(n);
    for (int i = 0; i < n; i++) {
        uint32_t side = 1u << LEVELS, a = (uint32_t)((x[i] - *left) / size * (side - 1)), b = (uint32_t)((y[i] - *low) / size * (side - 1));
        for (uint32_t s = side / 2; s > 0; s /= 2) {
            uint32_t one = (a & s) > 0, other = (b & s) > 0;
            key[i] = 4 * key[i] + ((3 * one) ^ other);
            if (other) continue;
            if (one) {
                a = side - 1 - a;
                b = side - 1 - b;
            }
            std::swap(a, b);
        }
    }
    std::sort(order.begin(), order.end(), [&](int a, int b) { return std::pair(key[a], a) < std::pair(key[b], b); });
    return order;
}
