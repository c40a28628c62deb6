import HearthConcurrency
import HearthModel

/// The end of a token's validity.
package struct TokenEnd: Sendable {
    /// When the token is accepted no more, a minute after its expiry time, because clocks differ; since 1970. Every protocol
    /// goes by this time: a stream ends when a new request would be refused.
    var seconds: Int64
    /// The key that may be withdrawn earlier; nil for none.
    var proof: TokenProof?
    /// The clock that verified the token; its end is measured by the same one.
    var clock: any Clock

    static let never = TokenEnd(seconds: Timestamp.secondsMax, proof: nil, clock: SystemClock())

    var secondsLeft: Int64 { max(0, seconds - clock.now().microseconds / 1_000_000) }
}
