// Checkpoints of a loop's state in fixed slots, for a loop that is to be run backwards. While the loop runs forward,
// every stride-th state is kept; when the slots are full, every second one is dropped. The reverse sweep then
// re-splits what it advances over by the treeverse schedule (A. Griewank, 1992, Achieving logarithmic growth of
// temporal and spatial complexity in reverse automatic differentiation).
#ifndef WP_CHECKPOINTS_H
#define WP_CHECKPOINTS_H
#include "abi.h"
#include "core.h"

namespace wp {

// How far to go from a checkpoint before placing the next, for `length` steps and `slots` slots, its own included.
WP_FN int64 treeverse_step(int64 length, int64 slots) {
    double reach = (double)(slots + 1);  // binomial(slots + repeats, slots)
    int64 repeats = 1;
    while (reach < (double)length) {
        ++repeats;
        reach = reach * (double)(slots + repeats) / (double)repeats;
    }
    const int64 step = (int64)((double)length * (double)repeats / (double)(slots + repeats));
    return step < 1 ? 1 : step;
}

// Each site of a kernel owns an equal part of the worker's arena (on a GPU, some memory of the thread): the bookkeeping,
// then the slots. The bookkeeping is kept in this object and written back by `finish`, so that the loop and its reverse
// may stand in different blocks.
template <class State> struct checkpoints {
    struct slot {
        int64 at;
        State state;
    };
    struct header {
        int64 count;
        int64 padding[7];
    };
    header* home;
    slot* slots;
    int64 capacity;
    int64 count;
    int64 stride;
    int64 next;

    WP_MEMBER checkpoints(const wp_launch* launch, const wp_worker* worker, int64 site, int64 sites)
        : checkpoints(launch, (char*)worker->arena + site * share(worker, sites), share(worker, sites)) {}

    // In memory of the loop's own, aligned as the states are.
    WP_MEMBER checkpoints(const wp_launch* launch, void* memory, int64 size) {
        home = (header*)memory;
        slots = (slot*)(home + 1);
        capacity = (size - (int64)sizeof(header)) / (int64)sizeof(slot);
        if (launch->slots > 0 && launch->slots < capacity) capacity = launch->slots;
        if (capacity < 2) capacity = 2;
        count = 0;
        stride = 1;
        next = 0;
    }

    WP_MEMBER static int64 share(const wp_worker* worker, int64 sites) { return worker->arena_size / sites / 64 * 64; }

    // -- forward ------------------------------------------------------------------------------------------------------

    WP_MEMBER bool is_due(int64 at) const { return at == next; }

    WP_MEMBER void save(int64 at, const State& state) {
        if (count == capacity) thin();
        if (at != next) return;
        push(at, state);
        next += stride;
    }

    WP_MEMBER void thin() {
        count = (count + 1) / 2;
        for (int64 i = 1; i < count; ++i) slots[i] = slots[2 * i];
        stride *= 2;
        next = count * stride;
    }

    WP_MEMBER void push(int64 at, const State& state) {
        slots[count].at = at;
        slots[count].state = state;
        ++count;
    }

    WP_MEMBER void finish() { home->count = count; }

    // -- reverse ------------------------------------------------------------------------------------------------------

    WP_MEMBER void resume() { count = home->count; }

    WP_MEMBER const slot& top() const { return slots[count - 1]; }

    // Before advancing from `at` to `target`: decide where the next checkpoint goes.
    WP_MEMBER void plan(int64 at, int64 target) {
        const int64 free = capacity - count;
        next = free > 0 ? at + treeverse_step(target - at + 1, free + 1) : target + 1;
    }
};

}  // namespace wp

#endif
