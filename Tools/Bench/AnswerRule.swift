import HearthModel
import HearthWire

/// What a right answer of a gRPC call has besides the status OK.
struct AnswerRule: Sendable {
    /// How many messages count…
    var messages = 1
    /// …of those that begin with this byte, the tag of their first field; nil: all count.
    var tag: UInt8?
    /// Looks at each message. Nil: none is looked at.
    var content: (@Sendable (UnsafeBufferPointer<UInt8>) -> Bool)?

    /// Of the first field, which all answers here have: a document, a result, the results of writes.
    private static let firstTag: UInt8 = 0x0A

    /// - Parameter method: of Firestore's service.
    init(method: String) {
        switch method {
        case "RunQuery":
            tag = Self.firstTag
            messages = BenchRequests.queriedDocuments
        case "BatchWrite": content = { Self.areAllWritten($0) }
        default: tag = Self.firstTag
        }
    }

    /// A BatchWrite succeeds as a call when some of its writes fail.
    static func areAllWritten(_ message: UnsafeBufferPointer<UInt8>) -> Bool {
        do throws(Status) {
            return try BatchWriteResponse(protobuf: Array(message)).status.allSatisfy { $0.code == 0 }
        } catch { return false }
    }

    /// - Parameter documents: what an aggregation has to count.
    mutating func expectCount(_ documents: Int) {
        content = { BenchRequests.counted([Array($0)]) == documents }
    }
}
