import HearthModel

/// A queue that is fair between accounts, and within an account between connections, however much the others have
/// queued.
///
/// Start-time fair queueing: every flow has a virtual time, which grows by the cost of each element that is served. The
/// flow with the smallest time is served next. A flow that becomes active starts at the current virtual time, so that
/// no flow saves up credit; but it does not start before the cost of its last element is paid off. Without that, a flow
/// that sends one small element after the other would always be served before a flow that was served a large element.
/// Adding and taking cost O(log n) in the number of flows.
///
/// Inlinable, so that it is specialised in the modules that use it: unspecialised, it costs 20,000 instructions a commit.
@usableFromInline package struct FairQueue<Element> {
    @usableFromInline var order = SliceOrder()
    /// Accounts with nothing queued stay until their next slice, or until there are too many of them.
    @usableFromInline var accounts: [UInt64: FairQueueAccount<Element>] = [:]
    @usableFromInline var emptyCount = 0
    @usableFromInline var longest = LongestFlows()
    @usableFromInline package internal(set) var count = 0

    @inlinable package init() {}

    @inlinable package var isEmpty: Bool { count == 0 }

    /// - Parameter cost: how much of the shared resource the element uses, in any unit, at least 1. Elements of other
    ///   flows may be served first until those flows have used as much.
    @inlinable package mutating func append(_ element: Element, for requester: Requester, cost: Int = 1) {
        count += 1
        let number = requester.account
        switch accounts[number]?.count {
        case nil: order.begin(number)
        case 0?: emptyCount -= 1
        default: break
        }
        let isAdministrator = requester.isAdministrator
        accounts[number, default: FairQueueAccount<Element>(isAdministrator: isAdministrator)].append(
            element, requester.connection, cost: max(1, cost))
        if longest.isKept {
            longest.grew(
                number, to: accounts[number]!.count, isAdministrator: accounts[number]!.isAdministrator,
                flowsCount: accounts.count)
        }
    }

    /// The number of elements that an account has queued.
    @inlinable package func count(of requester: Requester) -> Int { accounts[requester.account]?.count ?? 0 }

    /// Removes the element of the flow that is next.
    @inlinable package mutating func popFirst() -> Element? {
        while let account = order.takeFirst() {
            guard let (element, cost) = accounts[account]!.removeFirst() else {
                accounts[account] = nil
                emptyCount -= 1
                order.end()
                continue
            }
            count -= 1
            // An account with nothing more is put back as well: what it used still counts when it returns soon.
            order.putBack(account, cost: cost)
            if accounts[account]!.count == 0 { leaveEmpty() }
            return element
        }
        return nil
    }

    /// Removes the newest element of the longest queue: that of the longest connection in the longest account. An
    /// administrator's queue is considered only when all others are empty.
    @inlinable package mutating func popLastOfLongest() -> Element? {
        let account = longest.first(of: accounts.map { ($0.key, $0.value.isAdministrator) }) {
            accounts[$0]?.count ?? 0
        }
        guard let account, let element = accounts[account]?.removeLastOfLongest() else { return nil }
        count -= 1
        if accounts[account]!.count == 0 { leaveEmpty() }
        return element
    }

    /// Removes everything that one connection has queued, in order.
    @inlinable package mutating func removeAll(of requester: Requester) -> [Element] {
        guard let removed = accounts[requester.account]?.removeAll(of: requester.connection), !removed.isEmpty else {
            return []
        }
        count -= removed.count
        if accounts[requester.account]!.count == 0 { leaveEmpty() }
        return removed
    }

    /// Removes everything, in the order of service.
    @inlinable package mutating func removeAll() -> [Element] {
        var all: [Element] = []
        all.reserveCapacity(count)
        while let element = popFirst() { all.append(element) }
        return all
    }

    @inlinable mutating func leaveEmpty() {
        emptyCount += 1
        guard emptyCount > emptyFlowsMax, emptyCount > accounts.count / 2 else { return }
        accounts = accounts.filter { $0.value.count > 0 }
        order.retain { accounts[$0] != nil }
        emptyCount = 0
    }

    /// How many heap entries all searches for the longest flow have read together.
    @inlinable package var visits: Int { longest.visits + accounts.values.reduce(0) { $0 + $1.visits } }
}

extension FairQueue: Sendable where Element: Sendable {}

/// The number of inactive flows that are stored until their next slice.
@usableFromInline let emptyFlowsMax = 64
