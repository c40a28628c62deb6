internal import Foundation

/// The domain of the errors of `Auth`.
public let AuthErrorDomain: String = "FIRAuthErrorDomain"

/// The codes of errors in `AuthErrorDomain`, with Apple's numbers.
public enum AuthErrorCode: Int, Sendable {
    /// The token cannot be read, or contains no user.
    case invalidCustomToken = 17000
    /// The refreshed token belongs to another user.
    case userMismatch = 17024

    func error(_ message: String) -> NSError {
        NSError(domain: AuthErrorDomain, code: rawValue, userInfo: [NSLocalizedDescriptionKey: message])
    }
}
