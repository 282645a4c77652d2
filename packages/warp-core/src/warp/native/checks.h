// Checks that print when they fail, and questions about the device.
#ifndef WP_CHECKS_H
#define WP_CHECKS_H
#include "core.h"
#include "scalar.h"

#if WP_CUDA
#define WP_PRINT ::printf
#else
#define WP_PRINT wp_m.printf
#endif

namespace wp {

template <class T> WP_FN void print_number(T x) {
    if constexpr (is_floating<T>) WP_PRINT(" %g", (double)x);
    else if constexpr (is_same<T, uint64>) WP_PRINT(" %llu", (unsigned long long)x);
    else WP_PRINT(" %lld", (long long)x);
}
template <class T> WP_FN void report(const char* name, const T* a, const T* b, int count) {
    WP_PRINT("Error, %s() failed:", name);
    for (int i = 0; i < count; ++i) print_number(a[i]);
    WP_PRINT(" and");
    for (int i = 0; i < count; ++i) print_number(b[i]);
    WP_PRINT("\n");
}
template <class T> WP_FN bool are_equal(const T* a, const T* b, int count) {
    bool result = true;
    for (int i = 0; i < count; ++i) result = result && a[i] == b[i];
    return result;
}
template <class T> WP_FN bool are_near(const T* a, const T* b, int count, T tolerance) {
    bool result = true;
    for (int i = 0; i < count; ++i) result = result && abs(a[i] - b[i]) <= tolerance;
    return result;
}

template <class T> WP_FN void expect_eq(T a, T b) {
    if (!(a == b)) report("expect_eq", &a, &b, 1);
}
template <class X> WP_FN void expect_eq_tensors(const X& a, const X& b) {
    if (!are_equal(a.c, b.c, X::length)) report("expect_eq", a.c, b.c, X::length);
}
template <class T> WP_FN void expect_neq(T a, T b) {
    if (a == b) report("expect_neq", &a, &b, 1);
}
template <class X> WP_FN void expect_neq_tensors(const X& a, const X& b) {
    if (are_equal(a.c, b.c, X::length)) report("expect_neq", a.c, b.c, X::length);
}
template <class T> WP_FN void expect_near(T a, T b, T tolerance) {
    if (!are_near(&a, &b, 1, tolerance)) report("expect_near", &a, &b, 1);
}
template <class X> WP_FN void expect_near_tensors(const X& a, const X& b, typename X::scalar tolerance) {
    if (!are_near(a.c, b.c, X::length, tolerance)) report("expect_near", a.c, b.c, X::length);
}

WP_FN void stop_in_debugger() {
#if WP_CUDA
    __brkpt();
#elif defined(__x86_64__) || defined(__i386__)
    __asm__ volatile("int3");
#elif defined(__aarch64__)
    __asm__ volatile("brk #0xf000");
#else
    __builtin_trap();
#endif
}

WP_FN int32 block_dim() {
#if WP_CUDA
    return (int32)blockDim.x;
#else
    return 1;
#endif
}

}  // namespace wp

#endif
