// What the text of a native function may use besides its parameters: arrays, names of CUDA and of the C library.
#ifndef WP_SNIPPET_H
#define WP_SNIPPET_H
#include "abi.h"
#include "array.h"
#include "core.h"

namespace wp {

typedef vec<2, float> vec2;
typedef vec<3, float> vec3;
typedef vec<4, float> vec4;
typedef mat<2, 2, float> mat22;
typedef mat<3, 3, float> mat33;
typedef mat<4, 4, float> mat44;

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

#if WP_CUDA
// The functions of the language itself, not the templates of the same names around this namespace.
using ::abs;
using ::acos;
using ::asin;
using ::atan;
using ::atan2;
using ::cbrt;
using ::ceil;
using ::cos;
using ::cosh;
using ::erf;
using ::exp;
using ::exp2;
using ::expm1;
using ::fabs;
using ::floor;
using ::fmod;
using ::hypot;
using ::log;
using ::log10;
using ::log1p;
using ::log2;
using ::max;
using ::min;
using ::pow;
using ::round;
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
WP_UNARY(floor)
WP_UNARY(ceil)
WP_UNARY(trunc)
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
template <class... A> WP_FN int printf(const char* format, A... arguments) { return wp_m.printf(format, arguments...); }
#endif

}  // namespace native
}  // namespace wp

#endif
