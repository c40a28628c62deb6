import HearthHTTPClient
import HearthModel

/// Parses a gRPC response incrementally: takes lines and bytes, returns messages and one status. Pure.
struct GRPCAnswerReader {
    private(set) var head = HTTPHeadReader()
    private let messageBytesMax: Int
    private var bytes: [UInt8] = []
    /// The start of the next message in `bytes`.
    private var position = 0
    private var failure: Status?

    private static let prefixBytes = 5

    init(messageBytesMax: Int) { self.messageBytesMax = messageBytesMax }

    mutating func readLine(_ line: UnsafeRawBufferPointer) { _ = head.read(line) }

    mutating func append(_ more: UnsafeRawBufferPointer) {
        // The body of a response that is not gRPC is ignored, because it may be long.
        guard isGRPC, failure == nil else { return }
        if position > 0, position == bytes.count || position > 65_536 {
            bytes.removeSubrange(..<position)
            position = 0
        }
        bytes.append(contentsOf: more)
    }

    /// Received bytes that are not returned as messages.
    var heldBytes: Int { bytes.count - position }

    /// Whether a whole message or an error is available.
    var hasMessage: Bool {
        guard failure == nil, let length = announcedLength else { return false }
        return length > messageBytesMax || heldBytes >= GRPCAnswerReader.prefixBytes + length
    }

    /// Removes and returns the next message.
    mutating func next() throws(Status) -> [UInt8]? {
        if let failure { throw failure }
        guard let length = announcedLength else { return nil }
        do throws(Status) { try check(length) } catch {
            failure = error
            throw error
        }
        let start = position + GRPCAnswerReader.prefixBytes
        guard bytes.count - start >= length else {
            if bytes.capacity < start + length, length > 65_536 { bytes.reserveCapacity(start + min(length, 4 << 20)) }
            return nil
        }
        let isCompressed = bytes[position] == 1
        let message = Array(bytes[start..<(start + length)])
        position = start + length
        guard isCompressed else { return message }
        do throws(Status) { return try Gzip.decompress(message, limitBytes: messageBytesMax) } catch {
            failure = error
            throw error
        }
    }

    private var announcedLength: Int? {
        guard heldBytes >= GRPCAnswerReader.prefixBytes else { return nil }
        return (1...4).reduce(0) { $0 << 8 | Int(bytes[position + $1]) }
    }

    private func check(_ length: Int) throws(Status) {
        let flag = bytes[position]
        guard flag <= 1 else { throw .internalError("malformed gRPC frame: the compressed flag is \(flag)") }
        guard length <= messageBytesMax else {
            throw .resourceExhausted("a received message of \(length) bytes is larger than \(messageBytesMax)")
        }
        guard flag == 0 || head.head.firstValue("grpc-encoding") == "gzip" else {
            let encoding = head.head.firstValue("grpc-encoding") ?? "none"
            throw .internalError("a received message is compressed, but grpc-encoding is \(encoding)")
        }
    }

    private var isGRPC: Bool {
        head.status == 200 && head.head.firstValue("content-type")?.hasPrefix("application/grpc") == true
    }

    /// An error is known: further input cannot change the result.
    var earlyFailure: Status? {
        if let failure { return failure }
        if let failure = head.failure { return failure }
        guard head.phase != .head else { return nil }
        if !head.version.hasPrefix("2"), !head.version.isEmpty {
            return .unavailable("the server answers in HTTP/\(head.version): it does not speak HTTP/2, as gRPC needs")
        }
        guard !isGRPC, !hasStatus else { return nil }
        let code = GRPCStatusMessage.code(ofHTTPStatus: head.status)
        let type = head.head.firstValue("content-type") ?? "none"
        return Status(code, "the server answered with HTTP status \(head.status), content type \(type), not with gRPC")
    }

    private var hasStatus: Bool {
        head.head.firstValue("grpc-status") != nil || head.trailers.firstValue("grpc-status") != nil
    }

    /// The status is known and no more messages follow, even if the request is not complete.
    var isComplete: Bool {
        switch head.phase {
        case .head: false
        case .body: head.head.firstValue("grpc-status") != nil
        case .trailers: true
        }
    }

    /// The status of the call.
    /// - Parameter failure: the failure of the transfer; nil without one.
    func finalStatus(failure transferFailure: Status?) -> Status {
        if let earlyFailure { return earlyFailure }
        if let status = GRPCStatusMessage.status(in: head.trailers) ?? GRPCStatusMessage.status(in: head.head) {
            guard status.code == .ok, heldBytes > 0 else { return status }
            return .internalError("the last message of the answer is cut off")
        }
        if let transferFailure { return transferFailure }
        return .internalError("the server ended the call without a status")
    }

    var trailers: [HTTPField] { head.phase == .trailers ? head.trailers : head.head }
}
