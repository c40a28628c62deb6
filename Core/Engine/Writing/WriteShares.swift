import HearthModel

/// How much each client may have waiting for a writer.
///
/// Every queued write is counted under its account and its connection. Clients together leave a part of the queue to
/// administrators, and an account has half of the queue. When an account has used its half, those of its connections fail
/// that hold more than their part of it; a connection with nothing in the queue never fails because of the others.
package struct WriteShares: Sendable {
    package struct Account: Sendable {
        package var load = WriteLoad()
        package var connections: [UInt64: WriteLoad] = [:]
        /// What a unit of cost of this account has taken lately.
        package var nanosecondsPerUnit: Double
    }

    package enum Refusal: Sendable {
        /// The queue, or the part of it that clients have, is full.
        case full
        /// The connection has more than its part of its account's share.
        case overShare
    }

    private let countMax: Int
    private let bytesMax: Int
    package private(set) var total = WriteLoad()
    /// Of those who are not administrators.
    package private(set) var clients = WriteLoad()
    package private(set) var accounts: [UInt64: Account] = [:]
    /// What a unit of cost has taken lately; a new account begins with it.
    package private(set) var nanosecondsPerUnit: Double

    private static let clientsShare = 0.75
    private static let accountShare = 0.5

    package init(countMax: Int, bytesMax: Int, nanosecondsPerUnit: Double = 0) {
        self.countMax = countMax
        self.bytesMax = bytesMax
        self.nanosecondsPerUnit = nanosecondsPerUnit
    }

    /// What a connection has waiting.
    package func load(of requester: Requester) -> WriteLoad {
        accounts[requester.account]?.connections[requester.connection] ?? WriteLoad()
    }

    /// - Returns: why one more write of so many bytes may not wait; nil when it may.
    package func refusal(of requester: Requester, bytes: Int) -> Refusal? {
        func isFull(_ load: WriteLoad, share: Double = 1) -> Bool {
            Double(load.count) >= Double(countMax) * share || Double(load.bytes + bytes) > Double(bytesMax) * share
        }
        if isFull(total) { return .full }
        if requester.isAdministrator { return nil }
        if isFull(clients, share: Self.clientsShare) { return .full }
        guard let account = accounts[requester.account], let own = account.connections[requester.connection] else {
            return nil
        }
        let part = Self.accountShare / Double(account.connections.count)
        return isFull(account.load, share: Self.accountShare) && isFull(own, share: part) ? .overShare : nil
    }

    package mutating func add(_ load: WriteLoad, for requester: Requester) {
        total.add(load)
        if !requester.isAdministrator { clients.add(load) }
        accounts[requester.account, default: Account(nanosecondsPerUnit: nanosecondsPerUnit)].load.add(load)
        accounts[requester.account]?.connections[requester.connection, default: WriteLoad()].add(load)
    }

    package mutating func remove(_ load: WriteLoad, for requester: Requester) {
        total.remove(load)
        if !requester.isAdministrator { clients.remove(load) }
        guard var account = accounts.removeValue(forKey: requester.account) else { return }
        account.load.remove(load)
        account.connections[requester.connection]?.remove(load)
        if account.connections[requester.connection]?.count == 0 { account.connections[requester.connection] = nil }
        if account.load.count > 0 { accounts[requester.account] = account }
    }

    /// Counts a write that is queued already as another load.
    package mutating func replace(_ old: WriteLoad, by new: WriteLoad, for requester: Requester) {
        func replace(_ load: inout WriteLoad) {
            load.remove(old)
            load.add(new)
        }
        replace(&total)
        if !requester.isAdministrator { replace(&clients) }
        guard var account = accounts.removeValue(forKey: requester.account) else { return }
        replace(&account.load)
        if var connection = account.connections[requester.connection] {
            replace(&connection)
            account.connections[requester.connection] = connection
        }
        accounts[requester.account] = account
    }

    /// Takes a measurement of what a unit of cost took into the averages.
    /// - Parameters:
    ///   - weight: of the measurement in the account's average, from 0 to 1; that of all accounts moves by an eighth of it.
    ///   - bounds: of the average of all accounts.
    package mutating func measured(
        _ nanoseconds: Double, for requester: Requester, weight: Double, bounds: ClosedRange<Double>
    ) {
        nanosecondsPerUnit += (nanoseconds - nanosecondsPerUnit) * weight / 8
        nanosecondsPerUnit = min(max(nanosecondsPerUnit, bounds.lowerBound), bounds.upperBound)
        guard let known = accounts[requester.account]?.nanosecondsPerUnit else { return }
        accounts[requester.account]?.nanosecondsPerUnit = known + (nanoseconds - known) * weight
    }
}
