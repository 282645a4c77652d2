// Operators that C++ leaves undefined or defines otherwise (docs/semantics.md).
#ifndef WP_OPERATORS_H
#define WP_OPERATORS_H
#include "core.h"
#include "scalar.h"

namespace wp {

template <class T> constexpr bool is_signed = (T)-1 < (T)0;

// Integers: toward zero; by zero gives 0, and the lowest number by -1 wraps around.
template <class T> WP_FN T div(T a, T b) {
    if constexpr (is_floating<T>) {
        return a / b;
    } else {
        if (b == 0) return 0;
        if constexpr (is_signed<T>)
            if (b == (T)-1) return (T)(0 - (uint64)a);
        return (T)(a / b);
    }
}

template <class T> WP_FN T floordiv(T a, T b) {
    if constexpr (is_floating<T>) {
        return floor(a / b);
    } else {
        const T quotient = div(a, b);
        if constexpr (is_signed<T>)
            if (b != 0 && b != (T)-1 && a % b != 0 && (a < 0) != (b < 0)) return (T)(quotient - 1);
        return quotient;
    }
}

// The remainder has the sign of the dividend; integers modulo zero give 0.
template <class T> WP_FN T mod(T a, T b) {
    if constexpr (is_same<T, double>) {
        return WP_LIBM(fmod)(a, b);
    } else if constexpr (is_floating<T>) {
        return (T)WP_LIBM(fmodf)((float)a, (float)b);
    } else {
        if (b == 0) return 0;
        if constexpr (is_signed<T>)
            if (b == (T)-1) return 0;
        return (T)(a % b);
    }
}

// Integers wrap around; a negative exponent divides 1 by the power.
template <class T> WP_FN T pow(T x, T y) {
    if constexpr (is_same<T, double>) {
        return WP_LIBM(pow)(x, y);
    } else if constexpr (is_floating<T>) {
        return (T)WP_LIBM(powf)((float)x, (float)y);
    } else {
        if constexpr (is_signed<T>)
            if (y < 0) return x == 1 ? (T)1 : x == (T)-1 ? (y & 1 ? (T)-1 : (T)1) : (T)0;
        uint64 result = 1, base = (uint64)x;
        for (uint64 rest = (uint64)y; rest; rest >>= 1, base *= base)
            if (rest & 1) result *= base;
        return (T)result;
    }
}

// A count outside [0, width) shifts everything out.
template <class T> WP_FN T shl(T a, T b) {
    constexpr uint64 width = sizeof(T) * 8;
    return (uint64)b < width ? (T)((uint64)a << (uint64)b) : (T)0;
}
template <class T> WP_FN T shr(T a, T b) {
    constexpr uint64 width = sizeof(T) * 8;
    return (uint64)b < width ? (T)(a >> b) : a < 0 ? (T)-1 : (T)0;
}

// Products and quotients of an adjoint; where it is 0 so is the result (GRADIENTS.md, the strong zero).
template <class T> WP_FN T strong_mul(T adj, T partial) { return adj == (T)0 ? adj : adj * partial; }
template <class T> WP_FN T strong_div(T adj, T divisor) { return adj == (T)0 ? adj : adj / divisor; }

}  // namespace wp

#endif
