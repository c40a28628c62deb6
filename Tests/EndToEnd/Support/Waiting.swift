import Foundation
import Synchronization

/// Waits for what other threads do: conditions are looked at again and again, with a limit so generous that only what
/// never happens reaches it.
enum Waiting {
    static let limit = Duration.seconds(60)
    private static let pause = Duration.milliseconds(5)

    struct TimedOut: Error, CustomStringConvertible {
        var description: String
    }

    /// - Parameter what: what was expected, and what there is instead; asked when it never came.
    static func until(
        _ what: @autoclosure () -> String, _ condition: () async throws -> Bool
    ) async throws {
        let deadline = ContinuousClock.now + limit
        while try await !condition() {
            if ContinuousClock.now > deadline { throw TimedOut(description: "never came: \(what())") }
            try await Task.sleep(for: pause)
        }
    }

    /// Tries until something succeeds.
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

/// What a listener heard, in order.
final class Recorder<Event: Sendable>: Sendable {
    private let events = Mutex<[Event]>([])

    func append(_ event: Event) { events.withLock { $0.append(event) } }

    var all: [Event] { events.withLock { $0 } }

    /// Waits until there are so many events, and gives them.
    @discardableResult
    func first(_ count: Int) async throws -> [Event] {
        try await Waiting.until("\(count) events; there are \(all)") { all.count >= count }
        return Array(all.prefix(count))
    }

    /// Waits for an event, among those that came and those that come.
    @discardableResult
    func first(where condition: (Event) -> Bool) async throws -> Event {
        var found: Event?
        try await Waiting.until("an event; there are \(all)") {
            found = all.first(where: condition)
            return found != nil
        }
        return found!
    }

    /// Waits until the latest event is as wanted.
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
