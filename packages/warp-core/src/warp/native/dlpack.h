// DLPack in both directions, as builtin functions of the interpreter. Included by runtime.cpp alone.
#pragma once

struct DLDevice {
    int type, id;
};

struct DLDataType {
    unsigned char code, bits;
    unsigned short lanes;
};

struct DLTensor {
    char* data;
    DLDevice device;
    int ndim;
    DLDataType dtype;
    const wp_int64* shape;
    const wp_int64* strides;  // in elements; null for row-major without gaps
    uint64 byte_offset;
};

struct DLManagedTensor {
    DLTensor tensor;
    void* context;
    void (*deleter)(DLManagedTensor*);
};

struct DLManagedTensorVersioned {
    uint32 major, minor;
    void* context;
    void (*deleter)(DLManagedTensorVersioned*);
    uint64 flags;
    DLTensor tensor;
};

enum { DLPACK_MAJOR = 1, DLPACK_MINOR = 0, DLPACK_READ_ONLY = 1, DLPACK_DIMENSIONS = 8, DLPACK_DIMENSIONS_READ = 32 };
static const char* const DLPACK_NAMES[2] = {"dltensor", "dltensor_versioned"};
static const char* const DLPACK_USED_NAMES[2] = {"used_dltensor", "used_dltensor_versioned"};
static const char* const DLPACK_KEEPER_NAMES[2] = {"warp_dltensor", "warp_dltensor_versioned"};

// What a capsule of ours points to; the managed tensor is its first member, so that one address serves for both.
struct Export {
    union {
        DLManagedTensor legacy;
        DLManagedTensorVersioned versioned;
    };
    PyObject* owner;
    wp_int64 shape[DLPACK_DIMENSIONS], strides[DLPACK_DIMENSIONS];
};

static PyObject* fail(PyObject** kind, const char* message) {
    if (!host.PyErr_Occurred()) host.PyErr_SetString(*kind, message);
    return nullptr;
}

// Consumers call this from any thread, with or without the interpreter lock.
static void release_export(void* address) {
    Export* made = (Export*)address;
    if (host.Py_IsInitialized()) {
        const int held = host.PyGILState_Ensure();
        host.Py_DecRef(made->owner);
        host.PyGILState_Release(held);
    }
    host.free(made);
}

static void release_legacy(DLManagedTensor* tensor) { release_export(tensor); }
static void release_versioned(DLManagedTensorVersioned* tensor) { release_export(tensor); }

static void call_deleter(void* managed, bool versioned) {
    if (versioned) {
        DLManagedTensorVersioned* tensor = (DLManagedTensorVersioned*)managed;
        if (tensor->deleter) tensor->deleter(tensor);
    } else {
        DLManagedTensor* tensor = (DLManagedTensor*)managed;
        if (tensor->deleter) tensor->deleter(tensor);
    }
}

// A consumer renames the capsule: one that still has its first name was never used.
static void free_unused_capsule(PyObject* capsule) {
    for (int versioned = 0; versioned < 2; ++versioned)
        if (host.PyCapsule_IsValid(capsule, DLPACK_NAMES[versioned]))
            call_deleter(host.PyCapsule_GetPointer(capsule, DLPACK_NAMES[versioned]), versioned);
}

static void free_keeper(PyObject* capsule) {
    for (int versioned = 0; versioned < 2; ++versioned)
        if (host.PyCapsule_IsValid(capsule, DLPACK_KEEPER_NAMES[versioned]))
            call_deleter(host.PyCapsule_GetPointer(capsule, DLPACK_KEEPER_NAMES[versioned]), versioned);
}

// Null with an exception set if a stride is negative (consumers abort on those) or cuts elements in two.
static bool read_layout(Export* made, PyObject* shape, PyObject* strides, long ndim, long item_size) {
    for (long d = 0; d < ndim; ++d) {
        made->shape[d] = host.PyLong_AsLongLong(host.PyTuple_GetItem(shape, d));
        const wp_int64 stride = host.PyLong_AsLongLong(host.PyTuple_GetItem(strides, d));
        if (stride < 0 && !host.PyErr_Occurred()) return fail(host.PyExc_BufferError, "DLPack: the array has a negative stride; export a copy");
        if (stride % item_size) return fail(host.PyExc_BufferError, "DLPack: a stride is no multiple of the element's size; export a copy");
        made->strides[d] = stride / item_size;
    }
    return !host.PyErr_Occurred();
}

// export(owner, address, shape, byte strides, item size, type code, device type, device id, flags, versioned) -> capsule
WP_EXPORT PyObject* wp_dlpack_export(PyObject*, PyObject* const* arguments, long count) {
    if (count != 10) return fail(host.PyExc_TypeError, "export() takes 10 arguments");
    const long ndim = host.PyTuple_Size(arguments[2]);
    if (ndim < 0 || host.PyTuple_Size(arguments[3]) != ndim) return fail(host.PyExc_TypeError, "export(): shape and strides differ in length");
    if (ndim > DLPACK_DIMENSIONS) return fail(host.PyExc_BufferError, "DLPack: too many dimensions");
    wp_int64 numbers[10] = {};
    for (int n = 4; n < 10; ++n) numbers[n] = host.PyLong_AsLongLong(arguments[n]);
    char* data = (char*)host.PyLong_AsVoidPtr(arguments[1]);
    if (host.PyErr_Occurred()) return nullptr;
    const long item_size = (long)numbers[4];
    const bool versioned = numbers[9] != 0;
    Export* made = item_size > 0 ? (Export*)host.malloc(sizeof(Export)) : nullptr;
    if (!made) return host.PyErr_NoMemory();
    if (!read_layout(made, arguments[2], arguments[3], ndim, item_size)) {
        host.free(made);
        return nullptr;
    }
    const DLDataType type = {(unsigned char)numbers[5], (unsigned char)(8 * item_size), 1};
    const DLTensor tensor = {data, {(int)numbers[6], (int)numbers[7]}, (int)ndim, type, made->shape, made->strides, 0};
    // The context serves Paddle, which calls no deleter where there is none.
    if (versioned)
        made->versioned = {DLPACK_MAJOR, DLPACK_MINOR, made, release_versioned, (uint64)numbers[8], tensor};
    else
        made->legacy = {tensor, made, release_legacy};
    PyObject* capsule = host.PyCapsule_New(made, DLPACK_NAMES[versioned], free_unused_capsule);
    if (!capsule) {
        host.free(made);
        return nullptr;
    }
    made->owner = arguments[0];
    host.Py_IncRef(made->owner);
    return capsule;
}

static PyObject* tuple_of(const wp_int64* values, int count) {
    PyObject* made = host.PyTuple_New(count);
    for (int n = 0; made && n < count; ++n) {
        PyObject* number = host.PyLong_FromLongLong(values[n]);
        if (!number) {
            host.Py_DecRef(made);
            return nullptr;
        }
        host.PyTuple_SetItem(made, n, number);
    }
    return made;
}

static PyObject* describe_import(PyObject* keeper, const DLTensor* tensor, uint64 flags) {
    const bool has_strides = tensor->strides != nullptr;
    PyObject* shape = tuple_of(tensor->shape, tensor->ndim);
    PyObject* strides = shape ? tuple_of(has_strides ? tensor->strides : tensor->shape, tensor->ndim) : nullptr;
    const uint64 address = tensor->data ? (uint64)tensor->data + tensor->byte_offset : 0;
    if (strides)
        return host.Py_BuildValue("(NKNNiiiiiK)", keeper, address, shape, strides, (int)has_strides, (int)tensor->dtype.code, (int)tensor->dtype.bits,
                                  tensor->device.type, tensor->device.id, flags | (uint64)tensor->dtype.lanes << 32);
    if (shape) host.Py_DecRef(shape);
    host.Py_DecRef(keeper);
    return nullptr;
}

// import(capsule) -> (keeper, address, shape, strides, has strides, code, bits, device type, device id, flags | lanes << 32)
// The memory lives as long as the keeper.
WP_EXPORT PyObject* wp_dlpack_import(PyObject*, PyObject* const* arguments, long count) {
    if (count != 1) return fail(host.PyExc_TypeError, "import() takes a capsule");
    PyObject* capsule = arguments[0];
    const bool versioned = host.PyCapsule_IsValid(capsule, DLPACK_NAMES[1]);
    if (!versioned && !host.PyCapsule_IsValid(capsule, DLPACK_NAMES[0])) {
        const bool used = host.PyCapsule_IsValid(capsule, DLPACK_USED_NAMES[0]) || host.PyCapsule_IsValid(capsule, DLPACK_USED_NAMES[1]);
        return fail(host.PyExc_BufferError, used ? "the DLPack capsule was used before; each can be used once" : "not a DLPack capsule");
    }
    void* managed = host.PyCapsule_GetPointer(capsule, DLPACK_NAMES[versioned]);
    if (versioned && ((DLManagedTensorVersioned*)managed)->major > DLPACK_MAJOR)
        return fail(host.PyExc_BufferError, "the DLPack capsule has a newer major version than 1");
    const DLTensor* tensor = versioned ? &((DLManagedTensorVersioned*)managed)->tensor : &((DLManagedTensor*)managed)->tensor;
    if (tensor->ndim < 0 || tensor->ndim > DLPACK_DIMENSIONS_READ) return fail(host.PyExc_BufferError, "DLPack: too many dimensions");
    PyObject* keeper = host.PyCapsule_New(managed, DLPACK_KEEPER_NAMES[versioned], free_keeper);
    if (!keeper) return nullptr;
    host.PyCapsule_SetName(capsule, DLPACK_USED_NAMES[versioned]);
    return describe_import(keeper, tensor, versioned ? ((DLManagedTensorVersioned*)managed)->flags : 0);
}
