// Searches that stay in memory between calls of Python: they go on where they were, and know the best they found.
#pragma once

#include "distances.h"
#include "entries.h"

using boundary::Borrowed;
using boundary::Held;

constexpr double FARTHEST = 1e12;  // coordinates and entries of matrices, so that sums of whole distances are exact

std::unique_ptr<Held<Distances>> plane_distances(View<const double, 2> points, int64_t rule);
std::unique_ptr<Held<Distances>> matrix_distances(View<const double, 2> matrix, bool whole);
double path_cost(Held<Distances> *distances, View<const int64_t, 1> nodes);

class TourSearch;
std::unique_ptr<Held<TourSearch>> tour_search(Held<Distances> *distances, int64_t seed, std::optional<View<const int64_t, 1>> tour);
int64_t run_tours(Borrowed<TourSearch> search, int64_t work, double seconds);
double best_tour(Borrowed<TourSearch> search, View<int64_t, 1> tour);
bool offer_tour(Borrowed<TourSearch> search, View<const int64_t, 1> tour);

class RouteSearch;
std::unique_ptr<Held<RouteSearch>> route_search(Held<Distances> *distances, View<const int64_t, 1> demands, int64_t capacity,
                                                std::optional<View<const double, 2>> opening, std::optional<View<const double, 1>> service, int64_t seed,
                                                std::optional<View<const int64_t, 1>> nodes);
int64_t run_routes(Borrowed<RouteSearch> search, int64_t work, double seconds, double from, double to);
double best_routes(Borrowed<RouteSearch> search, View<int64_t, 1> nodes);
bool offer_routes(Borrowed<RouteSearch> search, View<const int64_t, 1> nodes);

class PrizeSearch;
std::unique_ptr<Held<PrizeSearch>> prize_search(Held<Distances> *distances, View<const double, 1> prizes, double budget, int64_t seed,
                                                std::optional<View<const int64_t, 1>> tour);
int64_t run_prizes(Borrowed<PrizeSearch> search, int64_t work, double seconds, double from, double to);
double best_prizes(Borrowed<PrizeSearch> search, View<int64_t, 1> tour);
bool offer_prizes(Borrowed<PrizeSearch> search, View<const int64_t, 1> tour);

class ScheduleSearch;
std::unique_ptr<Held<ScheduleSearch>> schedule_search(View<const double, 2> times, View<const int32_t, 2> machines, int64_t seed,
                                                      std::optional<View<const int64_t, 1>> schedule);
int64_t run_schedules(Borrowed<ScheduleSearch> search, int64_t work, double seconds);
double best_schedule(Borrowed<ScheduleSearch> search, View<int64_t, 1> schedule);
bool offer_schedule(Borrowed<ScheduleSearch> search, View<const int64_t, 1> schedule);
bool schedule_is_optimal(Borrowed<ScheduleSearch> search);

// Asks a search that runs in another thread to return.
template <class Search> void stop(Held<Search> *search) { search->stopped = true; }
