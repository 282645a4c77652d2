// What is needed of the C interface of XLA's FFI, version 0.1. Warp pastes native/abi.h before this text.

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
struct StreamArguments {
    wp_size size;
    Extension* next;
    void* context;
    void* stream;
};
struct OrdinalArguments {
    wp_size size;
    Extension* next;
    void* context;
    int ordinal;
};
// A runtime that is older than the last members says so by its size.
struct Interface {
    wp_size size;
    Extension* next;
    Version version;
    void* internal;
    void* (*create_error)(ErrorArguments*);
    void* error_message;
    void* destroy_error;
    void* register_handler;
    void* (*find_stream)(StreamArguments*);
    void* unused[12];
    void* (*find_ordinal)(OrdinalArguments*);
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

enum { METADATA = 1, EXECUTE = 3, SCALAR = 3, INT64 = 5, GRAPH_COMPATIBLE = 1 };
enum { INVALID_ARGUMENT = 3, NOT_FOUND = 5, EXHAUSTED = 8, FAILED_PRECONDITION = 9, INTERNAL = 13 };

