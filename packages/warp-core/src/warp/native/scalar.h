// Functions of scalars. float16 is computed in float and rounded once.
#ifndef WP_SCALAR_H
#define WP_SCALAR_H
#include "core.h"

#if WP_CUDA
#define WP_LIBM(name) ::name
#else
#define WP_LIBM(name) wp_m.name
#endif
// Where these round in one instruction; elsewhere the compiler would call libm.
#if defined(__SSE4_1__) || defined(__aarch64__) || WP_CUDA
#define WP_HAS_ROUNDING 1
#else
#define WP_HAS_ROUNDING 0
#endif

namespace wp {

#define WP_ELEMENTARY(name)                                                \
    template <class T> WP_FN T name(T x) {                                 \
        if constexpr (is_same<T, double>) return WP_LIBM(name)(x);         \
        else return (T)WP_LIBM(name##f)((float)x);                         \
    }
WP_ELEMENTARY(sin)
WP_ELEMENTARY(cos)
WP_ELEMENTARY(tan)
WP_ELEMENTARY(asin)
WP_ELEMENTARY(acos)
WP_ELEMENTARY(atan)
WP_ELEMENTARY(sinh)
WP_ELEMENTARY(cosh)
WP_ELEMENTARY(tanh)
WP_ELEMENTARY(exp)
WP_ELEMENTARY(log)
WP_ELEMENTARY(log2)
WP_ELEMENTARY(log10)
WP_ELEMENTARY(cbrt)
#undef WP_ELEMENTARY

template <class T> WP_FN T atan2(T y, T x) {
    if constexpr (is_same<T, double>) return WP_LIBM(atan2)(y, x);
    else return (T)WP_LIBM(atan2f)((float)y, (float)x);
}

template <class T> WP_FN T sqrt(T x) {
    if constexpr (is_same<T, double>) return __builtin_sqrt(x);
    else return (T)__builtin_sqrtf((float)x);
}

template <class T> WP_FN T abs(T x) {
    if constexpr (is_same<T, double>) return __builtin_fabs(x);
    else if constexpr (is_floating<T>) return (T)__builtin_fabsf((float)x);
    else return x < 0 ? (T)(0 - x) : x;
}

// Gives `magnitude` the sign of x.
template <class T> WP_FN T with_sign(T magnitude, T x) {
    if constexpr (is_same<T, double>) return __builtin_copysign(magnitude, x);
    else return __builtin_copysignf(magnitude, x);
}

// From this magnitude on all numbers are integers; below, they fit the integer type of the same size.
template <class T> constexpr T integers_from = is_same<T, double> ? (T)4503599627370496.0 : (T)8388608.0f;

template <class T> WP_FN T trunc(T x) {
    if constexpr (is_narrow<T>) return (T)trunc((float)x);
#if WP_HAS_ROUNDING
    else if constexpr (is_same<T, double>) return __builtin_trunc(x);
    else return __builtin_truncf(x);
#else
    else return abs(x) < integers_from<T> ? with_sign((T)(int64)x, x) : x;
#endif
}

template <class T> WP_FN T floor(T x) {
    if constexpr (is_narrow<T>) return (T)floor((float)x);
#if WP_HAS_ROUNDING
    else if constexpr (is_same<T, double>) return __builtin_floor(x);
    else return __builtin_floorf(x);
#else
    else {
        const T whole = trunc(x);
        return whole > x ? whole - (T)1 : whole;
    }
#endif
}

template <class T> WP_FN T ceil(T x) {
    if constexpr (is_narrow<T>) return (T)ceil((float)x);
#if WP_HAS_ROUNDING
    else if constexpr (is_same<T, double>) return __builtin_ceil(x);
    else return __builtin_ceilf(x);
#else
    else {
        const T whole = trunc(x);
        return whole < x ? with_sign(whole + (T)1, x) : whole;
    }
#endif
}

template <class T> WP_FN T rint(T x) {
    if constexpr (is_narrow<T>) return (T)rint((float)x);
#if WP_HAS_ROUNDING
    else if constexpr (is_same<T, double>) return __builtin_rint(x);
    else return __builtin_rintf(x);
#else
    else {
        if (!(abs(x) < integers_from<T>)) return x;
        const T whole = trunc(x), rest = abs(x - whole);
        const bool is_up = rest > (T)0.5 || (rest == (T)0.5 && ((int64)whole & 1));
        return with_sign(is_up ? abs(whole) + (T)1 : abs(whole), x);
    }
#endif
}

template <class T> WP_FN T round(T x) {
    if constexpr (is_narrow<T>) return (T)round((float)x);
    else {
        const T whole = trunc(x);
        return abs(x - whole) >= (T)0.5 ? whole + with_sign((T)1, x) : whole;
    }
}

template <class T> WP_FN T frac(T x) { return x - trunc(x); }

template <class T> WP_FN T sign(T x) { return x < (T)0 ? (T)-1 : (T)1; }
template <class T> WP_FN T step(T x) { return x < (T)0 ? (T)1 : (T)0; }
template <class T> WP_FN T nonzero(T x) { return x == (T)0 ? (T)0 : (T)1; }

template <class T> WP_FN T min(T a, T b) { return a < b ? a : b; }
template <class T> WP_FN T max(T a, T b) { return a > b ? a : b; }
template <class T> WP_FN T clamp(T x, T low, T high) {
    const T raised = x < low ? low : x;
    return raised > high ? high : raised;
}

template <class T> WP_FN bool isfinite(T x) { return is_finite_value(x); }
template <class T> WP_FN bool isnan(T x) { return x != x; }
template <class T> WP_FN bool isinf(T x) { return x == x && !is_finite_value(x); }

template <class T> WP_FN T radians(T x) { return x * (T)0.017453292519943295; }
template <class T> WP_FN T degrees(T x) { return x * (T)57.29577951308232; }
template <class T> WP_FN T lerp(T a, T b, T t) { return a * ((T)1 - t) + b * t; }
template <class T> WP_FN T smoothstep(T a, T b, T x) {
    const T t = clamp((x - a) / (b - a), (T)0, (T)1);
    return t * t * ((T)3 - t * (T)2);
}

}  // namespace wp

#endif
