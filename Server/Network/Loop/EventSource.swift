/// A descriptor that a loop watches. A class and not a protocol: epoll hands back one raw pointer.
package class EventSource {
    final let descriptor: Int32

    /// Without a descriptor: a simulation reports its events.
    final var isSimulated: Bool { descriptor < 0 }

    init(descriptor: Int32) { self.descriptor = descriptor }

    /// `events` are epoll's bits.
    func handleEvents(_ events: UInt32) {}
}
