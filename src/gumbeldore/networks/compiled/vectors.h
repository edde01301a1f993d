// Vectors of numbers, and functions of them. Vectors are those of GCC and Clang: operators work on all lanes.

#pragma once

#if defined(__AVX2__)
#include <immintrin.h>
#endif

#if defined(__AVX512F__)
constexpr int LANES = 16, WIDE = 4, HIGH = 6;
#elif defined(__AVX2__)
constexpr int LANES = 8, WIDE = 2, HIGH = 6;
#else
constexpr int LANES = 4, WIDE = 4, HIGH = 6;
#endif
// A product computes HIGH rows of WIDE vectors together: its sums, and a few vectors more, fill the registers.
constexpr int PANEL = LANES * WIDE;

#define INLINE static inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 16")

typedef float Vector __attribute__((vector_size(LANES * 4), aligned(4)));
typedef int Integers __attribute__((vector_size(LANES * 4), aligned(4)));

INLINE Vector all(float x) { return x - Vector{}; }
INLINE Vector load(const float *from) { return *(const Vector *)from; }
INLINE void store(float *to, Vector x) { *(Vector *)to = x; }

// Written so that an x that is not a number stays so. Compilers do not find the instruction on their own.
#if defined(__AVX512F__)
INLINE Vector at_least(float low, Vector x) { return (Vector)_mm512_max_ps((__m512)all(low), (__m512)x); }
INLINE Vector at_most(float high, Vector x) { return (Vector)_mm512_min_ps((__m512)all(high), (__m512)x); }
#elif defined(__AVX2__)
INLINE Vector at_least(float low, Vector x) { return (Vector)_mm256_max_ps((__m256)all(low), (__m256)x); }
INLINE Vector at_most(float high, Vector x) { return (Vector)_mm256_min_ps((__m256)all(high), (__m256)x); }
#else
INLINE Vector at_least(float low, Vector x) { return x < low ? all(low) : x; }
INLINE Vector at_most(float high, Vector x) { return x > high ? all(high) : x; }
#endif

// Powers of two, to about 1e-7 of their value, of numbers between -126 and 127.
INLINE Vector small_power(Vector x) {
    Vector shifted = x + 12582912.0f;  // 1.5 * 2^23: the last bits hold the nearest integer
    Vector rest = x - (shifted - 12582912.0f);
    Vector y = all(1.3276470e-3f);
    y = y * rest + 9.6755410e-3f;
    y = y * rest + 5.5507135e-2f;
    y = y * rest + 2.4022120e-1f;
    y = y * rest + 6.9314694e-1f;
    y = y * rest + 1.0000001f;
    return (Vector)((Integers)y + ((Integers)shifted << 23));
}

// Of any numbers. None is below 2^-100: products of smaller numbers are slow.
INLINE Vector power(Vector x) { return small_power(at_most(127, at_least(-100, x))); }

INLINE Vector size_of(Vector x) { return (Vector)((Integers)x & 0x7fffffff); }

// The normal distribution's mass below -t, for t between 0 and 6. Its logarithm is nearly a parabola.
INLINE Vector tail(Vector t) {
    Vector y = all(3.1774936e-5f);
    y = y * t - 7.5691630e-4f;
    y = y * t + 8.0369757e-3f;
    y = y * t - 5.3337406e-2f;
    y = y * t - 4.5883432e-1f;
    y = y * t - 1.1511772f;
    y = y * t - 9.9999630e-1f;
    return small_power(y);
}

INLINE Vector gelu(Vector x) {
    Vector t = at_most(6, size_of(x));
    return at_least(0, x) - t * tail(t);
}

INLINE Vector gelu_slope(Vector x) {
    Vector mass = tail(at_most(6, size_of(x)));
    return (x > 0 ? 1 - mass : mass) + x * 0.39894228f * power(x * x * -0.72134752f);
}
