/// The outcome of a failed call: the one error type of the whole program.
///
/// A `Status` has a canonical code and a message that names what was wrong. Front ends map it to
/// `grpc-status`, to an HTTP status with Google's error JSON, or to a `cause` on a Listen stream.
/// Source: google.rpc.Code.
@usableFromInline package struct Status: Error, Hashable, Sendable, CustomStringConvertible {
    /// google.rpc.Code, with the numbers of `grpc-status`.
    @usableFromInline package enum Code: Int, Sendable, CaseIterable {
        case ok = 0
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

        /// The name in the `status` member of Google's error JSON.
        @usableFromInline package var name: String {
            switch self {
            case .ok: "OK"
            case .cancelled: "CANCELLED"
            case .unknown: "UNKNOWN"
            case .invalidArgument: "INVALID_ARGUMENT"
            case .deadlineExceeded: "DEADLINE_EXCEEDED"
            case .notFound: "NOT_FOUND"
            case .alreadyExists: "ALREADY_EXISTS"
            case .permissionDenied: "PERMISSION_DENIED"
            case .resourceExhausted: "RESOURCE_EXHAUSTED"
            case .failedPrecondition: "FAILED_PRECONDITION"
            case .aborted: "ABORTED"
            case .outOfRange: "OUT_OF_RANGE"
            case .unimplemented: "UNIMPLEMENTED"
            case .internal: "INTERNAL"
            case .unavailable: "UNAVAILABLE"
            case .dataLoss: "DATA_LOSS"
            case .unauthenticated: "UNAUTHENTICATED"
            }
        }

        /// The HTTP status of a REST response with this code. Source: google/rpc/code.proto.
        package var httpStatus: Int {
            switch self {
            case .ok: 200
            case .cancelled: 499
            case .invalidArgument, .failedPrecondition, .outOfRange: 400
            case .unauthenticated: 401
            case .permissionDenied: 403
            case .notFound: 404
            case .alreadyExists, .aborted: 409
            case .resourceExhausted: 429
            case .unimplemented: 501
            case .unavailable: 503
            case .deadlineExceeded: 504
            case .unknown, .internal, .dataLoss: 500
            }
        }
    }

    @usableFromInline package var code: Code
    @usableFromInline package var message: String

    @inlinable package init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }

    package static let ok = Status(.ok, "")

    @inlinable package static func invalidArgument(_ message: String) -> Status { Status(.invalidArgument, message) }
    @inlinable package static func notFound(_ message: String) -> Status { Status(.notFound, message) }
    @inlinable package static func failedPrecondition(_ message: String) -> Status {
        Status(.failedPrecondition, message)
    }
    @inlinable package static func aborted(_ message: String) -> Status { Status(.aborted, message) }
    @inlinable package static func unimplemented(_ message: String) -> Status { Status(.unimplemented, message) }
    @inlinable package static func resourceExhausted(_ message: String) -> Status {
        Status(.resourceExhausted, message)
    }
    @inlinable package static func unavailable(_ message: String) -> Status { Status(.unavailable, message) }
    @inlinable package static func internalError(_ message: String) -> Status { Status(.internal, message) }

    @inlinable package var description: String { "\(code.name): \(message)" }
}
