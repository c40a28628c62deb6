import HearthModel

extension Status.Code {
    /// Whether a retry cannot succeed.
    var isPermanent: Bool {
        switch self {
        case .ok, .cancelled, .unknown, .deadlineExceeded, .resourceExhausted, .internal, .unavailable,
            .unauthenticated:
            false
        case .invalidArgument, .notFound, .alreadyExists, .permissionDenied, .failedPrecondition, .aborted,
            .outOfRange, .unimplemented, .dataLoss:
            true
        }
    }

    /// An aborted write conflicted with another one, and may succeed on retry.
    var isPermanentForWrites: Bool { isPermanent && self != .aborted }
}

extension Status {
    /// For the cache: a failure that may be temporary. The disk is full or reports an error, and nothing was written.
    var isPassing: Bool { code == .resourceExhausted || code == .unavailable }
}
