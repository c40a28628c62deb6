import HearthModel

/// A group of writes on its way through a writer, by the steps that both products share.
///
/// The writes of a group become durable together. The steps run in this order on the writer's thread:
/// 1. *work out*: each write is worked out on the state that the writes before it leave, in the store's transaction;
/// 2. *sync*: the store makes the transaction durable;
/// 3. *settle*: readers start from the new state, or from the former state again when the group failed;
/// 4. *notify*: subscriptions receive the changes, which are durable at this moment;
/// 5. *answer*: each write gets its outcome.
package protocol WriteGroup {
    associatedtype Transaction

    /// - Throws: the store's failure, which fails the group. What is wrong with one write is the outcome of that write.
    mutating func workOut(in transaction: Transaction) throws(Status)
    /// - Parameter failure: why the group was not made; nil when it is durable.
    mutating func settle(_ failure: Status?)
    /// Called only when the group is durable.
    func notify()
    /// - Parameter failure: why the group was not made; nil when it is durable.
    mutating func answer(_ failure: Status?)
}

extension WriteGroup {
    /// Takes the group through all steps.
    /// - Parameter sync: runs the closure that it is given in a transaction of the store, and returns when that is durable.
    /// - Returns: why the group was not made; nil when it is durable.
    @discardableResult
    package mutating func commit(
        by sync: (_ workOut: (Transaction) throws(Status) -> Void) throws(Status) -> Void
    ) -> Status? {
        var failure: Status?
        do throws(Status) {
            try sync { transaction throws(Status) in try self.workOut(in: transaction) }
        } catch {
            failure = error
        }
        settle(failure)
        if failure == nil { notify() }
        answer(failure)
        return failure
    }
}
