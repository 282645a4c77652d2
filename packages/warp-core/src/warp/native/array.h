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

WP_FN int64 array_stride(const wp_array& a, int axis) { return a.strides[axis]; }
WP_FN int64 array_stride(const wp_indexed_array& a, int axis) { return a.base.strides[axis]; }
WP_FN uint64 array_ptr(const wp_array& a) { return (uint64)a.data; }
WP_FN uint64 array_ptr(const wp_indexed_array& a) { return (uint64)a.base.data; }

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

// Debug mode: report the first index that is out of bounds; give a component that exists.
template <class A, class... I>
WP_FN void raise_bounds(const wp_launch* launch, int32 line, int64 item, const char* name, const A& a, I... indices) {
    const int64 all[] = {(int64)indices...};
    int32 axis = 0;
    while (axis + 1 < (int32)sizeof...(indices) && (uint64)all[axis] < (uint64)a.shape[axis]) ++axis;
    wp_raise_detailed(launch, WP_FAULT_BOUNDS, line, item, name, axis, all[axis], a.shape[axis], 0.0);
}
WP_FN int64 checked_component(const wp_launch* launch, int32 line, int64 item, const char* name, int64 index, int64 extent) {
    if ((uint64)index < (uint64)extent) return index;
    wp_raise_detailed(launch, WP_FAULT_COMPONENT, line, item, name, 0, index, extent, 0.0);
    return 0;
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

// The array without one axis, at an index of it.
WP_FN wp_array drop(const wp_array& a, int axis, int64 i) {
    wp_array result = a;
    result.data = (char*)a.data + i * a.strides[axis];
    result.grad = a.grad ? (char*)a.grad + i * a.grad_strides[axis] : nullptr;
    for (int k = axis; k < 3; ++k) {
        result.shape[k] = a.shape[k + 1];
        result.strides[k] = a.strides[k + 1];
        result.grad_strides[k] = a.grad_strides[k + 1];
    }
    result.shape[3] = 1;
    result.ndim = a.ndim - 1;
    return result;
}
// The array with `extent` elements of one axis, from `start` in steps of `step`.
WP_FN wp_array slice(const wp_array& a, int axis, int64 start, int64 extent, int64 step) {
    wp_array result = a;
    result.data = (char*)a.data + start * a.strides[axis];
    result.grad = a.grad ? (char*)a.grad + start * a.grad_strides[axis] : nullptr;
    result.shape[axis] = extent;
    result.strides[axis] = step * a.strides[axis];
    result.grad_strides[axis] = step * a.grad_strides[axis];
    return result;
}

WP_FN wp_indexed_array drop(const wp_indexed_array& a, int axis, int64 i) {
    wp_indexed_array result = a;
    result.base = drop(a.base, axis, position(a, axis, i));
    for (int k = axis; k < 3; ++k) {
        result.indices[k] = a.indices[k + 1];
        result.shape[k] = a.shape[k + 1];
    }
    result.indices[3] = nullptr;
    result.shape[3] = 1;
    return result;
}
// Lists of indices have no steps: `step` is 1.
WP_FN wp_indexed_array slice(const wp_indexed_array& a, int axis, int64 start, int64 extent, int64 step) {
    wp_indexed_array result = a;
    if (a.indices[axis]) result.indices[axis] += start;
    else result.base = slice(a.base, axis, start, extent, step);
    result.shape[axis] = extent;
    return result;
}

// Memory at an address as an array, row by row.
WP_FN wp_array array_at(uint64 address, int64 size, int32 ndim, int64 a, int64 b, int64 c, int64 d) {
    wp_array result = {};
    const int64 shape[] = {a, b, c, d};
    for (int axis = 3; axis >= 0; --axis) {
        result.shape[axis] = shape[axis];
        result.strides[axis] = axis < ndim ? size : 0;
        if (axis < ndim) size *= shape[axis];
    }
    result.data = (void*)address;
    result.ndim = ndim;
    return result;
}

// Elements that lie next to one another along the last axis, in memory and gradient: the common case.
WP_FN bool is_packed(const wp_array& a, int axis, int64 size) {
    return a.strides[axis] == size && (!a.grad || a.grad_strides[axis] == size);
}
WP_FN void assume_packed(wp_array& a, int axis, int64 size) { a.strides[axis] = a.grad_strides[axis] = size; }

}  // namespace wp

#endif
