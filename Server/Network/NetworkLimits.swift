/// All limits of the network engine for its peers.
///
/// Everything that a peer can send, delay or leave open is limited. The defaults suit a server on the open internet
/// with a few thousand clients; tests use small limits to exceed them.
package struct NetworkLimits: Sendable {
    // MARK: Connections

    /// Open connections in the whole server. For a further one connections without a request are closed; when there are
    /// none, it is closed immediately itself.
    package var connectionsMax = 20_000
    /// Time from the accept to the end of the TLS handshake.
    package var tlsHandshakeMilliseconds = 10_000
    /// Unfinished TLS handshakes of the whole server, 67 KB each; further connections wait, and their hellos stay in the
    /// sockets' buffers. A loop may have four in any case.
    package var tlsHandshakesMax = 128
    /// A handshake that takes longer than this ends while others wait. It is an answer and one round trip.
    package var tlsHandshakePatienceMilliseconds = 500
    /// What established connections with TLS take in the whole server, besides what they do: each 14 KB, with HTTP/2
    /// 27 KB, which are 12,100 of them. Without HTTP/2 `connectionsMax` is less. For a further one connections without a
    /// request are closed, on one loop; when it has none, the further one is closed.
    package var tlsConnectionBytesMax = 320 * 1024 * 1024
    /// Connections of which a part of a TLS record has arrived, of the whole server; each takes a buffer of 17 KB. Above
    /// it those without a complete record for `tlsHandshakePatienceMilliseconds` are closed; above 1.5 times as much,
    /// those with the oldest.
    package var tlsPartialRecordsMax = 2_048
    /// Time for a request head: from its first byte (or from the accept) to the empty line or END_HEADERS.
    package var headMilliseconds = 10_000
    /// An HTTP/1.1 connection without a request is closed after this time.
    package var idleHTTP1Milliseconds = 75_000
    /// An HTTP/2 connection without an open stream is sent GOAWAY after this time; a PING counts as activity.
    package var idleHTTP2Milliseconds = 600_000
    /// An HTTP/2 connection with open streams and without input for this time is sent a PING…
    package var pingAfterSilenceMilliseconds = 60_000
    /// …and is closed after this further time without input.
    package var pingAnswerMilliseconds = 30_000
    /// A WebSocket without input for this time is sent a ping…
    package var webSocketPingMilliseconds = 30_000
    /// …and is closed after this time without input, in spite of pings.
    package var webSocketSilenceMilliseconds = 75_000
    /// After an error the connection is read for this time, and the input is dropped, so that a TCP reset does not
    /// destroy the response that explains the error.
    package var lingerMilliseconds = 2_000

    // MARK: Progress

    /// While a request body is being received (a gRPC message, or any HTTP body), at least `bodyProgressBytesMin` must
    /// arrive in each interval of this length, unless the handler has paused reading.
    package var bodyProgressMilliseconds = 30_000
    /// See `bodyProgressMilliseconds`.
    package var bodyProgressBytesMin = 1_024
    /// A response of which no byte could be sent for this time (closed window, full socket) is aborted.
    package var writeStallMilliseconds = 60_000

    /// The work of one connection in one tick of its loop. When a peer sends thousands of requests at once, the rest
    /// waits until the other connections of the loop have been served.
    package var tickMicroseconds = 1_000
    /// The work of all connections of one account in one tick of a loop; with it a request that has begun is completed. A new
    /// connection of another client needs several ticks, so hundreds of connections with a millisecond each would delay it.
    package var accountTickMicroseconds = 5_000

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
    /// Flow-control window of a stream: the bytes that a peer may send before the server has consumed them.
    package var streamWindowBytes = 1024 * 1024
    /// Flow-control window of a connection, shared by its streams.
    package var connectionWindowBytes = 4 * 1024 * 1024
    /// Size of the peer's header compression table that the server offers to store.
    package var headerTableBytes = 4_096
    /// Size of our own header compression table.
    package var encoderTableBytes = 512
    /// CONTINUATION frames of one header block that pass in any pieces. nghttp2 counts pieces, so that up to 9 times as many
    /// pass; `headBytesMax` bounds what they hold.
    package var continuationFramesMax = 8
    /// Streams that ended before their response, by a reset of either side: this many at once…
    package var resetsBurstMax = 500
    /// …and this many per second on average, then GOAWAY with ENHANCE_YOUR_CALM.
    package var resetsPerSecondMax = 100
    /// SETTINGS, PING, PRIORITY, empty DATA and other frames without content, and pings and pongs of WebSockets: this
    /// many at once…
    package var controlFramesBurstMax = 2_000
    /// …and this many per second on average.
    package var controlFramesPerSecondMax = 200

    // MARK: Answers

    /// `write` and `send` return false above this many queued bytes of one response.
    package var answerHighWaterBytes = 256 * 1024
    /// `onWritable` is called below this many.
    package var answerLowWaterBytes = 64 * 1024
    /// The same high-water mark for all responses of one connection together.
    package var connectionHighWaterBytes = 4 * 1024 * 1024
    /// Response bytes that may wait on all connections together. Above it, connections without progress for
    /// `answerPatienceMilliseconds` are closed; above 1.5 times as much, those that hold the most. The server lowers it
    /// while other uses need the process's memory.
    package var answersBytesMax = 128 * 1024 * 1024
    /// See `answersBytesMax`.
    package var answerPatienceMilliseconds = 500
    /// Bytes of pipelined HTTP/1.1 requests that are held while a response is being sent.
    package var pipelinedBytesMax = 256 * 1024

    package init() {}
}
