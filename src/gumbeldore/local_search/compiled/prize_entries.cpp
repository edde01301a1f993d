// What Python may call of the search for tours that collect prizes. Tours come and go as lists of nodes without the depot, which is node 0.

#include <algorithm>

#include "prize_search.h"
#include "searches.h"

namespace {
constexpr double LARGEST_PRIZE = 1e15;
constexpr double SLACK = 1e-9;  // of the budget: so much a tour may be longer, for rounding

std::vector<int> nodes_of(const int64_t *begin, const int64_t *end, int64_t count, const char *name) {
    std::vector<int> nodes;
    std::vector<char> seen(count, 0);
    for (const int64_t *each = begin; each != end; each++) {
        require(*each >= 1 && *each < count,
                std::string("`") + name + "` must hold nodes in 1 .. " + std::to_string(count - 1) + ", got " + std::to_string(*each) + ".");
        require(!seen[*each]++, std::string("`") + name + "` must hold every node at most once, got node " + std::to_string(*each) + " twice.");
        nodes.push_back((int)*each);
    }
    return nodes;
}

void check_length(double length, double budget) {
    require(length <= budget * (1 + SLACK), "A tour must be at most as long as the budget, " + std::to_string(budget) + ", got " + std::to_string(length) + ".");
}

double length_of(const Distances &distance, const std::vector<int> &nodes) {
    double total = 0;
    int last = 0;
    for (int node : nodes) {
        total += distance(last, node);
        last = node;
    }
    return total + (last ? distance(last, 0) : 0);
}

std::vector<int> checked_tour(View<const int64_t, 1> tour, const Distances &distance, double budget) {
    std::vector<int> nodes = nodes_of(tour.begin(), tour.end(), distance.count(), "tour");
    check_length(length_of(distance, nodes), budget);
    return nodes;
}
}  // namespace

std::unique_ptr<Held<PrizeSearch>> prize_search(Held<Distances> *distances, View<const double, 1> prizes, double budget, int64_t seed,
                                                std::optional<View<const int64_t, 1>> tour) {
    const Distances &distance = distances->object;
    require(distance.symmetric(), "Distances must be alike in both directions.");
    require(budget >= 0 && std::isfinite(budget), "`budget` must be at least 0 and finite.");
    prizes.shaped({distance.count()}).between(0, LARGEST_PRIZE);
    std::vector<int> nodes;
    if (tour) nodes = checked_tour(*tour, distance, budget);
    return std::make_unique<Held<PrizeSearch>>(distance, std::vector<double>(prizes.begin(), prizes.end()), budget, (uint64_t)seed, nodes);
}

int64_t run_prizes(Borrowed<PrizeSearch> search, int64_t work, double seconds, double from, double to) {
    std::optional<Progress> progress;
    if (!std::isnan(from)) {
        require(from >= 0 && from <= to && to <= 1, "`progress` must rise within 0 .. 1.");
        progress = Progress{from, to};
    }
    Watch watch(seconds, &search.stopped());
    int64_t done = search->run(work, seconds, progress, watch);
    search.stopped() = false;
    return done;
}

// The best tour, padded with 0; returns what it collects.
double best_prizes(Borrowed<PrizeSearch> search, View<int64_t, 1> tour) {
    tour.shaped({search->nodes()});
    std::fill(tour.begin(), tour.end(), 0);
    std::copy(search->best().begin(), search->best().end(), tour.begin());
    return search->prize();
}

bool offer_prizes(Borrowed<PrizeSearch> search, View<const int64_t, 1> tour) {
    std::vector<int> nodes = nodes_of(tour.begin(), tour.end(), search->nodes(), "tour");
    check_length(search->length_of(nodes), search->limit());
    return search->offer(nodes);
}

// Replaces tours by ones that collect no less. Actions are nodes, then 0, padded with -1; the first `kept` of them stay.
void improve_prizes(View<const double, 3> distances, View<const double, 2> prizes, View<const double, 1> budgets, View<const int64_t, 1> seeds,
                    int64_t rounds, int64_t kept, View<int64_t, 2> actions) {
    int64_t count = actions.size(0), nodes = checked_size(actions.size(1), 2, "nodes");
    distances.shaped({count, nodes, nodes}).between(0, FARTHEST);
    prizes.shaped({count, nodes}).between(0, LARGEST_PRIZE);
    budgets.shaped({count}).between(0, FARTHEST);
    seeds.shaped({count});
    require(kept >= 0 && rounds >= 0, "`kept` and `rounds` must be at least 0.");
    Watch watch;
    for (int64_t i = 0; i < count; i++) {
        int64_t *own = actions.part(i);
        const int64_t *end = std::find(own, own + nodes, 0);
        require(end != own + nodes, "`actions` must end with a 0.");
        std::vector<int> tour = nodes_of(own, end, nodes, "actions");
        std::vector<double> matrix(distances.part(i), distances.part(i) + nodes * nodes);
        bool whole = std::all_of(matrix.begin(), matrix.end(), [](double each) { return each == std::floor(each); });
        Distances distance((int)nodes, std::move(matrix), whole);
        require(distance.symmetric(), "`distances` must be alike in both directions.");
        check_length(length_of(distance, tour), budgets[i]);
        if (kept > (int64_t)tour.size()) continue;
        double spent = 0;
        std::vector<char> barred(nodes, 0);
        for (int64_t step = 0; step < kept; step++) {
            spent += distance(step ? tour[step - 1] : 0, tour[step]);
            if (step + 1 < kept) barred[tour[step]] = 1;
        }
        int first = kept ? tour[kept - 1] : 0;
        std::vector<int> rest(tour.begin() + std::max<int64_t>(0, kept - 1), tour.end());
        PrizeSearch search(distance, {prizes.part(i), prizes.part(i) + nodes}, std::max(0.0, budgets[i] - spent), (uint64_t)seeds[i], rest, first, barred);
        search.run(rounds, INFINITY, Progress{0, 1}, watch);
        int64_t *next = own + std::max<int64_t>(0, kept - 1);
        std::vector<int> found = search.best();
        if (first && found[0] != first) std::reverse(found.begin(), found.end());
        next = std::copy(found.begin(), found.end(), next);
        *next++ = 0;
        std::fill(next, own + nodes, -1);
    }
}
