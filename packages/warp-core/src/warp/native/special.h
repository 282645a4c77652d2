// The error function and its inverses, in double for every type; signs and bits.
#ifndef WP_SPECIAL_H
#define WP_SPECIAL_H
#include "core.h"
#include "scalar.h"

namespace wp {

template <class T> WP_FN T erf(T x) {
    if constexpr (is_same<T, double>) return WP_LIBM(erf)(x);
    else return (T)WP_LIBM(erff)((float)x);
}
template <class T> WP_FN T erfc(T x) {
    if constexpr (is_same<T, double>) return WP_LIBM(erfc)(x);
    else return (T)WP_LIBM(erfcf)((float)x);
}

constexpr double half_root_pi = 0.886226925452758;

// Newton's method: on erf near 0, on the logarithm of erfc elsewhere.
WP_FN double inverse_erf_near_0(double x) {
    double y = x * half_root_pi;
    for (int i = 0; i < 5; ++i) y -= (WP_LIBM(erf)(y) - x) * half_root_pi * WP_LIBM(exp)(y * y);
    return y;
}
WP_FN double inverse_erfc_tail(double z) {
    double x = __builtin_sqrt(-WP_LIBM(log)(z));
    for (int i = 0; i < 8; ++i) {
        const double value = WP_LIBM(erfc)(x);
        x += WP_LIBM(log)(value / z) * value * half_root_pi * WP_LIBM(exp)(x * x);
    }
    return x;
}
WP_FN double inverse_erfc(double z) {
    if (!(z >= 0.0 && z <= 2.0)) return __builtin_nan("");
    if (z == 0.0 || z == 2.0) return z == 0.0 ? __builtin_inf() : -__builtin_inf();
    const bool is_above = z > 1.0;
    const double small = is_above ? 2.0 - z : z;
    const double x = small > 0.5 ? inverse_erf_near_0(1.0 - small) : inverse_erfc_tail(small);
    return is_above ? -x : x;
}
template <class T> WP_FN T erfcinv(T x) { return (T)inverse_erfc((double)x); }
template <class T> WP_FN T erfinv(T x) {
    const double wide = (double)x, size = __builtin_fabs(wide);
    if (size <= 0.5) return (T)inverse_erf_near_0(wide);
    return (T)__builtin_copysign(inverse_erfc(1.0 - size), wide);
}

template <class T> WP_FN T copysign(T x, T y) {
    if constexpr (is_same<T, double>) return __builtin_copysign(x, y);
    else return (T)__builtin_copysignf((float)x, (float)y);
}

template <class T> WP_FN int32 bit_count(T x) {
    int32 count = 0;
    uint64 bits = (uint64)x;
    if constexpr (sizeof(T) < 8) bits &= ((uint64)1 << sizeof(T) * 8) - 1;
    for (; bits; bits &= bits - 1) ++count;
    return count;
}

}  // namespace wp

#endif
