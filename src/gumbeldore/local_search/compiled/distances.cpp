// Distances by their rules. `distances.py` makes them.

#include "distances.h"

#include <algorithm>

#include "searches.h"

namespace {
constexpr double EXACT_SUMS = 9007199254740992.0;  // whole numbers up to here are exact
constexpr int LISTED_GEO = 1024;                   // so many nodes have their distances on the sphere listed
}  // namespace

Distances::Distances(Rule rule, std::vector<double> first, std::vector<double> second)
    : n((int)first.size()), rule(rule), x(std::move(first)), y(std::move(second)), is_whole(rule != Rule::EXACT), sphere(rule == Rule::GEO) {
    auto spread = [](const std::vector<double> &values) {
        auto [low, high] = std::minmax_element(values.begin(), values.end());
        return values.empty() ? 0 : *high - *low;
    };
    largest = rule == Rule::GEO ? 4 * RADIUS : spread(x) + spread(y) + 1;
    is_whole = is_whole && largest * (n + 4.0) < EXACT_SUMS;
    if (rule == Rule::GEO && n <= LISTED_GEO) *this = listed_if(n);
}

Distances::Distances(int count, std::vector<double> matrix, bool whole) : n(count), rule(Rule::LISTED), is_whole(whole) {
    for (int a = 0; a < n; a++)
        for (int b = 0; b < a; b++) is_symmetric = is_symmetric && matrix[(size_t)a * n + b] == matrix[(size_t)b * n + a];
    for (double each : matrix) largest = std::max(largest, std::abs(each));
    list(std::move(matrix));
    is_whole = is_whole && largest * (n + 4.0) < EXACT_SUMS;
}

// Keeps a matrix, in 32 bits if its numbers fit. Points stay, for neighbours.
void Distances::list(std::vector<double> matrix) {
    bool fits = is_whole && std::all_of(matrix.begin(), matrix.end(), [](double each) { return std::abs(each) < 2e9; });
    if (!fits) {
        listed = std::move(matrix);
        rule = Rule::LISTED;
        return;
    }
    small.resize(matrix.size());
    std::transform(matrix.begin(), matrix.end(), small.begin(), [](double each) { return (int32_t)each; });
    rule = Rule::LISTED_SMALL;
}

double Distances::rare(int a, int b) const {
    double across = std::abs(x[a] - x[b]), along = std::abs(y[a] - y[b]);
    if (rule == Rule::MANHATTAN) return cut(across + along + 0.5);
    if (rule == Rule::MAXIMUM) return std::max(cut(across + 0.5), cut(along + 0.5));
    if (rule == Rule::ATT) {
        double exact = std::sqrt((across * across + along * along) / 10), rounded = cut(exact + 0.5);
        return rounded + (rounded < exact);
    }
    if (a == b) return 0;
    double q1 = std::cos(y[a] - y[b]), q2 = std::cos(x[a] - x[b]), q3 = std::cos(x[a] + x[b]);
    return cut(RADIUS * std::acos(std::clamp(0.5 * ((1 + q1) * q2 - (1 - q1) * q3), -1.0, 1.0)) + 1);
}

Distances Distances::permuted(const std::vector<int> &order) const {
    Distances result = *this;
    for (int i = 0; i < n && !x.empty(); i++) {
        result.x[i] = x[order[i]];
        result.y[i] = y[order[i]];
    }
    for (size_t i = 0; i < (size_t)n && !planar(); i++)
        for (size_t j = 0; j < (size_t)n; j++) {
            size_t from = (size_t)order[i] * n + order[j];
            if (!listed.empty()) result.listed[i * n + j] = listed[from];
            if (!small.empty()) result.small[i * n + j] = small[from];
        }
    return result;
}

Distances Distances::listed_if(int most) const {
    Distances result = *this;
    if (!planar() || n > most) return result;
    std::vector<double> matrix((size_t)n * n);
    for (int a = 0; a < n; a++)
        for (int b = 0; b < a; b++) matrix[(size_t)a * n + b] = matrix[(size_t)b * n + a] = (*this)(a, b);
    result.list(std::move(matrix));
    return result;
}

Distances Distances::doubled() const {
    size_t twice = 2 * (size_t)n;
    double far = 4 * largest + 4;
    std::vector<double> matrix(twice * twice, far);
    for (size_t a = 0; a < (size_t)n; a++)
        for (size_t b = 0; b < (size_t)n; b++) matrix[a * twice + n + b] = matrix[(n + b) * twice + a] = a == b ? -far : (*this)((int)a, (int)b);
    return Distances((int)twice, std::move(matrix), is_whole);
}

std::unique_ptr<Held<Distances>> plane_distances(View<const double, 2> points, int64_t rule) {
    checked_size(points.size(0), 1, "nodes");
    points.shaped({-1, 2}).between(-FARTHEST, FARTHEST);
    require(rule >= 0 && rule < (int64_t)Rule::LISTED, "`rule` must be in 0 .. 6, got " + std::to_string(rule) + ".");
    std::vector<double> x, y;
    for (int64_t i = 0; i < points.size(0); i++) {
        x.push_back(points.part(i)[0]);
        y.push_back(points.part(i)[1]);
    }
    return std::make_unique<Held<Distances>>((Rule)rule, std::move(x), std::move(y));
}

std::unique_ptr<Held<Distances>> matrix_distances(View<const double, 2> matrix, bool whole) {
    int64_t n = checked_size(matrix.size(0), 1, "nodes");
    matrix.shaped({n, n}).between(-FARTHEST, FARTHEST);
    std::vector<double> values(matrix.begin(), matrix.end());
    for (int64_t i = 0; i < n; i++) values[i * n + i] = 0;
    return std::make_unique<Held<Distances>>((int)n, std::move(values), whole);
}

double path_cost(Held<Distances> *held, View<const int64_t, 1> nodes) {
    const Distances &distance = held->object;
    nodes.between(0, distance.count() - 1);
    double total = 0;
    for (int64_t i = 1; i < nodes.size(0); i++) total += distance((int)nodes[i - 1], (int)nodes[i]);
    return total;
}
