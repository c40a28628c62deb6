import HearthConcurrency

/// An action that the transport's loop runs once, at a time. On the loop's thread.
package final class TransportTimer: HeapTimer {
    package let deadline: UInt64
    package var heapIndex = -1
    private var action: (() -> Void)?

    package init(deadline: UInt64, _ action: @escaping () -> Void) {
        self.deadline = deadline
        self.action = action
    }

    func fire() {
        let action = action
        self.action = nil
        action?()
    }

    /// The action, and what it holds, is released even while somebody keeps the timer.
    package func cancel() { action = nil }
}
