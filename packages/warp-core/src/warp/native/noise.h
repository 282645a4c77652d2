// Gradient noise (Perlin 2002) on the integer lattice of 1 to 4 dimensions, with analytic derivatives.
#ifndef WP_NOISE_H
#define WP_NOISE_H
#include "core.h"
#include "linalg.h"
#include "random.h"
#include "scalar.h"

namespace wp {

// A lattice coordinate; a period of 0 means none.
WP_FN uint32 wrapped(int32 i, int32 period) {
    if (period <= 0) return (uint32)i;
    const int32 rest = i % period;
    return (uint32)(rest < 0 ? rest + period : rest);
}

// Adds value, first and second derivatives of the noise at x; pointers may be null.
template <int N, class T>
WP_FN void add_noise(uint32 state, const T* x, const int32* period, T* value, T* slope, T* curvature) {
    int32 cell[N];
    T d[N], w[N][2], w1[N], w2[N];
    for (int a = 0; a < N; ++a) {
        const T low = floor(x[a]), t = x[a] - low;
        cell[a] = saturate<int32>(low);
        d[a] = t;
        w[a][1] = t * t * t * (t * (t * (T)6 - (T)15) + (T)10);
        w[a][0] = (T)1 - w[a][1];
        w1[a] = t * t * (t * (t * (T)30 - (T)60) + (T)30);
        w2[a] = t * (t * (t * (T)120 - (T)180) + (T)60);
    }
    for (int corner = 0; corner < 1 << N; ++corner) {
        uint32 hash = state;
        for (int a = 0; a < N; ++a) {
            const int32 index = (int32)((uint32)cell[a] + (uint32)(corner >> a & 1));
            hash = pcg(hash + wrapped(index, period[a]));
        }
        T g[N], along = (T)0, weight = (T)1;
        for (int a = 0; a < N; ++a) {
            hash = pcg(hash);
            g[a] = (T)(hash >> 8) * (T)0x1p-23 - (T)1;
            along = along + g[a] * (d[a] - (T)(corner >> a & 1));
            weight = weight * w[a][corner >> a & 1];
        }
        if (value) *value = *value + weight * along;
        T by[N];
        for (int k = 0; k < N; ++k) {
            by[k] = corner >> k & 1 ? w1[k] : -w1[k];
            for (int a = 0; a < N; ++a)
                if (a != k) by[k] = by[k] * w[a][corner >> a & 1];
            if (slope) slope[k] = slope[k] + (weight * g[k] + by[k] * along);
        }
        if (!curvature) continue;
        for (int k = 0; k < N; ++k)
            for (int l = 0; l < N; ++l) {
                T second = corner >> k & 1 ? (k == l ? w2[k] : w1[k]) : (k == l ? -w2[k] : -w1[k]);
                for (int a = 0; a < N; ++a) {
                    if (a == k) continue;
                    second = second * (a == l ? (corner >> a & 1 ? w1[a] : -w1[a]) : w[a][corner >> a & 1]);
                }
                curvature[k * N + l] = curvature[k * N + l] + (by[k] * g[l] + by[l] * g[k] + second * along);
            }
    }
}

template <int N, class T> WP_FN vec<N, T> noise_slope_at(uint32 state, const vec<N, T>& x, const int32* period) {
    vec<N, T> slope = {};
    add_noise<N, T>(state, x.c, period, nullptr, slope.c, nullptr);
    return slope;
}

template <class T> WP_FN T noise(uint32 state, T x, int32 px) {
    T value = (T)0;
    add_noise<1, T>(state, &x, &px, &value, nullptr, nullptr);
    return value;
}
template <class T> WP_FN T noise_slope(uint32 state, T x, int32 px) {
    T slope = (T)0;
    add_noise<1, T>(state, &x, &px, nullptr, &slope, nullptr);
    return slope;
}
template <int N, class T>
WP_FN T noise(uint32 state, const vec<N, T>& x, int32 px = 0, int32 py = 0, int32 pz = 0, int32 pt = 0) {
    const int32 period[4] = {px, py, pz, pt};
    T value = (T)0;
    add_noise<N, T>(state, x.c, period, &value, nullptr, nullptr);
    return value;
}
template <int N, class T>
WP_FN vec<N, T> noise_slope(uint32 state, const vec<N, T>& x, int32 px = 0, int32 py = 0, int32 pz = 0, int32 pt = 0) {
    const int32 period[4] = {px, py, pz, pt};
    return noise_slope_at(state, x, period);
}

// The states of the potentials that a curl is taken of.
WP_FN uint32 potential(uint32 state, int number) { return pcg(state + (uint32)number); }

// Divergence-free fields: the rotated slope of one potential in the plane, else the curl of three by x, y and z.
template <int N, class T> WP_FN vec<N == 2 ? 2 : 3, T> curl(uint32 state, const vec<N, T>& x) {
    const int32 none[4] = {0, 0, 0, 0};
    vec<N == 2 ? 2 : 3, T> result;
    if constexpr (N == 2) {
        const vec<2, T> slope = noise_slope_at(state, x, none);
        result.c[0] = slope.c[1];
        result.c[1] = -slope.c[0];
    } else {
        const vec<N, T> a = noise_slope_at(potential(state, 1), x, none);
        const vec<N, T> b = noise_slope_at(potential(state, 2), x, none);
        const vec<N, T> c = noise_slope_at(potential(state, 3), x, none);
        result.c[0] = c.c[1] - b.c[2];
        result.c[1] = a.c[2] - c.c[0];
        result.c[2] = b.c[0] - a.c[1];
    }
    return result;
}
// The adjoint of x.
template <int N, class T> WP_FN vec<N, T> curl_adjoint(uint32 state, const vec<N, T>& x, const vec<N == 2 ? 2 : 3, T>& adj) {
    const int32 none[4] = {0, 0, 0, 0};
    vec<N, T> result = {};
    if constexpr (N == 2) {
        T h[4] = {};
        add_noise<2, T>(state, x.c, none, nullptr, nullptr, h);
        for (int k = 0; k < 2; ++k) result.c[k] = adj.c[0] * h[2 + k] - adj.c[1] * h[k];
    } else {
        for (int number = 0; number < 3; ++number) {
            T h[N * N] = {};
            add_noise<N, T>(potential(state, number + 1), x.c, none, nullptr, nullptr, h);
            const int next = (number + 1) % 3, last = (number + 2) % 3;
            for (int k = 0; k < N; ++k)
                result.c[k] = result.c[k] + (adj.c[next] * h[last * N + k] - adj.c[last] * h[next * N + k]);
        }
    }
    return result;
}

template <int N, class T>
WP_FN vec<N == 2 ? 2 : 3, T> curlnoise(uint32 state, const vec<N, T>& x, uint32 octaves, T lacunarity, T gain) {
    vec<N == 2 ? 2 : 3, T> sum = {};
    T frequency = (T)1, amplitude = (T)1;
    for (uint32 octave = 0; octave < octaves; ++octave) {
        sum = tensor_add(sum, tensor_scale(curl(state, tensor_scale(x, frequency)), amplitude));
        frequency = frequency * lacunarity;
        amplitude = amplitude * gain;
    }
    return sum;
}
// The adjoints of x, lacunarity and gain, in this order.
template <int N, class T>
WP_FN vec<N + 2, T> curlnoise_adjoint(
    uint32 state, const vec<N, T>& x, uint32 octaves, T lacunarity, T gain, const vec<N == 2 ? 2 : 3, T>& adj) {
    vec<N + 2, T> result = {};
    T frequency = (T)1, amplitude = (T)1, frequency_slope = (T)0, amplitude_slope = (T)0;
    for (uint32 octave = 0; octave < octaves; ++octave) {
        const vec<N, T> at = tensor_scale(x, frequency);
        const vec<N, T> inner = tensor_scale(curl_adjoint(state, at, adj), amplitude);
        for (int k = 0; k < N; ++k) result.c[k] = result.c[k] + inner.c[k] * frequency;
        result.c[N] = result.c[N] + tensor_dot(inner, x) * frequency_slope;
        result.c[N + 1] = result.c[N + 1] + tensor_dot(curl(state, at), adj) * amplitude_slope;
        frequency_slope = frequency_slope * lacunarity + frequency;
        amplitude_slope = amplitude_slope * gain + amplitude;
        frequency = frequency * lacunarity;
        amplitude = amplitude * gain;
    }
    return result;
}

}  // namespace wp

#endif
