import HearthModel

/// The messages of both sides of a WebChannel session, and their acknowledgements. Does no I/O.
///
/// The client's messages are numbered from 0 and accepted in the order of their numbers, each exactly once, however
/// often and in whatever order they arrive. The server's messages are a list of arrays with ascending ids, stored until
/// the client acknowledges them, so that a broken back channel loses nothing: the next one begins with the first array
/// that the client does not have. Source: protocol version 8 of Closure's WebChannel.
package struct WebChannelSession {
    /// The data to write on the back channel at a time.
    package struct Output: Equatable {
        package var bytes: [UInt8]
        /// The response ends; the client sends a new request with its acknowledgement.
        package var endsBackChannel: Bool
    }

    private struct QueuedArray {
        var id: Int64
        /// `[id,payload]`
        var string: [UInt8]
    }

    private struct BackChannel {
        var polls: Bool
        /// Arrays with higher ids have not been written on it yet.
        var writtenID: Int64
    }

    let id: String
    /// Bytes of arrays in one frame; a client parses each frame as a whole.
    private static let frameBytesMax = 256 << 10

    // The client's messages.
    private var nextNumber: Int64 = 0
    private var early: [Int64: [UInt8]] = [:]
    private(set) var earlyBytes = 0
    private let earlyBytesMax: Int

    // The server's messages; those below `firstUnacknowledged` are acknowledged.
    private var arrays: [QueuedArray] = []
    private var firstUnacknowledged = 0
    package private(set) var lastID: Int64 = 0
    private(set) var acknowledgedID: Int64 = 0
    /// Unacknowledged bytes.
    package private(set) var queuedBytes = 0
    private var backChannel: BackChannel?
    /// The last array that was ever written, on any back channel.
    private var lastWrittenID: Int64 = 0
    /// Whether the client must acknowledge soon, because memory is scarce.
    var isScarce = false
    private(set) var isClosed = false

    /// - Parameter earlyBytesMax: of messages that arrived before one with a lower number.
    package init(id: String, earlyBytesMax: Int = Limits.webChannelEarlyBytesMax) {
        self.id = id
        self.earlyBytesMax = earlyBytesMax
    }

    // MARK: The client's messages

    /// Takes the messages of one request.
    /// - Returns: the messages that are next in order.
    /// - Throws: RESOURCE_EXHAUSTED when too many messages arrived out of order.
    package mutating func receive(_ body: ForwardBody) throws(Status) -> [[UInt8]] {
        for message in body.messages where message.number >= nextNumber && early[message.number] == nil {
            early[message.number] = message.bytes
            earlyBytes += message.bytes.count
        }
        var due: [[UInt8]] = []
        while let message = early.removeValue(forKey: nextNumber) {
            earlyBytes -= message.count
            nextNumber += 1
            due.append(message)
        }
        if early.count > Limits.webChannelEarlyMessagesMax || earlyBytes > earlyBytesMax {
            throw .resourceExhausted("Too many messages came before message \(nextNumber).")
        }
        return due
    }

    /// The number of the missing message for which others wait; nil when none do.
    var missingNumber: Int64? { early.isEmpty ? nil : nextNumber }

    /// Forgets the arrays that the client has. It cannot have arrays that were not sent, so higher ids mean the last
    /// one.
    package mutating func acknowledge(_ id: Int64) {
        while firstUnacknowledged < arrays.count, arrays[firstUnacknowledged].id <= id {
            acknowledgedID = arrays[firstUnacknowledged].id
            queuedBytes -= arrays[firstUnacknowledged].string.count
            arrays[firstUnacknowledged].string = []
            firstUnacknowledged += 1
        }
        // A client may acknowledge arrays that were not written on this back channel.
        if let written = backChannel?.writtenID { backChannel?.writtenID = max(written, acknowledgedID) }
        if firstUnacknowledged > 64, firstUnacknowledged * 2 > arrays.count {
            arrays.removeFirst(firstUnacknowledged)
            firstUnacknowledged = 0
        }
    }

    // MARK: The server's arrays

    /// Queues an array. Nothing follows a `close`.
    /// - Parameter payload: JSON.
    package mutating func append(_ payload: [UInt8]) {
        if isClosed { return }
        lastID += 1
        var string = Array("[\(lastID),".utf8)
        string.reserveCapacity(string.count + payload.count + 1)
        string.append(contentsOf: payload)
        string.append(UInt8(ascii: "]"))
        queuedBytes += string.count
        arrays.append(QueuedArray(id: lastID, string: string))
    }

    mutating func appendNoop() { append(Array(#"["noop"]"#.utf8)) }

    /// Ends the session.
    package mutating func close() {
        append(Array(#"["close"]"#.utf8))
        isClosed = true
    }

    /// Whether the client has everything.
    var isAcknowledged: Bool { firstUnacknowledged == arrays.count }

    var isAttached: Bool { backChannel != nil }

    /// Whether the stream may continue to send.
    var hasCapacity: Bool {
        queuedBytes < (isAttached ? Limits.webChannelQueueBytesMax : Limits.webChannelDetachedQueueBytesMax)
    }

    // MARK: The back channel

    /// A new back channel replaces the previous one. It begins with the unacknowledged arrays. When there are none, a
    /// stream begins with a keep-alive, because a client that gets no byte soon assumes that a proxy buffers the
    /// response.
    package mutating func attach(polls: Bool) {
        backChannel = BackChannel(polls: polls, writtenID: acknowledgedID)
        if !polls, isAcknowledged { appendNoop() }
    }

    package mutating func detach() { backChannel = nil }

    /// The next output; nil for none. After an output that ends the back channel there is no more.
    package mutating func takeOutput() -> Output? {
        guard let backChannel, lastID > backChannel.writtenID else { return nil }
        var frame: [UInt8] = []
        var next = arrays.count - Int(lastID - backChannel.writtenID)
        while next < arrays.count, frame.isEmpty || frame.count + arrays[next].string.count <= Self.frameBytesMax {
            frame.append(UInt8(ascii: frame.isEmpty ? "[" : ","))
            frame.append(contentsOf: arrays[next].string)
            next += 1
        }
        frame.append(UInt8(ascii: "]"))
        self.backChannel?.writtenID = arrays[next - 1].id
        lastWrittenID = max(lastWrittenID, arrays[next - 1].id)
        // A client that must acknowledge has to send a new request, which it does when the response ends.
        let isDone = next == arrays.count && (isClosed || queuedBytes >= responseBytesMax)
        let ends = backChannel.polls || isDone
        if ends { detach() }
        return Output(bytes: Self.framed(frame), endsBackChannel: ends)
    }

    /// Bytes on a back channel after which it ends, so that its client acknowledges them.
    private var responseBytesMax: Int {
        isScarce ? Limits.webChannelScarceBytesMax : Limits.webChannelQueueBytesMax / 2
    }

    /// Forgets arrays that were never written. The client does not know them, so later ones take the same ids.
    mutating func dropUnwritten() {
        while arrays.count > firstUnacknowledged, let last = arrays.last, last.id > lastWrittenID {
            queuedBytes -= last.string.count
            arrays.removeLast()
            lastID -= 1
        }
    }

    // MARK: Encoding

    /// The response to a handshake.
    var handshake: [UInt8] {
        Self.framed(Array("[[0,[\"c\",\"\(id)\",\"\",8,14,\(Limits.webChannelKeepAliveSeconds * 1000)]]]".utf8))
    }

    /// The response to a later request with messages: whether there is a back channel, and what is pending on it.
    package var answer: [UInt8] {
        Self.framed(Array("[\(isAttached ? 1 : 0),\(lastID),\(queuedBytes)]".utf8))
    }

    /// A string after its length in UTF-16 code units, as JavaScript measures it.
    static func framed(_ string: [UInt8]) -> [UInt8] {
        var units = 0
        string.withUnsafeBufferPointer { bytes in
            for byte in bytes {
                // Every character has one byte that is not a continuation byte; a character of four bytes has two
                // units.
                units &+= byte & 0xC0 == 0x80 ? 0 : 1
                units &+= byte >= 0xF0 ? 1 : 0
            }
        }
        return Array("\(units)\n".utf8) + string
    }
}
