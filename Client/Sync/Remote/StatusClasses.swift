import HearthModel

extension Status.Code {
    /// Whether trying again won't help.
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

    /// An aborted write lost against another one, and may win the next time.
    var isPermanentForWrites: Bool { isPermanent && self != .aborted }
}

extension Status {
    /// Of the cache: what may be over in a moment. The disk is full, or answers with an error; nothing was written.
    var isPassing: Bool { code == .resourceExhausted || code == .unavailable }
}
