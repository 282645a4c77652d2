// Vectors, matrices and quaternions as the text of a native function writes them: with constructors and operators.
#ifndef WP_SNIPPET_TYPES_H
#define WP_SNIPPET_TYPES_H
#include "core.h"

namespace wp {

namespace native {

// The same memory as its base, to which it converts wherever a function of the prelude wants one.
template <class Base> struct value : Base {
    typedef typename Base::scalar scalar;
    WP_MEMBER value() {
        for (int i = 0; i < Base::length; ++i) this->c[i] = scalar();
    }
    WP_MEMBER value(const Base& x) : Base(x) {}
    WP_MEMBER explicit value(scalar x) {
        for (int i = 0; i < Base::length; ++i) this->c[i] = x;
    }
    template <class... Rest> WP_MEMBER value(scalar first, scalar second, Rest... rest) {
        static_assert(sizeof...(rest) + 2 == Base::length, "as many numbers as the type has components");
        const scalar all[] = {first, second, (scalar)rest...};
        for (int i = 0; i < Base::length; ++i) this->c[i] = all[i];
    }
};

template <class A> WP_FN A plus(A a, const A& b) {
    for (int i = 0; i < A::length; ++i) a.c[i] = a.c[i] + b.c[i];
    return a;
}
template <class A> WP_FN A minus(A a, const A& b) {
    for (int i = 0; i < A::length; ++i) a.c[i] = a.c[i] - b.c[i];
    return a;
}
template <class A> WP_FN A scaled(A a, typename A::scalar s) {
    for (int i = 0; i < A::length; ++i) a.c[i] = a.c[i] * s;
    return a;
}
template <class A> WP_FN A divided(A a, typename A::scalar s) {
    for (int i = 0; i < A::length; ++i) a.c[i] = a.c[i] / s;
    return a;
}
// A parameter that takes no part in the deduction, so that a number of another type converts.
template <class T> struct exactly { typedef T type; };

}  // namespace native

#define WP_OPERATORS(head, Self)                                                                       \
    template <head> WP_FN Self operator+(const Self& a, const Self& b) { return native::plus(a, b); }  \
    template <head> WP_FN Self operator-(const Self& a, const Self& b) { return native::minus(a, b); } \
    template <head> WP_FN Self operator-(const Self& a) { return native::scaled(a, (T)-1); }           \
    template <head> WP_FN Self operator*(const Self& a, typename native::exactly<T>::type s) {         \
        return native::scaled(a, s);                                                                   \
    }                                                                                                  \
    template <head> WP_FN Self operator*(typename native::exactly<T>::type s, const Self& a) {         \
        return native::scaled(a, s);                                                                   \
    }                                                                                                  \
    template <head> WP_FN Self operator/(const Self& a, typename native::exactly<T>::type s) {         \
        return native::divided(a, s);                                                                  \
    }                                                                                                  \
    template <head> WP_FN Self& operator+=(Self& a, const Self& b) { return a = native::plus(a, b); }  \
    template <head> WP_FN Self& operator-=(Self& a, const Self& b) { return a = native::minus(a, b); } \
    template <head> WP_FN Self& operator*=(Self& a, typename native::exactly<T>::type s) {             \
        return a = native::scaled(a, s);                                                               \
    }                                                                                                  \
    template <head> WP_FN Self& operator/=(Self& a, typename native::exactly<T>::type s) {             \
        return a = native::divided(a, s);                                                              \
    }
#define WP_COMMA ,
WP_OPERATORS(int N WP_COMMA class T, vec<N WP_COMMA T>)
WP_OPERATORS(int R WP_COMMA int C WP_COMMA class T, mat<R WP_COMMA C WP_COMMA T>)
#undef WP_COMMA
#undef WP_OPERATORS

template <int N, class T> WP_FN T dot(const vec<N, T>& a, const vec<N, T>& b) {
    T sum = T();
    for (int i = 0; i < N; ++i) sum = sum + a.c[i] * b.c[i];
    return sum;
}
template <int R, int C, class T> WP_FN vec<R, T> operator*(const mat<R, C, T>& m, const vec<C, T>& v) {
    vec<R, T> result;
    for (int i = 0; i < R; ++i) {
        T sum = T();
        for (int k = 0; k < C; ++k) sum = sum + m(i, k) * v.c[k];
        result.c[i] = sum;
    }
    return result;
}
template <int R, int K, int C, class T> WP_FN mat<R, C, T> operator*(const mat<R, K, T>& a, const mat<K, C, T>& b) {
    mat<R, C, T> result;
    for (int i = 0; i < R; ++i)
        for (int j = 0; j < C; ++j) {
            T sum = T();
            for (int k = 0; k < K; ++k) sum = sum + a(i, k) * b(k, j);
            result(i, j) = sum;
        }
    return result;
}

#define WP_VECTORS(suffix, T)                      \
    typedef native::value<vec<2, T>> vec2##suffix; \
    typedef native::value<vec<3, T>> vec3##suffix; \
    typedef native::value<vec<4, T>> vec4##suffix;
WP_VECTORS(b, int8)
WP_VECTORS(ub, uint8)
WP_VECTORS(s, int16)
WP_VECTORS(us, uint16)
WP_VECTORS(i, int32)
WP_VECTORS(ui, uint32)
WP_VECTORS(l, int64)
WP_VECTORS(ul, uint64)
#undef WP_VECTORS
#define WP_FLOAT_TYPES(suffix, T)                                \
    typedef native::value<vec<2, T>> vec2##suffix;               \
    typedef native::value<vec<3, T>> vec3##suffix;               \
    typedef native::value<vec<4, T>> vec4##suffix;               \
    typedef native::value<vec<6, T>> spatial_vector##suffix;     \
    typedef native::value<mat<2, 2, T>> mat22##suffix;           \
    typedef native::value<mat<3, 3, T>> mat33##suffix;           \
    typedef native::value<mat<4, 4, T>> mat44##suffix;           \
    typedef native::value<mat<6, 6, T>> spatial_matrix##suffix;  \
    typedef native::value<quat<T>> quat##suffix;                 \
    typedef native::value<transform<T>> transform##suffix;
WP_FLOAT_TYPES(f, float)
WP_FLOAT_TYPES(d, double)
#undef WP_FLOAT_TYPES
typedef vec2f vec2;
typedef vec3f vec3;
typedef vec4f vec4;
typedef mat22f mat22;
typedef mat33f mat33;
typedef mat44f mat44;
typedef spatial_vectorf spatial_vector;
typedef spatial_matrixf spatial_matrix;

}  // namespace wp

#endif
