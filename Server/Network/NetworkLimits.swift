/// Every bound that the network engine puts on its peers, in one place.
///
/// Nothing that a peer can send, hold back or leave open is unbounded. The defaults suit a server on the open
/// internet with a few thousand clients; tests make them small to go over them.
package struct NetworkLimits: Sendable {
    // MARK: Connections

    /// Open connections in the whole server; one more is accepted and closed at once.
    package var connectionsMax = 20_000
    /// Time from the accept to the end of the TLS handshake.
    package var tlsHandshakeMilliseconds = 10_000
    /// Time for a request head: from its first byte (or from the accept) to the empty line or END_HEADERS.
    package var headMilliseconds = 10_000
    /// An HTTP/1.1 connection without a request is closed after this time.
    package var idleHTTP1Milliseconds = 75_000
    /// An HTTP/2 connection without an open stream is sent GOAWAY after this time; a PING counts as life.
    package var idleHTTP2Milliseconds = 600_000
    /// An HTTP/2 connection with open streams from which nothing came for this time is sent a PING…
    package var pingAfterSilenceMilliseconds = 60_000
    /// …and is closed when after this further time still nothing came.
    package var pingAnswerMilliseconds = 30_000
    /// A WebSocket from which nothing came for this time is sent a ping…
    package var webSocketPingMilliseconds = 30_000
    /// …and is closed when nothing has come for this time, pings notwithstanding.
    package var webSocketSilenceMilliseconds = 75_000
    /// After an error the connection is read (and what comes is dropped) for this time, so that a TCP reset
    /// doesn't destroy the answer that explains the error.
    package var lingerMilliseconds = 2_000

    // MARK: Progress

    /// While a request body is under way (a gRPC message, or any HTTP body), at least `bodyProgressBytesMin` must
    /// arrive in each span of this length, unless the handler itself has paused reading.
    package var bodyProgressMilliseconds = 30_000
    /// See `bodyProgressMilliseconds`.
    package var bodyProgressBytesMin = 1_024
    /// An answer of which nothing could be sent for this time (closed window, full socket) is given up.
    package var writeStallMilliseconds = 60_000

    /// What one connection may have done in one turn of its loop: a peer that sends thousands of requests in one piece
    /// waits with the rest of them until the others on the loop have had their turn.
    package var tickMicroseconds = 1_000

    // MARK: Sizes

    /// Bytes of one request head: request line and fields, or all names and values of HTTP/2.
    package var headBytesMax = 64 * 1024
    /// Fields of one request head.
    package var headFieldsMax = 200
    /// Bytes of the request target (HTTP 414 above it).
    package var targetBytesMax = 32 * 1024
    /// Bytes of an HTTP (not gRPC) request body; HTTP 413 above it.
    package var bodyBytesMax = 64 * 1024 * 1024
    /// Bytes of one chunk-size line with its extensions, and of all trailer fields.
    package var chunkLineBytesMax = 4 * 1024
    /// Bytes of one gRPC request message, after decompression; RESOURCE_EXHAUSTED above it.
    package var messageBytesMax = 16 * 1024 * 1024
    /// Bytes of unfinished gRPC messages and unread bodies that all connections together may hold.
    package var bufferedInputBytesMax = 128 * 1024 * 1024

    // MARK: HTTP/2

    /// Streams that a peer may have open at once on one connection.
    package var concurrentStreamsMax = 256
    /// Flow-control window of a stream: what a peer may send before we have consumed it.
    package var streamWindowBytes = 1024 * 1024
    /// Flow-control window of a connection, shared by its streams.
    package var connectionWindowBytes = 4 * 1024 * 1024
    /// Size of the peer's header compression table that we offer to keep.
    package var headerTableBytes = 4_096
    /// Size of our own header compression table.
    package var encoderTableBytes = 512
    /// CONTINUATION frames of one header block.
    package var continuationFramesMax = 8
    /// Streams that ended before their answer did, whoever reset them: this many at once…
    package var resetsBurstMax = 500
    /// …and this many a second in the long run, then GOAWAY with ENHANCE_YOUR_CALM.
    package var resetsPerSecondMax = 100
    /// SETTINGS, PING, PRIORITY, empty DATA and other frames that carry nothing, and pings and pongs of WebSockets: this
    /// many at once…
    package var controlFramesBurstMax = 2_000
    /// …and this many a second in the long run.
    package var controlFramesPerSecondMax = 200

    // MARK: Answers

    /// `write` and `send` return false above this many queued bytes of one answer.
    package var answerHighWaterBytes = 256 * 1024
    /// `onWritable` is called under this many.
    package var answerLowWaterBytes = 64 * 1024
    /// The same high-water mark for all answers of one connection together.
    package var connectionHighWaterBytes = 4 * 1024 * 1024
    /// Answer bytes that all connections together may have waiting. Above it, connections of which nothing could be sent
    /// for `answerPatienceMilliseconds` are closed; above half as much again, those that hold most. In a server less while
    /// the memory of the process is in use for other things.
    package var answersBytesMax = 128 * 1024 * 1024
    /// See `answersBytesMax`.
    package var answerPatienceMilliseconds = 500
    /// Request bytes of pipelined HTTP/1.1 requests held back while an answer is under way.
    package var pipelinedBytesMax = 256 * 1024

    package init() {}
}
