import HearthModel
import HearthStorage
import HearthWire
import Synchronization

/// A Write stream that a client can go on with on another connection, and where it is.
///
/// A client asks for it with the label `hearth-resumable` in its first request, and is given an id that begins with `hearth-`. When
/// its connection breaks, the first request on the next one carries `stream_id` and the `stream_token` of the last answer that came.
/// It is answered without an id, and the client sends again what it has no answer to, in the same order: what was made is answered
/// as it would have been, what wasn't is made. When the server doesn't know the stream (any more), the answer has a new id: it
/// is of another history, or 30 days old.
///
/// The token is the number of commits that were made. A request acknowledges with its token what it has heard of; at most
/// `Limits.streamAnswersMax` commits may be unacknowledged. What fails isn't counted: the next request takes its number.
///
/// Source: google.firestore.v1.WriteRequest, which describes `stream_id` and `stream_token` as above; Google's service resumes
/// nothing. Label and id are ours.
struct ResumableStream: Sendable {
    static let label = "hearth-resumable"
    private static let prefix = "hearth-"

    /// `hearth-`, the random name, and when it was opened, in hexadecimal.
    let id: String
    private let name: [UInt8]
    private let openedAt: Int64
    private let owner: [UInt8]
    /// The number of the last commit that was made.
    private var last: UInt64

    /// A new one.
    init(owner: Identity, now: Timestamp) {
        var generator = SystemRandomNumberGenerator()
        let random = [generator.next(), generator.next()].map { Self.hexadecimal($0) }.joined()
        let opened = UInt64(bitPattern: now.microseconds)
        id = Self.prefix + random + Self.hexadecimal(opened)
        name = Self.bytes(random)
        openedAt = now.microseconds
        self.owner = Self.bytes(of: owner)
        last = 0
    }

    /// The one that a first request names; nil when it names none.
    /// - Throws: INVALID_ARGUMENT for one that isn't of these, or without a token.
    init?(resuming request: WriteRequest, owner: Identity) throws(Status) {
        if request.streamId.isEmpty, request.streamToken.isEmpty { return nil }
        guard request.streamId.hasPrefix(Self.prefix) else {
            throw .invalidArgument("Resuming streams is not supported, do not set stream ID.")
        }
        let bytes = Self.bytes(String(request.streamId.dropFirst(Self.prefix.count)))
        guard bytes.count == StreamPosition.idBytes + 8,
            request.streamId.utf8.count == Self.prefix.utf8.count + 2 * bytes.count
        else { throw .invalidArgument("'stream_id' is not the id of a stream.") }
        id = request.streamId
        name = Array(bytes.prefix(StreamPosition.idBytes))
        openedAt = Int64(bitPattern: bytes.suffix(8).reduce(0) { $0 << 8 | UInt64($1) })
        self.owner = Self.bytes(of: owner)
        last = try Self.number(request.streamToken)
    }

    /// Whether the database knows where the stream was.
    /// - Throws: see `Database.canResume`.
    func isKnown(in database: Database) throws(Status) -> Bool {
        try database.canResume(stream: name, owner: owner, after: last, openedAt: openedAt)
    }

    var token: [UInt8] { Array(String(last).utf8) }

    /// The position of the commit that comes next.
    /// - Throws: INVALID_ARGUMENT for a token that is not of the stream, RESOURCE_EXHAUSTED when too many commits are
    ///   unacknowledged.
    func position(of request: WriteRequest) throws(Status) -> StreamPosition {
        let acknowledged = try Self.number(request.streamToken)
        if acknowledged > last { throw .invalidArgument("'stream_token' is of no answer on this stream.") }
        if last + 1 - acknowledged > UInt64(Limits.streamAnswersMax) {
            throw Status(
                .resourceExhausted,
                "More than \(Limits.streamAnswersMax) writes of the stream are unacknowledged; send the token of the last answer."
            )
        }
        // Whatever else has come meanwhile, a write that is sent again is the same.
        let content = WriteRequest(writes: request.writes, labels: request.labels)
        return StreamPosition(
            stream: name, owner: owner, number: last + 1,
            fingerprint: StreamPosition.fingerprint(content.protobuf()))
    }

    mutating func advance() { last += 1 }

    /// Whose streams are the same: users have theirs, whatever their token says besides.
    private static func bytes(of identity: Identity) -> [UInt8] {
        switch identity {
        case .administrator: [0]
        case .client(nil): [1]
        case .client(let client?): [2] + Array(client.uid.utf8)
        }
    }

    private static func number(_ token: [UInt8]) throws(Status) -> UInt64 {
        guard let number = UInt64(String(decoding: token, as: UTF8.self)), number < UInt64.max / 2 else {
            throw .invalidArgument("'stream_token' is of no answer on this stream.")
        }
        return number
    }

    private static func hexadecimal(_ number: UInt64) -> String {
        let digits = String(number, radix: 16)
        return String(repeating: "0", count: 16 - digits.count) + digits
    }

    /// Nothing for what isn't hexadecimal.
    private static func bytes(_ text: String) -> [UInt8] {
        let digits = Array(text.utf8)
        var bytes: [UInt8] = []
        for start in stride(from: 0, to: digits.count - 1, by: 2) {
            guard let byte = UInt8(String(decoding: digits[start..<start + 2], as: UTF8.self), radix: 16) else {
                return []
            }
            bytes.append(byte)
        }
        return bytes
    }
}

/// Which connection a stream that can be resumed is on. One at a time: whoever resumes it waits until what the connection before
/// has under way is made or refused, so that none of it is made later.
final class ResumableStreams: Sendable {
    private struct Held {
        weak var holder: WriteStream?
        var waiting: [(stream: WriteStream, granted: @Sendable () -> Void)] = []
    }

    private let held = Mutex<[String: Held]>([:])

    var count: Int { held.withLock { $0.count } }

    /// - Parameter granted: called when the stream is nobody else's; on any thread, maybe at once.
    func hold(_ id: String, _ stream: WriteStream, granted: @escaping @Sendable () -> Void) {
        let holder: WriteStream? = held.withLock { held in
            guard let holder = held[id]?.holder else {
                held[id] = Held(holder: stream, waiting: held[id]?.waiting ?? [])
                return nil
            }
            held[id]?.waiting.append((stream, granted))
            return holder
        }
        if let holder { holder.giveWay() } else { granted() }
    }

    /// Nothing happens when the stream isn't held by it.
    func release(_ id: String, _ stream: WriteStream) {
        let next: (granted: @Sendable () -> Void, holder: WriteStream?)? = held.withLock { held in
            guard held[id]?.holder === stream, var entry = held[id] else { return nil }
            if entry.waiting.isEmpty {
                held[id] = nil
                return nil
            }
            let next = entry.waiting.removeFirst()
            entry.holder = next.stream
            held[id] = entry
            return (next.granted, entry.waiting.isEmpty ? nil : next.stream)
        }
        next?.granted()
        // Somebody else waits already.
        next?.holder?.giveWay()
    }
}
