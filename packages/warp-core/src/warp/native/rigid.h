// Transforms and 4 x 4 matrices, spatial algebra.
#ifndef WP_RIGID_H
#define WP_RIGID_H
#include "core.h"
#include "linalg.h"
#include "rotation.h"
#include "scalar.h"

namespace wp {

template <class T> WP_FN mat<4, 4, T> matrix_affine(const mat<3, 3, T>& linear, const vec<3, T>& translation, T corner) {
    mat<4, 4, T> result = {};
    for (int i = 0; i < 3; ++i) {
        for (int j = 0; j < 3; ++j) result.c[i * 4 + j] = linear.c[i * 3 + j];
        result.c[i * 4 + 3] = translation.c[i];
    }
    result.c[15] = corner;
    return result;
}
template <class T> WP_FN mat<3, 3, T> matrix_linear(const mat<4, 4, T>& m) {
    mat<3, 3, T> result;
    for (int i = 0; i < 3; ++i)
        for (int j = 0; j < 3; ++j) result.c[i * 3 + j] = m.c[i * 4 + j];
    return result;
}
template <class T> WP_FN vec<3, T> matrix_translation(const mat<4, 4, T>& m) {
    return vec3_of<T>(m.c[3], m.c[7], m.c[11]);
}
template <class T> WP_FN transform<T> transform_from_matrix(const mat<4, 4, T>& m) {
    return transform_join(matrix_translation(m), normalize(quat_unscaled_from_matrix(matrix_linear(m))));
}
template <class T> WP_FN mat<4, 4, T> transform_to_matrix(const transform<T>& t) {
    return matrix_affine(quat_to_matrix(transform_get_rotation(t)), transform_get_translation(t), (T)1);
}
template <class T>
WP_FN mat<4, 4, T> transform_compose(const vec<3, T>& position, const quat<T>& rotation, const vec<3, T>& scale) {
    mat<3, 3, T> linear = quat_to_matrix(rotation);
    for (int i = 0; i < 9; ++i) linear.c[i] = linear.c[i] * scale.c[i % 3];
    return matrix_affine(linear, position, (T)1);
}
template <class T>
WP_FN void transform_decompose(const mat<4, 4, T>& m, vec<3, T>& position, quat<T>& rotation, vec<3, T>& scale) {
    mat<3, 3, T> linear = matrix_linear(m);
    for (int j = 0; j < 3; ++j) scale.c[j] = length(vec3_of<T>(linear.c[j], linear.c[j + 3], linear.c[j + 6]));
    for (int i = 0; i < 9; ++i) linear.c[i] = linear.c[i] / scale.c[i % 3];
    position = matrix_translation(m);
    rotation = normalize(quat_unscaled_from_matrix(linear));
}

template <class T> WP_FN mat<6, 6, T> spatial_adjoint(const mat<3, 3, T>& r, const mat<3, 3, T>& s) {
    mat<6, 6, T> result = {};
    for (int i = 0; i < 3; ++i)
        for (int j = 0; j < 3; ++j) {
            result.c[i * 6 + j] = r.c[i * 3 + j];
            result.c[(i + 3) * 6 + j] = s.c[i * 3 + j];
            result.c[(i + 3) * 6 + j + 3] = r.c[i * 3 + j];
        }
    return result;
}
template <int Row, int Column, class T> WP_FN mat<3, 3, T> spatial_block(const mat<6, 6, T>& m) {
    mat<3, 3, T> result;
    for (int i = 0; i < 3; ++i)
        for (int j = 0; j < 3; ++j) result.c[i * 3 + j] = m.c[(i + Row) * 6 + j + Column];
    return result;
}
template <class T> WP_FN vec<6, T> spatial_cross(const vec<6, T>& a, const vec<6, T>& b) {
    const vec<3, T> wa = spatial_half<0>(a), va = spatial_half<3>(a), wb = spatial_half<0>(b), vb = spatial_half<3>(b);
    return vector_join(cross(wa, wb), tensor_add(cross(va, wb), cross(wa, vb)));
}
template <class T> WP_FN vec<6, T> spatial_cross_dual(const vec<6, T>& a, const vec<6, T>& b) {
    const vec<3, T> w = spatial_half<0>(a), v = spatial_half<3>(a), n = spatial_half<0>(b), f = spatial_half<3>(b);
    return vector_join(tensor_add(cross(w, n), cross(v, f)), cross(w, f));
}
template <class T> WP_FN vec<3, T> velocity_at_point(const vec<6, T>& qd, const vec<3, T>& r) {
    return tensor_add(spatial_half<3>(qd), cross(spatial_half<0>(qd), r));
}
template <class T> WP_FN vec<6, T> transform_twist(const transform<T>& t, const vec<6, T>& x) {
    const quat<T> q = transform_get_rotation(t);
    const vec<3, T> w = quat_rotate(q, spatial_half<0>(x)), v = quat_rotate(q, spatial_half<3>(x));
    return vector_join(w, tensor_add(v, cross(transform_get_translation(t), w)));
}
template <class T> WP_FN vec<6, T> transform_wrench(const transform<T>& t, const vec<6, T>& x) {
    const quat<T> q = transform_get_rotation(t);
    const vec<3, T> torque = quat_rotate(q, spatial_half<0>(x)), force = quat_rotate(q, spatial_half<3>(x));
    return vector_join(tensor_add(torque, cross(transform_get_translation(t), force)), force);
}

}  // namespace wp

#endif
