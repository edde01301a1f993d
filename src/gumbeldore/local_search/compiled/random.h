// A generator of random numbers (xorshift, Marsaglia 2003), one per instance.
#pragma once

#include <cstdint>

struct Random {
    uint64_t state;
    explicit Random(uint64_t seed) : state((seed + 1) * 0x9E3779B97F4A7C15ull | 1) {
        for (int i = 0; i < 8; i++) next();
    }
    uint64_t next() {
        state ^= state << 13;
        state ^= state >> 7;
        return state ^= state << 17;
    }
    int below(int count) { return (int)(((next() >> 32) * (uint64_t)count) >> 32); }
    double unit() { return (double)(next() >> 11) * 0x1p-53; }
};
