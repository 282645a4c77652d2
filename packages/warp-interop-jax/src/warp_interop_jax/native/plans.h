// Plans of calls, and what is the same on every platform: which plan a call names, and the elements of its batch. It is
// followed by the text of a platform, which says what a Step is and runs the steps of one element.

enum { MAX_BATCH_DIMS = 16, MESSAGE_SIZE = 2048 };

// ---- plans: the same structures are in native_plan.py -----------------------------------------------------------------

// A buffer as one launch sees it. Dimensions before its own are those of batches.
struct Operand {
    wp_int64 rank;
    wp_int64 size;  // bytes
};
// Before the launches of each batch: copy from another buffer, or fill with zeros if source is negative.
struct Preparation {
    wp_int64 target, source;
};
// Where an address goes. Operands are the buffers of inputs, then of results, then what the platform adds.
struct Patch {
    wp_int64 offset, operand;
};
struct Step;
struct Record;
struct Device;
struct Plan {
    wp_int64 key;
    Plan* next;
    wp_int64 input_count, result_count;
    const Operand* operands;  // inputs, then results
    const Preparation* preparations;
    wp_int64 preparation_count;
    const Step* steps;
    wp_int64 step_count;
    Record* record;  // null where no launch needs one
    const Device* devices;
    wp_int64 device_count;
};

enum { BUCKETS = 4096 };
static Plan* plans[BUCKETS];

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

// What a platform knows of a call besides its buffers.
struct Place;
// How many operands a platform adds to those of the buffers; the first is an array of zeros.
static wp_int64 added_operands();
enum { ZEROS };
static void* run_batch_element(Frame* frame, const Plan* plan, char** addresses, const Place* place);

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

static void* run_batch(Frame* frame, const Plan* plan, const Place* place) {
    if (frame->inputs.count != plan->input_count || frame->results.count != plan->result_count)
        return fail(frame, INVALID_ARGUMENT, "warp: the number of buffers is not what the kernel was prepared for");
    const wp_int64 count = plan->input_count + plan->result_count;
    Buffer** buffers = (Buffer**)__builtin_alloca((wp_size)count * sizeof(Buffer*));
    for (wp_int64 i = 0; i < plan->input_count; ++i) buffers[i] = frame->inputs.items[i];
    for (wp_int64 i = 0; i < plan->result_count; ++i) buffers[plan->input_count + i] = frame->results.items[i];
    Batch batch;
    if (!find_batch(plan, buffers, count, &batch))
        return fail(frame, INVALID_ARGUMENT, "warp: the dimensions of the buffers are not what the kernel was prepared for");
    char** addresses = (char**)__builtin_alloca((wp_size)(count + added_operands()) * sizeof(char*));
    wp_int64 index[MAX_BATCH_DIMS] = {};
    for (wp_int64 d = 0; d < batch.rank; ++d)
        if (batch.extents[d] == 0) return nullptr;
    for (;;) {
        locate(plan, buffers, count, &batch, index, addresses);
        void* error = run_batch_element(frame, plan, addresses, place);
        if (error) return error;
        wp_int64 d = batch.rank - 1;
        while (d >= 0 && ++index[d] == batch.extents[d]) index[d--] = 0;
        if (d < 0) return nullptr;
    }
}

// What XLA asks when a handler is registered; false if it does not ask.
static bool answer_metadata(Frame* frame, unsigned traits) {
    for (Extension* extension = frame->next; extension; extension = extension->next) {
        if (extension->type != METADATA) continue;
        Metadata* metadata = ((MetadataExtension*)extension)->metadata;
        // The version that every runtime accepts; a handler that is refused would stop the backend from starting.
        metadata->version.major = 0;
        metadata->version.minor = 1;
        metadata->traits = traits;
        return true;
    }
    return false;
}

// The plan that a call names; null with an error if there is none.
static const Plan* plan_of(Frame* frame, void** error) {
    const wp_int64* key = find_key(frame);
    const Plan* plan = key ? find_plan(*key) : nullptr;
    if (!key) *error = fail(frame, INVALID_ARGUMENT, "warp: the call does not name the kernel to run");
    else if (!plan)
        *error = fail(frame, NOT_FOUND,
                      "warp: this process has not prepared the kernel; trace a function that calls it before running one "
                      "that was exported");
    return plan;
}
