import CLinux
import Glibc
import Synchronization

/// A condition that the program itself guarantees, and that does not hold: a fault of the program, whatever a peer has
/// sent. Code that bytes from a socket can reach throws it instead of a `precondition`. It costs the connection, or the
/// request, in which it was found; the process and the other connections continue
/// (docs/decisions/0027-broken-invariants-cost-a-connection.md).
package struct BrokenInvariant: Error, Sendable {
    package let condition: StaticString
    /// Where it was found: a line for each frame, the innermost first.
    package let stack: [String]

    private static let framesMax = 24

    /// - Parameter condition: the condition that does not hold, as a sentence.
    package init(_ condition: StaticString) {
        self.condition = condition
        stack = Self.currentStack()
    }

    private static func currentStack() -> [String] {
        var addresses = [UnsafeMutableRawPointer?](repeating: nil, count: framesMax)
        let count = linux_backtrace(&addresses, Int32(framesMax))
        guard count > 0, let lines = linux_backtrace_lines(addresses, count) else { return [] }
        defer { free(lines) }
        return (0..<Int(count)).compactMap { lines[$0].map { String(cString: $0) } }
    }
}

/// Counts broken invariants, and passes some of them to a log: a condition that every request breaks must not fill the
/// disk.
package final class BrokenInvariants: Sendable {
    /// - Parameter unreported: how many others there were since the last one that was passed.
    package typealias Report = @Sendable (_ broken: BrokenInvariant, _ unreported: Int) -> Void

    private struct State {
        var since: UInt64 = 0
        var reported = 0
        var unreported = 0
    }

    /// Of each minute.
    package static let reportsMax = 6
    private static let intervalNanoseconds: UInt64 = 60_000_000_000

    private let now: @Sendable () -> UInt64
    private let report: Report
    private let total = Atomic<Int>(0)
    private let state = Mutex(State())

    /// - Parameters:
    ///   - now: monotonic nanoseconds.
    ///   - report: called on the thread that found it.
    package init(
        now: @escaping @Sendable () -> UInt64 = { linux_monotonic_nanoseconds() },
        report: @escaping Report = { _, _ in }
    ) {
        self.now = now
        self.report = report
    }

    /// Since the start.
    package var count: Int { total.load(ordering: .relaxed) }

    package func note(_ broken: BrokenInvariant) {
        total.add(1, ordering: .relaxed)
        let now = now()
        let unreported: Int? = state.withLock { state in
            if now >= state.since + Self.intervalNanoseconds {
                state.since = now
                state.reported = 0
            }
            guard state.reported < Self.reportsMax else {
                state.unreported += 1
                return nil
            }
            state.reported += 1
            defer { state.unreported = 0 }
            return state.unreported
        }
        if let unreported { report(broken, unreported) }
    }
}
