// Decompositions of small matrices: cyclic Jacobi rotations until they change nothing, Gram and Schmidt twice.
// float16 is computed in float. The adjoints are those of Townsend (2016) and of Walter and Lehmann (2018); pairs of
// values that are equal within a relative 1e-6 contribute nothing through their vectors.
#ifndef WP_DECOMPOSE_H
#define WP_DECOMPOSE_H
#include "core.h"
#include "linalg.h"
#include "scalar.h"

namespace wp {

template <class T> struct wide_of_ {
    typedef float type;
};
template <> struct wide_of_<double> {
    typedef double type;
};
template <class T> using wide_of = typename wide_of_<T>::type;

template <class T> WP_FN mat<3, 3, T> columns3(const vec<3, T>& a, const vec<3, T>& b, const vec<3, T>& c) {
    mat<3, 3, T> result;
    for (int i = 0; i < 3; ++i) result.c[i * 3] = a.c[i], result.c[i * 3 + 1] = b.c[i], result.c[i * 3 + 2] = c.c[i];
    return result;
}
template <int N, class T> WP_FN vec<N, T> column_of(const mat<N, N, T>& m, int j) {
    vec<N, T> result;
    for (int i = 0; i < N; ++i) result.c[i] = m.c[i * N + j];
    return result;
}
template <int N, class T> WP_FN void negate_column(mat<N, N, T>& m, int j) {
    for (int i = 0; i < N; ++i) m.c[i * N + j] = -m.c[i * N + j];
}
template <int N, class T> WP_FN void swap_columns(mat<N, N, T>& m, int j, int k) {
    for (int i = 0; i < N; ++i) {
        const T kept = m.c[i * N + j];
        m.c[i * N + j] = m.c[i * N + k];
        m.c[i * N + k] = kept;
    }
}
// Negates columns until the largest element of all but the last is positive, and then the determinant.
template <int N, class T> WP_FN void orient(mat<N, N, T>& m) {
    for (int j = 0; j < N - 1; ++j) {
        const vec<N, T> column = column_of(m, j);
        int largest = 0;
        for (int i = 1; i < N; ++i)
            if (abs(column.c[i]) > abs(column.c[largest])) largest = i;
        if (column.c[largest] < (T)0) negate_column(m, j);
    }
    if (determinant(m) < (T)0) negate_column(m, N - 1);
}

// One-sided Jacobi: turns pairs of columns of `a` until they are orthogonal, and those of `v` with them.
template <int N, class T> WP_FN void orthogonalize(mat<N, N, T>& a, mat<N, N, T>& v) {
    for (int sweep = 0; sweep < 16; ++sweep) {
        bool is_done = true;
        for (int p = 0; p < N - 1; ++p)
            for (int q = p + 1; q < N; ++q) {
                T pp = (T)0, qq = (T)0, pq = (T)0;
                for (int i = 0; i < N; ++i) {
                    pp += a.c[i * N + p] * a.c[i * N + p];
                    qq += a.c[i * N + q] * a.c[i * N + q];
                    pq += a.c[i * N + p] * a.c[i * N + q];
                }
                const T epsilon = is_same<T, double> ? (T)1e-16 : (T)6e-8;
                if (!(abs(pq) > epsilon * sqrt(pp) * sqrt(qq))) continue;
                is_done = false;
                const T zeta = (qq - pp) / ((T)2 * pq);
                const T t = (zeta < (T)0 ? (T)-1 : (T)1) / (abs(zeta) + sqrt((T)1 + zeta * zeta));
                const T c = (T)1 / sqrt((T)1 + t * t), s = c * t;
                for (int i = 0; i < N; ++i) {
                    const T ap = a.c[i * N + p], aq = a.c[i * N + q], vp = v.c[i * N + p], vq = v.c[i * N + q];
                    a.c[i * N + p] = c * ap - s * aq;
                    a.c[i * N + q] = s * ap + c * aq;
                    v.c[i * N + p] = c * vp - s * vq;
                    v.c[i * N + q] = s * vp + c * vq;
                }
            }
        if (is_done) return;
    }
}
// Sorts by `size` descending with the columns of both matrices.
template <int N, class T> WP_FN void sort_columns(vec<N, T>& size, mat<N, N, T>& a, mat<N, N, T>& b) {
    for (int j = 0; j < N - 1; ++j)
        for (int k = j + 1; k < N; ++k)
            if (size.c[k] > size.c[j]) {
                const T kept = size.c[j];
                size.c[j] = size.c[k], size.c[k] = kept;
                swap_columns(a, j, k);
                swap_columns(b, j, k);
            }
}
template <class T> WP_FN vec<3, T> any_orthogonal(const vec<3, T>& a) {
    const vec<3, T> axis = abs(a.c[0]) < (T)0.6 ? vec3_of<T>((T)1, (T)0, (T)0) : vec3_of<T>((T)0, (T)1, (T)0);
    return normalize(cross(a, axis));
}

template <class T> WP_FN void svd3_wide(mat<3, 3, T> a, mat<3, 3, T>& u, vec<3, T>& sigma, mat<3, 3, T>& v) {
    v = scaled_identity((T)1, a);
    orthogonalize(a, v);
    for (int j = 0; j < 3; ++j) sigma.c[j] = length(column_of(a, j));
    sort_columns(sigma, a, v);
    const mat<3, 3, T> turned = v;
    orient(v);
    for (int j = 0; j < 3; ++j)
        if (tensor_dot(column_of(turned, j), column_of(v, j)) < (T)0) negate_column(a, j);
    // Columns that rounding has left no direction are replaced by orthogonal ones.
    const T least = sigma.c[0] * (is_same<T, double> ? (T)1e-14 : (T)1e-6);
    const vec<3, T> first = sigma.c[0] > (T)0 ? normalize(column_of(a, 0)) : column_of(v, 0);
    vec<3, T> second = any_orthogonal(first);
    if (sigma.c[1] > least) {
        const vec<3, T> b = column_of(a, 1);
        second = normalize(tensor_sub(b, tensor_scale(first, tensor_dot(first, b))));
    }
    const vec<3, T> third = cross(first, second);
    sigma.c[2] = tensor_dot(third, column_of(a, 2));
    u = columns3(first, second, third);
}
template <class T> WP_FN void svd2_wide(mat<2, 2, T> a, mat<2, 2, T>& u, vec<2, T>& sigma, mat<2, 2, T>& v) {
    v = scaled_identity((T)1, a);
    orthogonalize(a, v);
    for (int j = 0; j < 2; ++j) sigma.c[j] = length(column_of(a, j));
    sort_columns(sigma, a, v);
    const mat<2, 2, T> turned = v;
    orient(v);
    for (int j = 0; j < 2; ++j)
        if (tensor_dot(column_of(turned, j), column_of(v, j)) < (T)0) negate_column(a, j);
    const bool is_null = !(sigma.c[0] > (T)0);
    const T x = is_null ? v.c[0] : a.c[0] / sigma.c[0], y = is_null ? v.c[2] : a.c[2] / sigma.c[0];
    const T along = x * a.c[3] - y * a.c[1], sign = along < (T)0 ? (T)-1 : (T)1;
    u.c[0] = x, u.c[2] = y;
    u.c[1] = -sign * y, u.c[3] = sign * x;
    sigma.c[1] = abs(along);
}
template <class T> WP_FN void eig3_wide(const mat<3, 3, T>& m, mat<3, 3, T>& q, vec<3, T>& d) {
    mat<3, 3, T> a;
    for (int i = 0; i < 3; ++i)
        for (int j = 0; j < 3; ++j) a.c[i * 3 + j] = (m.c[i * 3 + j] + m.c[j * 3 + i]) * (T)0.5;
    q = scaled_identity((T)1, a);
    for (int sweep = 0; sweep < 16; ++sweep) {
        bool is_done = true;
        for (int p = 0; p < 2; ++p)
            for (int r = p + 1; r < 3; ++r) {
                const T off = a.c[p * 3 + r];
                const T epsilon = is_same<T, double> ? (T)1e-17 : (T)1e-9;
                if (!(abs(off) > epsilon * (abs(a.c[0]) + abs(a.c[4]) + abs(a.c[8])))) continue;
                is_done = false;
                const T theta = (a.c[r * 4] - a.c[p * 4]) / ((T)2 * off);
                const T t = (theta < (T)0 ? (T)-1 : (T)1) / (abs(theta) + sqrt((T)1 + theta * theta));
                const T c = (T)1 / sqrt((T)1 + t * t), s = c * t;
                mat<3, 3, T> turn = scaled_identity((T)1, a);
                turn.c[p * 4] = c, turn.c[r * 4] = c;
                turn.c[p * 3 + r] = s, turn.c[r * 3 + p] = -s;
                a = mul_matrices(transpose(turn), mul_matrices(a, turn));
                a.c[p * 3 + r] = a.c[r * 3 + p] = (T)0;
                q = mul_matrices(q, turn);
            }
        if (is_done) break;
    }
    d = get_diag(a);
    mat<3, 3, T> unused = a;
    sort_columns(d, q, unused);
    orient(q);
}
template <class T> WP_FN void qr3_wide(const mat<3, 3, T>& a, mat<3, 3, T>& q, mat<3, 3, T>& r) {
    const vec<3, T> a0 = column_of(a, 0), a1 = column_of(a, 1);
    const vec<3, T> first = length(a0) > (T)0 ? normalize(a0) : vec3_of<T>((T)1, (T)0, (T)0);
    vec<3, T> rest = tensor_sub(a1, tensor_scale(first, tensor_dot(first, a1)));
    rest = tensor_sub(rest, tensor_scale(first, tensor_dot(first, rest)));
    const T least = length(a1) * (is_same<T, double> ? (T)1e-15 : (T)1e-7);
    const vec<3, T> second = length(rest) > least ? normalize(rest) : any_orthogonal(first);
    q = columns3(first, second, cross(first, second));
    r = mul_matrices(transpose(q), a);
    r.c[3] = r.c[6] = r.c[7] = (T)0;
}

template <int N, class T> WP_FN T largest_size(const vec<N, T>& values) {
    T scale = (T)0;
    for (int k = 0; k < N; ++k) scale = max(scale, abs(values.c[k]));
    return scale;
}
template <class T> WP_FN T inverse_unless_small(T difference, T scale) {
    return abs(difference) > (T)1e-6 * scale ? (T)1 / difference : (T)0;
}
// What depends on U V^T alone passes through the sums of singular values, which equal ones do not disturb.
template <int N, class T>
WP_FN mat<N, N, T> svd_adjoint_wide(
    const mat<N, N, T>& u, const vec<N, T>& sigma, const mat<N, N, T>& v, const mat<N, N, T>& adj_u,
    const vec<N, T>& adj_sigma, const mat<N, N, T>& adj_v) {
    const mat<N, N, T> left = mul_matrices(transpose(u), adj_u), right = mul_matrices(transpose(v), adj_v);
    const T scale = largest_size(sigma);
    mat<N, N, T> inner;
    for (int i = 0; i < N; ++i)
        for (int j = 0; j < N; ++j) {
            const T l = (left.c[i * N + j] - left.c[j * N + i]) * (T)0.5;
            const T r = (right.c[i * N + j] - right.c[j * N + i]) * (T)0.5;
            const T by_difference = (l + r) * inverse_unless_small(sigma.c[j] - sigma.c[i], scale);
            const T by_sum = (l - r) * inverse_unless_small(sigma.c[j] + sigma.c[i], scale);
            inner.c[i * N + j] = (i == j ? adj_sigma.c[i] : (T)0) + by_difference + by_sum;
        }
    return mul_matrices(mul_matrices(u, inner), transpose(v));
}
template <class T>
WP_FN mat<3, 3, T> eig_adjoint_wide(
    const mat<3, 3, T>& q, const vec<3, T>& d, const mat<3, 3, T>& adj_q, const vec<3, T>& adj_d) {
    mat<3, 3, T> inner = mul_matrices(transpose(q), adj_q);
    const T scale = largest_size(d);
    for (int i = 0; i < 3; ++i)
        for (int j = 0; j < 3; ++j)
            inner.c[i * 3 + j] = i == j ? adj_d.c[i] : inverse_unless_small(d.c[j] - d.c[i], scale) * inner.c[i * 3 + j];
    const mat<3, 3, T> full = mul_matrices(mul_matrices(q, inner), transpose(q));
    return tensor_scale(tensor_add(full, transpose(full)), (T)0.5);
}
template <class T>
WP_FN mat<3, 3, T> qr_adjoint_wide(
    const mat<3, 3, T>& q, const mat<3, 3, T>& r, const mat<3, 3, T>& adj_q, const mat<3, 3, T>& adj_r) {
    mat<3, 3, T> result = {}, upper = adj_r;
    if (r.c[0] * r.c[4] * r.c[8] == (T)0) return result;
    upper.c[3] = upper.c[6] = upper.c[7] = (T)0;
    mat<3, 3, T> m = tensor_sub(mul_matrices(r, transpose(upper)), mul_matrices(transpose(adj_q), q));
    m.c[1] = m.c[3], m.c[2] = m.c[6], m.c[5] = m.c[7];
    const mat<3, 3, T> b = tensor_add(adj_q, mul_matrices(q, m));
    // Each row x of the result solves R x = row of b.
    for (int i = 0; i < 3; ++i) {
        const T* row = b.c + i * 3;
        const T z = row[2] / r.c[8], y = (row[1] - r.c[5] * z) / r.c[4];
        result.c[i * 3 + 2] = z;
        result.c[i * 3 + 1] = y;
        result.c[i * 3] = (row[0] - r.c[1] * y - r.c[2] * z) / r.c[0];
    }
    return result;
}

#define WP_WIDE_MAT(N) mat<N, N, wide_of<T>>
#define WP_WIDE_VEC(N) vec<N, wide_of<T>>
template <class T> WP_FN void svd3(const mat<3, 3, T>& a, mat<3, 3, T>& u, vec<3, T>& sigma, mat<3, 3, T>& v) {
    WP_WIDE_MAT(3) wide_u, wide_v;
    WP_WIDE_VEC(3) wide_sigma;
    svd3_wide(cast_all<WP_WIDE_MAT(3)>(a), wide_u, wide_sigma, wide_v);
    u = cast_all<mat<3, 3, T>>(wide_u);
    sigma = cast_all<vec<3, T>>(wide_sigma);
    v = cast_all<mat<3, 3, T>>(wide_v);
}
template <class T> WP_FN void svd2(const mat<2, 2, T>& a, mat<2, 2, T>& u, vec<2, T>& sigma, mat<2, 2, T>& v) {
    WP_WIDE_MAT(2) wide_u, wide_v;
    WP_WIDE_VEC(2) wide_sigma;
    svd2_wide(cast_all<WP_WIDE_MAT(2)>(a), wide_u, wide_sigma, wide_v);
    u = cast_all<mat<2, 2, T>>(wide_u);
    sigma = cast_all<vec<2, T>>(wide_sigma);
    v = cast_all<mat<2, 2, T>>(wide_v);
}
template <class T> WP_FN void eig3(const mat<3, 3, T>& a, mat<3, 3, T>& q, vec<3, T>& d) {
    WP_WIDE_MAT(3) wide_q;
    WP_WIDE_VEC(3) wide_d;
    eig3_wide(cast_all<WP_WIDE_MAT(3)>(a), wide_q, wide_d);
    q = cast_all<mat<3, 3, T>>(wide_q);
    d = cast_all<vec<3, T>>(wide_d);
}
template <class T> WP_FN void qr3(const mat<3, 3, T>& a, mat<3, 3, T>& q, mat<3, 3, T>& r) {
    WP_WIDE_MAT(3) wide_q, wide_r;
    qr3_wide(cast_all<WP_WIDE_MAT(3)>(a), wide_q, wide_r);
    q = cast_all<mat<3, 3, T>>(wide_q);
    r = cast_all<mat<3, 3, T>>(wide_r);
}
template <int N, class T>
WP_FN mat<N, N, T> svd_adjoint(
    const mat<N, N, T>& u, const vec<N, T>& sigma, const mat<N, N, T>& v, const mat<N, N, T>& adj_u,
    const vec<N, T>& adj_sigma, const mat<N, N, T>& adj_v) {
    typedef WP_WIDE_MAT(N) M;
    typedef WP_WIDE_VEC(N) V;
    return cast_all<mat<N, N, T>>(svd_adjoint_wide(
        cast_all<M>(u), cast_all<V>(sigma), cast_all<M>(v), cast_all<M>(adj_u), cast_all<V>(adj_sigma),
        cast_all<M>(adj_v)));
}
template <class T>
WP_FN mat<3, 3, T> eig_adjoint(
    const mat<3, 3, T>& q, const vec<3, T>& d, const mat<3, 3, T>& adj_q, const vec<3, T>& adj_d) {
    typedef WP_WIDE_MAT(3) M;
    typedef WP_WIDE_VEC(3) V;
    return cast_all<mat<3, 3, T>>(
        eig_adjoint_wide(cast_all<M>(q), cast_all<V>(d), cast_all<M>(adj_q), cast_all<V>(adj_d)));
}
template <class T>
WP_FN mat<3, 3, T> qr_adjoint(
    const mat<3, 3, T>& q, const mat<3, 3, T>& r, const mat<3, 3, T>& adj_q, const mat<3, 3, T>& adj_r) {
    typedef WP_WIDE_MAT(3) M;
    return cast_all<mat<3, 3, T>>(
        qr_adjoint_wide(cast_all<M>(q), cast_all<M>(r), cast_all<M>(adj_q), cast_all<M>(adj_r)));
}
#undef WP_WIDE_MAT
#undef WP_WIDE_VEC

}  // namespace wp

#endif
