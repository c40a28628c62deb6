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
