// The memory functions that compilers may call although the source does not; without them an object would refer to libc.
#ifndef WP_FREESTANDING_H
#define WP_FREESTANDING_H

typedef __SIZE_TYPE__ wp_size;

#define WP_TEXT_(text) #text
#define WP_TEXT(text) WP_TEXT_(text)
// Named by label, because g++ ignores the visibility of functions it knows.
#define WP_HIDDEN(result, name, parameters)                                                                                \
    extern "C" __attribute__((visibility("hidden"), used)) result wp_##name parameters                                     \
        __asm__(WP_TEXT(__USER_LABEL_PREFIX__) #name);                                                                     \
    result wp_##name parameters
// Stops the compiler from recognising the loop as a call of the very function it is in.
#define WP_OPAQUE(pointer) __asm__ volatile("" : "+r"(pointer) : : "memory")

typedef unsigned char wp_block __attribute__((vector_size(16), aligned(1), may_alias));

WP_HIDDEN(void*, memcpy, (void* target, const void* source, wp_size size)) {
    char* to = (char*)target;
    const char* from = (const char*)source;
    for (; size >= 64; size -= 64, to += 64, from += 64) {
        WP_OPAQUE(to);
        wp_block a = ((const wp_block*)from)[0], b = ((const wp_block*)from)[1];
        wp_block c = ((const wp_block*)from)[2], d = ((const wp_block*)from)[3];
        ((wp_block*)to)[0] = a;
        ((wp_block*)to)[1] = b;
        ((wp_block*)to)[2] = c;
        ((wp_block*)to)[3] = d;
    }
    for (; size; --size, ++to, ++from) {
        WP_OPAQUE(to);
        *to = *from;
    }
    return target;
}

WP_HIDDEN(void*, memmove, (void* target, const void* source, wp_size size)) {
    // Blocks are read whole before they are written, so ascending order is right whenever the target comes first.
    if ((wp_size)target <= (wp_size)source || (wp_size)target >= (wp_size)source + size)
        return wp_memcpy(target, source, size);
    char* to = (char*)target + size;
    const char* from = (const char*)source + size;
    for (; size >= 16; size -= 16) {
        to -= 16;
        from -= 16;
        WP_OPAQUE(to);
        *(wp_block*)to = *(const wp_block*)from;
    }
    while (size--) {
        WP_OPAQUE(to);
        *--to = *--from;
    }
    return target;
}

WP_HIDDEN(void*, memset, (void* target, int value, wp_size size)) {
    char* to = (char*)target;
    unsigned char byte = (unsigned char)value;
    wp_block block = {byte, byte, byte, byte, byte, byte, byte, byte, byte, byte, byte, byte, byte, byte, byte, byte};
    for (; size >= 64; size -= 64, to += 64) {
        WP_OPAQUE(to);
        ((wp_block*)to)[0] = block;
        ((wp_block*)to)[1] = block;
        ((wp_block*)to)[2] = block;
        ((wp_block*)to)[3] = block;
    }
    for (; size; --size, ++to) {
        WP_OPAQUE(to);
        *to = (char)byte;
    }
    return target;
}

WP_HIDDEN(int, memcmp, (const void* left, const void* right, wp_size size)) {
    const unsigned char* a = (const unsigned char*)left;
    const unsigned char* b = (const unsigned char*)right;
    for (; size; --size, ++a, ++b) {
        WP_OPAQUE(a);
        if (*a != *b) return *a < *b ? -1 : 1;
    }
    return 0;
}

WP_HIDDEN(int, bcmp, (const void* left, const void* right, wp_size size)) { return wp_memcmp(left, right, size); }

#endif
