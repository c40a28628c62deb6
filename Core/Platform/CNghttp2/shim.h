#ifndef HEARTH_CNGHTTP2_SHIM_H
#define HEARTH_CNGHTTP2_SHIM_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <nghttp2/nghttp2.h>

// A version of 1.61 or newer has this function, and an older one where its distribution has corrected CVE-2024-28182. It
// is weak, so that a program that was built with one also runs with another: else its first connection would end it.
#pragma weak nghttp2_option_set_max_continuations

static inline int http2_can_limit_continuations(void) { return nghttp2_option_set_max_continuations != NULL; }

// nghttp2 counts one for each piece in which the 9 bytes of a frame header arrive: up to 9 for a frame.
static inline void http2_limit_continuations(nghttp2_option *options, size_t frames_max) {
    if (http2_can_limit_continuations()) nghttp2_option_set_max_continuations(options, 9 * frames_max);
}

// A header field whose name and value outlive the session: nghttp2 keeps the pointers.
static inline nghttp2_nv http2_static_field(const uint8_t *name, size_t name_length, const uint8_t *value,
                                            size_t value_length) {
    nghttp2_nv field = {(uint8_t *)name, (uint8_t *)value, name_length, value_length,
                        NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_COPY_VALUE};
    return field;
}

// A header field that nghttp2 copies before the call returns. With `secret` it is never put in a compression
// table (RFC 7541, 7.1.3).
static inline nghttp2_nv http2_copied_field(const uint8_t *name, size_t name_length, const uint8_t *value,
                                            size_t value_length, int secret) {
    nghttp2_nv field = {(uint8_t *)name, (uint8_t *)value, name_length, value_length,
                        (uint8_t)(secret ? NGHTTP2_NV_FLAG_NO_INDEX : NGHTTP2_NV_FLAG_NONE)};
    return field;
}

static inline nghttp2_settings_entry http2_setting(int32_t identifier, uint32_t value) {
    nghttp2_settings_entry entry = {identifier, value};
    return entry;
}

static inline uint8_t http2_frame_type(const nghttp2_frame *frame) { return frame->hd.type; }
static inline uint8_t http2_frame_flags(const nghttp2_frame *frame) { return frame->hd.flags; }
static inline int32_t http2_frame_stream(const nghttp2_frame *frame) { return frame->hd.stream_id; }
static inline int http2_headers_category(const nghttp2_frame *frame) { return (int)frame->headers.cat; }
static inline int32_t http2_goaway_last_stream(const nghttp2_frame *frame) { return frame->goaway.last_stream_id; }
static inline uint32_t http2_goaway_code(const nghttp2_frame *frame) { return frame->goaway.error_code; }

static inline nghttp2_data_provider http2_data_provider(void *context, nghttp2_data_source_read_callback read) {
    nghttp2_data_provider provider;
    provider.source.ptr = context;
    provider.read_callback = read;
    return provider;
}

#endif
