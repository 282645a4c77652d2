// The worker pool and the launcher. Compiled by the kernels' own compiler at first launch; refers to no other library:
// every function of the C library and of the interpreter comes through wp_host, bound once by Python.
#include "abi.h"
#include "freestanding.h"

typedef unsigned int uint32;
typedef unsigned long long uint64;
struct PyObject;

#define WP_HOST(F)                                                                                 \
    F(long, syscall, (long, ...))                                                                  \
    F(int, pthread_create, (unsigned long*, const void*, void* (*)(void*), void*))                 \
    F(int, pthread_sigmask, (int, const void*, void*))                                             \
    F(void*, mmap, (void*, wp_size, int, int, int, long))                                          \
    F(int, munmap, (void*, wp_size))                                                               \
    F(void*, PyLong_AsVoidPtr, (PyObject*))                                                        \
    F(long, PyLong_AsLong, (PyObject*))                                                            \
    F(char*, PyBytes_AsString, (PyObject*))                                                        \
    F(long, PyBytes_Size, (PyObject*))                                                             \
    F(PyObject*, PyBytes_FromStringAndSize, (const char*, long))                                   \
    F(void*, PyEval_SaveThread, ())                                                                \
    F(void, PyEval_RestoreThread, (void*))                                                         \
    F(void, PyErr_SetString, (PyObject*, const char*))                                             \
    F(PyObject*, PyErr_NoMemory, ())                                                               \
    F(PyObject*, PyErr_Occurred, ())                                                               \
    F(void, Py_IncRef, (PyObject*))                                                                \
    F(void, Py_DecRef, (PyObject*))                                                                \
    F(int, Py_IsInitialized, ())                                                                   \
    F(int, PyGILState_Ensure, ())                                                                  \
    F(void, PyGILState_Release, (int))                                                             \
    F(wp_int64, PyLong_AsLongLong, (PyObject*))                                                    \
    F(PyObject*, PyLong_FromLongLong, (wp_int64))                                                  \
    F(PyObject*, PyTuple_New, (long))                                                              \
    F(long, PyTuple_Size, (PyObject*))                                                             \
    F(PyObject*, PyTuple_GetItem, (PyObject*, long))                                               \
    F(int, PyTuple_SetItem, (PyObject*, long, PyObject*))                                          \
    F(PyObject*, PyCapsule_New, (void*, const char*, void (*)(PyObject*)))                         \
    F(int, PyCapsule_IsValid, (PyObject*, const char*))                                            \
    F(void*, PyCapsule_GetPointer, (PyObject*, const char*))                                       \
    F(int, PyCapsule_SetName, (PyObject*, const char*))                                            \
    F(PyObject*, Py_BuildValue, (const char*, ...))                                                \
    F(void*, malloc, (wp_size))                                                                    \
    F(void, free, (void*))

// Data symbols: the table holds their addresses.
#define WP_HOST_DATA(F)                                                                            \
    F(PyObject, _Py_NoneStruct)                                                                    \
    F(PyObject*, PyExc_TypeError)                                                                  \
    F(PyObject*, PyExc_BufferError)

struct wp_host {
#define WP_FIELD(result, name, parameters) result(*name) parameters;
#define WP_DATA_FIELD(type, name) type* name;
    WP_HOST(WP_FIELD)
    WP_HOST_DATA(WP_DATA_FIELD)
};

// Read by Python, so that the order of the table has one home.
#define WP_NAME(result, name, parameters) #name " "
#define WP_DATA_NAME(type, name) #name " "
WP_EXPORT const char wp_host_symbols[] = WP_HOST(WP_NAME) WP_HOST_DATA(WP_DATA_NAME);
WP_EXPORT const int wp_abi = WP_ABI_VERSION;

#if defined(__linux__)
#define MAP_PRIVATE_ANONYMOUS 0x22
#if defined(__x86_64__)
#define SYS_FUTEX 202
#else
#define SYS_FUTEX 98
#endif
static const bool CAN_SLEEP = true;
#else
// Without a futex workers could not sleep, so every launch runs on its caller.
#define MAP_PRIVATE_ANONYMOUS 0x1002
#define SYS_FUTEX 0
static const bool CAN_SLEEP = false;
#endif

enum { FUTEX_WAIT_PRIVATE = 128, FUTEX_WAKE_PRIVATE = 129 };
enum { MAX_WORKERS = 256, SPARE_ARENAS = 64, SPINS = 1000 };
enum { FLAG_PARALLEL = 1, FLAG_RELEASE_GIL = 2, FLAG_ORDERED = 4, CHUNK_SHIFT = 8 };
static const wp_int64 ARENA_SIZE = 1 << 20;
static const wp_int64 MAX_CHUNKS = 128;
static const wp_int64 DEFAULT_CHUNK = 4096;
static const wp_int64 LANES = 16;

static wp_host host;

static inline void relax() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield" ::: "memory");
#endif
}

static void futex_wait(uint32* word, uint32 seen) { host.syscall(SYS_FUTEX, word, FUTEX_WAIT_PRIVATE, seen, nullptr, nullptr, 0); }
static void futex_wake(uint32* word, int count) { host.syscall(SYS_FUTEX, word, FUTEX_WAKE_PRIVATE, count, nullptr, nullptr, 0); }

// ---- arenas ----------------------------------------------------------------------------------------------------------

static void* map_arena() {
    void* arena = host.mmap(nullptr, ARENA_SIZE, 3 /* read, write */, MAP_PRIVATE_ANONYMOUS, -1, 0);
    return arena == (void*)-1 ? nullptr : arena;
}

// One for each launch in flight. Slots are exchanged whole, so there is no list whose head could be stale.
static void* spare_arenas[SPARE_ARENAS];

static void* take_arena() {
    for (int slot = 0; slot < SPARE_ARENAS; ++slot) {
        if (!__atomic_load_n(&spare_arenas[slot], __ATOMIC_RELAXED)) continue;
        void* arena = __atomic_exchange_n(&spare_arenas[slot], nullptr, __ATOMIC_ACQUIRE);
        if (arena) return arena;
    }
    return map_arena();
}

static void give_arena(void* arena) {
    for (int slot = 0; slot < SPARE_ARENAS; ++slot) {
        void* none = nullptr;
        if (__atomic_compare_exchange_n(&spare_arenas[slot], &none, arena, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED)) return;
    }
    host.munmap(arena, ARENA_SIZE);
}

// ---- the pool --------------------------------------------------------------------------------------------------------

// Lives on the caller's stack. Only workers that are counted in `state` may touch it.
struct Job {
    wp_entry entry;
    const wp_launch* launch;
    const void* args;
    wp_int64 chunk;
    wp_int64 chunks;
    __attribute__((aligned(64))) wp_int64 next;
};

// Generation in the upper half; below it BUSY (the slot has an owner), OPEN (workers may join), WAITER (the owner sleeps
// until the count is zero) and the number of workers that have joined. The generation makes a late join fail.
static const uint64 BUSY = 1ull << 31, OPEN = 1ull << 30, WAITER = 1ull << 29, COUNT = WAITER - 1;
__attribute__((aligned(64))) static uint64 state;
static Job* current;                                 // valid while OPEN, and for those that joined
__attribute__((aligned(64))) static uint32 signals;  // futex: idle workers within the limit
static uint32 sleepers;
static uint32 roster;    // futex: workers beyond the limit
static int limit = 1;    // threads that may share a launch, the caller included
static int started = 0;  // worker threads that exist
static int starting = 0;
static void* worker_arenas[MAX_WORKERS];

static void run_chunks(Job* job, const wp_worker* worker) {
    const wp_int64 size = job->launch->size;
    for (;;) {
        const wp_int64 index = __atomic_fetch_add(&job->next, 1, __ATOMIC_RELAXED);
        if (index >= job->chunks) return;
        const wp_int64 begin = index * job->chunk;
        const wp_int64 end = size - begin < job->chunk ? size : begin + job->chunk;
        job->entry(begin, end, job->launch, job->args, worker);
    }
}

static void leave_job() {
    const uint64 before = __atomic_fetch_sub(&state, 1, __ATOMIC_ACQ_REL);
    if ((before & COUNT) == 1 && (before & WAITER)) futex_wake((uint32*)&state, 1);
}

static bool has_new_job(uint64 seen_state, uint32 served) { return (seen_state & OPEN) && (uint32)(seen_state >> 32) != served; }

static void sleep_until_signal(int index, uint32 served) {
    const uint32 seen = __atomic_load_n(&signals, __ATOMIC_SEQ_CST);
    __atomic_fetch_add(&sleepers, 1, __ATOMIC_SEQ_CST);
    // Pairs with publish(): either it sees this sleeper, or we see its job.
    const bool idle = !has_new_job(__atomic_load_n(&state, __ATOMIC_SEQ_CST), served);
    if (idle && index < __atomic_load_n(&limit, __ATOMIC_SEQ_CST)) futex_wait(&signals, seen);
    __atomic_fetch_sub(&sleepers, 1, __ATOMIC_SEQ_CST);
}

static void sleep_beyond_limit(int index) {
    const uint32 seen = __atomic_load_n(&roster, __ATOMIC_SEQ_CST);
    if (index >= __atomic_load_n(&limit, __ATOMIC_SEQ_CST)) futex_wait(&roster, seen);
}

static void* serve(void* argument) {
    const int index = (int)(long)argument;
    const wp_worker worker = {worker_arenas[index], ARENA_SIZE, index, 0};
    uint32 served = 0;
    int spins = SPINS;
    for (;;) {
        if (index >= __atomic_load_n(&limit, __ATOMIC_RELAXED)) {
            sleep_beyond_limit(index);
            continue;
        }
        uint64 seen = __atomic_load_n(&state, __ATOMIC_ACQUIRE);
        if (has_new_job(seen, served)) {
            if (!__atomic_compare_exchange_n(&state, &seen, seen + 1, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) continue;
            served = (uint32)(seen >> 32);
            run_chunks(current, &worker);
            leave_job();
            spins = SPINS;
        } else if (spins > 0) {
            --spins;
            relax();
        } else {
            sleep_until_signal(index, served);
            spins = SPINS;
        }
    }
    return nullptr;
}

static bool start_worker(int index) {
    if (!worker_arenas[index]) worker_arenas[index] = map_arena();
    if (!worker_arenas[index]) return false;
    // Signals are for the interpreter's own threads.
    unsigned long all[16], old[16], thread;
    for (int i = 0; i < 16; ++i) all[i] = ~0ul;
    host.pthread_sigmask(2 /* SIG_SETMASK */, all, old);
    const int failed = host.pthread_create(&thread, nullptr, serve, (void*)(long)index);
    host.pthread_sigmask(2, old, nullptr);
    return !failed;
}

static void start_workers() {
    if (__atomic_load_n(&started, __ATOMIC_ACQUIRE) >= __atomic_load_n(&limit, __ATOMIC_RELAXED) - 1) return;
    if (__atomic_exchange_n(&starting, 1, __ATOMIC_ACQUIRE)) return;
    int count = started;
    while (count < __atomic_load_n(&limit, __ATOMIC_RELAXED) - 1 && start_worker(count + 1))
        __atomic_store_n(&started, ++count, __ATOMIC_RELEASE);
    // Where no more threads are to be had, do not try again at every launch.
    if (count < __atomic_load_n(&limit, __ATOMIC_RELAXED) - 1) __atomic_store_n(&limit, count + 1, __ATOMIC_SEQ_CST);
    __atomic_store_n(&starting, 0, __ATOMIC_RELEASE);
}

// False if another launch has the slot.
static bool publish(Job* job) {
    uint64 seen = __atomic_load_n(&state, __ATOMIC_RELAXED);
    if (seen & BUSY) return false;
    const uint64 owned = ((seen >> 32) + 1) << 32 | BUSY;
    if (!__atomic_compare_exchange_n(&state, &seen, owned, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) return false;
    current = job;
    __atomic_store_n(&state, owned | OPEN, __ATOMIC_SEQ_CST);
    const wp_int64 idle = __atomic_load_n(&sleepers, __ATOMIC_SEQ_CST);
    if (idle) {
        __atomic_fetch_add(&signals, 1, __ATOMIC_SEQ_CST);
        futex_wake(&signals, (int)(idle < job->chunks - 1 ? idle : job->chunks - 1));
    }
    return true;
}

// Let nobody else join, wait for those that did, free the slot.
static void retire() {
    uint64 seen = __atomic_and_fetch(&state, ~OPEN, __ATOMIC_ACQ_REL);
    for (int spins = SPINS; (seen & COUNT) && spins > 0; --spins) {
        relax();
        seen = __atomic_load_n(&state, __ATOMIC_ACQUIRE);
    }
    while (seen & COUNT) {
        seen = __atomic_or_fetch(&state, WAITER, __ATOMIC_ACQ_REL);
        if (seen & COUNT) futex_wait((uint32*)&state, (uint32)seen);
        seen = __atomic_load_n(&state, __ATOMIC_ACQUIRE);
    }
    __atomic_store_n(&state, seen >> 32 << 32, __ATOMIC_RELEASE);
}

// ---- launches --------------------------------------------------------------------------------------------------------

// Depends on the launch alone, so that results do not depend on the number of workers.
static wp_int64 chunk_of(wp_int64 size, wp_int64 smallest) {
    wp_int64 chunk = size / MAX_CHUNKS + (size % MAX_CHUNKS != 0);
    if (chunk < smallest) chunk = smallest;
    if (chunk >= LANES && chunk < size) chunk = (chunk + LANES - 1) / LANES * LANES;
    return chunk;
}

static bool run_launch(wp_entry entry, const wp_launch* launch, const void* args, long flags) {
    const wp_int64 size = launch->size;
    if (size <= 0) return true;
    const wp_worker worker = {take_arena(), ARENA_SIZE, 0, 0};
    if (!worker.arena) return false;
    const wp_int64 smallest = flags >> CHUNK_SHIFT;
    const wp_int64 chunk = flags & FLAG_ORDERED ? size : chunk_of(size, smallest > 0 ? smallest : DEFAULT_CHUNK);
    if (chunk >= size) {
        entry(0, size, launch, args, &worker);
    } else {
        Job job = {entry, launch, args, chunk, size / chunk + (size % chunk != 0), 0};
        const bool wanted = CAN_SLEEP && (flags & FLAG_PARALLEL) && __atomic_load_n(&limit, __ATOMIC_RELAXED) > 1;
        if (wanted) start_workers();
        const bool shared = wanted && publish(&job);
        run_chunks(&job, &worker);
        if (shared) retire();
    }
    give_arena(worker.arena);
    return true;
}

WP_EXPORT void wp_host_bind(const void* const* table) {
    const void** fields = (const void**)&host;
    for (unsigned i = 0; i < sizeof(wp_host) / sizeof(void*); ++i) fields[i] = table[i];
}

WP_EXPORT void wp_set_workers(int count) {
    count = count < 1 || !CAN_SLEEP ? 1 : count > MAX_WORKERS ? MAX_WORKERS : count;
    __atomic_store_n(&limit, count, __ATOMIC_SEQ_CST);
    if (!CAN_SLEEP) return;
    __atomic_fetch_add(&roster, 1, __ATOMIC_SEQ_CST);
    futex_wake(&roster, MAX_WORKERS);
    __atomic_fetch_add(&signals, 1, __ATOMIC_SEQ_CST);
    futex_wake(&signals, MAX_WORKERS);
}

WP_EXPORT int wp_get_workers() { return __atomic_load_n(&limit, __ATOMIC_SEQ_CST); }

// Threads do not survive a fork, and a launch of another thread may have held the slot.
WP_EXPORT void wp_reset_after_fork() {
    state = 0;
    current = nullptr;
    sleepers = 0;
    started = 0;
    starting = 0;
}

// For interpreters without the fast builtin. 0, or 1 when there is no memory for an arena.
WP_EXPORT int wp_launch_plain(wp_entry entry, const wp_launch* launch, const void* args, long flags, wp_fault* fault) {
    wp_launch own = *launch;
    own.fault = fault;
    return run_launch(entry, &own, args, flags) ? 0 : 1;
}

// launch(entry: int, launch_block: bytes, args: bytes, flags: int) -> None, or the wp_fault as bytes.
WP_EXPORT PyObject* wp_launch_fast(PyObject*, PyObject* const* arguments, long count) {
    if (count != 4) {
        host.PyErr_SetString(*host.PyExc_TypeError, "launch() takes entry, launch_block, args and flags");
        return nullptr;
    }
    const wp_entry entry = (wp_entry)host.PyLong_AsVoidPtr(arguments[0]);
    const char* block = entry ? host.PyBytes_AsString(arguments[1]) : nullptr;
    const char* args = block ? host.PyBytes_AsString(arguments[2]) : nullptr;
    const long flags = args ? host.PyLong_AsLong(arguments[3]) : -1;
    if (!args || (flags == -1 && host.PyErr_Occurred()) || host.PyBytes_Size(arguments[1]) != (long)sizeof(wp_launch)) {
        if (!host.PyErr_Occurred()) host.PyErr_SetString(*host.PyExc_TypeError, "launch(): no entry point, or not a launch block");
        return nullptr;
    }
    wp_fault fault = {};
    wp_launch launch = *(const wp_launch*)block;
    launch.fault = &fault;
    void* thread = flags & FLAG_RELEASE_GIL ? host.PyEval_SaveThread() : nullptr;
    const bool done = run_launch(entry, &launch, args, flags);
    if (thread) host.PyEval_RestoreThread(thread);
    if (!done) return host.PyErr_NoMemory();
    if (fault.kind != WP_FAULT_NONE) return host.PyBytes_FromStringAndSize((const char*)&fault, sizeof fault);
    host.Py_IncRef(host._Py_NoneStruct);
    return host._Py_NoneStruct;
}

#include "dlpack.h"
