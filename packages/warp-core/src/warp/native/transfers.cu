// Copying, filling and adding elements of arrays with gaps on a CUDA device. Compiled with the headers core.h, half.h and
// bfloat16.h in front, once per architecture.

namespace wp {

// Elements of an array in row-major order, from one of them on.
struct layout {
    int64 first;
    int64 shape[4];
    int64 strides[4];
};

struct copy_arguments {
    char* target;
    const char* source;
    layout to;
    layout from;
    int64 words;  // per element
    int64 word;   // bytes
};

struct fill_arguments {
    char* target;
    layout to;
    int64 words;
    int64 word;
    char pattern[1024];
};

// kind: 0 float16, 1 bfloat16, 2 float32, 3 float64. width scalars lie one after the other in each element.
struct add_arguments {
    char* target;
    const char* source;
    layout to;
    layout from;
    int64 width;
    int64 kind;
};

WP_FN int64 place(const layout& l, int64 item) {
    int64 rest = l.first + item, bytes = 0;
    for (int axis = 3; axis > 0; --axis) {
        bytes += rest % l.shape[axis] * l.strides[axis];
        rest /= l.shape[axis];
    }
    return bytes + rest * l.strides[0];
}

WP_FN void move_word(char* target, const char* source, int64 word) {
    if (word == 8) *(uint64*)target = *(const uint64*)source;
    else if (word == 4) *(uint32*)target = *(const uint32*)source;
    else if (word == 2) *(uint16*)target = *(const uint16*)source;
    else *target = *source;
}

template <class T> WP_FN void add_number(char* target, const char* source, int64 number) {
    ((T*)target)[number] += ((const T*)source)[number];
}

}  // namespace wp

#define WP_ITEMS(item)                                                                                     \
    for (wp_int64 item = (wp_int64)blockIdx.x * blockDim.x + threadIdx.x; item < launch.size;              \
         item += (wp_int64)gridDim.x * blockDim.x)

extern "C" __global__ void wp_copy(const __grid_constant__ wp_launch launch, const __grid_constant__ wp::copy_arguments args) {
    WP_ITEMS(item) {
        const wp::int64 element = item / args.words, offset = item % args.words * args.word;
        wp::move_word(args.target + wp::place(args.to, element) + offset, args.source + wp::place(args.from, element) + offset,
                      args.word);
    }
}

extern "C" __global__ void wp_fill(const __grid_constant__ wp_launch launch, const __grid_constant__ wp::fill_arguments args) {
    WP_ITEMS(item) {
        const wp::int64 element = item / args.words, offset = item % args.words * args.word;
        wp::move_word(args.target + wp::place(args.to, element) + offset, args.pattern + offset, args.word);
    }
}

extern "C" __global__ void wp_add(const __grid_constant__ wp_launch launch, const __grid_constant__ wp::add_arguments args) {
    WP_ITEMS(item) {
        const wp::int64 element = item / args.width, number = item % args.width;
        char* target = args.target + wp::place(args.to, element);
        const char* source = args.source + wp::place(args.from, element);
        if (args.kind == 0) wp::add_number<wp::half>(target, source, number);
        else if (args.kind == 1) wp::add_number<wp::bfloat16>(target, source, number);
        else if (args.kind == 2) wp::add_number<wp::float32>(target, source, number);
        else wp::add_number<wp::float64>(target, source, number);
    }
}
