import HearthEngine
import HearthModel

/// How much each client may have waiting for the writer of a tree: by the shares of `WriteShares`.
struct TreeAdmission: Sendable {
    private var shares: WriteShares

    static let isFull = Status.resourceExhausted("Too many writes are waiting for the disk.")
    static let isOverShare = Status.resourceExhausted(
        "Too many writes of this client are waiting while others wait, too.")

    init(countMax: Int = Limits.treeWriteQueueMax, bytesMax: Int = Limits.treeWriteQueueBytesMax) {
        shares = WriteShares(countMax: countMax, bytesMax: bytesMax)
    }

    var queued: (count: Int, bytes: Int) { (shares.total.count, shares.total.bytes) }

    /// Counts a write, until `leave`.
    /// - Returns: the reason why it may not wait; nothing is counted then.
    mutating func enter(_ requester: Requester, bytes: Int) -> Status? {
        switch shares.refusal(of: requester, bytes: bytes) {
        case .full: return Self.isFull
        case .overShare: return Self.isOverShare
        case nil: break
        }
        shares.add(WriteLoad(count: 1, bytes: bytes), for: requester)
        return nil
    }

    mutating func leave(_ requester: Requester, bytes: Int) {
        shares.remove(WriteLoad(count: 1, bytes: bytes), for: requester)
    }
}
