import HearthHost
import HearthConcurrency
import HearthModel
import HearthDocuments
import Synchronization

/// Logs denials of rules with their reasons. The number of lines per second is limited, and the next line states how
/// many were omitted, so that a client cannot fill the disk with forbidden requests.
final class DenialLog: Sendable {
    private struct State {
        var second: Int64 = 0
        var written = 0
        var left = 0
    }

    private static let perSecond = 20
    private let log: Log
    private let clock: any Clock
    private let state = Mutex(State())

    init(_ log: Log, clock: any Clock) {
        self.log = log
        self.clock = clock
    }

    /// - Parameter fields: called only for a line that is written.
    func record(_ fields: () -> [Log.Field]) {
        let second = clock.now().microseconds / 1_000_000
        let (isWritten, left) = state.withLock { state in
            var left = 0
            if state.second != second {
                left = state.left
                state = State(second: second)
            }
            if state.written == Self.perSecond {
                state.left += 1
                return (false, left)
            }
            state.written += 1
            return (true, left)
        }
        if left > 0 { log.record(.info, "denied more", [("requests", .integer(left))]) }
        if isWritten { log.record(.info, "denied", fields()) }
    }
}
