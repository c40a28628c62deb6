/// Notifies observers of the number of writes that the server has not answered: sets, updates and transactions, those
/// of an earlier run included. An observer receives the present number, and each one after an operation changed it.
final class PendingWriteCounter {
    private(set) var count = 0
    private let outputs: OutputQueue
    private var observers: [(id: Int, onCount: (Int) -> Void)] = []
    private var lastID = 0

    init(outputs: OutputQueue) { self.outputs = outputs }

    /// - Returns: the observer's id.
    func add(_ onCount: @escaping (Int) -> Void) -> Int {
        lastID += 1
        observers.append((lastID, onCount))
        let count = count
        outputs.append { onCount(count) }
        return lastID
    }

    func remove(_ id: Int) { observers.removeAll { $0.id == id } }

    /// No number follows: requests that fail because the database is closed stay pending on disk.
    func removeAll() { observers = [] }

    /// The number at the end of an operation.
    func take(_ new: Int) {
        if new == count { return }
        count = new
        for observer in observers { outputs.append { observer.onCount(new) } }
    }
}
