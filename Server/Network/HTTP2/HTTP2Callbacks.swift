import CNghttp2

/// The C side of `HTTP2Session`: nghttp2's callbacks, created once for all sessions.
///
/// The user data of a session is an unretained `HTTP2Session`, that of a stream an unretained `HTTP2Stream`. The
/// session owns its streams, and deletes the C session in its deinitializer.
struct HTTP2Callbacks: @unchecked Sendable {
    // `@unchecked Sendable`: the table is immutable after creation; nghttp2 copies it into each session.
    let table: OpaquePointer?

    static let server = HTTP2Callbacks()

    private init() {
        var table: OpaquePointer?
        guard nghttp2_session_callbacks_new(&table) == 0 else {
            self.table = nil
            return
        }
        nghttp2_session_callbacks_set_on_begin_frame_callback(table) { _, header, context in
            guard let header, let session = HTTP2Session.from(context) else { return NGHTTP2_ERR_CALLBACK_FAILURE }
            session.beganFrame(header.pointee)
            return 0
        }
        nghttp2_session_callbacks_set_on_begin_headers_callback(table) { _, frame, context in
            guard let frame, let session = HTTP2Session.from(context) else { return NGHTTP2_ERR_CALLBACK_FAILURE }
            return session.beganHeaders(frame)
        }
        nghttp2_session_callbacks_set_on_header_callback(table) {
            _, _, name, nameCount, value, valueCount, _, context in
            guard let session = HTTP2Session.from(context) else { return NGHTTP2_ERR_CALLBACK_FAILURE }
            return session.receivedField(
                name: UnsafeBufferPointer(start: name, count: nameCount),
                value: UnsafeBufferPointer(start: value, count: valueCount))
        }
        nghttp2_session_callbacks_set_on_frame_recv_callback(table) { _, frame, context in
            guard let frame, let session = HTTP2Session.from(context) else { return NGHTTP2_ERR_CALLBACK_FAILURE }
            session.receivedFrame(frame)
            return 0
        }
        nghttp2_session_callbacks_set_on_data_chunk_recv_callback(table) { _, _, stream, data, count, context in
            guard let session = HTTP2Session.from(context) else { return NGHTTP2_ERR_CALLBACK_FAILURE }
            session.receivedData(stream, UnsafeRawBufferPointer(start: data, count: count))
            return session.resultAfterData()
        }
        nghttp2_session_callbacks_set_on_frame_send_callback(table) { _, frame, context in
            guard let frame, let session = HTTP2Session.from(context) else { return NGHTTP2_ERR_CALLBACK_FAILURE }
            session.sentFrame(frame)
            return 0
        }
        nghttp2_session_callbacks_set_on_frame_not_send_callback(table) { _, frame, code, context in
            guard let frame, let session = HTTP2Session.from(context) else { return NGHTTP2_ERR_CALLBACK_FAILURE }
            session.notSentFrame(frame, code: code)
            return 0
        }
        nghttp2_session_callbacks_set_on_stream_close_callback(table) { _, stream, code, context in
            guard let session = HTTP2Session.from(context) else { return NGHTTP2_ERR_CALLBACK_FAILURE }
            session.closedStream(stream, code: code)
            return 0
        }
        nghttp2_session_callbacks_set_send_data_callback(table) { _, _, header, count, source, context in
            guard let header, let context = source?.pointee.ptr else { return NGHTTP2_ERR_CALLBACK_FAILURE }
            return Unmanaged<HTTP2Stream>.fromOpaque(context).takeUnretainedValue().sendData(header, count)
        }
        self.table = table
    }
}

extension HTTP2Session {
    /// Nil only for a session without its owner, which is not made: the callback then ends the session.
    fileprivate static func from(_ context: UnsafeMutableRawPointer?) -> HTTP2Session? {
        context.map { Unmanaged<HTTP2Session>.fromOpaque($0).takeUnretainedValue() }
    }
}

extension Int32 {
    /// nghttp2's codes are imported as `Int` constants, but its functions take `int`.
    init(_ code: nghttp2_error) { self = Int32(code.rawValue) }
}

package let NGHTTP2_ERR_CALLBACK_FAILURE = Int32(CNghttp2.NGHTTP2_ERR_CALLBACK_FAILURE)
let NGHTTP2_ERR_PAUSE = Int32(CNghttp2.NGHTTP2_ERR_PAUSE)
let NGHTTP2_ERR_WOULDBLOCK = Int32(CNghttp2.NGHTTP2_ERR_WOULDBLOCK)
