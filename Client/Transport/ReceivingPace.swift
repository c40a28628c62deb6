import Synchronization

/// Pauses a connection's input while much of what it has delivered still waits for its consumer. Otherwise a server that sends
/// faster than the consumer works, by mistake or on purpose, fills the memory.
///
/// The connection's thread calls `received`, the consumer calls `taken` for each of these messages, in their order.
package final class ReceivingPace: Sendable {
    private struct State {
        /// The sizes of the messages that wait, from `first` on.
        var sizes: [Int] = []
        var first = 0
        var waitingBytes = 0
        var isPaused = false
        var setReceiving: (@Sendable (Bool) -> Void)?
    }

    /// Above this the input is paused, and continues below half of it. One message may be larger.
    package static let waitingBytesMax = 4 << 20
    /// What a message needs while it waits, besides its bytes.
    private static let overheadBytes = 512

    private let state = Mutex(State())

    package init() {}

    /// - Parameter setReceiving: pauses the connection, and lets it continue. It must not deliver messages within the call. It comes
    ///   later than the connection, whose messages may arrive before.
    package func attach(_ setReceiving: @escaping @Sendable (Bool) -> Void) {
        state.withLock { state in
            state.setReceiving = setReceiving
            if state.isPaused { setReceiving(false) }
        }
    }

    /// A message is on its way to the consumer.
    package func received(_ bytes: Int) {
        state.withLock { state in
            state.sizes.append(bytes + Self.overheadBytes)
            state.waitingBytes += bytes + Self.overheadBytes
            guard !state.isPaused, state.waitingBytes > Self.waitingBytesMax else { return }
            state.isPaused = true
            // With the lock: a pause and its end must keep their order.
            state.setReceiving?(false)
        }
    }

    /// The consumer has worked on the next message.
    package func taken() {
        state.withLock { state in
            guard state.first < state.sizes.count else { return }
            state.waitingBytes -= state.sizes[state.first]
            state.first += 1
            if state.first >= 1000, state.first * 2 >= state.sizes.count {
                state.sizes.removeFirst(state.first)
                state.first = 0
            }
            guard state.isPaused, state.waitingBytes <= Self.waitingBytesMax / 2 else { return }
            state.isPaused = false
            state.setReceiving?(true)
        }
    }
}
