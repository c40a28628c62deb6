import Foundation
import HearthTestSupport
import Synchronization

/// Waits for other threads: conditions are checked repeatedly.
enum Waiting {
    static let limit = Duration.seconds(Patience.seconds)
    private static let pause = Duration.milliseconds(5)

    struct TimedOut: Error, CustomStringConvertible {
        var description: String
    }

    /// - Parameter what: the expected and the present state, for the error after the limit.
    static func until(
        _ what: @autoclosure () -> String, _ condition: () async throws -> Bool
    ) async throws {
        let deadline = ContinuousClock.now + limit
        while try await !condition() {
            if ContinuousClock.now > deadline { throw TimedOut(description: "never came: \(what())") }
            try await Task.sleep(for: pause)
        }
    }

    /// Retries until the closure succeeds.
    static func retry<Success>(_ body: () throws -> Success) async throws -> Success {
        let deadline = ContinuousClock.now + limit
        while true {
            do {
                return try body()
            } catch  where ContinuousClock.now < deadline {
                try await Task.sleep(for: pause)
            }
        }
    }
}

/// The events of a listener, in order.
final class Recorder<Event: Sendable>: Sendable {
    private let events = Mutex<[Event]>([])

    func append(_ event: Event) { events.withLock { $0.append(event) } }

    var all: [Event] { events.withLock { $0 } }

    /// Waits for the given number of events, and returns them.
    @discardableResult
    func first(_ count: Int) async throws -> [Event] {
        try await Waiting.until("\(count) events; there are \(all)") { all.count >= count }
        return Array(all.prefix(count))
    }

    /// Waits for an event, among the present and the future ones.
    @discardableResult
    func first(where condition: (Event) -> Bool) async throws -> Event {
        var found: Event?
        try await Waiting.until("an event; there are \(all)") {
            found = all.first(where: condition)
            return found != nil
        }
        return found!
    }

    /// Waits until the latest event satisfies a condition.
    @discardableResult
    func latest(where condition: (Event) -> Bool) async throws -> Event {
        var found: Event?
        try await Waiting.until("a last event; there are \(all)") {
            found = all.last.flatMap { condition($0) ? $0 : nil }
            return found != nil
        }
        return found!
    }
}
