// Types and conversions that every kernel uses. Freestanding, and the same text for C++ and for NVRTC.
#ifndef WP_CORE_H
#define WP_CORE_H

#if WP_CUDA
#define WP_FN static inline __device__
#define WP_MEMBER __device__
#else
#define WP_FN static inline
#define WP_MEMBER
#endif

namespace wp {

typedef signed char int8;
typedef short int16;
typedef int int32;
typedef long long int64;
typedef unsigned char uint8;
typedef unsigned short uint16;
typedef unsigned int uint32;
typedef unsigned long long uint64;
typedef float float32;
typedef double float64;

template <int N, class T> struct vec {
    typedef T scalar;
    static constexpr int length = N;
    T c[N];
    WP_MEMBER T& operator[](int64 i) { return c[i]; }
    WP_MEMBER const T& operator[](int64 i) const { return c[i]; }
};

// Row-major.
template <int R, int C, class T> struct mat {
    typedef T scalar;
    static constexpr int length = R * C;
    T c[R * C];
    WP_MEMBER vec<C, T>& operator[](int64 i) { return *(vec<C, T>*)(c + i * C); }
    WP_MEMBER const vec<C, T>& operator[](int64 i) const { return *(const vec<C, T>*)(c + i * C); }
    WP_MEMBER T& operator()(int64 i, int64 j) { return c[i * C + j]; }
    WP_MEMBER const T& operator()(int64 i, int64 j) const { return c[i * C + j]; }
};

// x, y, z, w.
template <class T> struct quat {
    typedef T scalar;
    static constexpr int length = 4;
    T c[4];
    WP_MEMBER T& operator[](int64 i) { return c[i]; }
    WP_MEMBER const T& operator[](int64 i) const { return c[i]; }
};

// Position, then rotation.
template <class T> struct transform {
    typedef T scalar;
    static constexpr int length = 7;
    T c[7];
    WP_MEMBER T& operator[](int64 i) { return c[i]; }
    WP_MEMBER const T& operator[](int64 i) const { return c[i]; }
};

// A run of scalars inside an aggregate, seen as an aggregate of its own: a matrix row, a transform's position.
template <class Part, class T> WP_FN Part& part(T* scalars, int64 offset) { return *(Part*)(scalars + offset); }
template <class Part, class T> WP_FN const Part& part(const T* scalars, int64 offset) {
    return *(const Part*)(scalars + offset);
}

template <class A, class B> constexpr bool is_same = false;
template <class A> constexpr bool is_same<A, A> = true;
template <class T> constexpr bool is_narrow = false;  // specialised by half and bfloat16
template <class T> constexpr bool is_floating = is_same<T, float> || is_same<T, double> || is_narrow<T>;
template <class T> constexpr bool is_number = is_floating<T> || is_same<T, bool> || is_same<T, int8> || is_same<T, uint8> ||
    is_same<T, int16> || is_same<T, uint16> || is_same<T, int32> || is_same<T, uint32> || is_same<T, int64> ||
    is_same<T, uint64>;

// Truncate towards zero, saturate beyond the ends of the range; nan gives 0. Both bounds are powers of two, or 0.
template <class To, class From> WP_FN To saturate(From x) {
    constexpr bool is_signed = (To)-1 < (To)0;
    constexpr int bits = (int)sizeof(To) * 8 - (is_signed ? 1 : 0);
    constexpr To highest = (To)(((((uint64)1 << (bits - 1)) - 1) << 1) + 1);
    constexpr To lowest = is_signed ? (To)(-highest - 1) : (To)0;
    constexpr From above = (From)((uint64)1 << (bits - 1)) * (From)2;
    if (x != x) return (To)0;
    if (x >= above) return highest;
    if (x <= (From)lowest) return lowest;
    return (To)x;
}

// Conversion between scalar types: integers wrap around, floats round to nearest even, floats to integers saturate.
template <class To, class From> WP_FN To cast(From x) {
    if constexpr (is_same<To, From>) {
        return x;
    } else if constexpr (is_narrow<From>) {
        return cast<To>((float)x);
    } else if constexpr (is_same<To, bool>) {
        return x != (From)0;
    } else if constexpr (is_floating<From> && !is_floating<To>) {
        return saturate<To>(x);
    } else {
        return (To)x;
    }
}

template <class To, class From> WP_FN To cast_all(const From& x) {
    To result;
    for (int i = 0; i < To::length; ++i) result.c[i] = cast<typename To::scalar>(x.c[i]);
    return result;
}

// Arithmetic of a narrow float T, the value of whose bits is float: it widens, and rounds after each operation. The float
// has more than twice the digits and two, so rounding twice changes nothing.
#define WP_NARROW_OPERATORS(T)                                                 \
    WP_FN T operator+(T a, T b) { return T((float)a + (float)b); }              \
    WP_FN T operator-(T a, T b) { return T((float)a - (float)b); }              \
    WP_FN T operator*(T a, T b) { return T((float)a * (float)b); }              \
    WP_FN T operator/(T a, T b) { return T((float)a / (float)b); }              \
    WP_FN T operator-(T a) { return T::from_bits((uint16)(a.bits ^ 0x8000u)); } \
    WP_FN T operator+(T a) { return a; }                                        \
    WP_FN T& operator+=(T& a, T b) { return a = a + b; }                        \
    WP_FN T& operator-=(T& a, T b) { return a = a - b; }                        \
    WP_FN T& operator*=(T& a, T b) { return a = a * b; }                        \
    WP_FN T& operator/=(T& a, T b) { return a = a / b; }                        \
    WP_FN bool operator==(T a, T b) { return (float)a == (float)b; }            \
    WP_FN bool operator!=(T a, T b) { return (float)a != (float)b; }            \
    WP_FN bool operator<(T a, T b) { return (float)a < (float)b; }              \
    WP_FN bool operator<=(T a, T b) { return (float)a <= (float)b; }            \
    WP_FN bool operator>(T a, T b) { return (float)a > (float)b; }              \
    WP_FN bool operator>=(T a, T b) { return (float)a >= (float)b; }

template <class To, class From> WP_FN To bit_cast(const From& x) {
    static_assert(sizeof(To) == sizeof(From), "only types of one size share their bits");
    To result;
    __builtin_memcpy(&result, &x, sizeof(To));
    return result;
}

template <class T> WP_FN bool is_finite_value(const T& x) {
    if constexpr (is_narrow<T>) {
        return is_finite_value((float)x);
    } else if constexpr (is_floating<T>) {
        return __builtin_isfinite(x);
    } else if constexpr (is_number<T>) {
        return true;
    } else {
        for (int i = 0; i < T::length; ++i)
            if (!is_finite_value(x.c[i])) return false;
        return true;
    }
}

// The first number in a value that is not finite.
template <class T> WP_FN double not_finite_in(const T& x) {
    if constexpr (is_floating<T>) {
        return cast<double>(x);
    } else if constexpr (is_number<T>) {
        return 0.0;
    } else {
        for (int i = 0; i < T::length; ++i)
            if (!is_finite_value(x.c[i])) return not_finite_in(x.c[i]);
        return 0.0;
    }
}

}  // namespace wp

#endif
