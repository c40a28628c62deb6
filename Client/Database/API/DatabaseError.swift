import Foundation
import HearthModel

extension WireFailure {
    /// The error domain and codes of the SDKs for Apple platforms.
    static let errorDomain = "com.firebase"

    var error: NSError {
        let (code, description) =
            switch status {
            case "permission_denied": (1, "Permission Denied")
            case "unavailable": (2, "Service Unavailable")
            case "write_canceled": (3, "Write cancelled by user")
            default: (9999, "Unknown Error: \(status)")
            }
        return NSError(
            domain: Self.errorDomain, code: code,
            userInfo: [
                NSLocalizedDescriptionKey: description,
                NSLocalizedFailureReasonErrorKey: message.isEmpty ? status : message,
            ])
    }

    /// The error of `getData`, which has a domain of its own.
    func readError(of location: String) -> NSError {
        NSError(
            domain: "com.firebase.core", code: 1,
            userInfo: [
                NSLocalizedDescriptionKey:
                    "Unable to get latest value for query at \(location): client offline or refused, "
                    + "with no active listeners and no matching disk cache entries.",
                NSLocalizedFailureReasonErrorKey: message.isEmpty ? status : message,
            ])
    }

    /// The reason why the engine could not start.
    init(_ status: Status) { self.init(status.code.name.lowercased(), status.message) }
}
