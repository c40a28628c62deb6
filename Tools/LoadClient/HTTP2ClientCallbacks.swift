import CNghttp2

/// The C side of `HTTP2Client`, created once; see `HTTP2Callbacks`.
struct HTTP2ClientCallbacks: @unchecked Sendable {
    // `@unchecked Sendable`: immutable after creation; nghttp2 copies it into each session.
    let table: OpaquePointer?

    static let shared = HTTP2ClientCallbacks()

    private init() {
        var table: OpaquePointer?
        guard nghttp2_session_callbacks_new(&table) == 0 else {
            self.table = nil
            return
        }
        nghttp2_session_callbacks_set_on_begin_headers_callback(table) { _, frame, context in
            guard let frame else { return 0 }
            HTTP2Client.from(context).beganHeaders(http2_frame_stream(frame))
            return 0
        }
        nghttp2_session_callbacks_set_on_header_callback(table) {
            _, _, name, nameCount, value, valueCount, _, context in
            HTTP2Client.from(context).receivedField(
                name: UnsafeBufferPointer(start: name, count: nameCount),
                value: UnsafeBufferPointer(start: value, count: valueCount))
            return 0
        }
        nghttp2_session_callbacks_set_on_frame_recv_callback(table) { _, frame, context in
            guard let frame else { return 0 }
            HTTP2Client.from(context).receivedFrame(frame)
            return 0
        }
        nghttp2_session_callbacks_set_on_data_chunk_recv_callback(table) { _, _, stream, data, count, context in
            HTTP2Client.from(context).receivedData(stream, UnsafeRawBufferPointer(start: data, count: count))
            return 0
        }
        nghttp2_session_callbacks_set_on_stream_close_callback(table) { _, stream, code, context in
            HTTP2Client.from(context).closedStream(stream, code: code)
            return 0
        }
        self.table = table
    }
}

extension HTTP2Client {
    fileprivate static func from(_ context: UnsafeMutableRawPointer?) -> HTTP2Client {
        guard let context else { preconditionFailure("a session without its owner") }
        return Unmanaged<HTTP2Client>.fromOpaque(context).takeUnretainedValue()
    }
}
