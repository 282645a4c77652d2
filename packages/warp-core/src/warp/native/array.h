// Elements of arrays by byte strides, and views.
#ifndef WP_ARRAY_H
#define WP_ARRAY_H
#include "abi.h"
#include "atomic.h"
#include "core.h"

namespace wp {

template <class T> WP_FN T& at(const wp_array& a, int64 i) { return *(T*)((char*)a.data + i * a.strides[0]); }
template <class T> WP_FN T& at(const wp_array& a, int64 i, int64 j) {
    return *(T*)((char*)a.data + i * a.strides[0] + j * a.strides[1]);
}
template <class T> WP_FN T& at(const wp_array& a, int64 i, int64 j, int64 k) {
    return *(T*)((char*)a.data + i * a.strides[0] + j * a.strides[1] + k * a.strides[2]);
}
template <class T> WP_FN T& at(const wp_array& a, int64 i, int64 j, int64 k, int64 l) {
    return *(T*)((char*)a.data + i * a.strides[0] + j * a.strides[1] + k * a.strides[2] + l * a.strides[3]);
}

template <class T> WP_FN T& grad_at(const wp_array& a, int64 i) { return *(T*)((char*)a.grad + i * a.grad_strides[0]); }
template <class T> WP_FN T& grad_at(const wp_array& a, int64 i, int64 j) {
    return *(T*)((char*)a.grad + i * a.grad_strides[0] + j * a.grad_strides[1]);
}
template <class T> WP_FN T& grad_at(const wp_array& a, int64 i, int64 j, int64 k) {
    return *(T*)((char*)a.grad + i * a.grad_strides[0] + j * a.grad_strides[1] + k * a.grad_strides[2]);
}
template <class T> WP_FN T& grad_at(const wp_array& a, int64 i, int64 j, int64 k, int64 l) {
    return *(T*)((char*)a.grad + i * a.grad_strides[0] + j * a.grad_strides[1] + k * a.grad_strides[2] +
                 l * a.grad_strides[3]);
}

WP_FN int64 position(const wp_indexed_array& a, int axis, int64 i) { return a.indices[axis] ? a.indices[axis][i] : i; }

template <class T> WP_FN T& at(const wp_indexed_array& a, int64 i) { return at<T>(a.base, position(a, 0, i)); }
template <class T> WP_FN T& at(const wp_indexed_array& a, int64 i, int64 j) {
    return at<T>(a.base, position(a, 0, i), position(a, 1, j));
}
template <class T> WP_FN T& at(const wp_indexed_array& a, int64 i, int64 j, int64 k) {
    return at<T>(a.base, position(a, 0, i), position(a, 1, j), position(a, 2, k));
}
template <class T> WP_FN T& at(const wp_indexed_array& a, int64 i, int64 j, int64 k, int64 l) {
    return at<T>(a.base, position(a, 0, i), position(a, 1, j), position(a, 2, k), position(a, 3, l));
}
template <class T> WP_FN T& grad_at(const wp_indexed_array& a, int64 i) { return grad_at<T>(a.base, position(a, 0, i)); }
template <class T> WP_FN T& grad_at(const wp_indexed_array& a, int64 i, int64 j) {
    return grad_at<T>(a.base, position(a, 0, i), position(a, 1, j));
}
template <class T> WP_FN T& grad_at(const wp_indexed_array& a, int64 i, int64 j, int64 k) {
    return grad_at<T>(a.base, position(a, 0, i), position(a, 1, j), position(a, 2, k));
}
template <class T> WP_FN T& grad_at(const wp_indexed_array& a, int64 i, int64 j, int64 k, int64 l) {
    return grad_at<T>(a.base, position(a, 0, i), position(a, 1, j), position(a, 2, k), position(a, 3, l));
}

WP_FN bool has_grad(const wp_array& a) { return a.grad != nullptr; }
WP_FN bool has_grad(const wp_indexed_array& a) { return a.base.grad != nullptr; }

template <class A> WP_FN bool in_bounds(const A& a, int64 i) { return (uint64)i < (uint64)a.shape[0]; }
template <class A> WP_FN bool in_bounds(const A& a, int64 i, int64 j) {
    return in_bounds(a, i) && (uint64)j < (uint64)a.shape[1];
}
template <class A> WP_FN bool in_bounds(const A& a, int64 i, int64 j, int64 k) {
    return in_bounds(a, i, j) && (uint64)k < (uint64)a.shape[2];
}
template <class A> WP_FN bool in_bounds(const A& a, int64 i, int64 j, int64 k, int64 l) {
    return in_bounds(a, i, j, k) && (uint64)l < (uint64)a.shape[3];
}

// The array at one index of the first axis.
WP_FN wp_array view(const wp_array& a, int64 i) {
    wp_array result = a;
    result.data = (char*)a.data + i * a.strides[0];
    result.grad = a.grad ? (char*)a.grad + i * a.grad_strides[0] : nullptr;
    for (int axis = 0; axis < 3; ++axis) {
        result.shape[axis] = a.shape[axis + 1];
        result.strides[axis] = a.strides[axis + 1];
        result.grad_strides[axis] = a.grad_strides[axis + 1];
    }
    result.shape[3] = 1;
    result.ndim = a.ndim - 1;
    return result;
}
WP_FN wp_indexed_array view(const wp_indexed_array& a, int64 i) {
    wp_indexed_array result = a;
    result.base = view(a.base, position(a, 0, i));
    for (int axis = 0; axis < 3; ++axis) {
        result.indices[axis] = a.indices[axis + 1];
        result.shape[axis] = a.shape[axis + 1];
    }
    result.indices[3] = nullptr;
    result.shape[3] = 1;
    return result;
}

// Elements that lie next to one another along the last axis, in memory and gradient: the common case.
WP_FN bool is_packed(const wp_array& a, int axis, int64 size) {
    return a.strides[axis] == size && (!a.grad || a.grad_strides[axis] == size);
}
WP_FN void assume_packed(wp_array& a, int axis, int64 size) { a.strides[axis] = a.grad_strides[axis] = size; }

}  // namespace wp

#endif
