import HearthModel

/// Notifies observers of the number of batches in the present user's queue. The number is kept up to date only while it
/// is observed: the first observer counts the batches.
final class PendingWriteCounter {
    private struct Observer {
        var id: ObjectIdentifier
        var onCount: (Int) -> Void
        var onEnd: (Status?) -> Void
    }

    private var count = 0
    private var observers: [Observer] = []

    var isObserved: Bool { !observers.isEmpty }

    /// Delivers the present number at once.
    func observe(_ id: ObjectIdentifier, onCount: @escaping (Int) -> Void, onEnd: @escaping (Status?) -> Void) {
        observers.append(Observer(id: id, onCount: onCount, onEnd: onEnd))
        onCount(count)
    }

    func remove(_ id: ObjectIdentifier) { observers.removeAll { $0.id == id } }

    func set(_ new: Int) {
        if new == count { return }
        count = new
        for observer in observers { observer.onCount(new) }
    }

    func add(_ difference: Int) { if isObserved { set(count + difference) } }

    /// - Parameter reason: nil when the client ends.
    func end(_ reason: Status?) {
        let ended = observers
        observers = []
        for observer in ended { observer.onEnd(reason) }
    }
}
