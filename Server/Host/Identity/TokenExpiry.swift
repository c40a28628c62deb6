import HearthModel
import HearthNetwork

/// Ends a stream when its client's token expires, or when the issuer withdraws the key that signed it. The client
/// reconnects with a new token.
///
/// `@unchecked Sendable`: belongs to the stream's loop.
package final class TokenExpiry: @unchecked Sendable {
    /// The interval between checks of the key: together with the maximum age of key sets it is less than a minute.
    static let checkSeconds: Int64 = 15
    /// The interval between checks of the clock when the key cannot be withdrawn.
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

    /// The wall clock may be set forward, or advance while the machine sleeps; the timer does not notice either.
    var secondsToCheck: Int64 {
        min(tokenEnd.secondsLeft, tokenEnd.proof == nil ? Self.clockSeconds : Self.checkSeconds)
    }

    /// On the loop.
    func check() {
        guard let end else { return }
        if tokenEnd.secondsLeft > 0 {
            // While the set is fetched, or cannot be, the stream continues: it is checked again soon.
            guard let proof = tokenEnd.proof, proof.validity == .withdrawn else { return schedule() }
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
