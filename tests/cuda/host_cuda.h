// The part of CUDA that kernels and headers use, for a C++ compiler: blocks and threads run one after the other, or take
// turns at barriers if HOST_FIBRES is defined. Pasted after the table of the C library and in front of the text of kernels for CUDA. Only the overloads of CUDA itself are
// here, so that a call of another type does not compile.
#define __device__
#define __global__
#define __grid_constant__
#define __shared__ static
#define __launch_bounds__(...)
#define printf(...) wp_m.printf(__VA_ARGS__)

struct host_dim3 {
    unsigned x, y, z;
};
static host_dim3 gridDim, blockDim, blockIdx, threadIdx;

static inline void __threadfence_system() {}
// A condition of a graph is the address of its value.
extern "C" inline void cudaGraphSetConditional(unsigned long long condition, unsigned value) {
    *(unsigned*)condition = value;
}
static inline void __brkpt() { __builtin_trap(); }
static inline int atomicExch_system(int* target, int value) {
    const int old = *target;
    *target = value;
    return old;
}

#define HOST_ATOMIC(name, type, expression)                     \
    static inline type name(type* target, type value) {         \
        const type old = *target;                               \
        *target = (expression);                                 \
        return old;                                             \
    }
#define HOST_WORDS(name, expression)                            \
    HOST_ATOMIC(name, int, expression)                          \
    HOST_ATOMIC(name, unsigned, expression)                     \
    HOST_ATOMIC(name, unsigned long long, expression)
HOST_WORDS(atomicAdd, old + value)
HOST_ATOMIC(atomicAdd, float, old + value)
HOST_ATOMIC(atomicAdd, double, old + value)
HOST_ATOMIC(atomicSub, int, old - value)
HOST_ATOMIC(atomicSub, unsigned, old - value)
HOST_WORDS(atomicMin, value < old ? value : old)
HOST_ATOMIC(atomicMin, long long, value < old ? value : old)
HOST_WORDS(atomicMax, old < value ? value : old)
HOST_ATOMIC(atomicMax, long long, old < value ? value : old)
HOST_WORDS(atomicAnd, old & value)
HOST_WORDS(atomicOr, old | value)
HOST_WORDS(atomicXor, old ^ value)
HOST_WORDS(atomicExch, value)
HOST_ATOMIC(atomicExch, float, value)
#define HOST_CAS(type)                                                        \
    static inline type atomicCAS(type* target, type expected, type value) {   \
        const type old = *target;                                             \
        if (old == expected) *target = value;                                 \
        return old;                                                           \
    }
HOST_CAS(int)
HOST_CAS(unsigned)
HOST_CAS(unsigned long long)

#define HOST_UNARY(name)                                              \
    static inline float name(float x) { return wp_m.name##f(x); }     \
    static inline double name(double x) { return wp_m.name(x); }      \
    static inline double name(int x) { return wp_m.name((double)x); } \
    static inline float name##f(float x) { return wp_m.name##f(x); }
HOST_UNARY(sin)
HOST_UNARY(cos)
HOST_UNARY(tan)
HOST_UNARY(asin)
HOST_UNARY(acos)
HOST_UNARY(atan)
HOST_UNARY(sinh)
HOST_UNARY(cosh)
HOST_UNARY(tanh)
HOST_UNARY(exp)
HOST_UNARY(exp2)
HOST_UNARY(expm1)
HOST_UNARY(log)
HOST_UNARY(log2)
HOST_UNARY(log10)
HOST_UNARY(log1p)
HOST_UNARY(cbrt)
HOST_UNARY(erf)
HOST_UNARY(erfc)
HOST_UNARY(floor)
HOST_UNARY(ceil)
HOST_UNARY(trunc)
HOST_UNARY(round)
#define HOST_BINARY(name)                                                         \
    static inline float name(float x, float y) { return wp_m.name##f(x, y); }     \
    static inline double name(double x, double y) { return wp_m.name(x, y); }     \
    static inline float name##f(float x, float y) { return wp_m.name##f(x, y); }
HOST_BINARY(pow)
HOST_BINARY(atan2)
HOST_BINARY(fmod)
HOST_BINARY(hypot)
typedef unsigned long size_t;
static inline float fmaxf(float x, float y) { return __builtin_fmaxf(x, y); }
static inline float fminf(float x, float y) { return __builtin_fminf(x, y); }
static inline float sqrt(float x) { return __builtin_sqrtf(x); }
static inline double sqrt(double x) { return __builtin_sqrt(x); }
static inline float sqrtf(float x) { return __builtin_sqrtf(x); }
static inline float fabs(float x) { return __builtin_fabsf(x); }
static inline double fabs(double x) { return __builtin_fabs(x); }
static inline float fabsf(float x) { return __builtin_fabsf(x); }
static inline int abs(int x) { return x < 0 ? -x : x; }
static inline float abs(float x) { return __builtin_fabsf(x); }
static inline double abs(double x) { return __builtin_fabs(x); }
static inline float copysign(float x, float y) { return __builtin_copysignf(x, y); }
static inline double copysign(double x, double y) { return __builtin_copysign(x, y); }
static inline float fma(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
static inline double fma(double x, double y, double z) { return __builtin_fma(x, y, z); }
static inline float fmin(float x, float y) { return __builtin_fminf(x, y); }
static inline double fmin(double x, double y) { return __builtin_fmin(x, y); }
static inline float fmax(float x, float y) { return __builtin_fmaxf(x, y); }
static inline double fmax(double x, double y) { return __builtin_fmax(x, y); }
static inline float rint(float x) { return __builtin_rintf(x); }
static inline double rint(double x) { return __builtin_rint(x); }
static inline float rsqrt(float x) { return 1.0f / __builtin_sqrtf(x); }
static inline double rsqrt(double x) { return 1.0 / __builtin_sqrt(x); }
template <class T> static inline bool isfinite(T x) { return __builtin_isfinite(x); }
template <class T> static inline bool isinf(T x) { return __builtin_isinf(x); }
template <class T> static inline bool isnan(T x) { return __builtin_isnan(x); }
template <class T> static inline T min(T a, T b) { return b < a ? b : a; }
template <class T> static inline T max(T a, T b) { return a < b ? b : a; }

// Run a kernel over a grid of one-dimensional blocks.
#ifndef HOST_FIBRES
#define HOST_LAUNCH(name, kernel, arguments)                                                                            \
    extern "C" __attribute__((visibility("default"))) void name(                                                        \
        unsigned grid, unsigned block, const wp_launch* launch, const void* args) {                                     \
        gridDim = {grid, 1, 1};                                                                                         \
        blockDim = {block, 1, 1};                                                                                       \
        for (blockIdx.x = 0; blockIdx.x < grid; ++blockIdx.x)                                                           \
            for (threadIdx.x = 0; threadIdx.x < block; ++threadIdx.x) kernel(*launch, *(const arguments*)args);         \
    }
#else
// The threads of a block are fibres: each runs up to the next barrier, then it is the turn of the next one.
struct host_context {  // the beginning of ucontext_t
    unsigned long flags;
    host_context* link;
    void* stack;
    int stack_flags;
    unsigned long stack_size;
    char rest[8192];
};
static struct {
    int (*get)(host_context*);
    void (*make)(host_context*, void (*)(), int, ...);
    int (*swap)(host_context*, const host_context*);
} host_contexts;
extern "C" __attribute__((visibility("default"))) void host_bind(void** table) {
    __builtin_memcpy(&host_contexts, table, sizeof host_contexts);
}
static const int HOST_THREADS = 1024, HOST_STACK = 65536;
static host_context host_scheduler, host_fibres[HOST_THREADS];
alignas(64) static char host_stacks[HOST_THREADS][HOST_STACK];
static bool host_is_done[HOST_THREADS];

static inline void __syncthreads() {
    host_contexts.swap(&host_fibres[threadIdx.x], &host_scheduler);
}
static inline void __syncwarp(unsigned = 0xffffffffu) { __syncthreads(); }

static void host_run_block(void (*thread)()) {
    for (unsigned t = 0; t < blockDim.x; ++t) {
        host_context& fibre = host_fibres[t];
        host_contexts.get(&fibre);
        fibre.link = &host_scheduler;
        fibre.stack = host_stacks[t];
        fibre.stack_size = HOST_STACK;
        host_contexts.make(&fibre, thread, 0);
        host_is_done[t] = false;
    }
    for (bool is_running = true; is_running;) {
        is_running = false;
        for (unsigned t = 0; t < blockDim.x; ++t) {
            if (host_is_done[t]) continue;
            threadIdx.x = t;
            host_contexts.swap(&host_scheduler, &host_fibres[t]);
            is_running = true;
        }
    }
}

#define HOST_LAUNCH(name, kernel, arguments)                                                                            \
    static const wp_launch* name##_launch;                                                                              \
    static const arguments* name##_arguments;                                                                           \
    static void name##_thread() {                                                                                       \
        kernel(*name##_launch, *name##_arguments);                                                                      \
        host_is_done[threadIdx.x] = true;                                                                               \
    }                                                                                                                   \
    extern "C" __attribute__((visibility("default"))) void name(                                                        \
        unsigned grid, unsigned block, const wp_launch* launch, const void* args) {                                     \
        gridDim = {grid, 1, 1};                                                                                         \
        blockDim = {block, 1, 1};                                                                                       \
        name##_launch = launch;                                                                                         \
        name##_arguments = (const arguments*)args;                                                                      \
        for (blockIdx.x = 0; blockIdx.x < grid; ++blockIdx.x) host_run_block(name##_thread);                            \
    }
#endif
