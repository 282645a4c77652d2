// float16: our own conversions, directly from each type, to nearest even; arithmetic is that of narrow
// floats in core.h.
#ifndef WP_HALF_H
#define WP_HALF_H
#include "core.h"

namespace wp {

WP_FN uint32 float_bits(float x) {
    uint32 bits;
    __builtin_memcpy(&bits, &x, 4);
    return bits;
}
WP_FN uint64 double_bits(double x) {
    uint64 bits;
    __builtin_memcpy(&bits, &x, 8);
    return bits;
}
WP_FN float float_from_bits(uint32 bits) {
    float x;
    __builtin_memcpy(&x, &bits, 4);
    return x;
}

WP_FN uint16 half_bits_of(float x) {
    uint32 bits = float_bits(x);
    const uint32 sign = bits >> 16 & 0x8000u;
    bits &= 0x7fffffffu;
    if (bits >= 0x47800000u) return (uint16)(sign | (bits > 0x7f800000u ? 0x7e00u : 0x7c00u));
    // Below 2^-14 the spacing is 2^-24, which is that of floats next to 0.5: the addition rounds.
    if (bits < 0x38800000u) return (uint16)(sign | (float_bits(float_from_bits(bits) + 0.5f) - 0x3f000000u));
    // Rebias the exponent; a carry out of the significand moves on to the next exponent, up to infinity.
    bits += 0xc8000fffu + (bits >> 13 & 1u);
    return (uint16)(sign | bits >> 13);
}

WP_FN uint16 half_bits_of(double x) {
    uint64 bits = double_bits(x);
    const uint32 sign = (uint32)(bits >> 48) & 0x8000u;
    bits &= 0x7fffffffffffffffull;
    if (bits >= 0x40f0000000000000ull) return (uint16)(sign | (bits > 0x7ff0000000000000ull ? 0x7e00u : 0x7c00u));
    // As above: doubles next to 2^28 are 2^-24 apart.
    if (bits < 0x3f10000000000000ull) {
        const double magnitude = x < 0 ? -x : x;
        return (uint16)(sign | (uint32)(double_bits(magnitude + 268435456.0) - 0x41b0000000000000ull));
    }
    bits += 0x1ffffffffffull + (bits >> 42 & 1ull);
    return (uint16)(sign | (uint32)((bits >> 42) - (1008ull << 10)));
}

WP_FN float half_to_float(uint16 half_bits) {
    const uint32 sign = (uint32)(half_bits & 0x8000u) << 16;
    const uint32 rest = half_bits & 0x7fffu;
    if (rest >= 0x7c00u) return float_from_bits(sign | 0x7f800000u | (rest & 0x3ffu) << 13);
    if (rest >= 0x0400u) return float_from_bits(sign | ((rest << 13) + 0x38000000u));
    const float magnitude = (float)rest * 0x1p-24f;
    return sign ? -magnitude : magnitude;
}

struct half {
    uint16 bits;
    half() = default;
    WP_MEMBER explicit half(float x) : bits(half_bits_of(x)) {}
    WP_MEMBER explicit half(double x) : bits(half_bits_of(x)) {}
    // Integers of 2^17 and more overflow; smaller ones are exact in float.
    WP_MEMBER explicit half(int64 x) : bits(half_bits_of((float)(x > 131072 ? 131072 : x < -131072 ? -131072 : x))) {}
    WP_MEMBER explicit half(uint64 x) : bits(half_bits_of((float)(x > 131072 ? 131072 : x))) {}
    WP_MEMBER explicit half(int32 x) : half((int64)x) {}
    WP_MEMBER explicit half(uint32 x) : half((int64)x) {}
    WP_MEMBER explicit half(int16 x) : half((int64)x) {}
    WP_MEMBER explicit half(uint16 x) : half((int64)x) {}
    WP_MEMBER explicit half(int8 x) : half((int64)x) {}
    WP_MEMBER explicit half(uint8 x) : half((int64)x) {}
    WP_MEMBER explicit half(bool x) : half((int64)x) {}
    WP_MEMBER explicit operator float() const { return half_to_float(bits); }
    WP_MEMBER explicit operator double() const { return half_to_float(bits); }
    WP_MEMBER static half from_bits(uint16 pattern) {
        half result;
        result.bits = pattern;
        return result;
    }
};
typedef half float16;
template <> constexpr bool is_narrow<half> = true;

WP_NARROW_OPERATORS(half)

}  // namespace wp

#endif
