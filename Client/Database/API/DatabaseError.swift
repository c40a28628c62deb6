import Foundation
import HearthModel

extension WireFailure {
    /// The domain and the codes of the SDKs for Apple platforms.
    static let errorDomain = "com.firebase"

    var error: NSError {
        let (code, text) =
            switch status {
            case "permission_denied": (1, "Permission Denied")
            case "unavailable": (2, "Service Unavailable")
            case "write_canceled": (3, "Write cancelled by user")
            default: (9999, "Unknown Error: \(status)")
            }
        return NSError(
            domain: Self.errorDomain, code: code,
            userInfo: [
                NSLocalizedDescriptionKey: text,
                NSLocalizedFailureReasonErrorKey: message.isEmpty ? status : message,
            ])
    }

    /// Of `getData`, which has a domain of its own.
    func readError(of place: String) -> NSError {
        NSError(
            domain: "com.firebase.core", code: 1,
            userInfo: [
                NSLocalizedDescriptionKey:
                    "Unable to get latest value for query at \(place): client offline or refused, "
                    + "with no active listeners and no matching disk cache entries.",
                NSLocalizedFailureReasonErrorKey: message.isEmpty ? status : message,
            ])
    }

    /// Why the engine couldn't start.
    init(_ status: Status) { self.init(status.code.name.lowercased(), status.message) }
}
