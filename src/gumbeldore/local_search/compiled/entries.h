// What Python may call, and what its arguments are checked for. `module.cpp` says by which names.
#pragma once

#include "boundary.h"

using boundary::Refused;
using boundary::require;
using boundary::View;
using boundary::Watch;

constexpr float LARGEST_POINT = 1e15f;  // coordinates: their squares are numbers, too
constexpr double LONGEST = 1e15;  // a time
constexpr int64_t LARGEST_LOAD = (int64_t)1 << 60;

void improve_tours(View<const float, 3> points, View<const int64_t, 1> seeds, int64_t rounds, bool open, View<int64_t, 2> tours);
void improve_routes(View<const float, 3> points, View<const int64_t, 2> demands, View<const int64_t, 1> capacities,
                    View<const int64_t, 1> seeds, int64_t rounds, double hot, double cold, bool under_way, View<int64_t, 2> actions);
void improve_timed_routes(View<const double, 3> distances, View<const int64_t, 2> demands, View<const int64_t, 1> capacities,
                          View<const double, 3> windows, View<const double, 2> service, View<const int64_t, 1> seeds, int64_t rounds,
                          bool under_way, View<int64_t, 2> actions);
void improve_schedules(View<const double, 3> times, View<const int32_t, 3> machines, View<const int64_t, 1> seeds, int64_t rounds,
                       int64_t kept, View<int64_t, 2> actions);
void improve_flexible(View<const double, 4> times, View<const int64_t, 1> seeds, int64_t rounds, int64_t kept, View<int64_t, 2> actions);
void improve_permutations(View<const double, 3> times, View<const int64_t, 1> seeds, int64_t rounds, int64_t kept, View<int64_t, 2> orders);
void insert_jobs(View<const double, 3> times, View<int64_t, 2> orders);
void improve_prizes(View<const double, 3> distances, View<const double, 2> prizes, View<const double, 1> budgets, View<const int64_t, 1> seeds,
                    int64_t rounds, int64_t kept, View<int64_t, 2> actions);
void bound_paths(View<const float, 3> points, View<const int32_t, 1> counts, int64_t rounds, double stride, int64_t tries,
                 int64_t more_rounds, double more_stride, int64_t threads, View<float, 3> result, View<float, 1> scales);
void assign(View<const double, 3> distances, View<int64_t, 2> followers, View<double, 3> prices, View<int64_t, 2> tours);
void look_ahead_by_assignment(View<const double, 3> distances, View<const int64_t, 1> instances, View<const int64_t, 2> ends,
                              View<const int64_t, 2> left, int64_t tries, int64_t threads, View<float, 3> result, View<float, 1> scales);
void look_ahead_by_savings(View<const float, 3> points, View<const int64_t, 2> demands, View<const int64_t, 1> capacities,
                           View<const int32_t, 1> counts, int64_t near, int64_t far, double close, int64_t threads, View<float, 3> result);

void look_ahead_by_walks(View<const float, 3> ways, View<const float, 2> prizes, View<const float, 1> budgets, View<const int32_t, 1> counts, int64_t tries,
                         View<float, 3> result);

// Numbers of items are indices of 32 bits in here.
int64_t checked_size(int64_t count, int64_t least, const char *items);
int checked_threads(int64_t threads);
// Refuses what is not every number from 0 to `count` - 1 once.
void check_permutation(const int64_t *numbers, int64_t count, const char *name);
// Refuses actions of `CVRP` that leave a customer out or load more than a vehicle can take.
void check_routes(const int64_t *actions, const int64_t *demands, int64_t capacity, int64_t nodes);
// Refuses jobs that do not come to every machine once.
void check_machines(const int32_t *machines, int64_t jobs, int64_t operations);
// Refuses actions that are not every job's operations.
void check_schedule(const int64_t *actions, int64_t jobs, int64_t operations);
