// What the bindings find in the place of libcuda.so: calls about conditional nodes that note what they are given. Needs no
// C library. `recorded` holds, call after call, what the test expects in the order of the arguments.
typedef unsigned long long word;
#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT word recorded[256];
EXPORT int record_count;
word recorded[256];
int record_count;

static word nodes[2] = {0x501, 0x502}, body = 0xb0d1, *bodies = &body;
static unsigned char edges[16];

static void note(word value) {
    if (record_count < 256) recorded[record_count++] = value;
}
static bool is_same(const char* a, const char* b) {
    while (*a && *a == *b) ++a, ++b;
    return *a == *b;
}

static int succeed(unsigned) { return 0; }
static int version(int* number) {
    *number = 12090;
    return 0;
}
static int context(word* found) {
    *found = 0xc7;
    return 0;
}
static int missing() { return 801; }
static int error_text(int, const char** text) {
    *text = "not in the stub";
    return 0;
}
static int info(word stream, int* status, word* id, word* graph, const word** found, word* count) {
    note(stream);
    *status = 1;
    if (id) *id = 7;
    *graph = 0x6f;
    *found = nodes;
    *count = 2;
    return 0;
}
static int info_with_edges(
    word stream, int* status, word* id, word* graph, const word** found, const void** data, word* count) {
    *data = edges;
    return info(stream, status, id, graph, found, count);
}
static int add(word* node, word graph, const word* after, word count, void* parameters) {
    const int type = *(int*)parameters;
    word* own = (word*)((char*)parameters + 16);
    note(graph), note(after[0]), note(after[1]), note(count), note(type), note(own[0]);
    if (type == 13) {  // conditional: handle, kind and size, graphs, context
        note((unsigned)own[1]), note(own[1] >> 32), note(own[3]);
        own[2] = (word)bodies;
    }
    *node = 0x503;
    return 0;
}
static int add_with_edges(word* node, word graph, const word* after, const void* data, word count, void* parameters) {
    return data ? add(node, graph, after, count, parameters) : 1;
}
static int update(word stream, const word* after, word count, unsigned flags) {
    note(stream), note(after[0]), note(count), note(flags);
    return 0;
}
static int update_with_edges(word stream, const word* after, const void*, word count, unsigned flags) {
    return update(stream, after, count, flags);
}
static int begin(word stream, word graph, const word*, const void*, word count, int mode) {
    note(stream), note(graph), note(count), note(mode);
    return 0;
}
static int condition(word* handle, word graph, word owner, unsigned first, unsigned flags) {
    note(graph), note(owner), note(first), note(flags);
    *handle = 0xabcdef0123;
    return 0;
}

EXPORT int cuGetProcAddress_v2(const char* name, void** function, int since, word, int* status) {
    const bool has_edges = since >= 12030;  // the functions of CUDA 13, which 12 has under other names
    if (status) *status = 0;
    *function = (void*)missing;
    if (is_same(name, "cuGetProcAddress")) *function = (void*)cuGetProcAddress_v2;
    if (is_same(name, "cuInit")) *function = (void*)succeed;
    if (is_same(name, "cuDriverGetVersion")) *function = (void*)version;
    if (is_same(name, "cuCtxGetCurrent")) *function = (void*)context;
    if (is_same(name, "cuGetErrorString")) *function = (void*)error_text;
    if (is_same(name, "cuStreamGetCaptureInfo")) *function = has_edges ? (void*)info_with_edges : (void*)info;
    if (is_same(name, "cuGraphAddNode")) *function = has_edges ? (void*)add_with_edges : (void*)add;
    if (is_same(name, "cuStreamUpdateCaptureDependencies"))
        *function = has_edges ? (void*)update_with_edges : (void*)update;
    if (is_same(name, "cuStreamBeginCaptureToGraph")) *function = (void*)begin;
    if (is_same(name, "cuGraphConditionalHandleCreate")) *function = (void*)condition;
    return 0;
}
