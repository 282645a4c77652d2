// The binary interface between compiled kernels, the worker pool and Python. Pasted in front of every kernel.
#ifndef WP_ABI_H
#define WP_ABI_H

#define WP_ABI_VERSION 1
#define WP_EXPORT extern "C" __attribute__((visibility("default")))

typedef long long wp_int64;
typedef int wp_int32;

// Flags of wp_array.
#define WP_ARRAY_READ_ONLY 1

// All strides are in bytes. grad is null, and grad_strides are unused, for an array without gradient.
struct wp_array {
    void* data;
    void* grad;
    wp_int64 shape[4];
    wp_int64 strides[4];
    wp_int64 grad_strides[4];
    wp_int32 ndim;
    wp_int32 flags;
};

// indices[axis] is null where the whole axis is meant; shape is that of the indexed view.
struct wp_indexed_array {
    wp_array base;
    const wp_int32* indices[4];
    wp_int64 shape[4];
};

enum wp_fault_kind {
    WP_FAULT_NONE = 0,
    WP_FAULT_ASSERT = 1,
    WP_FAULT_DIVISION = 2,
    WP_FAULT_BOUNDS = 3,
    WP_FAULT_NOT_FINITE = 4,
    WP_FAULT_COMPONENT = 5,
    WP_FAULT_LOCKED = -1
};

// What went wrong first, in the order of the work items. name is that of an array or variable, cut to fit.
struct wp_fault {
    wp_int32 kind;
    wp_int32 line;
    wp_int64 item;
    wp_int64 index;
    wp_int64 extent;
    double value;
    wp_int32 axis;
    char name[36];
};

// What a taped launch keeps: fixed places, and a stream that grows; starts holds where in it each work item begins.
// missing counts the bytes that could not be kept for want of memory.
struct wp_record {
    void* places;
    wp_int64* starts;
    char* stream;
    wp_int64 used;
    wp_int64 capacity;
    wp_int64 missing;
    wp_int32 is_full;
    wp_int32 pad;
};

// record points to a wp_record, or is null. dim is padded with 1; size is its product. slots is the largest number of checkpoints per loop, 0 for as many as the
// arena holds. The launcher fills in fault.
struct wp_launch {
    wp_int64 size;
    wp_int64 dim[4];
    wp_int32 ndim;
    wp_int32 flags;
    wp_fault* fault;
    void* record;
    wp_int64 record_size;
    wp_int64 slots;
};

// index is unique among the threads that share one launch; the caller is 0. The arena is 64-byte aligned, not zeroed.
struct wp_worker {
    void* arena;
    wp_int64 arena_size;
    wp_int32 index;
    wp_int32 pad;
};

typedef void (*wp_entry)(wp_int64 begin, wp_int64 end, const wp_launch* launch, const void* args, const wp_worker* worker);

static_assert(sizeof(void*) == 8 && sizeof(wp_int64) == 8, "64-bit platforms only");
static_assert(sizeof(wp_array) == 120, "wp_array");
static_assert(sizeof(wp_indexed_array) == 184, "wp_indexed_array");
static_assert(sizeof(wp_fault) == 80, "wp_fault");
static_assert(sizeof(wp_launch) == 80, "wp_launch");
static_assert(sizeof(wp_worker) == 24, "wp_worker");

// A lock in the memory of a fault: taking it gives the kind, giving it back stores one.
#if WP_CUDA
static inline __device__ wp_int32 wp_lock_fault(wp_fault* fault) {
    const wp_int32 previous = atomicExch_system(&fault->kind, WP_FAULT_LOCKED);
    __threadfence_system();
    return previous;
}
static inline __device__ void wp_unlock_fault(wp_fault* fault, wp_int32 kind) {
    __threadfence_system();
    atomicExch_system(&fault->kind, kind);
}
#define WP_FAULT_FN static inline __device__
#else
static inline wp_int32 wp_lock_fault(wp_fault* fault) {
    return __atomic_exchange_n(&fault->kind, WP_FAULT_LOCKED, __ATOMIC_ACQUIRE);
}
static inline void wp_unlock_fault(wp_fault* fault, wp_int32 kind) {
    __atomic_store_n(&fault->kind, kind, __ATOMIC_RELEASE);
}
#define WP_FAULT_FN static inline
#endif

// Keep the fault of the lowest work item, whichever worker comes first, so that the message is the same every time.
WP_FAULT_FN void wp_raise_detailed(const wp_launch* launch, wp_int32 kind, wp_int32 line, wp_int64 item, const char* name,
                                   wp_int32 axis, wp_int64 index, wp_int64 extent, double value) {
    wp_fault* fault = launch->fault;
    if (!fault) return;
    wp_int32 previous = wp_lock_fault(fault);
    while (previous == WP_FAULT_LOCKED) previous = wp_lock_fault(fault);
    if (previous == WP_FAULT_NONE || item < fault->item) {
        fault->line = line;
        fault->item = item;
        fault->axis = axis;
        fault->index = index;
        fault->extent = extent;
        fault->value = value;
        wp_int32 length = 0;
        for (; name[length] && length < (wp_int32)sizeof fault->name - 1; ++length) fault->name[length] = name[length];
        fault->name[length] = 0;
        previous = kind;
    }
    wp_unlock_fault(fault, previous);
}
WP_FAULT_FN void wp_raise_fault(const wp_launch* launch, wp_int32 kind, wp_int32 line, wp_int64 item) {
    wp_raise_detailed(launch, kind, line, item, "", 0, 0, 0, 0.0);
}

#endif
