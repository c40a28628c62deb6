import HearthModel

/// Decides whether a read may see a state. Fails with `WorkMeter.isHeavier` when that needs more than the reader may
/// decode.
typealias ReadJudge = @Sendable (StateReader) throws(Status) -> Void
