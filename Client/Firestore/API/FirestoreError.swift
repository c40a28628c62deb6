internal import Foundation
internal import HearthModel

/// The domain of all errors of this library.
public let FirestoreErrorDomain: String = "FIRFirestoreErrorDomain"

/// Lets `case FirestoreErrorCode.unavailable:` and `catch FirestoreErrorCode.unavailable` match errors.
/// - Parameters:
///   - code: the code in the pattern.
///   - error: any error.
/// - Returns: whether the error is of `FirestoreErrorDomain` and has the code.
public func ~= (code: FirestoreErrorCode.Code, error: any Error) -> Bool {
    let error = error as NSError
    return error.domain == FirestoreErrorDomain && error.code == code.rawValue
}

/// The error of types that only `Firestore.Decoder` can decode.
public enum FirestoreDecodingError: Error {
    /// Another decoder was used.
    case decodingIsNotSupported(String)
    /// No longer thrown. It exists for source compatibility.
    case fieldNameConflict(String)
}

/// The error of types that only `Firestore.Encoder` can encode.
public enum FirestoreEncodingError: Error {
    /// Another encoder was used.
    case encodingIsNotSupported(String)
}

extension Status {
    /// The form in which the API reports it: `catch let error as NSError` matches nothing else on Linux.
    var nsError: NSError {
        NSError(domain: FirestoreErrorDomain, code: code.rawValue, userInfo: [NSLocalizedDescriptionKey: message])
    }

    /// An error of this library that the user's code returned; nil for other errors.
    init?(firestoreError error: NSError) {
        guard error.domain == FirestoreErrorDomain, let code = Status.Code(rawValue: error.code) else { return nil }
        self.init(code, error.localizedDescription)
    }
}
