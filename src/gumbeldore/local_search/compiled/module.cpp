// The module, and what Python may call of it.

#include "prize_search.h"
#include "route_search.h"
#include "schedule_search.h"
#include "searches.h"
#include "tour_search.h"

PyMODINIT_FUNC PyInit__compiled(void) {
    using boundary::entry;
    static PyMethodDef methods[] = {
        entry<improve_tours>("improve_tours(points, seeds, rounds, open, tours)"),
        entry<improve_routes>("improve_routes(points, demands, capacity, seeds, rounds, hot, cold, under_way, actions)"),
        entry<improve_timed_routes>("improve_timed_routes(distances, demands, capacity, windows, service, seeds, rounds, under_way, actions)"),
        entry<improve_schedules>("improve_schedules(times, machines, seeds, rounds, kept, actions)"),
        entry<improve_flexible>("improve_flexible(times, seeds, rounds, kept, actions)"),
        entry<improve_permutations>("improve_permutations(times, seeds, rounds, kept, orders)"),
        entry<insert_jobs>("insert_jobs(times, orders)"),
        entry<improve_prizes>("improve_prizes(distances, prizes, budgets, seeds, rounds, kept, actions)"),
        entry<bound_paths>("bound_paths(points, counts, rounds, stride, tries, more_rounds, more_stride, threads, result, scales)"),
        entry<look_ahead_by_savings>("look_ahead_by_savings(points, demands, capacity, counts, near, far, close, threads, result)"),
        entry<look_ahead_by_walks>("look_ahead_by_walks(ways, prizes, budgets, counts, tries, result)"),
        entry<assign>("assign(distances, followers, prices, tours)"),
        entry<look_ahead_by_assignment>("look_ahead_by_assignment(distances, instances, ends, left, tries, threads, result, scales)"),
        entry<plane_distances>("plane_distances(points, rule)"),
        entry<matrix_distances>("matrix_distances(matrix, whole)"),
        entry<path_cost>("path_cost(distances, nodes)"),
        entry<tour_search>("tour_search(distances, seed, tour)"),
        entry<run_tours>("run_tours(search, work, seconds)"),
        entry<best_tour>("best_tour(search, tour)"),
        entry<offer_tour>("offer_tour(search, tour)"),
        entry<stop<TourSearch>>("stop_tours(search)"),
        entry<route_search>("route_search(distances, demands, capacity, windows, service, seed, routes)"),
        entry<run_routes>("run_routes(search, work, seconds, begin, end)"),
        entry<best_routes>("best_routes(search, nodes)"),
        entry<offer_routes>("offer_routes(search, routes)"),
        entry<stop<RouteSearch>>("stop_routes(search)"),
        entry<prize_search>("prize_search(distances, prizes, budget, seed, tour)"),
        entry<run_prizes>("run_prizes(search, work, seconds, begin, end)"),
        entry<best_prizes>("best_prizes(search, tour)"),
        entry<offer_prizes>("offer_prizes(search, tour)"),
        entry<stop<PrizeSearch>>("stop_prizes(search)"),
        entry<schedule_search>("schedule_search(times, machines, seed, schedule)"),
        entry<run_schedules>("run_schedules(search, work, seconds)"),
        entry<best_schedule>("best_schedule(search, schedule)"),
        entry<offer_schedule>("offer_schedule(search, schedule)"),
        entry<schedule_is_optimal>("schedule_is_optimal(search)"),
        entry<stop<ScheduleSearch>>("stop_schedules(search)"),
        boundary::END,
    };
    static PyModuleDef module = {PyModuleDef_HEAD_INIT, "_compiled", nullptr, -1, methods, nullptr, nullptr, nullptr, nullptr};
    return PyModule_Create(&module);
}
