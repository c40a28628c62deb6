import CCurl
import CNetlink
import Glibc

/// A descriptor, not libcurl's own, that wakes the loop.
final class DescriptorWatch {
    let descriptor: Int32
    /// The events, as for `poll`.
    var events: Int16
    let onReady: (Int16) -> Void
    var isCancelled = false

    init(descriptor: Int32, events: Int16, onReady: @escaping (Int16) -> Void) {
        self.descriptor = descriptor
        self.events = events
        self.onReady = onReady
    }
}
