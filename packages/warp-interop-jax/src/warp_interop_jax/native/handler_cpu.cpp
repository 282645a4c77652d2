// The handler that XLA calls on the CPU where a kernel stands in a compiled function: it finds the plan of the call, fills
// in the addresses of the buffers, and launches. It takes no interpreter lock. native/plans.h comes before this text.

struct Step {
    wp_entry entry;
    const wp_launch* launch;
    const char* arguments;
    wp_int64 size;
    const Patch* patches;
    wp_int64 patch_count;
    wp_int64 flags;
};
// Results that hold parts of the record of the launches, or -1.
struct Record {
    wp_int64 places, starts;
};
struct Tools {
    int (*launch)(wp_entry, const wp_launch*, const void*, long, wp_fault*);
    void (*free)(void*);
    char* zeros;
    // Writes a message about a fault; called with what a step was run with.
    void (*describe)(const Plan*, wp_int64 step, const wp_fault*, char* message, wp_int64 capacity);
};

static Tools tools;

WP_EXPORT void wp_jax_bind(const Tools* given) { tools = *given; }

static wp_int64 added_operands() { return 1; }

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
            tools.describe(plan, i, &fault, message, MESSAGE_SIZE);
            return fail(frame, INTERNAL, message);
        }
        if (record && record->is_full)
            return fail(frame, EXHAUSTED, "warp: there is no memory for what the adjoint of a kernel needs");
    }
    return nullptr;
}

static void* run_batch_element(Frame* frame, const Plan* plan, char** addresses, const Place*) {
    addresses[plan->input_count + plan->result_count + ZEROS] = tools.zeros;
    if (!plan->record) return run_steps(frame, plan, addresses, nullptr);
    wp_record record = {};
    if (plan->record->places >= 0) record.places = addresses[plan->record->places];
    if (plan->record->starts >= 0) record.starts = (wp_int64*)addresses[plan->record->starts];
    void* error = run_steps(frame, plan, addresses, &record);
    if (record.stream) tools.free(record.stream);
    return error;
}

WP_EXPORT void* wp_jax_call(Frame* frame) {
    if (answer_metadata(frame, 0) || frame->stage != EXECUTE) return nullptr;
    void* error = nullptr;
    const Plan* plan = plan_of(frame, &error);
    return plan ? run_batch(frame, plan, nullptr) : error;
}
