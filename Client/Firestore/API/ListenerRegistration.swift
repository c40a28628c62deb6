public import Foundation

/// A registered listener. Releasing the object does not remove the listener.
public protocol ListenerRegistration: NSObjectProtocol {
    /// Removes the listener: no event is delivered afterwards, not even one that is already queued. Repeated calls have
    /// no effect.
    func remove()
}
