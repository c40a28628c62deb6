public import Foundation

/// An error of `FirestoreErrorDomain`, and its codes, which are those of gRPC.
///
/// Calls throw an `NSError`, as on Apple platforms. It casts to this type: `catch let error as FirestoreErrorCode`.
public struct FirestoreErrorCode: Error, CustomNSError, Sendable, Hashable {
    /// A code of an error in `FirestoreErrorDomain`.
    public enum Code: Int, Sendable {
        /// No error.
        case OK = 0
        /// The operation was cancelled, usually by the caller.
        case cancelled = 1
        /// An unknown error.
        case unknown = 2
        /// An argument is invalid, whatever the state of the system.
        case invalidArgument = 3
        /// The operation took too long. It may have been completed.
        case deadlineExceeded = 4
        /// The document does not exist.
        case notFound = 5
        /// The document already exists.
        case alreadyExists = 6
        /// The caller has no permission.
        case permissionDenied = 7
        /// A limit is exhausted, for example the space on the disk.
        case resourceExhausted = 8
        /// The state of the system does not allow the operation.
        case failedPrecondition = 9
        /// The operation was aborted, usually by a conflict between transactions.
        case aborted = 10
        /// A value is out of its valid range.
        case outOfRange = 11
        /// The server does not implement the operation.
        case unimplemented = 12
        /// An internal error of the client or the server.
        case `internal` = 13
        /// The server cannot be reached. The operation may succeed on retry.
        case unavailable = 14
        /// Data is lost or damaged.
        case dataLoss = 15
        /// The request has no valid credentials.
        case unauthenticated = 16
    }

    private let error: NSError

    /// An error to throw, for example from the closure of a transaction.
    /// - Parameters:
    ///   - code: the code.
    ///   - userInfo: as of `NSError`; `NSLocalizedDescriptionKey` has the message.
    public init(_ code: Code, userInfo: [String: Any] = [:]) {
        error = NSError(domain: FirestoreErrorDomain, code: code.rawValue, userInfo: userInfo)
    }

    /// nil for an error of another domain.
    fileprivate init?(_ error: NSError) {
        guard error.domain == FirestoreErrorDomain, Code(rawValue: error.code) != nil else { return nil }
        self.error = error
    }

    /// The code.
    public var code: Code { Code(rawValue: error.code) ?? .unknown }
    /// `FirestoreErrorDomain`.
    public static var errorDomain: String { FirestoreErrorDomain }
    /// The number of the code.
    public var errorCode: Int { error.code }
    /// As of `NSError`.
    public var errorUserInfo: [String: Any] { error.userInfo }
    /// As of `NSError`.
    public var userInfo: [String: Any] { error.userInfo }
    /// The message.
    public var localizedDescription: String { error.localizedDescription }

    /// See `Code.OK`.
    public static let OK = Code.OK
    /// See `Code.cancelled`.
    public static let cancelled = Code.cancelled
    /// See `Code.unknown`.
    public static let unknown = Code.unknown
    /// See `Code.invalidArgument`.
    public static let invalidArgument = Code.invalidArgument
    /// See `Code.deadlineExceeded`.
    public static let deadlineExceeded = Code.deadlineExceeded
    /// See `Code.notFound`.
    public static let notFound = Code.notFound
    /// See `Code.alreadyExists`.
    public static let alreadyExists = Code.alreadyExists
    /// See `Code.permissionDenied`.
    public static let permissionDenied = Code.permissionDenied
    /// See `Code.resourceExhausted`.
    public static let resourceExhausted = Code.resourceExhausted
    /// See `Code.failedPrecondition`.
    public static let failedPrecondition = Code.failedPrecondition
    /// See `Code.aborted`.
    public static let aborted = Code.aborted
    /// See `Code.outOfRange`.
    public static let outOfRange = Code.outOfRange
    /// See `Code.unimplemented`.
    public static let unimplemented = Code.unimplemented
    /// See `Code.internal`.
    public static let `internal` = Code.`internal`
    /// See `Code.unavailable`.
    public static let unavailable = Code.unavailable
    /// See `Code.dataLoss`.
    public static let dataLoss = Code.dataLoss
    /// See `Code.unauthenticated`.
    public static let unauthenticated = Code.unauthenticated
}

/// On Linux, too, the runtime casts between a class and a struct with this conformance.
extension FirestoreErrorCode: _ObjectiveCBridgeable {
    /// For casts to `NSError`.
    /// - Returns: the error.
    public func _bridgeToObjectiveC() -> NSError { error }

    /// For casts from `NSError`.
    /// - Parameters:
    ///   - source: the error.
    ///   - result: becomes nil for an error of another domain.
    public static func _forceBridgeFromObjectiveC(_ source: NSError, result: inout FirestoreErrorCode?) {
        result = FirestoreErrorCode(source)
    }

    /// For casts from `NSError`.
    /// - Parameters:
    ///   - source: the error.
    ///   - result: becomes nil for an error of another domain.
    /// - Returns: whether the error is of `FirestoreErrorDomain`.
    public static func _conditionallyBridgeFromObjectiveC(
        _ source: NSError, result: inout FirestoreErrorCode?
    ) -> Bool {
        result = FirestoreErrorCode(source)
        return result != nil
    }

    /// For casts from `NSError`.
    /// - Parameter source: an error of `FirestoreErrorDomain`.
    /// - Returns: the error.
    public static func _unconditionallyBridgeFromObjectiveC(_ source: NSError?) -> FirestoreErrorCode {
        source.flatMap { FirestoreErrorCode($0) } ?? FirestoreErrorCode(.unknown)
    }
}
