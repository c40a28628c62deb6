import CNghttp2

/// nghttp2's options and our SETTINGS, created from the limits once for all sessions of a loop.
final class HTTP2Options {
    let pointer: OpaquePointer?
    let settings: [nghttp2_settings_entry]

    init(limits: NetworkLimits) {
        var options: OpaquePointer?
        if nghttp2_option_new(&options) == 0 {
            // The server reports consumed bytes itself: a client must wait while nobody reads.
            nghttp2_option_set_no_auto_window_update(options, 1)
            // nghttp2's own limiter also counts resets of streams that had ended, and libcurl sends one after each
            // request with a streamed body: its connection would be closed after a thousand requests. `resetsBurstMax`
            // counts the relevant ones.
            nghttp2_option_set_stream_reset_rate_limit(options, 1 << 40, 1 << 40)
            nghttp2_option_set_max_deflate_dynamic_table_size(options, limits.encoderTableBytes)
            http2_limit_continuations(options, limits.continuationFramesMax)
            nghttp2_option_set_no_closed_streams(options, 1)
        }
        pointer = options
        settings = [
            http2_setting(Int32(NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS.rawValue), UInt32(limits.concurrentStreamsMax)),
            http2_setting(Int32(NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE.rawValue), UInt32(limits.streamWindowBytes)),
            http2_setting(Int32(NGHTTP2_SETTINGS_HEADER_TABLE_SIZE.rawValue), UInt32(limits.headerTableBytes)),
            http2_setting(Int32(NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE.rawValue), UInt32(limits.headBytesMax)),
            // The RFC 7540 priority tree costs memory and time, and RFC 9113 has deprecated it.
            http2_setting(Int32(NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES.rawValue), 1),
        ]
    }

    deinit { nghttp2_option_del(pointer) }
}
