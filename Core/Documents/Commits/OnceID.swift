import HearthEngine
import HearthModel

/// The id that a client gives to a commit that must be applied once, however often it is sent.
package struct OnceID: Sendable, Equatable {
    package static let bytesMax = 128

    package let bytes: [UInt8]

    /// - Parameter name: what the error calls it.
    /// - Throws: INVALID_ARGUMENT for an id that is not 1 to `bytesMax` visible characters of ASCII.
    package init(_ string: String, called name: String) throws(Status) {
        let bytes = Array(string.utf8)
        guard (1...Self.bytesMax).contains(bytes.count), bytes.allSatisfy({ (0x21...0x7E).contains($0) }) else {
            throw .invalidArgument("'\(name)' must be 1 to \(Self.bytesMax) characters from '!' to '~'.")
        }
        self.bytes = bytes
    }
}

/// What a commit is known by in the store, so that its repetition is answered and not applied again.
enum CommitMark: Sendable {
    case stream(StreamPosition)
    /// - Parameter documents: see `OnceAnswers.fingerprint`.
    case once(OnceID, documents: UInt64)

    /// The answer to the commit when it was made before; nil when it may be made now.
    /// - Throws: why it may not be made, though it was not made before.
    func known(in snapshot: any Snapshot) throws(Status) -> CommitOutcome? {
        switch self {
        case .stream(let position): try StreamAnswers.known(position, in: snapshot)
        case .once(let id, let documents): try OnceAnswers.known(id, documents, in: snapshot)
        }
    }

    /// Notes a commit that is made in the same transaction.
    func put(_ outcome: CommitOutcome, in transaction: any StoreTransaction) throws(Status) {
        switch self {
        case .stream(let position): try StreamAnswers.put(position, outcome, in: transaction)
        case .once(let id, let documents): try OnceAnswers.put(id, documents, outcome, in: transaction)
        }
    }
}
