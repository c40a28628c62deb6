import HearthHost
import HearthModel
import HearthDocuments
import HearthWire

/// A Write stream that a client can resume on another connection, and its position.
///
/// A client requests one with the label `hearth-resumable` in its first request. The response has an id that begins
/// with `hearth-`. When the connection breaks, the first request on the next connection carries this `stream_id` and
/// the `stream_token` of the last response that the client has. The server responds without an id, and the client
/// repeats the writes that have no response, in their order. A write that was committed gets the same response as the
/// first time; any other write is committed. When the server does not know the stream, because it belongs to another
/// history or was deleted, the response has the id of a new stream.
///
/// The token is the number of commits that were made. With the token of a request the client acknowledges their
/// responses; at most `Limits.streamAnswersMax` commits may be unacknowledged. A commit that fails has no number: the
/// next request takes it.
///
/// Source: google.firestore.v1.WriteRequest, which describes `stream_id` and `stream_token` this way. Google's service
/// does not resume streams. The label and the form of the id are Hearth's own.
struct ResumableStream: Sendable {
    static let label = "hearth-resumable"
    private static let prefix = "hearth-"

    /// Identifies the stream. Nobody can take over the stream of another user, or of another database.
    struct Key: Hashable, Sendable {
        var database: DatabaseName
        var owner: [UInt8]
        var name: [UInt8]
    }

    /// `hearth-`, the random name, and the version at which the stream was opened, in hexadecimal.
    let id: String
    let key: Key
    private let name: [UInt8]
    private let openedAt: Int64
    private let owner: [UInt8]
    /// The number of the last commit that was made.
    private var last: UInt64

    /// A new stream.
    init(owner: Identity, in database: Database) {
        var generator = SystemRandomNumberGenerator()
        let random = [generator.next(), generator.next()].map { Self.hexadecimal($0) }.joined()
        openedAt = database.newestVersion
        id = Self.prefix + random + Self.hexadecimal(UInt64(bitPattern: openedAt))
        name = Self.bytes(random)
        self.owner = Self.bytes(of: owner)
        key = Key(database: database.name, owner: self.owner, name: name)
        last = 0
    }

    /// The stream that a first request names; nil when it names none.
    /// - Throws: INVALID_ARGUMENT for an id that is not of such a stream, or for a missing token.
    init?(resuming request: WriteRequest, owner: Identity, in database: DatabaseName) throws(Status) {
        if request.streamId.isEmpty, request.streamToken.isEmpty { return nil }
        guard request.streamId.hasPrefix(Self.prefix) else {
            throw .invalidArgument("Resuming streams is not supported, do not set stream ID.")
        }
        let idBytes = StreamPosition.idBytes + 8
        guard request.streamId.utf8.count == Self.prefix.utf8.count + 2 * idBytes,
            case let bytes = Self.bytes(String(request.streamId.dropFirst(Self.prefix.count))), bytes.count == idBytes
        else { throw .invalidArgument("'stream_id' is not the id of a stream.") }
        id = request.streamId
        name = Array(bytes.prefix(StreamPosition.idBytes))
        openedAt = Int64(bitPattern: bytes.suffix(8).reduce(0) { $0 << 8 | UInt64($1) })
        self.owner = Self.bytes(of: owner)
        key = Key(database: database, owner: self.owner, name: name)
        last = try Self.number(request.streamToken)
    }

    /// Whether the database knows the stream.
    /// - Throws: see `Database.canResume`.
    func isKnown(in database: Database) throws(Status) -> Bool {
        try database.canResume(stream: name, owner: owner, after: last, openedAt: openedAt)
    }

    var token: [UInt8] { Array(String(last).utf8) }

    /// The position of the next commit.
    /// - Throws: INVALID_ARGUMENT for a token of another stream, RESOURCE_EXHAUSTED when too many commits are
    ///   unacknowledged.
    func position(of request: WriteRequest) throws(Status) -> StreamPosition {
        let acknowledged = try Self.number(request.streamToken)
        if acknowledged > last { throw .invalidArgument("'stream_token' is of no answer on this stream.") }
        if last + 1 - acknowledged > UInt64(Limits.streamAnswersMax) {
            throw Status(
                .resourceExhausted,
                "More than \(Limits.streamAnswersMax) writes of the stream are unacknowledged; "
                    + "send the token of the last answer.")
        }
        // The token differs when a write is repeated.
        let content = WriteRequest(writes: request.writes, labels: request.labels)
        return StreamPosition(
            stream: name, owner: owner, number: last + 1,
            fingerprint: StreamPosition.fingerprint(content.protobuf()))
    }

    mutating func advance() { last += 1 }

    /// Equal for identities that share their streams: only the user counts, not the other claims of their token.
    private static func bytes(of identity: Identity) -> [UInt8] {
        switch identity {
        case .administrator: [0]
        case .client(nil): [1]
        case .client(let client?): [2] + Array(client.uid.utf8)
        }
    }

    private static func number(_ token: [UInt8]) throws(Status) -> UInt64 {
        guard token.count <= 20, let number = UInt64(String(decoding: token, as: UTF8.self)), number < UInt64.max / 2,
            Array(String(number).utf8) == token
        else {
            throw .invalidArgument("'stream_token' is of no answer on this stream.")
        }
        return number
    }

    private static func hexadecimal(_ number: UInt64) -> String {
        let digits = String(number, radix: 16)
        return String(repeating: "0", count: 16 - digits.count) + digits
    }

    /// Empty for a string that is not lower-case hexadecimal: a stream has exactly one id.
    private static func bytes(_ string: String) -> [UInt8] {
        let digits = Array(string.utf8)
        guard digits.count % 2 == 0 else { return [] }
        var bytes: [UInt8] = []
        for (index, digit) in digits.enumerated() {
            let value: UInt8
            switch digit {
            case UInt8(ascii: "0")...UInt8(ascii: "9"): value = digit - UInt8(ascii: "0")
            case UInt8(ascii: "a")...UInt8(ascii: "f"): value = digit - UInt8(ascii: "a") + 10
            default: return []
            }
            if index % 2 == 0 { bytes.append(value << 4) } else { bytes[bytes.count - 1] |= value }
        }
        return bytes
    }
}
