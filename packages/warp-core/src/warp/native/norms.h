// Norms of vectors.
#ifndef WP_NORMS_H
#define WP_NORMS_H
#include "core.h"
#include "linalg.h"
#include "scalar.h"

namespace wp {

template <int N, class T> WP_FN T norm_l1(const vec<N, T>& v) {
    T sum = abs(v.c[0]);
    for (int i = 1; i < N; ++i) sum = sum + abs(v.c[i]);
    return sum;
}
template <int N, class T> WP_FN T norm_huber(const vec<N, T>& v, T delta) {
    const T square = tensor_dot(v, v), one_half = (T)0.5;
    return square <= delta * delta ? one_half * square : delta * (sqrt(square) - one_half * delta);
}
template <int N, class T> WP_FN T norm_pseudo_huber(const vec<N, T>& v, T delta) {
    return delta * sqrt((T)1 + tensor_dot(v, v) / (delta * delta));
}
template <int N, class T> WP_FN vec<N, T> smooth_normalize(const vec<N, T>& v, T delta) {
    return tensor_div(v, norm_pseudo_huber(v, delta));
}

}  // namespace wp

#endif
