// Read-modify-write, component by component; gives the old value.
#ifndef WP_ATOMIC_H
#define WP_ATOMIC_H
#include "core.h"

namespace wp {

#if WP_CUDA

template <class T> constexpr bool is_word = is_same<T, int32> || is_same<T, uint32> || is_same<T, int64> || is_same<T, uint64>;

// Exchange the word around a number until no other thread has changed it in between.
template <class Word, class T, class F> WP_FN T atomic_update(Word* word, int shift, F next) {
    Word found = *(volatile Word*)word, seen;
    T old;
    do {
        seen = found;
        const Word part = seen >> shift;
        __builtin_memcpy(&old, &part, sizeof(T));
        const T value = next(old);
        Word bits = 0;
        __builtin_memcpy(&bits, &value, sizeof(T));
        const Word mask = (Word)((~(uint64)0 >> (64 - 8 * (int)sizeof(T))) << shift);
        found = atomicCAS(word, seen, (Word)((seen & ~mask) | (Word)(bits << shift)));
    } while (found != seen);
    return old;
}
template <class T, class F> WP_FN T atomic_update(T& target, F next) {
    if constexpr (sizeof(T) == 8) {
        return atomic_update<uint64, T>((uint64*)&target, 0, next);
    } else {
        const uint64 address = (uint64)&target;
        return atomic_update<uint32, T>((uint32*)(address & ~(uint64)3), (int)(address & 3) * 8, next);
    }
}

// `native` is what the device does by itself for the types of `condition`; Word is unsigned for those of 64 bits, which
// its addition and bit operations know in that form only.
#define WP_FETCH(name, expression, condition, native)                                                        \
    template <class T> WP_FN T fetch_##name(T& target, const T& value) {                                     \
        if constexpr (!is_number<T>) {                                                                       \
            T old;                                                                                           \
            for (int i = 0; i < T::length; ++i) old.c[i] = fetch_##name(target.c[i], value.c[i]);            \
            return old;                                                                                      \
        } else if constexpr (condition) {                                                                    \
            typedef typename word_of<T>::type Word;                                                          \
            return (T)native;                                                                                \
        } else {                                                                                             \
            const T given = value;                                                                           \
            return atomic_update(target, [given](T old) {                                                    \
                const T value = given;                                                                       \
                return (T)(expression);                                                                      \
            });                                                                                              \
        }                                                                                                    \
    }
template <class T> struct word_of { typedef T type; };
template <> struct word_of<int64> { typedef uint64 type; };
template <class T> constexpr bool is_native_float = is_same<T, float> || is_same<T, double>;
WP_FETCH(add, old + value, is_word<T> || is_native_float<T>, atomicAdd((Word*)&target, (Word)value))
WP_FETCH(sub, old - value, is_word<T> || is_native_float<T>, atomicAdd((Word*)&target, (Word)(-(Word)value)))
WP_FETCH(min, value < old ? value : old, is_word<T>, atomicMin(&target, value))
WP_FETCH(max, old < value ? value : old, is_word<T>, atomicMax(&target, value))
WP_FETCH(and, old & value, is_word<T>, atomicAnd((Word*)&target, (Word)value))
WP_FETCH(or, old | value, is_word<T>, atomicOr((Word*)&target, (Word)value))
WP_FETCH(xor, old ^ value, is_word<T>, atomicXor((Word*)&target, (Word)value))
WP_FETCH(exch, value, (is_word<T> || is_same<T, float>), atomicExch((Word*)&target, (Word)value))
#undef WP_FETCH
template <class T> WP_FN T fetch_cas(T& target, const T& value, const T& expected) {
    if constexpr (!is_number<T>) {
        T old;
        for (int i = 0; i < T::length; ++i) old.c[i] = fetch_cas(target.c[i], value.c[i], expected.c[i]);
        return old;
    } else if constexpr (is_word<T>) {
        typedef typename word_of<T>::type Word;
        return (T)atomicCAS((Word*)&target, (Word)expected, (Word)value);
    } else {
        const T wanted = expected, given = value;
        return atomic_update(target, [wanted, given](T old) { return old == wanted ? given : old; });
    }
}

#else

// A kernel that uses these runs on one worker.
#define WP_FETCH(name, expression)                                              \
    template <class T> WP_FN T fetch_##name(T& target, const T& value) {        \
        const T old = target;                                                   \
        if constexpr (is_number<T>) {                                           \
            target = (T)(expression);                                           \
        } else {                                                                \
            for (int i = 0; i < T::length; ++i) fetch_##name(target.c[i], value.c[i]); \
        }                                                                       \
        return old;                                                             \
    }
WP_FETCH(add, old + value)
WP_FETCH(sub, old - value)
WP_FETCH(min, value < old ? value : old)
WP_FETCH(max, old < value ? value : old)
WP_FETCH(and, old & value)
WP_FETCH(or, old | value)
WP_FETCH(xor, old ^ value)
#undef WP_FETCH
template <class T> WP_FN T fetch_exch(T& target, const T& value) {
    const T old = target;
    target = value;
    return old;
}
template <class T> WP_FN T fetch_cas(T& target, const T& value, const T& expected) {
    const T old = target;
    if constexpr (is_number<T>) {
        if (old == expected) target = value;
    } else {
        for (int i = 0; i < T::length; ++i) fetch_cas(target.c[i], value.c[i], expected.c[i]);
    }
    return old;
}

#endif

}  // namespace wp

#endif
