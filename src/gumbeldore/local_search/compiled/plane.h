// Points in the plane: their distances, and who is near whom.
#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

struct Plane {
    int count;
    std::vector<float> distances;
    Plane(const float *points, int count) : count(count), distances((size_t)count * count) {
        for (int i = 0; i < count; i++)
            for (int j = 0; j < count; j++) {
                float x = points[2 * i] - points[2 * j], y = points[2 * i + 1] - points[2 * j + 1];
                distances[(size_t)i * count + j] = std::sqrt(x * x + y * y);
            }
    }
    float operator()(int a, int b) const { return distances[(size_t)a * count + b]; }
    // The largest distance from the first point, in diagonals of the unit square or a bit more.
    float extent() const { return count ? *std::max_element(distances.begin(), distances.begin() + count) / 1.5f : 0; }
    void set(int a, int b, float distance) { distances[(size_t)a * count + b] = distances[(size_t)b * count + a] = distance; }

    // The `size` points from `first` on that are nearest to each point, itself left out, nearest first.
    std::vector<int> neighbours(int first, int size) const {
        std::vector<int> all, near;
        for (int i = first; i < count; i++) {
            all.resize(count - first);
            std::iota(all.begin(), all.end(), first);
            std::swap(all[i - first], all.back());
            std::partial_sort(all.begin(), all.begin() + size, all.end() - 1,
                              [&](int a, int b) { return (*this)(i, a) < (*this)(i, b); });
            near.insert(near.end(), all.begin(), all.begin() + size);
        }
        return near;
    }
};
