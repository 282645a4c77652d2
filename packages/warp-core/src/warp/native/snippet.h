// What the text of a native function may use besides its parameters: arrays, names of CUDA and of the C library.
#ifndef WP_SNIPPET_H
#define WP_SNIPPET_H
#include "abi.h"
#include "array.h"
#include "core.h"
#include "snippet_types.h"

namespace wp {

namespace native {

// An array by byte strides: x[i][j], x(i, j), x.data, and a pointer to its first element.
template <class T, int N> struct accessor {
    T* data;
    const wp_int64* shape;
    const wp_int64* strides;
    WP_MEMBER accessor(T* data, const wp_int64* shape, const wp_int64* strides) : data(data), shape(shape), strides(strides) {}
    WP_MEMBER accessor(const wp_array& a) : data((T*)a.data), shape(a.shape), strides(a.strides) {}
    template <class I> WP_MEMBER accessor<T, N - 1> operator[](I i) const {
        return accessor<T, N - 1>((T*)((char*)data + (int64)i * strides[0]), shape + 1, strides + 1);
    }
    template <class I, class... J> WP_MEMBER T& operator()(I i, J... j) const { return (*this)[i](j...); }
    WP_MEMBER operator T*() const { return data; }
};
template <class T> struct accessor<T, 1> {
    T* data;
    const wp_int64* shape;
    const wp_int64* strides;
    WP_MEMBER accessor(T* data, const wp_int64* shape, const wp_int64* strides) : data(data), shape(shape), strides(strides) {}
    WP_MEMBER accessor(const wp_array& a) : data((T*)a.data), shape(a.shape), strides(a.strides) {}
    template <class I> WP_MEMBER T& operator[](I i) const { return *(T*)((char*)data + (int64)i * strides[0]); }
    template <class I> WP_MEMBER T& operator()(I i) const { return (*this)[i]; }
    WP_MEMBER operator T*() const { return data; }
};

// The same for the gradient of an array. Without one, every access gives a fresh zero that nothing reads back.
template <class T, int N> struct gradient_accessor {
    T* data;
    const wp_int64* shape;
    const wp_int64* strides;
    T* sink;
    T storage;
    WP_MEMBER gradient_accessor(const wp_array& a)
        : data((T*)a.grad), shape(a.shape), strides(a.grad_strides), sink(nullptr), storage() {}
    WP_MEMBER gradient_accessor(T* data, const wp_int64* shape, const wp_int64* strides, T* sink)
        : data(data), shape(shape), strides(strides), sink(sink), storage() {}
    WP_MEMBER T& lost() {
        T* target = sink ? sink : &storage;
        *target = T();
        return *target;
    }
    template <class I> WP_MEMBER decltype(auto) operator[](I i) {
        T* element = data ? (T*)((char*)data + (int64)i * strides[0]) : nullptr;
        if constexpr (N == 1) {
            return element ? *element : lost();
        } else {
            return gradient_accessor<T, N - 1>(element, shape + 1, strides + 1, &lost());
        }
    }
    template <class I> WP_MEMBER T& operator()(I i) { return (*this)[i]; }
    template <class I, class J, class... K> WP_MEMBER T& operator()(I i, J j, K... k) {
        auto rest = (*this)[i];
        return rest(j, k...);
    }
    WP_MEMBER operator T*() { return data ? data : &lost(); }
};

typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long long int64_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long long uint64_t;
#ifndef M_PI
#define M_PI 3.14159265358979323846
#endif
#ifndef M_E
#define M_E 2.71828182845904523536
#endif
#ifndef M_SQRT2
#define M_SQRT2 1.41421356237309504880
#endif
#ifndef INFINITY
#define INFINITY __builtin_inff()
#endif
#ifndef NAN
#define NAN __builtin_nanf("")
#endif
#ifndef FLT_MAX
#define FLT_MAX __FLT_MAX__
#endif
#ifndef FLT_MIN
#define FLT_MIN __FLT_MIN__
#endif
#ifndef FLT_EPSILON
#define FLT_EPSILON __FLT_EPSILON__
#endif
#ifndef DBL_MAX
#define DBL_MAX __DBL_MAX__
#endif
#ifndef DBL_EPSILON
#define DBL_EPSILON __DBL_EPSILON__
#endif
#ifndef INT_MAX
#define INT_MAX __INT_MAX__
#endif
#ifndef INT_MIN
#define INT_MIN (-__INT_MAX__ - 1)
#endif

#if WP_CUDA
// The functions of the language itself, not the templates of the same names around this namespace.
using ::abs;
using ::acos;
using ::asin;
using ::atan;
using ::atan2;
using ::cbrt;
using ::ceil;
using ::copysign;
using ::cos;
using ::cosh;
using ::erf;
using ::exp;
using ::exp2;
using ::expm1;
using ::fabs;
using ::floor;
using ::fma;
using ::fmax;
using ::fmin;
using ::fmod;
using ::hypot;
using ::isfinite;
using ::isinf;
using ::isnan;
using ::log;
using ::log10;
using ::log1p;
using ::log2;
using ::max;
using ::min;
using ::pow;
using ::rint;
using ::round;
using ::rsqrt;
using ::sin;
using ::sinh;
using ::sqrt;
using ::tan;
using ::tanh;
using ::trunc;
#else
// The target decides the type, so that a literal of another type converts.
template <class T> struct same { typedef T type; };
template <class T> WP_FN T atomicAdd(T* target, typename same<T>::type value) { return fetch_add(*target, value); }
template <class T> WP_FN T atomicSub(T* target, typename same<T>::type value) { return fetch_sub(*target, value); }
template <class T> WP_FN T atomicMin(T* target, typename same<T>::type value) { return fetch_min(*target, value); }
template <class T> WP_FN T atomicMax(T* target, typename same<T>::type value) { return fetch_max(*target, value); }
template <class T> WP_FN T atomicAnd(T* target, typename same<T>::type value) { return fetch_and(*target, value); }
template <class T> WP_FN T atomicOr(T* target, typename same<T>::type value) { return fetch_or(*target, value); }
template <class T> WP_FN T atomicXor(T* target, typename same<T>::type value) { return fetch_xor(*target, value); }
template <class T> WP_FN T atomicExch(T* target, typename same<T>::type value) { return fetch_exch(*target, value); }
template <class T> WP_FN T atomicCAS(T* target, typename same<T>::type expected, typename same<T>::type value) {
    return fetch_cas(*target, value, expected);
}
#define WP_ATOMIC_ACCESSOR(name)                                                                                    \
    template <class T> WP_FN T name(const accessor<T, 1>& target, typename same<T>::type value) {                   \
        return name(target.data, value);                                                                            \
    }                                                                                                               \
    template <class T> WP_FN T name(gradient_accessor<T, 1>& target, typename same<T>::type value) {                \
        return name((T*)target, value);                                                                             \
    }
WP_ATOMIC_ACCESSOR(atomicAdd)
WP_ATOMIC_ACCESSOR(atomicSub)
WP_ATOMIC_ACCESSOR(atomicMin)
WP_ATOMIC_ACCESSOR(atomicMax)
WP_ATOMIC_ACCESSOR(atomicExch)
#undef WP_ATOMIC_ACCESSOR

typedef __SIZE_TYPE__ size_t;
#define __device__
#define __forceinline__ inline
#define __restrict__ __restrict

#define WP_UNARY(name)                                                    \
    WP_FN float name(float x) { return wp_m.name##f(x); }                 \
    WP_FN double name(double x) { return wp_m.name(x); }                  \
    WP_FN double name(int x) { return wp_m.name((double)x); }             \
    WP_FN float name##f(float x) { return wp_m.name##f(x); }
WP_UNARY(sin)
WP_UNARY(cos)
WP_UNARY(tan)
WP_UNARY(asin)
WP_UNARY(acos)
WP_UNARY(atan)
WP_UNARY(asinh)
WP_UNARY(acosh)
WP_UNARY(atanh)
WP_UNARY(sinh)
WP_UNARY(cosh)
WP_UNARY(tanh)
WP_UNARY(exp)
WP_UNARY(exp2)
WP_UNARY(expm1)
WP_UNARY(log)
WP_UNARY(log2)
WP_UNARY(log10)
WP_UNARY(log1p)
WP_UNARY(cbrt)
WP_UNARY(erf)
WP_UNARY(erfc)
WP_UNARY(floor)
WP_UNARY(ceil)
WP_UNARY(trunc)
WP_UNARY(rint)
WP_UNARY(round)
#undef WP_UNARY
#define WP_BINARY(name)                                                           \
    WP_FN float name(float x, float y) { return wp_m.name##f(x, y); }             \
    WP_FN double name(double x, double y) { return wp_m.name(x, y); }             \
    WP_FN float name##f(float x, float y) { return wp_m.name##f(x, y); }
WP_BINARY(pow)
WP_BINARY(atan2)
WP_BINARY(fmod)
WP_BINARY(hypot)
#undef WP_BINARY
WP_FN float fma(float x, float y, float z) { return wp_m.fmaf(x, y, z); }
WP_FN double fma(double x, double y, double z) { return wp_m.fma(x, y, z); }
WP_FN float fmaf(float x, float y, float z) { return wp_m.fmaf(x, y, z); }
WP_FN float copysign(float x, float y) { return __builtin_copysignf(x, y); }
WP_FN double copysign(double x, double y) { return __builtin_copysign(x, y); }
WP_FN float copysignf(float x, float y) { return __builtin_copysignf(x, y); }
template <class T> WP_FN bool isnan(T x) { return __builtin_isnan(x); }
template <class T> WP_FN bool isinf(T x) { return __builtin_isinf(x); }
template <class T> WP_FN bool isfinite(T x) { return __builtin_isfinite(x); }
template <class T> WP_FN bool signbit(T x) { return __builtin_signbit(x); }
WP_FN float sqrt(float x) { return __builtin_sqrtf(x); }
WP_FN double sqrt(double x) { return __builtin_sqrt(x); }
WP_FN float sqrtf(float x) { return __builtin_sqrtf(x); }
WP_FN float rsqrtf(float x) { return 1.0f / __builtin_sqrtf(x); }
WP_FN float fabsf(float x) { return __builtin_fabsf(x); }
WP_FN float fabs(float x) { return __builtin_fabsf(x); }
WP_FN double fabs(double x) { return __builtin_fabs(x); }
WP_FN int abs(int x) { return x < 0 ? -x : x; }
WP_FN float abs(float x) { return __builtin_fabsf(x); }
WP_FN double abs(double x) { return __builtin_fabs(x); }
template <class T> WP_FN T min(T a, T b) { return b < a ? b : a; }
template <class T> WP_FN T max(T a, T b) { return a < b ? b : a; }
WP_FN float fminf(float a, float b) { return b < a ? b : a; }
WP_FN float fmaxf(float a, float b) { return a < b ? b : a; }
WP_FN float fmin(float a, float b) { return b < a ? b : a; }
WP_FN float fmax(float a, float b) { return a < b ? b : a; }
WP_FN double fmin(double a, double b) { return b < a ? b : a; }
WP_FN double fmax(double a, double b) { return a < b ? b : a; }
WP_FN float rsqrt(float x) { return 1.0f / __builtin_sqrtf(x); }
WP_FN double rsqrt(double x) { return 1.0 / __builtin_sqrt(x); }
WP_FN double sqrt(int x) { return __builtin_sqrt((double)x); }
WP_FN void* memcpy(void* to, const void* from, size_t count) { return __builtin_memcpy(to, from, count); }
WP_FN void* memset(void* to, int byte, size_t count) { return __builtin_memset(to, byte, count); }
template <class... A> WP_FN int printf(const char* format, A... arguments) { return wp_m.printf(format, arguments...); }
#endif

}  // namespace native
}  // namespace wp

#endif
