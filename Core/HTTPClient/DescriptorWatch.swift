import CCurl
import CNetlink
import Glibc

/// A descriptor, not libcurl's own, that wakes the loop.
package final class DescriptorWatch {
    package let descriptor: Int32
    /// The events, as for `poll`.
    package var events: Int16
    let onReady: (Int16) -> Void
    package var isCancelled = false

    package init(descriptor: Int32, events: Int16, onReady: @escaping (Int16) -> Void) {
        self.descriptor = descriptor
        self.events = events
        self.onReady = onReady
    }
}
