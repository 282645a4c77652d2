// The handler that XLA calls on CUDA devices: it finds the plan of the call and queues copies, fills and launches on
// XLA's stream. It takes no interpreter lock but to describe an error, and waits for the device only where the plan says
// so; other calls may be captured in a graph. native/plans.h comes before this text.

// Kernels take a wp_launch and the struct of arguments; both lie one after the other in `parameters`, which the patches
// concern. Arrays are by ordinal of the device.
struct Step {
    void* const* kernels;
    wp_fault* const* faults;  // where the kernel reports, in memory of the host; null if it has no checks
    const char* parameters;
    wp_int64 size;
    const Patch* patches;
    wp_int64 patch_count;
    wp_int64 grid, block;
    wp_int64 waits;  // look at the fault at once
};
// A record with a stream: the first step makes it empty, the second fills it, the others use it.
struct Record {
    wp_int64 header;  // the result that holds it
    wp_int64 missing;  // where in it the bytes are that each thread wanted more
    wp_int64 threads;
    wp_int64 share;  // bytes of the stream for each thread; it grows
};
struct Device {
    void* context;  // null where the plan was not prepared for the device
    void* zeros;
};
// Operands after those of the buffers and the zeros: the stream of a record, and its size.
enum { STREAM = ZEROS + 1, CAPACITY, ADDED };

struct Place {
    wp_int64 ordinal;
    const Device* device;
    void* stream;
};

typedef int Status;
struct Tools {
    Status (*launch)(void* kernel, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void* stream, void** parameters, void** extra);
    Status (*fill)(void* target, unsigned char value, wp_size size, void* stream);
    Status (*copy)(void* target, void* source, wp_size size, void* stream);
    Status (*allocate)(void** found, wp_size size, void* stream);
    Status (*free)(void* memory, void* stream);
    Status (*synchronize)(void* stream);
    Status (*get_context)(void** found);
    Status (*set_context)(void* context);
    // Write a message: about a fault of a step, about what a function of the driver has returned.
    void (*describe)(const Plan*, wp_int64 step, const wp_fault*, char* message, wp_int64 capacity);
    void (*explain)(const char* function, int status, char* message, wp_int64 capacity);
};

static Tools tools;

WP_EXPORT void wp_jax_bind(const Tools* given) { tools = *given; }

static wp_int64 added_operands() { return ADDED; }

static void* refuse(Frame* frame, const char* function, Status status) {
    char message[MESSAGE_SIZE];
    tools.explain(function, status, message, MESSAGE_SIZE);
    return fail(frame, INTERNAL, message);
}

// Report and forget what a kernel has found, if it has run.
static void* take_fault(Frame* frame, const Plan* plan, wp_int64 step, const Place* place) {
    if (!plan->steps[step].faults) return nullptr;
    wp_fault* fault = plan->steps[step].faults[place->ordinal];
    const int kind = __atomic_load_n(&fault->kind, __ATOMIC_ACQUIRE);
    if (kind == WP_FAULT_NONE || kind == WP_FAULT_LOCKED) return nullptr;
    char message[MESSAGE_SIZE];
    tools.describe(plan, step, fault, message, MESSAGE_SIZE);
    __atomic_store_n(&fault->kind, WP_FAULT_NONE, __ATOMIC_RELEASE);
    return fail(frame, INTERNAL, message);
}

static void* prepare(Frame* frame, const Plan* plan, char* const* addresses, const Place* place) {
    for (wp_int64 i = 0; i < plan->preparation_count; ++i) {
        const Preparation* preparation = &plan->preparations[i];
        char* target = addresses[preparation->target];
        const wp_size size = (wp_size)plan->operands[preparation->target].size;
        if (!size) continue;
        char* source = preparation->source < 0 ? nullptr : addresses[preparation->source];
        if (source == target) continue;
        const Status status = source ? tools.copy(target, source, size, place->stream) : tools.fill(target, 0, size, place->stream);
        if (status) return refuse(frame, source ? "cuMemcpyAsync" : "cuMemsetD8Async", status);
    }
    return nullptr;
}

static void* run_step(Frame* frame, const Plan* plan, wp_int64 number, char* const* addresses, const Place* place) {
    const Step* step = &plan->steps[number];
    if (!step->grid) return nullptr;
    char* parameters = (char*)__builtin_alloca((wp_size)step->size);
    wp_memcpy(parameters, step->parameters, (wp_size)step->size);
    for (wp_int64 i = 0; i < step->patch_count; ++i)
        *(void**)(parameters + step->patches[i].offset) = addresses[step->patches[i].operand];
    if (step->faults) ((wp_launch*)parameters)->fault = step->faults[place->ordinal];
    void* both[] = {parameters, parameters + sizeof(wp_launch)};
    Status status = tools.launch(step->kernels[place->ordinal], (unsigned)step->grid, 1, 1, (unsigned)step->block, 1, 1, 0,
                                 place->stream, both, nullptr);
    if (status) return refuse(frame, "cuLaunchKernel", status);
    if (!step->waits) return nullptr;
    status = tools.synchronize(place->stream);
    return status ? refuse(frame, "cuStreamSynchronize", status) : take_fault(frame, plan, number, place);
}

static void* run_steps(Frame* frame, const Plan* plan, wp_int64 first, wp_int64 end, char* const* addresses, const Place* place) {
    void* error = nullptr;
    for (wp_int64 i = first; i < end && !error; ++i) error = run_step(frame, plan, i, addresses, place);
    return error;
}

// Record with a share of the stream for each thread; `missing` is by how many bytes it was too small.
static void* keep(Frame* frame, const Plan* plan, char** addresses, const Place* place, wp_int64* missing) {
    void* error = prepare(frame, plan, addresses, place);
    if (!error) error = run_steps(frame, plan, 0, 2, addresses, place);
    if (error) return error;
    char* header = addresses[plan->record->header];
    Status status = tools.copy(missing, header + plan->record->missing, sizeof *missing, place->stream);
    if (status) return refuse(frame, "cuMemcpyAsync", status);
    status = tools.synchronize(place->stream);
    return status ? refuse(frame, "cuStreamSynchronize", status) : nullptr;
}

// How much the threads append is known when they have run: with too little room they run again.
static void* run_with_stream(Frame* frame, const Plan* plan, char** addresses, const Place* place) {
    char** added = addresses + plan->input_count + plan->result_count;
    for (;;) {
        const wp_int64 share = __atomic_load_n(&plan->record->share, __ATOMIC_RELAXED);
        const wp_size size = (wp_size)(share * plan->record->threads);
        void* memory = nullptr;
        Status status = tools.allocate(&memory, size, place->stream);
        if (status) return refuse(frame, "cuMemAllocAsync", status);
        added[STREAM] = (char*)memory;
        added[CAPACITY] = (char*)size;
        wp_int64 missing = 0;
        void* error = keep(frame, plan, addresses, place, &missing);
        if (!error && !missing) error = run_steps(frame, plan, 2, plan->step_count, addresses, place);
        status = tools.free(memory, place->stream);
        if (!error && status) error = refuse(frame, "cuMemFreeAsync", status);
        if (error || !missing) return error;
        __atomic_store_n(&plan->record->share, share + (missing + 7) / 8 * 8, __ATOMIC_RELAXED);
    }
}

static void* run_batch_element(Frame* frame, const Plan* plan, char** addresses, const Place* place) {
    addresses[plan->input_count + plan->result_count + ZEROS] = (char*)place->device->zeros;
    if (plan->record) return run_with_stream(frame, plan, addresses, place);
    void* error = prepare(frame, plan, addresses, place);
    return error ? error : run_steps(frame, plan, 0, plan->step_count, addresses, place);
}

// The device of a call: what the runtime says, or for older ones the device whose context is current; -1 for others.
static wp_int64 find_ordinal(Frame* frame, const Plan* plan, void* context, void** error) {
    Interface* interface = frame->interface;
    if (interface->size >= sizeof(Interface) && interface->find_ordinal) {
        OrdinalArguments arguments = {sizeof(OrdinalArguments), nullptr, frame->context, -1};
        *error = interface->find_ordinal(&arguments);
        const wp_int64 found = arguments.ordinal;
        return 0 <= found && found < plan->device_count && plan->devices[found].context ? found : -1;
    }
    for (wp_int64 i = 0; i < plan->device_count; ++i)
        if (context && plan->devices[i].context == context) return i;
    return -1;
}

static void* run_on_device(Frame* frame, const Plan* plan, const Place* place) {
    for (wp_int64 i = 0; i < plan->step_count; ++i)
        if (void* error = take_fault(frame, plan, i, place)) return error;
    return run_batch(frame, plan, place);
}

static void* run_on_stream(Frame* frame, const Plan* plan) {
    StreamArguments arguments = {sizeof(StreamArguments), nullptr, frame->context, nullptr};
    if (void* error = frame->interface->find_stream(&arguments)) return error;
    void* previous = nullptr;
    Status status = tools.get_context(&previous);
    if (status) return refuse(frame, "cuCtxGetCurrent", status);
    void* error = nullptr;
    const wp_int64 ordinal = find_ordinal(frame, plan, previous, &error);
    if (error) return error;
    if (ordinal < 0)
        return fail(frame, FAILED_PRECONDITION, "warp: the kernel was not prepared for the device that it is to run on");
    const Place place = {ordinal, &plan->devices[ordinal], arguments.stream};
    if (previous != place.device->context && (status = tools.set_context(place.device->context)))
        return refuse(frame, "cuCtxSetCurrent", status);
    error = run_on_device(frame, plan, &place);
    if (previous != place.device->context) tools.set_context(previous);
    return error;
}

static void* call(Frame* frame, unsigned traits) {
    if (answer_metadata(frame, traits) || frame->stage != EXECUTE) return nullptr;
    void* error = nullptr;
    const Plan* plan = plan_of(frame, &error);
    return plan ? run_on_stream(frame, plan) : error;
}

WP_EXPORT void* wp_jax_call(Frame* frame) { return call(frame, GRAPH_COMPATIBLE); }

// For plans that wait for the device.
WP_EXPORT void* wp_jax_call_without_graph(Frame* frame) { return call(frame, 0); }
