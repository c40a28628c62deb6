/// Answers to calls that one thread has begun, in the order in which other threads give them.
///
/// `@unchecked Sendable`: the monitor guards the answers.
package final class Answers<Answer: Sendable>: @unchecked Sendable {
    private let monitor = Monitor()
    private var waiting = Queue<Answer>()

    package init() {}

    /// From any thread.
    package func add(_ answer: Answer) {
        monitor.withLock {
            waiting.append(answer)
            monitor.signal()
        }
    }

    /// Waits for the next answer; the caller knows that one will come. Must not run on an event loop.
    package func next() -> Answer {
        monitor.lock()
        defer { monitor.unlock() }
        while true {
            if let answer = waiting.popFirst() { return answer }
            monitor.wait()
        }
    }
}
