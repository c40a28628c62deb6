import CNghttp2
import Glibc
import HearthConcurrency

/// An HTTP/2 connection of the server. nghttp2 handles frames, header compression and windows; this class connects it
/// to the socket and the streams, and enforces the limits that nghttp2 does not have.
///
/// `@unchecked Sendable`: guarded by the loop's thread.
final class HTTP2Session: ChannelDriver, @unchecked Sendable {
    let channel: SocketChannel
    let context: LoopContext
    let input: HeldInput
    private(set) var session: OpaquePointer?
    /// Open streams in arbitrary order; a stream has its own index.
    private var streams: [HTTP2Stream] = []
    /// The stream whose header block is being received: blocks do not interleave.
    private var headerStream: HTTP2Stream?
    /// The fields of an incomplete block; between reads other connections use the loop's buffer.
    private var savedFields: (bytes: [UInt8], count: Int)?
    private var headerBytes = 0
    private var headIsTooLarge = false
    /// Response bytes that wait in all streams.
    private(set) var queuedBytes = 0
    /// Streams whose producer must wait.
    private var waitingStreams: [HTTP2Stream] = []
    private var held: HeldRequests
    /// The memory that the open streams use.
    private var streamBytes = 0
    private var resets: RateLimiter
    private var controlFrames: RateLimiter
    /// Streams whose handler is not started, because too many responses wait.
    private var parkedStreams: [HTTP2Stream] = []
    /// When response bytes were last sent, or when the first were queued in an empty session.
    private var lastAnswerAt: UInt64
    /// Input that exceeded the slice of this tick.
    private var isPausedAfterData = false
    private var heldInput: [UInt8] = []
    private var pingSentAt: UInt64?
    private var isEnding = false
    private var isOver = false
    /// Found within a call of nghttp2, which cannot throw.
    private var broken: BrokenInvariant?

    /// The maximum that `nghttp2_session_mem_send` returns: one frame of at most 16 KiB and its header. It returns the
    /// HEADERS and CONTINUATION frames of a large block one by one.
    static let frameSpaceBytes = 17 * 1024
    /// A header block that exceeds the limit by this factor closes the connection.
    private static let headerOverflowFactor = 4
    /// The time between the GOAWAY warning and the end; a generous round trip.
    private static let shutdownNoticeMilliseconds = 100

    init?(channel: SocketChannel, context: LoopContext) {
        self.channel = channel
        self.context = context
        input = context.heldInput(of: channel)
        held = HeldRequests(context)
        let limits = context.limits
        let now = channel.loop.now
        resets = RateLimiter(burstMax: limits.resetsBurstMax, perSecondMax: limits.resetsPerSecondMax, now: now)
        controlFrames = RateLimiter(
            burstMax: limits.controlFramesBurstMax, perSecondMax: limits.controlFramesPerSecondMax, now: now)
        lastAnswerAt = now
        let this = Unmanaged.passUnretained(self).toOpaque()
        guard
            nghttp2_session_server_new2(
                &session, HTTP2Callbacks.server.table, this, context.http2Options.pointer) == 0
        else { return nil }
        let settings = context.http2Options.settings
        guard nghttp2_submit_settings(session, UInt8(NGHTTP2_FLAG_NONE.rawValue), settings, settings.count) == 0,
            nghttp2_session_set_local_window_size(
                session, UInt8(NGHTTP2_FLAG_NONE.rawValue), 0, Int32(limits.connectionWindowBytes)) == 0
        else { return nil }
    }

    deinit { nghttp2_session_del(session) }

    private var fields: FieldBuffer { context.fields }

    // MARK: Socket

    func received(_ bytes: UnsafeRawBufferPointer) {
        guard !isOver else { return }
        guard heldInput.isEmpty else {
            heldInput.append(contentsOf: bytes)
            return
        }
        let used = feed(bytes)
        guard used < bytes.count || isPausedAfterData, !isOver else { return }
        heldInput = [UInt8](bytes[used...])
        channel.pauseReading()
        feedHeldLater()
    }

    private func feedHeldLater() {
        channel.workLater { [self] in
            guard !isOver, !channel.isClosed else { return }
            channel.beginTick()
            let input = heldInput
            let used = input.withUnsafeBytes { feed($0) }
            guard !isOver else { return }
            guard used <= heldInput.count else {
                return channel.broke(BrokenInvariant("nghttp2 uses no more input than it was given"))
            }
            heldInput.removeFirst(used)
            if heldInput.isEmpty, !isPausedAfterData { channel.resumeReading() } else { feedHeldLater() }
        }
    }

    /// Returns the number of used bytes: all, unless the slice of this tick is used up.
    private func feed(_ bytes: UnsafeRawBufferPointer) -> Int {
        isPausedAfterData = false
        if let saved = savedFields {
            fields.restore(saved.bytes, count: saved.count)
            savedFields = nil
        }
        let result = nghttp2_session_mem_recv(session, bytes.bindMemory(to: UInt8.self).baseAddress, bytes.count)
        guard result >= 0 else {
            // Send the GOAWAY that nghttp2 may have prepared; then the connection ends.
            context.counters.badRequests.add(1)
            endConnection()
            return bytes.count
        }
        if headerStream != nil {
            savedFields = ([UInt8](fields.bytes), fields.count)
            // nghttp2 holds a part of it, too.
            if !held.set(streamBytes + context.limits.headBytesMax) { calmDown() }
        }
        channel.flushLater()
        return result
    }

    func receivedEnd() { channel.close() }

    /// Within one call nghttp2 has any number of DATA frames copied into the scratch, and then returns another frame.
    /// `HTTP2Stream.sendData` leaves `frameSpaceBytes` for it.
    func produceOutput(into scratch: OutputScratch) throws(BrokenInvariant) {
        while scratch.space >= HTTP2Session.frameSpaceBytes {
            var data: UnsafePointer<UInt8>?
            let count = nghttp2_session_mem_send(session, &data)
            if let broken { throw broken }
            guard count > 0, let data else {
                if count < 0 { endConnection() }
                break
            }
            try scratch.append(data, count)
        }
        if !isOver, nghttp2_session_want_read(session) == 0, nghttp2_session_want_write(session) == 0 {
            endConnection()
        }
    }

    func outputFlushed() {
        beginParked()
        guard !waitingStreams.isEmpty, queuedBytes < context.limits.connectionHighWaterBytes else { return }
        let waiting = waitingStreams
        waitingStreams = []
        for stream in waiting where !stream.isClosed {
            if stream.queuedBytes <= context.limits.answerLowWaterBytes {
                stream.becameWritable()
            } else {
                waitingStreams.append(stream)
            }
        }
    }

    func channelClosed() {
        isOver = true
        let streams = streams
        self.streams = []
        waitingStreams = []
        parkedStreams = []
        heldInput = []
        headerStream = nil
        context.counters.streamsOpen.add(-streams.count)
        streamBytes = 0
        _ = held.set(0)
        for stream in streams { stream.closed() }
    }

    /// Ends the connection after the present call of nghttp2.
    func broke(_ broken: BrokenInvariant) {
        if self.broken == nil { self.broken = broken }
        channel.flushLater()
    }

    private func endConnection() {
        isOver = true
        channel.closeWhenFlushed(lingers: true)
    }

    // MARK: Called by streams

    func flushLater() { channel.flushLater() }

    func queued(_ bytes: Int) {
        if queuedBytes == 0 { lastAnswerAt = channel.loop.now }
        queuedBytes += bytes
        context.countWaitingAnswers(bytes)
    }

    func dequeued(_ bytes: Int) {
        queuedBytes -= bytes
        context.countWaitingAnswers(-bytes)
        lastAnswerAt = channel.loop.now
        if !parkedStreams.isEmpty { channel.flushLater() }
        // Servers cause some control frames themselves: Go's client sends a PING for nearly each response.
        controlFrames.credit()
    }

    var isAboveHighWater: Bool { queuedBytes >= context.limits.connectionHighWaterBytes }

    func waitsForCapacity(_ stream: HTTP2Stream) { waitingStreams.append(stream) }

    var waitingAnswers: (bytes: Int, since: UInt64) { (queuedBytes, lastAnswerAt) }

    /// A client that does not read its responses gets no further ones: its requests wait, limited by its windows.
    var mustPark: Bool { isAboveHighWater || (queuedBytes > 0 && context.hasTooManyAnswers) }

    func park(_ stream: HTTP2Stream) { parkedStreams.append(stream) }

    private func beginParked() {
        while !parkedStreams.isEmpty, !mustPark, !isOver {
            // The response of one may fill the capacity again.
            let stream = parkedStreams.removeFirst()
            if !stream.isClosed { stream.beginConsumer() }
        }
    }

    // MARK: Called by nghttp2

    /// Counts the frames without content, including those that nghttp2 ignores silently.
    func beganFrame(_ header: nghttp2_frame_hd) {
        let flags = UInt32(header.flags)
        switch UInt32(header.type) {
        case NGHTTP2_DATA.rawValue:
            guard header.length == 0, flags & NGHTTP2_FLAG_END_STREAM.rawValue == 0 else { return }
        case NGHTTP2_SETTINGS.rawValue, NGHTTP2_PING.rawValue:
            guard flags & NGHTTP2_FLAG_ACK.rawValue == 0 else { return }
        case NGHTTP2_HEADERS.rawValue, NGHTTP2_CONTINUATION.rawValue, NGHTTP2_WINDOW_UPDATE.rawValue,
            NGHTTP2_RST_STREAM.rawValue, NGHTTP2_GOAWAY.rawValue:
            return
        default: break
        }
        if !controlFrames.admit(now: channel.loop.now) { calmDown() }
    }

    func beganHeaders(_ frame: UnsafePointer<nghttp2_frame>) -> Int32 {
        headerBytes = 0
        headIsTooLarge = false
        fields.reset()
        guard http2_headers_category(frame) == Int32(NGHTTP2_HCAT_REQUEST.rawValue) else {
            headerStream = nil
            return 0
        }
        let stream = HTTP2Stream(id: http2_frame_stream(frame), session: self, slot: streams.count)
        streams.append(stream)
        context.counters.streamsOpen.add(1)
        nghttp2_session_set_stream_user_data(session, stream.id, Unmanaged.passUnretained(stream).toOpaque())
        headerStream = stream
        return 0
    }

    func receivedField(name: UnsafeBufferPointer<UInt8>, value: UnsafeBufferPointer<UInt8>) -> Int32 {
        // 32 bytes per field: the calculation of SETTINGS_MAX_HEADER_LIST_SIZE (RFC 9113, 6.5.2).
        headerBytes += name.count + value.count + 32
        guard headerBytes <= HTTP2Session.headerOverflowFactor * context.limits.headBytesMax else {
            context.counters.abuses.add(1)
            return NGHTTP2_ERR_CALLBACK_FAILURE
        }
        guard headerStream != nil else { return 0 }
        // Stop at the first field of a request: no request is partly received here.
        let isTickOver = fields.count == 0 && channel.isTickOver
        if headerBytes > context.limits.headBytesMax || fields.count >= context.limits.headFieldsMax {
            headIsTooLarge = true
        } else {
            fields.append(name: name, value: value)
        }
        return isTickOver ? NGHTTP2_ERR_PAUSE : 0
    }

    func receivedFrame(_ frame: UnsafePointer<nghttp2_frame>) {
        let flags = UInt32(http2_frame_flags(frame))
        switch UInt32(http2_frame_type(frame)) {
        case NGHTTP2_HEADERS.rawValue:
            let isRequest = http2_headers_category(frame) == Int32(NGHTTP2_HCAT_REQUEST.rawValue)
            let stream = isRequest ? headerStream : stream(http2_frame_stream(frame))
            headerStream = nil
            if isRequest {
                controlFrames.credit()
                stream?.receivedHead(fields, isTooLarge: headIsTooLarge)
            }
            if flags & NGHTTP2_FLAG_END_STREAM.rawValue != 0 { stream?.receivedEnd() }
        case NGHTTP2_DATA.rawValue where flags & NGHTTP2_FLAG_END_STREAM.rawValue != 0:
            stream(http2_frame_stream(frame))?.receivedEnd()
        default: break
        }
    }

    /// Frames of open streams may cause as much work as requests: the rest waits for the next tick.
    func resultAfterData() -> Int32 {
        // The end of the frame is reported with the next input, even when that is empty.
        isPausedAfterData = channel.isTickOver
        return isPausedAfterData ? NGHTTP2_ERR_PAUSE : 0
    }

    func receivedData(_ id: Int32, _ bytes: UnsafeRawBufferPointer) {
        guard let stream = stream(id) else {
            nghttp2_session_consume_connection(session, bytes.count)
            return
        }
        stream.receivedData(bytes)
    }

    func sentFrame(_ frame: UnsafePointer<nghttp2_frame>) {
        let type = UInt32(http2_frame_type(frame))
        guard type == NGHTTP2_HEADERS.rawValue || type == NGHTTP2_DATA.rawValue,
            UInt32(http2_frame_flags(frame)) & NGHTTP2_FLAG_END_STREAM.rawValue != 0,
            let stream = stream(http2_frame_stream(frame)), !stream.isRemoteClosed
        else { return }
        // The response is complete and the request is not: ask the client to stop (RFC 9113, 8.1).
        reset(stream.id, code: NGHTTP2_NO_ERROR)
    }

    /// nghttp2 has dropped a frame. One that is too large, as a head of more than 64 KB, would leave its client waiting.
    func notSentFrame(_ frame: UnsafePointer<nghttp2_frame>, code: Int32) {
        guard UInt32(http2_frame_type(frame)) == NGHTTP2_HEADERS.rawValue,
            code == Int32(CNghttp2.NGHTTP2_ERR_FRAME_SIZE_ERROR), let stream = stream(http2_frame_stream(frame))
        else { return }
        stream.reset(NGHTTP2_INTERNAL_ERROR)
    }

    func closedStream(_ id: Int32, code: UInt32) {
        guard let stream = stream(id) else { return }
        if headerStream === stream { headerStream = nil }
        guard streams.indices.contains(stream.slot), streams[stream.slot] === stream, let last = streams.popLast()
        else {
            return broke(BrokenInvariant("a stream of nghttp2 is a stream of its session"))
        }
        if last !== stream {
            streams[stream.slot] = last
            last.slot = stream.slot
        }
        context.counters.streamsOpen.add(-1)
        streamBytes -= stream.heldBytes
        _ = held.set(streamBytes)
        if !stream.isAnswered, !resets.admit(now: channel.loop.now) { calmDown() }
        stream.closed()
        if isEnding, streams.isEmpty { channel.flushLater() }
    }

    /// Reserves the memory of a stream. False, without a reservation, when it would exceed the limit.
    func hold(_ bytes: Int) -> Bool {
        guard held.set(streamBytes + bytes) else { return false }
        streamBytes += bytes
        return true
    }

    func reset(_ id: Int32, code: nghttp2_error_code) {
        nghttp2_submit_rst_stream(session, UInt8(NGHTTP2_FLAG_NONE.rawValue), id, UInt32(code.rawValue))
        channel.flushLater()
    }

    private func stream(_ id: Int32) -> HTTP2Stream? {
        guard let context = nghttp2_session_get_stream_user_data(session, id) else { return nil }
        return Unmanaged<HTTP2Stream>.fromOpaque(context).takeUnretainedValue()
    }

    private func calmDown() {
        guard !isEnding else { return }
        isEnding = true
        context.counters.abuses.add(1)
        terminate(NGHTTP2_ENHANCE_YOUR_CALM)
    }

    private func terminate(_ code: nghttp2_error_code) {
        nghttp2_session_terminate_session(session, UInt32(code.rawValue))
        channel.flushLater()
    }

    // MARK: Time

    func checkTimeouts(now: UInt64) {
        guard !isOver else { return }
        let limits = context.limits
        let silence = now > channel.lastReceivedAt ? now - channel.lastReceivedAt : 0
        guard !streams.isEmpty else {
            if silence > UInt64(limits.idleHTTP2Milliseconds) * 1_000_000, !isEnding {
                context.counters.timeouts.add(1)
                beginShutdown()
            }
            return
        }
        if silence <= UInt64(limits.pingAfterSilenceMilliseconds) * 1_000_000 {
            pingSentAt = nil
        } else if let sentAt = pingSentAt {
            if now > sentAt + UInt64(limits.pingAnswerMilliseconds) * 1_000_000 { return channel.timeOut() }
        } else {
            pingSentAt = now
            nghttp2_submit_ping(session, UInt8(NGHTTP2_FLAG_NONE.rawValue), nil)
            channel.flushLater()
        }
        // A copy: ending a stream may make its handler end others.
        for stream in streams where !stream.isClosed {
            switch stream.checkTimeouts(now: now, limits: limits) {
            case .fine: break
            case .streamIsStuck: context.counters.timeouts.add(1)
            case .headIsStuck:
                // An incomplete header block blocks the whole connection.
                context.counters.timeouts.add(1)
                terminate(NGHTTP2_ENHANCE_YOUR_CALM)
                return endConnection()
            }
        }
    }

    /// First a warning, then, when earlier requests have arrived, the end (RFC 9113, 6.8).
    func beginShutdown() {
        guard !isEnding, !isOver else { return }
        isEnding = true
        if streams.isEmpty { return endGracefully() }
        nghttp2_submit_shutdown_notice(session)
        channel.flushLater()
        // The channel retains its driver only as long as it is open.
        channel.loop.schedule(afterMilliseconds: HTTP2Session.shutdownNoticeMilliseconds) { [self] in
            if !isOver { endGracefully() }
        }
    }

    /// The GOAWAY that contains the last stream; nghttp2 ends when the open streams are complete.
    private func endGracefully() {
        nghttp2_submit_goaway(
            session, UInt8(NGHTTP2_FLAG_NONE.rawValue), nghttp2_session_get_last_proc_stream_id(session),
            UInt32(NGHTTP2_NO_ERROR.rawValue), nil, 0)
        channel.flushLater()
    }

    var idleSince: UInt64? { streams.isEmpty && !isOver ? channel.lastReceivedAt : nil }

    func closeIdle() {
        isEnding = true
        endGracefully()
        channel.closeWhenFlushed(lingers: false)
    }

    func endShutdown() {
        guard !isOver else { return channel.close() }
        for stream in streams where !stream.isClosed { stream.giveUp(.unavailable("the server is shutting down")) }
        // Not terminate_session: it would drop the responses that were just queued.
        endGracefully()
        channel.closeWhenFlushed(lingers: true)
    }
}
