internal import Foundation
internal import HearthModel

/// The domain of all errors of this library.
public let FirestoreErrorDomain: String = "FIRFirestoreErrorDomain"

/// Names the codes of errors in `FirestoreErrorDomain`, which are gRPC's.
public struct FirestoreErrorCode: Sendable {
    public enum Code: Int, Sendable {
        case OK = 0
        case cancelled = 1
        case unknown = 2
        case invalidArgument = 3
        case deadlineExceeded = 4
        case notFound = 5
        case alreadyExists = 6
        case permissionDenied = 7
        case resourceExhausted = 8
        case failedPrecondition = 9
        case aborted = 10
        case outOfRange = 11
        case unimplemented = 12
        case `internal` = 13
        case unavailable = 14
        case dataLoss = 15
        case unauthenticated = 16
    }

    public static let OK = Code.OK
    public static let cancelled = Code.cancelled
    public static let unknown = Code.unknown
    public static let invalidArgument = Code.invalidArgument
    public static let deadlineExceeded = Code.deadlineExceeded
    public static let notFound = Code.notFound
    public static let alreadyExists = Code.alreadyExists
    public static let permissionDenied = Code.permissionDenied
    public static let resourceExhausted = Code.resourceExhausted
    public static let failedPrecondition = Code.failedPrecondition
    public static let aborted = Code.aborted
    public static let outOfRange = Code.outOfRange
    public static let unimplemented = Code.unimplemented
    public static let `internal` = Code.`internal`
    public static let unavailable = Code.unavailable
    public static let dataLoss = Code.dataLoss
    public static let unauthenticated = Code.unauthenticated
}

/// Lets `case FirestoreErrorCode.unavailable:` and `catch FirestoreErrorCode.unavailable` match errors.
public func ~= (code: FirestoreErrorCode.Code, error: any Error) -> Bool {
    let error = error as NSError
    return error.domain == FirestoreErrorDomain && error.code == code.rawValue
}

/// Thrown where a type can't be decoded by another decoder than `Firestore.Decoder`.
public enum FirestoreDecodingError: Error {
    case decodingIsNotSupported(String)
    /// Not thrown any more; samples still name it.
    case fieldNameConflict(String)
}

/// Thrown where a type can't be encoded by another encoder than `Firestore.Encoder`.
public enum FirestoreEncodingError: Error {
    case encodingIsNotSupported(String)
}

extension Status {
    /// As the API reports it: `catch let error as NSError` matches nothing else on Linux.
    var nsError: NSError {
        NSError(domain: FirestoreErrorDomain, code: code.rawValue, userInfo: [NSLocalizedDescriptionKey: message])
    }

    /// An error that the user passed on; nil when it is none of ours.
    init?(firestoreError error: NSError) {
        guard error.domain == FirestoreErrorDomain, let code = Status.Code(rawValue: error.code) else { return nil }
        self.init(code, error.localizedDescription)
    }
}
