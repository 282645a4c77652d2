// What a taped launch keeps for its adjoint: a block of fixed places for every work item, and a stream to which the
// items append one after the other.
#ifndef WP_RECORD_H
#define WP_RECORD_H
#include "abi.h"
#include "core.h"

namespace wp {

WP_FN wp_record& record_of(const wp_launch* launch) { return *(wp_record*)launch->record; }

// Fixed places are stored place by place, so that neighbouring items touch neighbouring memory.
template <class T> WP_FN T& record_place(const wp_launch* launch, int64 item, int64 offset) {
    const int64 padded = ((int64)sizeof(T) + 7) / 8 * 8;
    return *(T*)((char*)record_of(launch).places + offset * launch->size + item * padded);
}

#if WP_CUDA

// Every item owns an equal part of the stream, since none can know how much the others append. Where a part is too small
// nothing more is stored in it; missing is then by how much the part of the neediest item was.
WP_FN int64 record_begin(const wp_launch* launch, int64 item) {
    const wp_record& record = record_of(launch);
    return record.starts[item] = item * (record.capacity / launch->size / 8 * 8);
}

template <class T> WP_FN void record_append(const wp_launch* launch, const T& value, int64 item, int64& end) {
    wp_record& record = record_of(launch);
    const int64 padded = ((int64)sizeof(T) + 7) / 8 * 8, share = record.capacity / launch->size / 8 * 8;
    const int64 place = end, limit = (item + 1) * share;
    end += padded;
    if (end <= limit) *(T*)(record.stream + place) = value;
    else atomicMax((uint64*)&record.missing, (uint64)(end - limit));
}

#else

WP_FN void record_begin(const wp_launch* launch, int64 item) {
    wp_record& record = record_of(launch);
    record.starts[item] = record.used;
}

template <class T> WP_FN void record_append(const wp_launch* launch, const T& value) {
    wp_record& record = record_of(launch);
    const int64 padded = ((int64)sizeof(T) + 7) / 8 * 8;
    if (record.used + padded > record.capacity) {
        const int64 wanted = record.capacity < 32768 ? 65536 : record.capacity * 2;
        void* grown = record.is_full ? nullptr : wp_m.realloc(record.stream, (unsigned long)wanted);
        if (!grown) {
            record.is_full = 1;
            record.missing += padded;
            return;
        }
        record.stream = (char*)grown;
        record.capacity = wanted;
    }
    *(T*)(record.stream + record.used) = value;
    record.used += padded;
}

#endif

WP_FN int64 record_start(const wp_launch* launch, int64 item) { return record_of(launch).starts[item]; }

template <class T> WP_FN const T& record_at(const wp_launch* launch, int64 position) {
    return *(const T*)(record_of(launch).stream + position);
}

}  // namespace wp

#endif
