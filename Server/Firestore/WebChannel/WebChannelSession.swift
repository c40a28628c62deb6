import HearthModel

/// What the two ends of a WebChannel session have said, and what each has acknowledged. Does no I/O.
///
/// The client's messages are numbered from 0 and taken in the order of their numbers, each once, however often and in
/// whatever order they come. What the server says is a list of arrays with ascending ids, kept until the client acknowledges
/// them, so that a back channel which breaks loses nothing: the next one begins with the first array that the client
/// doesn't have. Source: protocol version 8 as Closure's WebChannel speaks it.
package struct WebChannelSession {
    /// What is written on the back channel at a time.
    package struct Output: Equatable {
        package var bytes: [UInt8]
        /// The answer is over; the client comes again and says what it got.
        package var endsBackChannel: Bool
    }

    private struct QueuedArray {
        var id: Int64
        /// `[id,payload]`
        var string: [UInt8]
    }

    private struct BackChannel {
        var polls: Bool
        /// Arrays with higher ids have yet to be written on it.
        var writtenID: Int64
    }

    let id: String
    /// Arrays of a frame; a client parses each frame as a whole.
    private static let frameBytesMax = 256 << 10

    // What the client says.
    private var nextNumber: Int64 = 0
    private var early: [Int64: [UInt8]] = [:]
    private(set) var earlyBytes = 0
    private let earlyBytesMax: Int

    // What the server says; those below `firstKept` are acknowledged.
    private var arrays: [QueuedArray] = []
    private var firstKept = 0
    package private(set) var lastID: Int64 = 0
    private(set) var acknowledgedID: Int64 = 0
    /// Bytes that are not acknowledged.
    package private(set) var queuedBytes = 0
    private var backChannel: BackChannel?
    /// The last array that was ever written, on any back channel.
    private var lastWrittenID: Int64 = 0
    /// Whether the client is to acknowledge soon, because many hold back.
    var isScarce = false
    private(set) var isClosed = false

    /// - Parameter earlyBytesMax: of messages that came before one with a lower number.
    package init(id: String, earlyBytesMax: Int = Limits.webChannelEarlyBytesMax) {
        self.id = id
        self.earlyBytesMax = earlyBytesMax
    }

    // MARK: The client's messages

    /// Takes the messages of one request.
    /// - Returns: those whose turn it is.
    /// - Throws: RESOURCE_EXHAUSTED when too much came before what must come first.
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

    /// The message for which others wait; nil when none do.
    var missingNumber: Int64? { early.isEmpty ? nil : nextNumber }

    /// Forgets the arrays that the client has. It can't have what wasn't sent, so higher ids count as the last.
    package mutating func acknowledge(_ id: Int64) {
        while firstKept < arrays.count, arrays[firstKept].id <= id {
            acknowledgedID = arrays[firstKept].id
            queuedBytes -= arrays[firstKept].string.count
            arrays[firstKept].string = []
            firstKept += 1
        }
        // A client may say that it has what was never written to it.
        if let written = backChannel?.writtenID { backChannel?.writtenID = max(written, acknowledgedID) }
        if firstKept > 64, firstKept * 2 > arrays.count {
            arrays.removeFirst(firstKept)
            firstKept = 0
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

    /// Says that the session is over.
    package mutating func close() {
        append(Array(#"["close"]"#.utf8))
        isClosed = true
    }

    /// Whether the client has everything that was said.
    var isAcknowledged: Bool { firstKept == arrays.count }

    var isAttached: Bool { backChannel != nil }

    /// Whether the stream should go on talking.
    var hasCapacity: Bool {
        queuedBytes < (isAttached ? Limits.webChannelQueueBytesMax : Limits.webChannelDetachedQueueBytesMax)
    }

    // MARK: The back channel

    /// A new back channel takes the place of the one before. It begins with what isn't acknowledged; when that is nothing, a
    /// stream begins with a sign of life, because a client that gets no byte soon takes it that a proxy holds them back.
    package mutating func attach(polls: Bool) {
        backChannel = BackChannel(polls: polls, writtenID: acknowledgedID)
        if !polls, isAcknowledged { appendNoop() }
    }

    package mutating func detach() { backChannel = nil }

    /// What is to be written now; nil when nothing is. After an output that ends the back channel there is none.
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
        // A reader who is to make room must come back, and does so when the answer ends.
        let isDone = next == arrays.count && (isClosed || queuedBytes >= turnBytesMax)
        let ends = backChannel.polls || isDone
        if ends { detach() }
        return Output(bytes: Self.framed(frame), endsBackChannel: ends)
    }

    /// Bytes on a back channel after which it ends, so that its client acknowledges them.
    private var turnBytesMax: Int {
        isScarce ? Limits.webChannelScarceBytesMax : Limits.webChannelQueueBytesMax / 2
    }

    /// Forgets what was never written. Nobody knows of it, so what comes next takes the same ids.
    mutating func dropUnwritten() {
        while arrays.count > firstKept, let last = arrays.last, last.id > lastWrittenID {
            queuedBytes -= last.string.count
            arrays.removeLast()
            lastID -= 1
        }
    }

    // MARK: Text

    /// The answer to a handshake.
    var handshake: [UInt8] {
        Self.framed(Array("[[0,[\"c\",\"\(id)\",\"\",8,14,\(Limits.webChannelKeepAliveSeconds * 1000)]]]".utf8))
    }

    /// The answer to a later request with messages: whether there is a back channel, and what is due on it.
    package var answer: [UInt8] {
        Self.framed(Array("[\(isAttached ? 1 : 0),\(lastID),\(queuedBytes)]".utf8))
    }

    /// Text with its length before it, in UTF-16 code units: JavaScript's measure.
    static func framed(_ string: [UInt8]) -> [UInt8] {
        var units = 0
        string.withUnsafeBufferPointer { bytes in
            for byte in bytes {
                // Each character has one byte that doesn't continue another; four bytes make two units.
                units &+= byte & 0xC0 == 0x80 ? 0 : 1
                units &+= byte >= 0xF0 ? 1 : 0
            }
        }
        return Array("\(units)\n".utf8) + string
    }
}
