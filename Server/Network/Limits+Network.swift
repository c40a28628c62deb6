import HearthModel

/// The limits of this module, and of modules that use it. A limit marked "ours" guards memory or time and is not part
/// of the service's contract.
extension Limits {
    // MARK: Workers and memory; bounds of ours

    /// The common limit for bytes held for peers, above the limits of each kind: all kinds together keep the process
    /// below 400 MB.
    package static let pooledBytesMax = 96 << 20
    package static let answersOwnBytes = 16 << 20
    package static let openRequestsOwnBytes = 8 << 20
    /// Unfinished TLS records; the pool has more.
    package static let tlsRecordsOwnBytes = 7 << 20
    /// What a server with TLS takes from the pool for unfinished handshakes (`NetworkLimits.tlsHandshakesMax`) and
    /// records.
    package static let tlsOwnBytes = tlsRecordsOwnBytes + 9 << 20
}
