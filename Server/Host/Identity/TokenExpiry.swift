import HearthModel
import HearthNetwork

/// Ends a stream when its client's token does, or when the issuer withdraws the key that signed it: the client comes back with
/// a new one and goes on.
///
/// `@unchecked Sendable`: belongs to the stream's loop.
package final class TokenExpiry: @unchecked Sendable {
    /// How often the key is looked at: with the age of key sets it makes less than a minute.
    static let checkSeconds: Int64 = 15
    /// How often the clock is looked at when nobody can withdraw the key.
    private static let clockSeconds: Int64 = 30

    private let tokenEnd: TokenEnd
    private let loop: EventLoop
    private var end: (@Sendable (Status) -> Void)?
    private var timer: Timer?

    /// - Parameter end: called on the loop.
    package init?(_ tokenEnd: TokenEnd?, on loop: EventLoop, end: @escaping @Sendable (Status) -> Void) {
        guard let tokenEnd else { return nil }
        self.tokenEnd = tokenEnd
        self.loop = loop
        self.end = end
        schedule()
    }

    package convenience init?(of call: any StreamCall, end: @escaping @Sendable (Status) -> Void) {
        guard case .client(let client?) = call.identity else { return nil }
        self.init(client.end, on: call.loop, end: end)
    }

    private func schedule() {
        timer = loop.schedule(afterMilliseconds: Int(secondsToCheck) * 1000) { [weak self] in self?.check() }
    }

    /// The wall clock may be put forward, or have gone on while the machine slept; the timer knows nothing of that.
    var secondsToCheck: Int64 {
        min(tokenEnd.secondsLeft, tokenEnd.proof == nil ? Self.clockSeconds : Self.checkSeconds)
    }

    /// On the loop.
    func check() {
        guard let end else { return }
        if tokenEnd.secondsLeft > 0 {
            // While the set is fetched, or can't be, the stream goes on: it is looked at again soon.
            guard let proof = tokenEnd.proof, proof.standing == .withdrawn else { return schedule() }
            cancel()
            return end(KeySet.withdrawn)
        }
        cancel()
        end(Status(.unauthenticated, "The token has expired."))
    }

    package func cancel() {
        end = nil
        timer?.cancel()
        timer = nil
    }
}
