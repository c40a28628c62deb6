import HearthModel

/// The share of each client in the waiting writes of a tree.
///
/// The shares are those of commits (`CommitAdmission` of `Core/Storage`): clients together leave a part of the queue to
/// administrators. An account may use half of it. A connection without a waiting write is always admitted, whatever the
/// account's other connections use. When an account uses its half, its connections with more than their part fail.
struct TreeAdmission: Sendable {
    private struct Load {
        var count = 0
        var bytes = 0
    }

    private struct Account {
        var load = Load()
        var connections: [UInt64: Load] = [:]
    }

    private let countMax: Int
    private let bytesMax: Int
    private var total = Load()
    /// Of requesters that are not administrators.
    private var clients = Load()
    private var accounts: [UInt64: Account] = [:]

    static let isFull = Status.resourceExhausted("Too many writes are waiting for the disk.")
    static let isOverShare = Status.resourceExhausted(
        "Too many writes of this client are waiting while others wait, too.")

    private static let clientsShare = 0.75
    private static let accountShare = 0.5

    init(countMax: Int = Limits.treeWriteQueueMax, bytesMax: Int = Limits.treeWriteQueueBytesMax) {
        self.countMax = countMax
        self.bytesMax = bytesMax
    }

    var queued: (count: Int, bytes: Int) { (total.count, total.bytes) }

    /// Counts a write, until `leave`.
    /// - Returns: the reason why it may not wait; nothing is counted then.
    mutating func enter(_ requester: Requester, bytes: Int) -> Status? {
        if let refusal = refusal(of: requester, bytes) { return refusal }
        change(requester, count: 1, bytes: bytes)
        return nil
    }

    mutating func leave(_ requester: Requester, bytes: Int) { change(requester, count: -1, bytes: -bytes) }

    private func refusal(of requester: Requester, _ bytes: Int) -> Status? {
        func isFull(_ load: Load, share: Double = 1) -> Bool {
            Double(load.count) >= Double(countMax) * share || Double(load.bytes + bytes) > Double(bytesMax) * share
        }
        if isFull(total) { return Self.isFull }
        if requester.isAdministrator { return nil }
        if isFull(clients, share: Self.clientsShare) { return Self.isFull }
        guard let account = accounts[requester.account], let own = account.connections[requester.connection] else {
            return nil
        }
        let part = Self.accountShare / Double(account.connections.count)
        return isFull(account.load, share: Self.accountShare) && isFull(own, share: part) ? Self.isOverShare : nil
    }

    private mutating func change(_ requester: Requester, count: Int, bytes: Int) {
        func add(_ load: inout Load) {
            load.count += count
            load.bytes += bytes
        }
        add(&total)
        if requester.isAdministrator { return }
        add(&clients)
        add(&accounts[requester.account, default: Account()].load)
        add(&accounts[requester.account]!.connections[requester.connection, default: Load()])
        if accounts[requester.account]!.connections[requester.connection]!.count == 0 {
            accounts[requester.account]!.connections[requester.connection] = nil
        }
        if accounts[requester.account]!.load.count == 0 { accounts[requester.account] = nil }
    }
}
