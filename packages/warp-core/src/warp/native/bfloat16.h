// bfloat16: the upper half of a float, rounded to nearest even; arithmetic is that of narrow floats in core.h.
#ifndef WP_BFLOAT16_H
#define WP_BFLOAT16_H
#include "core.h"

namespace wp {

WP_FN uint16 bfloat16_bits_of(float x) {
    uint32 bits;
    __builtin_memcpy(&bits, &x, 4);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return (uint16)(bits >> 16 | 0x40u);
    return (uint16)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}
// A double is first rounded to odd, so that the second rounding sees whether anything was cut off.
WP_FN uint16 bfloat16_bits_of(double x) {
    float nearest = (float)x;
    if (nearest != nearest || (double)nearest == x) return bfloat16_bits_of(nearest);
    uint32 bits;
    __builtin_memcpy(&bits, &nearest, 4);
    const bool is_beyond = x < 0 ? (double)nearest < x : (double)nearest > x;
    if (is_beyond) --bits;
    bits |= 1u;
    __builtin_memcpy(&nearest, &bits, 4);
    return bfloat16_bits_of(nearest);
}

// More than 53 bits do not fit a double: the last one kept tells whether anything was cut off.
template <class T> WP_FN double sticky_double(T x) {
    const T magnitude = x < 0 ? (T)0 - x : x;
    if ((uint64)magnitude < ((uint64)1 << 53)) return (double)x;
    return (double)(T)((x & ~(T)0xfff) | (T)((x & (T)0xfff) != 0 ? 0x800 : 0));
}

struct bfloat16 {
    uint16 bits;
    bfloat16() = default;
    WP_MEMBER explicit bfloat16(float x) : bits(bfloat16_bits_of(x)) {}
    WP_MEMBER explicit bfloat16(double x) : bits(bfloat16_bits_of(x)) {}
    WP_MEMBER explicit bfloat16(int64 x) : bits(bfloat16_bits_of(sticky_double(x))) {}
    WP_MEMBER explicit bfloat16(uint64 x) : bits(bfloat16_bits_of(sticky_double(x))) {}
    WP_MEMBER explicit bfloat16(int32 x) : bits(bfloat16_bits_of((double)x)) {}
    WP_MEMBER explicit bfloat16(uint32 x) : bits(bfloat16_bits_of((double)x)) {}
    WP_MEMBER explicit bfloat16(int16 x) : bits(bfloat16_bits_of((float)x)) {}
    WP_MEMBER explicit bfloat16(uint16 x) : bits(bfloat16_bits_of((float)x)) {}
    WP_MEMBER explicit bfloat16(int8 x) : bits(bfloat16_bits_of((float)x)) {}
    WP_MEMBER explicit bfloat16(uint8 x) : bits(bfloat16_bits_of((float)x)) {}
    WP_MEMBER explicit bfloat16(bool x) : bits(bfloat16_bits_of((float)x)) {}
    WP_MEMBER explicit operator float() const {
        const uint32 wide = (uint32)bits << 16;
        float x;
        __builtin_memcpy(&x, &wide, 4);
        return x;
    }
    WP_MEMBER explicit operator double() const { return (float)*this; }
    WP_MEMBER static bfloat16 from_bits(uint16 pattern) {
        bfloat16 result;
        result.bits = pattern;
        return result;
    }
};
template <> constexpr bool is_narrow<bfloat16> = true;

WP_NARROW_OPERATORS(bfloat16)

}  // namespace wp

#endif
