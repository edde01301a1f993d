// Time windows of nodes, the depot first; none for problems without.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

struct Windows {
    std::vector<double> opens, closes, service;  // service may begin from, and until; how long it takes
    double late = 0;                             // so much too late is in time: sums are rounded

    static constexpr double ROUNDING = 1e-10;  // of when the depot closes
    static constexpr double LENIENT = 20;      // times as much is in time where somebody else says so

    Windows() = default;
    // Windows and service times, node by node: opens, closes.
    Windows(const double *windows, const double *service, int count) : service(service, service + count) {
        for (int i = 0; i < count; i++) {
            opens.push_back(windows[2 * i]);
            closes.push_back(windows[2 * i + 1]);
        }
        late = ROUNDING * std::max(std::abs(opens[0]), std::abs(closes[0]));
    }
    explicit operator bool() const { return !opens.empty(); }
};
