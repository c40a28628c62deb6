import HearthConcurrency
import HearthModel

/// The requesters of open transactions, and the choice of the one that ends when there is no capacity for another.
///
/// The chosen transaction is one of the account that holds the most, of its connection that holds the most: the oldest
/// that was not used since it began, because its client loses nothing that a new one would not have; otherwise the
/// oldest. A client does not end its own transactions that are in use: its new one fails instead. No requester ends a
/// used transaction of an administrator.
struct TransactionHolders: Sendable {
    /// The transactions of one connection, oldest first. Ended ones are dropped when they reach the front.
    private struct Connection {
        var count = 0
        var unused = Queue<[UInt8]>()
        var all = Queue<[UInt8]>()
        let isAdministrator: Bool

        mutating func popUnused(_ open: [[UInt8]: Transaction]) -> [UInt8]? {
            while let id = unused.popFirst() {
                if let transaction = open[id], !transaction.isUsed { return id }
            }
            return nil
        }

        mutating func popFirst(_ open: [[UInt8]: Transaction]) -> [UInt8]? {
            while let id = all.popFirst() {
                if open[id] != nil { return id }
            }
            return nil
        }

        /// Frees the queue entries of ended transactions.
        mutating func compact(_ open: [[UInt8]: Transaction]) {
            guard all.count > 2 * count + 64 || unused.count > 2 * count + 64 else { return }
            unused.retain { id in open[id].map { !$0.isUsed } ?? false }
            all.retain { open[$0] != nil }
        }
    }

    private struct Account {
        var count = 0
        var connections: [UInt64: Connection] = [:]
        let isAdministrator: Bool
    }

    private var accounts: [UInt64: Account] = [:]

    mutating func add(_ id: [UInt8], _ requester: Requester) {
        let isAdministrator = requester.isAdministrator
        accounts[requester.account, default: Account(isAdministrator: isAdministrator)].count += 1
        var connection =
            accounts[requester.account]!.connections.removeValue(forKey: requester.connection)
            ?? Connection(isAdministrator: isAdministrator)
        connection.count += 1
        connection.unused.append(id)
        connection.all.append(id)
        accounts[requester.account]!.connections[requester.connection] = connection
    }

    /// - Parameter open: no longer contains the transaction.
    mutating func remove(_ requester: Requester, open: [[UInt8]: Transaction]) {
        guard var account = accounts.removeValue(forKey: requester.account) else { return }
        account.count -= 1
        if var connection = account.connections.removeValue(forKey: requester.connection) {
            connection.count -= 1
            connection.compact(open)
            if connection.count > 0 { account.connections[requester.connection] = connection }
        }
        if account.count > 0 { accounts[requester.account] = account }
    }

    /// The transaction that ends so that another can begin; nil when the other one must fail.
    mutating func victim(for requester: Requester, open: [[UInt8]: Transaction]) -> [UInt8]? {
        let clientsCount = accounts.values.reduce(0) { $0 + ($1.isAdministrator ? 0 : $1.count) }
        // Administrators take from clients while those hold the most, clients never from administrators.
        var order = [false]
        if requester.isAdministrator { order = clientsCount * 2 < open.count ? [true] : [false, true] }
        for isAdministrator in order {
            let largest = accounts.filter { $0.value.isAdministrator == isAdministrator }
                .max { $0.value.count < $1.value.count }
            guard let account = largest?.key,
                let number = accounts[account]?.connections.max(by: { $0.value.count < $1.value.count })?.key
            else { continue }
            if let id = accounts[account]!.connections[number]!.popUnused(open) { return id }
            let isOwn = account == requester.account && number == requester.connection
            if isAdministrator || isOwn { continue }
            if let id = accounts[account]!.connections[number]!.popFirst(open) { return id }
        }
        return nil
    }
}
