import Glibc
import HearthModel
import HearthNetwork

/// Ends a stream when its client's token does: the client comes back with a new one and goes on.
final class TokenExpiry {
    private var timer: Timer?

    /// - Parameter end: called on the call's loop.
    init?(of call: any StreamCall, end: @escaping @Sendable (Status) -> Void) {
        guard case .client(let client?) = call.identity, let expiresAt = client.expiresAt else { return nil }
        let seconds = max(0, expiresAt - Int64(time(nil)))
        // A timer knows no more than some weeks.
        timer = call.loop.schedule(afterMilliseconds: Int(min(seconds, 1_000_000)) * 1000) {
            end(Status(.unauthenticated, "The token has expired."))
        }
    }

    func cancel() {
        timer?.cancel()
        timer = nil
    }
}
