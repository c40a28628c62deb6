import HearthHost
import HearthConcurrency
import HearthModel
import HearthDocuments
import Synchronization

/// Writes to the log what rules denied and why: so many lines a second, and of the others their number with the next line,
/// so that who asks for what he may not see cannot fill the disk.
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

    /// - Parameter fields: made only for a line that is written.
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
