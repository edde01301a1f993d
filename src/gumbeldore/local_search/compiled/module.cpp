// The module, and what Python may call of it.

#include "entries.h"

PyMODINIT_FUNC PyInit__compiled(void) {
    using boundary::entry;
    static PyMethodDef methods[] = {
        entry<improve_tours>("improve_tours(points, seeds, rounds, open, tours)"),
        entry<improve_routes>("improve_routes(points, demands, capacity, seeds, rounds, hot, cold, under_way, actions)"),
        entry<improve_schedules>("improve_schedules(times, machines, seeds, rounds, kept, actions)"),
        entry<bound_paths>("bound_paths(points, counts, rounds, stride, tries, more_rounds, more_stride, threads, result, scales)"),
        entry<look_ahead_by_savings>("look_ahead_by_savings(points, demands, capacity, counts, near, far, close, threads, result)"),
        boundary::END,
    };
    static PyModuleDef module = {PyModuleDef_HEAD_INIT, "_compiled", nullptr, -1, methods, nullptr, nullptr, nullptr, nullptr};
    return PyModule_Create(&module);
}
