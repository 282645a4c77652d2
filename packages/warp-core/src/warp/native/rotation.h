// Quaternions (x, y, z, w) and rigid transforms (translation, then rotation).
#ifndef WP_ROTATION_H
#define WP_ROTATION_H
#include "core.h"
#include "linalg.h"
#include "scalar.h"

namespace wp {

template <class T> WP_FN quat<T> quat_of(T x, T y, T z, T w) {
    quat<T> result;
    result.c[0] = x;
    result.c[1] = y;
    result.c[2] = z;
    result.c[3] = w;
    return result;
}
template <class T> WP_FN quat<T> quat_join(const vec<3, T>& v, T w) { return quat_of<T>(v.c[0], v.c[1], v.c[2], w); }
template <class T> WP_FN vec<3, T> quat_vector(const quat<T>& q) { return vec3_of<T>(q.c[0], q.c[1], q.c[2]); }
template <class T> WP_FN quat<T> quat_identity() { return quat_of<T>((T)0, (T)0, (T)0, (T)1); }
template <class T> WP_FN quat<T> quat_inverse(const quat<T>& q) { return quat_of<T>(-q.c[0], -q.c[1], -q.c[2], q.c[3]); }

template <class T> WP_FN quat<T> mul_quats(const quat<T>& a, const quat<T>& b) {
    const T ax = a.c[0], ay = a.c[1], az = a.c[2], aw = a.c[3];
    const T bx = b.c[0], by = b.c[1], bz = b.c[2], bw = b.c[3];
    return quat_of<T>(
        aw * bx + bw * ax + ay * bz - by * az,
        aw * by + bw * ay + az * bx - bz * ax,
        aw * bz + bw * az + ax * by - bx * ay,
        aw * bw - ax * bx - ay * by - az * bz);
}

template <class T> WP_FN quat<T> quat_from_axis_angle(const vec<3, T>& axis, T angle) {
    const T half_angle = angle * (T)0.5;
    return quat_join(tensor_scale(axis, sin(half_angle)), cos(half_angle));
}

// v (2 w^2 - 1) + 2 w (u x v) + 2 u (u . v) for q = (u, w).
template <class T> WP_FN vec<3, T> quat_rotate(const quat<T>& q, const vec<3, T>& v) {
    const vec<3, T> u = quat_vector(q);
    const T w = q.c[3], two = (T)2;
    const vec<3, T> turned = tensor_add(tensor_scale(v, two * w * w - (T)1), tensor_scale(cross(u, v), two * w));
    return tensor_add(turned, tensor_scale(u, two * tensor_dot(u, v)));
}

template <class T> WP_FN mat<3, 3, T> quat_to_matrix(const quat<T>& q) {
    mat<3, 3, T> result;
    for (int j = 0; j < 3; ++j) {
        const vec<3, T> axis = quat_rotate(q, vec3_of<T>((T)(j == 0 ? 1 : 0), (T)(j == 1 ? 1 : 0), (T)(j == 2 ? 1 : 0)));
        for (int i = 0; i < 3; ++i) result.c[i * 3 + j] = axis.c[i];
    }
    return result;
}

// Which component is safely away from 0: 3 (the real part) if the trace is positive, else the largest.
template <class T> WP_FN int matrix_case(const mat<3, 3, T>& m) {
    if (m.c[0] + m.c[4] + m.c[8] > (T)0) return 3;
    const int largest = m.c[4] > m.c[0] ? 1 : 0;
    return m.c[8] > m.c[largest * 4] ? 2 : largest;
}
template <class T> WP_FN quat<T> quat_unscaled_from_matrix(const mat<3, 3, T>& m) {
    const int i = matrix_case(m);
    if (i == 3) return quat_join(axial(m), (T)1 + m.c[0] + m.c[4] + m.c[8]);
    const int j = (i + 1) % 3, k = (i + 2) % 3;
    quat<T> result;
    result.c[i] = (T)1 + m.c[i * 4] - m.c[j * 4] - m.c[k * 4];
    result.c[j] = m.c[i * 3 + j] + m.c[j * 3 + i];
    result.c[k] = m.c[i * 3 + k] + m.c[k * 3 + i];
    result.c[3] = m.c[k * 3 + j] - m.c[j * 3 + k];
    return result;
}
template <class T> WP_FN mat<3, 3, T> quat_unscaled_from_matrix_adjoint(const mat<3, 3, T>& m, const quat<T>& adj) {
    const int i = matrix_case(m);
    mat<3, 3, T> result;
    if (i == 3) {
        result = skew(quat_vector(adj));
        for (int d = 0; d < 3; ++d) result.c[d * 4] = adj.c[3];
        return result;
    }
    const int j = (i + 1) % 3, k = (i + 2) % 3;
    result.c[i * 4] = adj.c[i];
    result.c[j * 4] = result.c[k * 4] = -adj.c[i];
    result.c[i * 3 + j] = result.c[j * 3 + i] = adj.c[j];
    result.c[i * 3 + k] = result.c[k * 3 + i] = adj.c[k];
    result.c[k * 3 + j] = adj.c[3];
    result.c[j * 3 + k] = -adj.c[3];
    return result;
}

template <class T> WP_FN quat<T> quat_rpy(T roll, T pitch, T yaw) {
    const T cr = cos(roll * (T)0.5), sr = sin(roll * (T)0.5);
    const T cp = cos(pitch * (T)0.5), sp = sin(pitch * (T)0.5);
    const T cy = cos(yaw * (T)0.5), sy = sin(yaw * (T)0.5);
    return quat_of<T>(
        sr * cp * cy - cr * sp * sy,
        cr * sp * cy + sr * cp * sy,
        cr * cp * sy - sr * sp * cy,
        cr * cp * cy + sr * sp * sy);
}

// q^t for a quaternion of length 1, the shorter way round.
template <class T> WP_FN quat<T> quat_power(const quat<T>& q, T t) {
    const quat<T> near = q.c[3] < (T)0 ? tensor_neg(q) : q;
    const vec<3, T> v = quat_vector(near);
    const T size = length(v), angle = atan2(size, near.c[3]);
    const T scale = size > (T)0 ? sin(t * angle) / size : t;
    return quat_join(tensor_scale(v, scale), cos(t * angle));
}
template <class T> WP_FN quat<T> quat_power_adjoint(const quat<T>& q, T t, const quat<T>& adj) {
    const T sign = q.c[3] < (T)0 ? (T)-1 : (T)1;
    const vec<3, T> v = tensor_scale(quat_vector(q), sign), adj_v = quat_vector(adj);
    const T w = q.c[3] * sign, square = tensor_dot(v, v), size = sqrt(square), norm = square + w * w;
    const T angle = atan2(size, w), sine = sin(t * angle), cosine = cos(t * angle);
    const bool is_turned = size > (T)0;
    const T scale = is_turned ? sine / size : t;
    const T curvature = is_turned ? (t * cosine * w / norm - scale) / square : (T)0;
    const T along = tensor_dot(v, adj_v);
    const T through_v = along * curvature - adj.c[3] * scale * t * w / norm;
    const T real = adj.c[3] * sine * t * size / norm - along * t * cosine / norm;
    return tensor_scale(quat_join(tensor_add(tensor_scale(adj_v, scale), tensor_scale(v, through_v)), real), sign);
}
template <class T> WP_FN quat<T> quat_power_slope(const quat<T>& q, T t) {
    const quat<T> near = q.c[3] < (T)0 ? tensor_neg(q) : q;
    const vec<3, T> v = quat_vector(near);
    const T size = length(v), angle = atan2(size, near.c[3]);
    const T scale = size > (T)0 ? angle / size : (T)1;
    return quat_join(tensor_scale(v, scale * cos(t * angle)), -angle * sin(t * angle));
}
template <class T> WP_FN quat<T> quat_slerp(const quat<T>& a, const quat<T>& b, T t) {
    return mul_quats(a, quat_power(mul_quats(quat_inverse(a), b), t));
}

template <class T> WP_FN transform<T> transform_join(const vec<3, T>& p, const quat<T>& q) {
    transform<T> result;
    for (int i = 0; i < 3; ++i) result.c[i] = p.c[i];
    for (int i = 0; i < 4; ++i) result.c[i + 3] = q.c[i];
    return result;
}
template <class T> WP_FN vec<3, T> transform_get_translation(const transform<T>& t) {
    return vec3_of<T>(t.c[0], t.c[1], t.c[2]);
}
template <class T> WP_FN quat<T> transform_get_rotation(const transform<T>& t) {
    return quat_of<T>(t.c[3], t.c[4], t.c[5], t.c[6]);
}
template <class T> WP_FN transform<T> transform_identity() {
    return transform_join(vec3_of<T>((T)0, (T)0, (T)0), quat_identity<T>());
}
template <class T> WP_FN vec<3, T> transform_point(const transform<T>& t, const vec<3, T>& point) {
    return tensor_add(transform_get_translation(t), quat_rotate(transform_get_rotation(t), point));
}
template <class T> WP_FN transform<T> mul_transforms(const transform<T>& a, const transform<T>& b) {
    return transform_join(
        transform_point(a, transform_get_translation(b)),
        mul_quats(transform_get_rotation(a), transform_get_rotation(b)));
}
template <class T> WP_FN transform<T> transform_inverse(const transform<T>& t) {
    const quat<T> inverse = quat_inverse(transform_get_rotation(t));
    return transform_join(tensor_neg(quat_rotate(inverse, transform_get_translation(t))), inverse);
}

}  // namespace wp

#endif
