// Random numbers: the PCG hash of Jarzynski and Olano (2020), and distributions drawn with it. A state is 32 bits; a
// draw replaces it by its hash.
#ifndef WP_RANDOM_H
#define WP_RANDOM_H
#include "core.h"
#include "linalg.h"
#include "scalar.h"

namespace wp {

WP_FN uint32 pcg(uint32 state) {
    const uint32 mixed = state * 747796405u + 2891336453u;
    const uint32 word = ((mixed >> ((mixed >> 28u) + 4u)) ^ mixed) * 277803737u;
    return (word >> 22u) ^ word;
}

// 24 bits as a multiple of 2^-24 in [0, 1).
WP_FN float unit_float(uint32 state) { return (float)(state >> 8) * 0x1p-24f; }
WP_FN uint32 draw(uint32& state) { return state = pcg(state); }
WP_FN float draw_float(uint32& state) { return unit_float(draw(state)); }

WP_FN uint32 rand_init(int32 seed) { return pcg((uint32)seed); }
WP_FN uint32 rand_init(int32 seed, int32 offset) { return pcg((uint32)seed + pcg((uint32)offset)); }

// An empty range gives its lower end.
WP_FN uint32 draw_below(uint32& state, uint32 size) {
    const uint32 bits = draw(state);
    return size == 0u ? 0u : bits % size;
}
WP_FN int32 draw_int(uint32& state, int32 low, int32 high) {
    return (int32)((uint32)low + draw_below(state, (uint32)high - (uint32)low));
}
WP_FN uint32 draw_uint(uint32& state, uint32 low, uint32 high) { return low + draw_below(state, high - low); }
WP_FN float draw_float(uint32& state, float low, float high) { return (high - low) * draw_float(state) + low; }

// Box and Muller.
WP_FN float draw_normal(uint32& state) {
    const float u = draw_float(state), v = draw_float(state);
    return sqrt(-2.0f * log(u > 0.0f ? u : 0x1p-25f)) * cos(6.2831855f * v);
}

WP_FN vec<2, float> vec2_of(float x, float y) {
    vec<2, float> result;
    result.c[0] = x;
    result.c[1] = y;
    return result;
}
WP_FN vec<2, float> on_circle(float radius, float turn) {
    const float angle = 6.2831855f * turn;
    return vec2_of(radius * cos(angle), radius * sin(angle));
}
WP_FN vec<3, float> on_sphere(float z, float turn) {
    const float rest = 1.0f - z * z;
    const vec<2, float> flat = on_circle(sqrt(rest > 0.0f ? rest : 0.0f), turn);
    return vec3_of<float>(flat.c[0], flat.c[1], z);
}

WP_FN vec<2, float> draw_triangle(uint32& state) {
    const float root = sqrt(draw_float(state)), v = draw_float(state);
    return vec2_of(1.0f - root, v * root);
}
WP_FN vec<2, float> draw_ring(uint32& state) { return on_circle(1.0f, draw_float(state)); }
WP_FN vec<2, float> draw_disk(uint32& state) {
    const float radius = sqrt(draw_float(state));
    return on_circle(radius, draw_float(state));
}
WP_FN vec<3, float> draw_sphere_surface(uint32& state) {
    const float z = 1.0f - 2.0f * draw_float(state);
    return on_sphere(z, draw_float(state));
}
WP_FN vec<3, float> draw_hemisphere_surface(uint32& state) {
    const float z = 1.0f - draw_float(state);
    return on_sphere(z, draw_float(state));
}
WP_FN vec<3, float> draw_sphere(uint32& state) {
    const vec<3, float> direction = draw_sphere_surface(state);
    return tensor_scale(direction, cbrt(draw_float(state)));
}
WP_FN vec<3, float> draw_hemisphere(uint32& state) {
    const vec<3, float> direction = draw_hemisphere_surface(state);
    return tensor_scale(direction, cbrt(draw_float(state)));
}
WP_FN vec<2, float> draw_square(uint32& state) {
    const float x = draw_float(state) - 0.5f;
    return vec2_of(x, draw_float(state) - 0.5f);
}
WP_FN vec<3, float> draw_cube(uint32& state) {
    const float x = draw_float(state) - 0.5f, y = draw_float(state) - 0.5f;
    return vec3_of<float>(x, y, draw_float(state) - 0.5f);
}

// log(k!) by Stirling's series above 9, where its error is below 1e-7.
WP_FN float log_factorial(float k) {
    if (k < 9.5f) {
        float product = 1.0f;
        for (float factor = 2.0f; factor <= k; factor += 1.0f) product *= factor;
        return log(product);
    }
    const float n = k + 1.0f, inverse = 1.0f / n;
    return (n - 0.5f) * log(n) - n + 0.9189385332f + inverse * (0.0833333333f - inverse * inverse * 0.0027777778f);
}
// Below 10 by multiplying uniform numbers (Knuth), above by transformed rejection (Hormann 1993, PTRS).
WP_FN uint32 draw_poisson(uint32& state, float lam) {
    if (!(lam > 0.0f)) return 0u;
    if (lam < 10.0f) {
        const float limit = exp(-lam);
        float product = draw_float(state);
        uint32 count = 0u;
        while (product > limit) {
            ++count;
            product *= draw_float(state);
        }
        return count;
    }
    const float log_lam = log(lam), b = 0.931f + 2.53f * sqrt(lam), a = -0.059f + 0.02483f * b;
    const float inverse_alpha = 1.1239f + 1.1328f / (b - 3.4f), accepted = 0.9277f - 3.6224f / (b - 2.0f);
    for (;;) {
        const float u = draw_float(state) - 0.5f, v = draw_float(state);
        const float rest = 0.5f - abs(u);
        const float k = floor((2.0f * a / rest + b) * u + lam + 0.43f);
        if (rest >= 0.07f && v <= accepted) return (uint32)k;
        if (k < 0.0f || (rest < 0.013f && v > rest)) continue;
        const float left = log(v) + log(inverse_alpha) - log(a / (rest * rest) + b);
        if (left <= -lam + k * log_lam - log_factorial(k)) return (uint32)k;
    }
}

}  // namespace wp

#endif
