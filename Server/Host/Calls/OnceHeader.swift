import HearthDocuments
import HearthModel

/// The header (in gRPC metadata and HTTP) by which an administrator names a commit that must be applied once, however often
/// it is sent. Hearth's own.
package enum OnceHeader {
    package static let name = "x-hearth-once"

    /// The id of a commit; nil when it has none.
    /// - Throws: INVALID_ARGUMENT for what is not an id, or for several.
    package static func id(of call: any ServiceCall) throws(Status) -> OnceID? {
        guard let value = call.onceValues.first else { return nil }
        if call.onceValues.count > 1 { throw .invalidArgument("'\(name)' must not be sent more than once.") }
        return try OnceID(value, called: name)
    }

    /// Fails when a call that applies writes in another way than Commit has an id, or `TriggersHeader.name`: its sender
    /// relies on it.
    /// - Parameter reason: a sentence that follows.
    package static func refuse(on call: any ServiceCall, _ reason: String = "") throws(Status) {
        try TriggersHeader.refuse(on: call)
        if call.onceValues.isEmpty { return }
        throw .invalidArgument("'\(name)' is for Commit only.\(reason.isEmpty ? "" : " ")\(reason)")
    }
}
