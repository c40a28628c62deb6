import HearthModel
import HearthNetwork

/// The header (in gRPC metadata and HTTP) by which an administrator's commit makes no events for triggers, as
/// `disableTriggers` does for the Realtime Database. Hearth's own: an answer has it, too (in gRPC as a trailer), so that the
/// sender sees that the server knows it.
package enum TriggersHeader {
    package static let name = "x-hearth-disable-triggers"

    /// Whether a commit makes no events.
    /// - Throws: INVALID_ARGUMENT for a value other than `true` and `false`, or for several.
    package static func isSet(on call: any ServiceCall) throws(Status) -> Bool {
        guard let value = call.triggersValues.first else { return false }
        guard call.triggersValues.count == 1, value == "true" || value == "false" else {
            throw .invalidArgument("'\(name)' must be sent once, as true or false.")
        }
        return value == "true"
    }

    /// What an answer to a call with these values has.
    package static func acknowledgement(of values: [String]) -> [HTTPHeader] {
        values == ["true"] ? [HTTPHeader(name, "true")] : []
    }

    /// Fails when a call that applies writes in another way than Commit has the header: its sender relies on it.
    package static func refuse(on call: any ServiceCall) throws(Status) {
        if !call.triggersValues.isEmpty { throw .invalidArgument("'\(name)' is for Commit only.") }
    }
}
