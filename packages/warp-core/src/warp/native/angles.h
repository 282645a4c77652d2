// Angles of rotations: axis and angle, Euler angles (Bernardes and Viollet 2022), twists.
#ifndef WP_ANGLES_H
#define WP_ANGLES_H
#include "core.h"
#include "linalg.h"
#include "rotation.h"
#include "scalar.h"

namespace wp {

template <class T> WP_FN void quat_to_axis_angle(const quat<T>& q, vec<3, T>& axis, T& angle) {
    const quat<T> near = q.c[3] < (T)0 ? tensor_neg(q) : q;
    const vec<3, T> v = quat_vector(near);
    axis = normalize(v);
    angle = (T)2 * atan2(length(v), near.c[3]);
}

WP_FN int axis_number(int32 axis) {
    const int rest = axis % 3;
    return rest < 0 ? rest + 3 : rest;
}
template <class T> WP_FN quat<T> quat_about(T angle, int axis) {
    const T half_angle = angle * (T)0.5;
    quat<T> result = {};
    result.c[axis] = sin(half_angle);
    result.c[3] = cos(half_angle);
    return result;
}
template <class T> WP_FN quat<T> quat_from_euler(const vec<3, T>& e, int32 first, int32 second, int32 third) {
    const int i = axis_number(first), j = axis_number(second), k = axis_number(third);
    return mul_quats(quat_about(e.c[k], k), mul_quats(quat_about(e.c[j], j), quat_about(e.c[i], i)));
}
template <class T>
WP_FN T turned_about(int axis, const quat<T>& left, const quat<T>& right, const quat<T>& adj) {
    quat<T> pure = {};
    pure.c[axis] = (T)0.5;
    return tensor_dot(adj, mul_quats(mul_quats(left, pure), right));
}
template <class T>
WP_FN vec<3, T> quat_from_euler_adjoint(
    const vec<3, T>& e, int32 first, int32 second, int32 third, const quat<T>& adj) {
    const int i = axis_number(first), j = axis_number(second), k = axis_number(third);
    const quat<T> a = quat_about(e.c[i], i), b = quat_about(e.c[j], j), c = quat_about(e.c[k], k);
    vec<3, T> result = {};
    result.c[i] = result.c[i] + turned_about(i, mul_quats(c, b), a, adj);
    result.c[j] = result.c[j] + turned_about(j, c, mul_quats(b, a), adj);
    result.c[k] = result.c[k] + turned_about(k, quat_identity<T>(), mul_quats(c, mul_quats(b, a)), adj);
    return result;
}

template <class T> struct euler_parts {
    int i, j, k, last;
    bool is_proper;
    T sign, a, b, c, d;
};
template <class T> WP_FN euler_parts<T> euler_parts_of(const quat<T>& q, int32 first, int32 second, int32 third) {
    euler_parts<T> p;
    p.i = axis_number(first), p.j = axis_number(second), p.k = axis_number(third);
    // Two equal axes in a row are no sequence; their last axis is kept in range.
    p.last = p.i == p.j ? p.k : 3 - p.i - p.j;
    p.is_proper = p.i == p.k;
    p.sign = (T)(float)((p.i - p.j) * (p.j - p.last) * (p.last - p.i) / 2);
    const T w = q.c[3], x = q.c[p.i], y = q.c[p.j], z = q.c[p.is_proper ? p.last : p.k] * p.sign;
    p.a = p.is_proper ? w : w - y;
    p.b = p.is_proper ? x : x + z;
    p.c = p.is_proper ? y : y + w;
    p.d = p.is_proper ? z : z - x;
    return p;
}
template <class T> WP_FN vec<3, T> quat_to_euler(const quat<T>& q, int32 first, int32 second, int32 third) {
    const euler_parts<T> p = euler_parts_of(q, first, second, third);
    const T total = atan2(p.b, p.a), difference = atan2(p.d, p.c);
    const T tilt = (T)2 * atan2(sqrt(p.c * p.c + p.d * p.d), sqrt(p.a * p.a + p.b * p.b));
    const T turn = total + difference;
    vec<3, T> result = {};
    result.c[p.i] = total - difference;
    result.c[p.j] = p.is_proper ? tilt : tilt - (T)1.5707963267948966;
    result.c[p.last] = p.is_proper ? turn : turn * p.sign;
    return result;
}
template <class T> WP_FN vec<3, T> quat_to_rpy(const quat<T>& q) {
    vec<3, T> result = quat_to_euler(q, 0, 1, 2);
    const T half_turn = (T)3.141592653589793, turn = (T)6.283185307179586;
    for (int i = 0; i < 3; ++i) {
        const T angle = result.c[i];
        result.c[i] = angle > half_turn ? angle - turn : angle < -half_turn ? angle + turn : angle;
    }
    return result;
}
template <class T> WP_FN void turn_slopes(T y, T x, T adj, T& adj_y, T& adj_x) {
    const T square = x * x + y * y;
    const bool is_null = !(square > (T)0);
    adj_y = is_null ? square : adj * x / square;
    adj_x = is_null ? square : -adj * y / square;
}
template <class T>
WP_FN quat<T> quat_to_euler_adjoint(
    const quat<T>& q, int32 first, int32 second, int32 third, const vec<3, T>& adj) {
    const euler_parts<T> p = euler_parts_of(q, first, second, third);
    const T turn = p.is_proper ? adj.c[p.last] : adj.c[p.last] * p.sign;
    T adj_a, adj_b, adj_c, adj_d, adj_upper, adj_lower;
    turn_slopes<T>(p.b, p.a, turn + adj.c[p.i], adj_b, adj_a);
    turn_slopes<T>(p.d, p.c, turn - adj.c[p.i], adj_d, adj_c);
    const T upper = sqrt(p.c * p.c + p.d * p.d), lower = sqrt(p.a * p.a + p.b * p.b);
    turn_slopes<T>(upper, lower, (T)2 * adj.c[p.j], adj_upper, adj_lower);
    if (upper > (T)0) adj_c = adj_c + adj_upper * p.c / upper, adj_d = adj_d + adj_upper * p.d / upper;
    if (lower > (T)0) adj_a = adj_a + adj_lower * p.a / lower, adj_b = adj_b + adj_lower * p.b / lower;
    quat<T> result = {};
    if (p.is_proper) {
        result.c[3] = adj_a, result.c[p.i] = adj_b, result.c[p.j] = adj_c, result.c[p.last] = adj_d * p.sign;
    } else {
        result.c[3] = adj_a + adj_c, result.c[p.j] = adj_c - adj_a;
        result.c[p.i] = adj_b - adj_d, result.c[p.k] = (adj_b + adj_d) * p.sign;
    }
    return result;
}

template <class T> WP_FN quat<T> unscaled_twist(const vec<3, T>& axis, const quat<T>& q) {
    return quat_join(tensor_scale(axis, tensor_dot(axis, quat_vector(q))), q.c[3]);
}
template <class T> WP_FN T quat_twist_angle_signed(const vec<3, T>& axis, const quat<T>& q) {
    return (T)2 * atan2(tensor_dot(axis, quat_vector(q)), q.c[3]);
}

template <class T> WP_FN quat<T> unscaled_between(const vec<3, T>& a, const vec<3, T>& b) {
    const T real = (T)1 + tensor_dot(a, b);
    if ((double)real > 1e-6) return quat_join(cross(a, b), real);
    const bool is_off_x = (double)abs(a.c[0]) < 0.6;
    const vec<3, T> axis = vec3_of<T>((T)(is_off_x ? 1 : 0), (T)(is_off_x ? 0 : 1), (T)0);
    return quat_join(cross(a, axis), (T)0);
}
template <class T> WP_FN quat<T> quat_between_vectors(const vec<3, T>& a, const vec<3, T>& b) {
    return normalize(unscaled_between(normalize(a), normalize(b)));
}

}  // namespace wp

#endif
