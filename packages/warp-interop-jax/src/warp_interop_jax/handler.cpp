// The handler that XLA calls where a kernel stands in a compiled function: it finds the plan of the call, fills in the
// addresses of the buffers, and launches. It takes no interpreter lock. Warp pastes native/abi.h before this text.

// ---- what is needed of the C interface of XLA's FFI, version 0.1 ------------------------------------------------------

struct Extension {
    wp_size size;
    int type;
    Extension* next;
};
struct Version {
    wp_size size;
    Extension* next;
    int major, minor;
};
struct Metadata {
    wp_size size;
    Version version;
    unsigned traits;
};
struct MetadataExtension {
    Extension base;
    Metadata* metadata;
};
struct Buffer {
    wp_size size;
    Extension* next;
    int dtype;
    void* data;
    wp_int64 rank;
    wp_int64* dims;
};
struct Buffers {
    wp_size size;
    Extension* next;
    wp_int64 count;
    int* types;
    Buffer** items;
};
struct Span {
    const char* text;
    wp_size length;
};
struct Scalar {
    int dtype;
    void* value;
};
struct Attributes {
    wp_size size;
    Extension* next;
    wp_int64 count;
    int* types;
    Span** names;
    void** values;
};
struct ErrorArguments {
    wp_size size;
    Extension* next;
    const char* message;
    int code;
};
struct Interface {
    wp_size size;
    Extension* next;
    Version version;
    void* internal;
    void* (*create_error)(ErrorArguments*);
};
struct Frame {
    wp_size size;
    Extension* next;
    Interface* interface;
    void* context;
    int stage;
    Buffers inputs, results;
    Attributes attributes;
};

enum { METADATA = 1, EXECUTE = 3, SCALAR = 3, INT64 = 5, INVALID_ARGUMENT = 3, NOT_FOUND = 5, EXHAUSTED = 8, INTERNAL = 13 };
enum { MAX_BATCH_DIMS = 16, MESSAGE_SIZE = 2048 };

// ---- plans: the same structures are in plan.py ------------------------------------------------------------------------

// A buffer as one launch sees it. Dimensions before its own are those of batches.
struct Operand {
    wp_int64 rank;
    wp_int64 size;  // bytes
};
// Before the launches of each batch: copy from another buffer, or fill with zeros if source is negative.
struct Preparation {
    wp_int64 target, source;
};
struct Patch {
    wp_int64 offset, operand;
};
struct Step {
    wp_entry entry;
    const wp_launch* launch;
    const char* arguments;
    wp_int64 size;
    const Patch* patches;
    wp_int64 patch_count;
    wp_int64 flags;
};
struct Plan {
    wp_int64 key;
    Plan* next;
    wp_int64 input_count, result_count;
    const Operand* operands;  // inputs, then results
    const Preparation* preparations;
    wp_int64 preparation_count;
    const Step* steps;
    wp_int64 step_count;
    wp_int64 has_record;
    wp_int64 places, starts;  // results that hold parts of the record, or -1
    // Writes a message about a fault; called with what a step was run with.
    void (*describe)(const Plan*, wp_int64 step, const wp_fault*, char* message, wp_int64 capacity);
};

struct Tools {
    int (*launch)(wp_entry, const wp_launch*, const void*, long, wp_fault*);
    void (*free)(void*);
};

static Tools tools;
enum { BUCKETS = 4096 };
static Plan* plans[BUCKETS];

WP_EXPORT void wp_jax_bind(const Tools* given) { tools = *given; }

// The caller holds a lock; handlers may be looking for other plans meanwhile.
WP_EXPORT void wp_jax_add(Plan* plan) {
    Plan** head = &plans[(unsigned long long)plan->key % BUCKETS];
    plan->next = *head;
    __atomic_store_n(head, plan, __ATOMIC_RELEASE);
}

static const Plan* find_plan(wp_int64 key) {
    const Plan* plan = __atomic_load_n(&plans[(unsigned long long)key % BUCKETS], __ATOMIC_ACQUIRE);
    while (plan && plan->key != key) plan = plan->next;
    return plan;
}

// ---- calls ------------------------------------------------------------------------------------------------------------

static void* fail(Frame* frame, int code, const char* message) {
    ErrorArguments arguments = {sizeof(ErrorArguments), nullptr, message, code};
    return frame->interface->create_error(&arguments);
}

static const wp_int64* find_key(const Frame* frame) {
    for (wp_int64 i = 0; i < frame->attributes.count; ++i) {
        const Span* name = frame->attributes.names[i];
        if (frame->attributes.types[i] != SCALAR || name->length != 4 || wp_memcmp(name->text, "plan", 4)) continue;
        const Scalar* scalar = (const Scalar*)frame->attributes.values[i];
        if (scalar->dtype == INT64) return (const wp_int64*)scalar->value;
    }
    return nullptr;
}

struct Batch {
    wp_int64 rank;
    wp_int64 extents[MAX_BATCH_DIMS];
};

// False if the leading dimensions of the buffers do not fit together.
static bool find_batch(const Plan* plan, Buffer* const* buffers, wp_int64 count, Batch* batch) {
    batch->rank = 0;
    for (wp_int64 i = 0; i < count; ++i) {
        const wp_int64 rank = buffers[i]->rank - plan->operands[i].rank;
        if (rank < 0 || rank > MAX_BATCH_DIMS) return false;
        if (rank > batch->rank) batch->rank = rank;
    }
    for (wp_int64 d = 0; d < batch->rank; ++d) batch->extents[d] = 1;
    for (wp_int64 i = 0; i < count; ++i) {
        const wp_int64 rank = buffers[i]->rank - plan->operands[i].rank, first = batch->rank - rank;
        for (wp_int64 d = 0; d < rank; ++d) {
            const wp_int64 extent = buffers[i]->dims[d];
            wp_int64* known = &batch->extents[first + d];
            if (extent != 1 && *known != 1 && *known != extent) return false;
            if (extent != 1) *known = extent;
        }
    }
    return true;
}

// Addresses of all buffers for one element of the batch; those without a dimension, or with one of 1, are shared.
static void locate(const Plan* plan, Buffer* const* buffers, wp_int64 count, const Batch* batch, const wp_int64* index, char** found) {
    for (wp_int64 i = 0; i < count; ++i) {
        const wp_int64 rank = buffers[i]->rank - plan->operands[i].rank, first = batch->rank - rank;
        wp_int64 place = 0;
        for (wp_int64 d = 0; d < rank; ++d) {
            const wp_int64 extent = buffers[i]->dims[d];
            place = place * extent + (extent == 1 ? 0 : index[first + d]);
        }
        found[i] = (char*)buffers[i]->data + place * plan->operands[i].size;
    }
}

static void* run_steps(Frame* frame, const Plan* plan, char* const* addresses, wp_record* record) {
    for (wp_int64 i = 0; i < plan->preparation_count; ++i) {
        const Preparation* preparation = &plan->preparations[i];
        char* target = addresses[preparation->target];
        const wp_size size = (wp_size)plan->operands[preparation->target].size;
        if (preparation->source < 0) wp_memset(target, 0, size);
        else if (target != addresses[preparation->source]) wp_memcpy(target, addresses[preparation->source], size);
    }
    for (wp_int64 i = 0; i < plan->step_count; ++i) {
        const Step* step = &plan->steps[i];
        char* arguments = (char*)__builtin_alloca((wp_size)step->size);
        wp_memcpy(arguments, step->arguments, (wp_size)step->size);
        for (wp_int64 j = 0; j < step->patch_count; ++j)
            *(void**)(arguments + step->patches[j].offset) = addresses[step->patches[j].operand];
        wp_launch launch = *step->launch;
        launch.record = record;
        wp_fault fault = {};
        if (tools.launch(step->entry, &launch, arguments, (long)step->flags, &fault))
            return fail(frame, EXHAUSTED, "warp: there is no memory for the launch of a kernel");
        if (fault.kind != WP_FAULT_NONE) {
            char message[MESSAGE_SIZE];
            plan->describe(plan, i, &fault, message, MESSAGE_SIZE);
            return fail(frame, INTERNAL, message);
        }
        if (record && record->is_full)
            return fail(frame, EXHAUSTED, "warp: there is no memory for what the adjoint of a kernel needs");
    }
    return nullptr;
}

static void* run_batch_element(Frame* frame, const Plan* plan, char* const* addresses) {
    if (!plan->has_record) return run_steps(frame, plan, addresses, nullptr);
    wp_record record = {};
    if (plan->places >= 0) record.places = addresses[plan->places];
    if (plan->starts >= 0) record.starts = (wp_int64*)addresses[plan->starts];
    void* error = run_steps(frame, plan, addresses, &record);
    if (record.stream) tools.free(record.stream);
    return error;
}

static void* run(Frame* frame, const Plan* plan) {
    if (frame->inputs.count != plan->input_count || frame->results.count != plan->result_count)
        return fail(frame, INVALID_ARGUMENT, "warp: the number of buffers is not what the kernel was prepared for");
    const wp_int64 count = plan->input_count + plan->result_count;
    Buffer** buffers = (Buffer**)__builtin_alloca((wp_size)count * sizeof(Buffer*));
    for (wp_int64 i = 0; i < plan->input_count; ++i) buffers[i] = frame->inputs.items[i];
    for (wp_int64 i = 0; i < plan->result_count; ++i) buffers[plan->input_count + i] = frame->results.items[i];
    Batch batch;
    if (!find_batch(plan, buffers, count, &batch))
        return fail(frame, INVALID_ARGUMENT, "warp: the dimensions of the buffers are not what the kernel was prepared for");
    char** addresses = (char**)__builtin_alloca((wp_size)count * sizeof(char*));
    wp_int64 index[MAX_BATCH_DIMS] = {};
    for (wp_int64 d = 0; d < batch.rank; ++d)
        if (batch.extents[d] == 0) return nullptr;
    for (;;) {
        locate(plan, buffers, count, &batch, index, addresses);
        void* error = run_batch_element(frame, plan, addresses);
        if (error) return error;
        wp_int64 d = batch.rank - 1;
        while (d >= 0 && ++index[d] == batch.extents[d]) index[d--] = 0;
        if (d < 0) return nullptr;
    }
}

WP_EXPORT void* wp_jax_call(Frame* frame) {
    for (Extension* extension = frame->next; extension; extension = extension->next) {
        if (extension->type != METADATA) continue;
        Metadata* metadata = ((MetadataExtension*)extension)->metadata;
        // The version that every runtime accepts; a handler that is refused would stop the backend from starting.
        metadata->version.major = 0;
        metadata->version.minor = 1;
        metadata->traits = 0;
        return nullptr;
    }
    if (frame->stage != EXECUTE) return nullptr;
    const wp_int64* key = find_key(frame);
    if (!key) return fail(frame, INVALID_ARGUMENT, "warp: the call does not name the kernel to run");
    const Plan* plan = find_plan(*key);
    if (!plan)
        return fail(frame, NOT_FOUND,
                    "warp: this process has not prepared the kernel; trace a function that calls it before running one "
                    "that was exported");
    return run(frame, plan);
}
