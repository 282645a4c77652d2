// What CUDA's compiler lacks of the functions that the other headers take from a C++ compiler. Pasted in front of the
// text of a kernel for CUDA, in place of freestanding.h and of the table of the C library.
#ifndef WP_DEVICE_H
#define WP_DEVICE_H

#define WP_CUDA 1

#ifdef __CUDACC_RTC__
#define __builtin_memcpy memcpy
#define __builtin_sqrt ::sqrt
#define __builtin_sqrtf ::sqrtf
#define __builtin_fabs ::fabs
#define __builtin_fabsf ::fabsf
#define __builtin_copysign ::copysign
#define __builtin_copysignf ::copysignf
#define __builtin_trunc ::trunc
#define __builtin_truncf ::truncf
#define __builtin_floor ::floor
#define __builtin_floorf ::floorf
#define __builtin_ceil ::ceil
#define __builtin_ceilf ::ceilf
#define __builtin_rint ::rint
#define __builtin_rintf ::rintf
#define __builtin_fma ::fma
#define __builtin_fmaf ::fmaf
#define __builtin_isfinite(x) ::isfinite(x)
#define __builtin_nan(text) __longlong_as_double(0x7ff8000000000000ll)
#define __builtin_nanf(text) __int_as_float(0x7fc00000)
#define __builtin_inf() __longlong_as_double(0x7ff0000000000000ll)
#define __builtin_inff() __int_as_float(0x7f800000)
#define __builtin_popcount(x) __popc(x)
#define __builtin_popcountll(x) __popcll(x)
#define __builtin_clz(x) __clz(x)
#define __builtin_clzll(x) __clzll(x)
#define __builtin_ctz(x) (__ffs(x) - 1)
#define __builtin_ctzll(x) (__ffsll(x) - 1)
#endif

#endif
