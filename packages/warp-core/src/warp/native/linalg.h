// Vectors, matrices, and what works on the scalars of any tensor. Sums run from left to right.
#ifndef WP_LINALG_H
#define WP_LINALG_H
#include "core.h"
#include "operators.h"
#include "scalar.h"

namespace wp {

#define WP_COMPONENTS(name, parameters, expression)                     \
    template <class X> WP_FN X name parameters {                        \
        typedef typename X::scalar T;                                   \
        X result;                                                       \
        for (int i = 0; i < X::length; ++i) result.c[i] = (T)expression; \
        return result;                                                  \
    }
#define WP_SCALAR_OF(X) typename X::scalar
WP_COMPONENTS(tensor_add, (const X& a, const X& b), (a.c[i] + b.c[i]))
WP_COMPONENTS(tensor_sub, (const X& a, const X& b), (a.c[i] - b.c[i]))
WP_COMPONENTS(tensor_neg, (const X& a), (-a.c[i]))
WP_COMPONENTS(tensor_scale, (const X& a, WP_SCALAR_OF(X) s), (a.c[i] * s))
WP_COMPONENTS(tensor_div, (const X& a, WP_SCALAR_OF(X) s), div<T>(a.c[i], s))
WP_COMPONENTS(tensor_div_into, (WP_SCALAR_OF(X) s, const X& a), div<T>(s, a.c[i]))
WP_COMPONENTS(tensor_products, (const X& a, const X& b), (a.c[i] * b.c[i]))
WP_COMPONENTS(tensor_quotients, (const X& a, const X& b), div<T>(a.c[i], b.c[i]))
WP_COMPONENTS(tensor_min, (const X& a, const X& b), min<T>(a.c[i], b.c[i]))
WP_COMPONENTS(tensor_max, (const X& a, const X& b), max<T>(a.c[i], b.c[i]))
WP_COMPONENTS(tensor_abs, (const X& a), abs<T>(a.c[i]))
WP_COMPONENTS(tensor_sign, (const X& a), sign<T>(a.c[i]))
WP_COMPONENTS(tensor_lerp, (const X& a, const X& b, WP_SCALAR_OF(X) t), lerp<T>(a.c[i], b.c[i], t))
WP_COMPONENTS(tensor_strong_mul, (const X& adj, WP_SCALAR_OF(X) s), strong_mul<T>(adj.c[i], s))
WP_COMPONENTS(tensor_strong_scale, (WP_SCALAR_OF(X) adj, const X& a), strong_mul<T>(adj, a.c[i]))
WP_COMPONENTS(tensor_strong_products, (const X& adj, const X& a), strong_mul<T>(adj.c[i], a.c[i]))
WP_COMPONENTS(tensor_strong_div, (const X& adj, WP_SCALAR_OF(X) s), strong_div<T>(adj.c[i], s))
WP_COMPONENTS(tensor_strong_quotients, (const X& adj, const X& a), strong_div<T>(adj.c[i], a.c[i]))
WP_COMPONENTS(tensor_select_lt, (const X& a, const X& b, const X& x, const X& y), (a.c[i] < b.c[i] ? x.c[i] : y.c[i]))
WP_COMPONENTS(tensor_mod, (const X& a, const X& b), mod<T>(a.c[i], b.c[i]))
WP_COMPONENTS(tensor_whole_quotients, (const X& a, const X& b), (-trunc<T>(a.c[i] / b.c[i])))
WP_COMPONENTS(tensor_and, (const X& a, const X& b), (a.c[i] & b.c[i]))
WP_COMPONENTS(tensor_or, (const X& a, const X& b), (a.c[i] | b.c[i]))
WP_COMPONENTS(tensor_xor, (const X& a, const X& b), (a.c[i] ^ b.c[i]))
WP_COMPONENTS(tensor_invert, (const X& a), (~a.c[i]))
WP_COMPONENTS(tensor_shl, (const X& a, const X& b), shl<T>(a.c[i], b.c[i]))
WP_COMPONENTS(tensor_shr, (const X& a, const X& b), shr<T>(a.c[i], b.c[i]))
#undef WP_SCALAR_OF
#undef WP_COMPONENTS

template <class X> WP_FN bool tensor_eq(const X& a, const X& b) {
    bool result = true;
    for (int i = 0; i < X::length; ++i) result = result && a.c[i] == b.c[i];
    return result;
}
template <class X> WP_FN bool tensor_is_finite(const X& a) {
    bool result = true;
    for (int i = 0; i < X::length; ++i) result = result && isfinite(a.c[i]);
    return result;
}
template <class X> WP_FN bool tensor_has_nan(const X& a) {
    bool result = false;
    for (int i = 0; i < X::length; ++i) result = result || isnan(a.c[i]);
    return result;
}
template <class X> WP_FN bool tensor_has_inf(const X& a) {
    bool result = false;
    for (int i = 0; i < X::length; ++i) result = result || isinf(a.c[i]);
    return result;
}
template <class X> WP_FN bool tensor_is_zero(const X& a) {
    bool result = true;
    for (int i = 0; i < X::length; ++i) result = result && a.c[i] == (typename X::scalar)0;
    return result;
}

template <class X> WP_FN typename X::scalar tensor_dot(const X& a, const X& b) {
    typedef typename X::scalar T;
    T sum = (T)(a.c[0] * b.c[0]);
    for (int i = 1; i < X::length; ++i) sum = (T)(sum + (T)(a.c[i] * b.c[i]));
    return sum;
}
template <class X> WP_FN typename X::scalar tensor_strong_dot(const X& adj, const X& a) {
    auto sum = strong_mul(adj.c[0], a.c[0]);
    for (int i = 1; i < X::length; ++i) sum = sum + strong_mul(adj.c[i], a.c[i]);
    return sum;
}

template <class X> WP_FN typename X::scalar length(const X& a) { return sqrt(tensor_dot(a, a)); }
template <class X> WP_FN X normalize(const X& a) {
    const auto size = length(a);
    return size > (typename X::scalar)0 ? tensor_div(a, size) : tensor_scale(a, (typename X::scalar)0);
}

template <int N, class T> WP_FN uint32 argmin(const vec<N, T>& a) {
    int best = 0;
    for (int i = 1; i < N; ++i) best = a.c[i] < a.c[best] ? i : best;
    return (uint32)best;
}
template <int N, class T> WP_FN uint32 argmax(const vec<N, T>& a) {
    int best = 0;
    for (int i = 1; i < N; ++i) best = a.c[i] > a.c[best] ? i : best;
    return (uint32)best;
}

template <class T> WP_FN vec<3, T> vec3_of(T x, T y, T z) {
    vec<3, T> result;
    result.c[0] = x;
    result.c[1] = y;
    result.c[2] = z;
    return result;
}
template <class T> WP_FN vec<3, T> cross(const vec<3, T>& a, const vec<3, T>& b) {
    return vec3_of<T>(
        (T)(a.c[1] * b.c[2] - a.c[2] * b.c[1]),
        (T)(a.c[2] * b.c[0] - a.c[0] * b.c[2]),
        (T)(a.c[0] * b.c[1] - a.c[1] * b.c[0]));
}
template <class T> WP_FN mat<3, 3, T> skew(const vec<3, T>& v) {
    mat<3, 3, T> result = {};
    result.c[1] = -v.c[2], result.c[2] = v.c[1];
    result.c[3] = v.c[2], result.c[5] = -v.c[0];
    result.c[6] = -v.c[1], result.c[7] = v.c[0];
    return result;
}
template <class T> WP_FN vec<3, T> axial(const mat<3, 3, T>& m) {
    return vec3_of<T>(m.c[7] - m.c[5], m.c[2] - m.c[6], m.c[3] - m.c[1]);
}

template <class T> WP_FN vec<6, T> vector_join(const vec<3, T>& a, const vec<3, T>& b) {
    vec<6, T> result;
    for (int i = 0; i < 3; ++i) result.c[i] = a.c[i], result.c[i + 3] = b.c[i];
    return result;
}
template <int From, class T> WP_FN vec<3, T> spatial_half(const vec<6, T>& v) {
    return vec3_of<T>(v.c[From], v.c[From + 1], v.c[From + 2]);
}
template <class T> WP_FN vec<4, T> homogeneous(const vec<3, T>& v, T w) {
    vec<4, T> result;
    for (int i = 0; i < 3; ++i) result.c[i] = v.c[i];
    result.c[3] = w;
    return result;
}
template <class T> WP_FN vec<3, T> vector_head(const vec<4, T>& v) { return vec3_of<T>(v.c[0], v.c[1], v.c[2]); }

template <int R, int C, class T> WP_FN vec<R, T> mul_matrix_vector(const mat<R, C, T>& m, const vec<C, T>& v) {
    vec<R, T> result;
    for (int i = 0; i < R; ++i) {
        T sum = (T)(m.c[i * C] * v.c[0]);
        for (int j = 1; j < C; ++j) sum = (T)(sum + (T)(m.c[i * C + j] * v.c[j]));
        result.c[i] = sum;
    }
    return result;
}
template <int R, int C, class T> WP_FN vec<C, T> mul_vector_matrix(const vec<R, T>& v, const mat<R, C, T>& m) {
    vec<C, T> result;
    for (int j = 0; j < C; ++j) {
        T sum = (T)(v.c[0] * m.c[j]);
        for (int i = 1; i < R; ++i) sum = (T)(sum + (T)(v.c[i] * m.c[i * C + j]));
        result.c[j] = sum;
    }
    return result;
}
template <int R, int K, int C, class T> WP_FN mat<R, C, T> mul_matrices(const mat<R, K, T>& a, const mat<K, C, T>& b) {
    mat<R, C, T> result;
    for (int i = 0; i < R; ++i)
        for (int j = 0; j < C; ++j) {
            T sum = (T)(a.c[i * K] * b.c[j]);
            for (int k = 1; k < K; ++k) sum = (T)(sum + (T)(a.c[i * K + k] * b.c[k * C + j]));
            result.c[i * C + j] = sum;
        }
    return result;
}
template <class T> WP_FN vec<3, T> transform_affine(const mat<4, 4, T>& m, const vec<3, T>& v, T w) {
    return vector_head(mul_matrix_vector(m, homogeneous(v, w)));
}

template <int R, int C, class T> WP_FN mat<R, C, T> outer(const vec<R, T>& a, const vec<C, T>& b) {
    mat<R, C, T> result;
    for (int i = 0; i < R; ++i)
        for (int j = 0; j < C; ++j) result.c[i * C + j] = (T)(a.c[i] * b.c[j]);
    return result;
}
template <int R, int C, class T> WP_FN mat<C, R, T> transpose(const mat<R, C, T>& m) {
    mat<C, R, T> result;
    for (int i = 0; i < R; ++i)
        for (int j = 0; j < C; ++j) result.c[j * R + i] = m.c[i * C + j];
    return result;
}
template <int N, class T> WP_FN T trace(const mat<N, N, T>& m) {
    T sum = m.c[0];
    for (int i = 1; i < N; ++i) sum = (T)(sum + m.c[i * N + i]);
    return sum;
}
template <int N, class T> WP_FN mat<N, N, T> diag(const vec<N, T>& v) {
    mat<N, N, T> result = {};
    for (int i = 0; i < N; ++i) result.c[i * N + i] = v.c[i];
    return result;
}
template <int N, class T> WP_FN vec<N, T> get_diag(const mat<N, N, T>& m) {
    vec<N, T> result;
    for (int i = 0; i < N; ++i) result.c[i] = m.c[i * N + i];
    return result;
}
template <int N, class T> WP_FN mat<N, N, T> scaled_identity(T s, const mat<N, N, T>&) {
    mat<N, N, T> result = {};
    for (int i = 0; i < N; ++i) result.c[i * N + i] = s;
    return result;
}

// The rows and columns of a minor are taken in cyclic order, which carries the sign in odd sizes.
template <int N, class T> WP_FN T cofactor_at(const mat<N, N, T>& m, int row, int column) {
    auto at = [&](int i, int j) { return m.c[(row + i) % N * N + (column + j) % N]; };
    T minor;
    if constexpr (N == 2) {
        minor = at(1, 1);
    } else if constexpr (N == 3) {
        minor = at(1, 1) * at(2, 2) - at(1, 2) * at(2, 1);
    } else {
        minor = at(1, 1) * (at(2, 2) * at(3, 3) - at(2, 3) * at(3, 2)) -
            at(1, 2) * (at(2, 1) * at(3, 3) - at(2, 3) * at(3, 1)) +
            at(1, 3) * (at(2, 1) * at(3, 2) - at(2, 2) * at(3, 1));
    }
    return N % 2 == 0 && (row + column) % 2 ? -minor : minor;
}
template <int N, class T> WP_FN mat<N, N, T> cofactor(const mat<N, N, T>& m) {
    mat<N, N, T> result;
    for (int i = 0; i < N; ++i)
        for (int j = 0; j < N; ++j) result.c[i * N + j] = cofactor_at(m, i, j);
    return result;
}
// The determinant is linear in each row, so a cofactor changes by what replacing one row after the other gives.
template <int N, class T> WP_FN mat<N, N, T> cofactor_along(const mat<N, N, T>& m, const mat<N, N, T>& d) {
    mat<N, N, T> result = {};
    for (int row = 0; row < N; ++row) {
        mat<N, N, T> replaced = m;
        for (int j = 0; j < N; ++j) replaced.c[row * N + j] = d.c[row * N + j];
        for (int i = 0; i < N; ++i) {
            if (i == row) continue;
            for (int j = 0; j < N; ++j) result.c[i * N + j] = result.c[i * N + j] + cofactor_at(replaced, i, j);
        }
    }
    return result;
}
template <int N, class T> WP_FN T determinant(const mat<N, N, T>& m) {
    T sum = m.c[0] * cofactor_at(m, 0, 0);
    for (int j = 1; j < N; ++j) sum = sum + m.c[j] * cofactor_at(m, 0, j);
    return sum;
}
template <int N, class T> WP_FN mat<N, N, T> inverse(const mat<N, N, T>& m) {
    mat<N, N, T> result = {};
    const T scale = determinant(m);
    if (scale == (T)0) return result;
    for (int i = 0; i < N; ++i)
        for (int j = 0; j < N; ++j) result.c[i * N + j] = cofactor_at(m, j, i) / scale;
    return result;
}

}  // namespace wp

#endif
