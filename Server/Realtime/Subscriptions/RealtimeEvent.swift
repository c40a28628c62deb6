/// The event of one commit for a listen.
struct RealtimeEvent: Sendable {
    enum Change: Sendable {
        case push(RealtimePush)
        /// The changes could not be determined: all data must be read.
        case lost
        /// The same, and later changes are not delivered until the data has been read.
        case unknown
    }

    var version: Int64
    var change: Change

    /// Its size while it waits.
    var sizeBytes: Int { if case .push(let push) = change { push.sizeBytes } else { 0 } }
}
