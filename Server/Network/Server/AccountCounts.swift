/// How many connections each account has, and the greatest of these numbers, in constant time.
struct AccountCounts {
    private(set) var counts: [UInt64: Int] = [:]
    /// How many accounts have at least one connection, two, three…; the last is not 0.
    private var accountsWith: [Int] = []

    var greatest: Int { accountsWith.count }

    mutating func add(_ account: UInt64) {
        let count = counts[account, default: 0] + 1
        counts[account] = count
        if count > accountsWith.count { accountsWith.append(0) }
        accountsWith[count - 1] += 1
    }

    mutating func remove(_ account: UInt64) {
        guard let count = counts[account] else { return }
        counts[account] = count > 1 ? count - 1 : nil
        accountsWith[count - 1] -= 1
        if accountsWith.last == 0 { accountsWith.removeLast() }
    }
}
