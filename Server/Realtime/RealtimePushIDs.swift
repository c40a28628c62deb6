import HearthTree
import Synchronization

/// Makes the names of new children, for all namespaces.
final class RealtimePushIDs: Sendable {
    private let generator = Mutex(PushID.Generator())

    func next(nowMilliseconds: Int64) -> TreeKey {
        generator.withLock { $0.next(nowMilliseconds: nowMilliseconds) }
    }
}
