import HearthTree

/// The running transactions, by location.
///
/// The transactions of one location form a queue, each based on the result of the one before. Ready transactions at
/// and below a location are sent to the server in one put, with the hash of the known data below it. During this time
/// nothing else is sent at its location, above or below it. When the server rejects the hash, all of them run again.
final class Transactions {
    private let sync: SyncTree
    private let connection: any DatabaseConnection
    private let outputs: OutputQueue
    private let makeWrite: (Node, TreePath, _ isVisible: Bool) -> PendingWrite
    private var queues = PathTrie<AscendingList<Transaction>>()
    /// The locations of sent transactions.
    private var sending = PathTrie<Bool>()
    private var lastNumber: Int64 = 0

    static let sendingsMax = 25

    init(
        sync: SyncTree, connection: any DatabaseConnection, outputs: OutputQueue,
        makeWrite: @escaping (Node, TreePath, _ isVisible: Bool) -> PendingWrite
    ) {
        self.sync = sync
        self.connection = connection
        self.outputs = outputs
        self.makeWrite = makeWrite
    }

    // MARK: Start

    func run(
        at path: TreePath, isVisible: Bool, observer: ObserverID, update: @escaping (Node) -> Node?,
        completion: @escaping (TransactionOutcome) -> Void
    ) {
        lastNumber += 1
        let transaction = Transaction(
            at: path, number: lastNumber, isVisible: isVisible, observer: observer, update: update,
            completion: completion)
        let input = sync.assumed(at: path)
        guard let output = update(input) else {
            return end(transaction, .aborted(input))
        }
        transaction.input = input
        queues.update(at: path) { trie in
            if trie.value == nil { trie.value = AscendingList() }
            trie.value?.append(transaction.number, transaction)
        }
        write(output, of: transaction)
        sendReady(at: path)
    }

    private func write(_ output: Node, of transaction: Transaction) {
        let write = makeWrite(output, transaction.path, transaction.isVisible)
        transaction.writeID = write.id
        transaction.output = output
        sync.add(write)
        transaction.result = sync.assumed(at: transaction.path)
    }

    private func end(_ transaction: Transaction, _ outcome: TransactionOutcome) {
        transaction.state = .done
        queues.update(at: transaction.path) { trie in
            trie.value?.remove(transaction.number)
            if trie.value?.isEmpty == true { trie.value = nil }
        }
        outputs.append { transaction.completion(outcome) }
        sync.remove(transaction.observer)
    }

    // MARK: Sending

    /// Sends ready transactions at, above and below a location for which nothing is sent at, above or below their
    /// own location.
    private func sendReady(at path: TreePath) {
        if let top = queues.first(atOrAbove: path)?.path { return sendAll(at: top) }
        guard let trie = queues.subtrie(at: path) else { return }
        for top in Self.tops(of: trie, at: path) { sendAll(at: top) }
    }

    /// The highest locations with transactions, in the order of keys.
    private static func tops(of trie: PathTrie<AscendingList<Transaction>>, at path: TreePath) -> [TreePath] {
        if trie.value != nil { return [path] }
        return trie.children.sorted { $0.key < $1.key }.flatMap { tops(of: $0.value, at: path.child($0.key)) }
    }

    /// - Parameter path: a highest location with transactions.
    private func sendAll(at path: TreePath) {
        guard sending.first(atOrAbove: path) == nil, sending.subtrie(at: path)?.isEmpty != false else { return }
        var transactions = all(at: path)
        if isBehind(transactions) {
            runAgain(transactions)
            transactions = transactions.filter(\.isReady)
        }
        if !transactions.isEmpty { send(transactions, at: path) }
    }

    /// Whether one of them was computed from data other than the known data. Views may not show the difference,
    /// because the transaction's own value hides it. Later writes at, above or below a transaction's location belong to
    /// later transactions.
    private func isBehind(_ transactions: [Transaction]) -> Bool {
        transactions.contains { sync.assumed(at: $0.path, before: $0.writeID) != $0.input }
    }

    /// The transactions at and below a location, in the order of creation.
    private func all(at path: TreePath) -> [Transaction] {
        var transactions: [Transaction] = []
        queues.subtrie(at: path)?.forEach { $1.forEach { transactions.append($1) } }
        return transactions.sorted { $0.number < $1.number }
    }

    private func send(_ transactions: [Transaction], at path: TreePath) {
        let input = sync.assumed(at: path, excluding: Set(transactions.map(\.writeID)))
        var node = input
        for transaction in transactions {
            transaction.state = .sent
            transaction.sendings += 1
            node = node.setting(transaction.path.relative(to: path), to: transaction.output)
        }
        sending[path] = true
        connection.put(at: path, node, hash: input.hash) { [weak self] failure in
            guard let self else { return }
            self.outputs.perform { self.answer(transactions, at: path, failure) }
        }
    }

    private func answer(_ transactions: [Transaction], at path: TreePath, _ failure: WireFailure?) {
        sending[path] = nil
        guard let failure else { return commit(transactions, at: path) }
        for transaction in transactions {
            switch transaction.state {
            case .sentForTheLastTime(let reason): transaction.state = .failed(reason)
            case .sent where failure.status == WireFailure.staleData: transaction.state = .ready
            case .sent: transaction.state = .failed(failure)
            case .ready, .failed, .done: break
            }
        }
        rerun(at: path)
    }

    private func commit(_ transactions: [Transaction], at path: TreePath) {
        for transaction in transactions {
            // The server has computed the deferred values, and its data arrived before this answer.
            if transaction.output.hasDeferred, let node = sync.server.completeNode(at: transaction.path) {
                transaction.result = node
            }
            sync.answer(transaction.writeID, isAccepted: true)
            end(transaction, .committed(transaction.result))
        }
        sendReady(at: path)
    }

    // MARK: Running again

    /// After a change of data: unsent transactions that depend on it are computed again.
    func rerun(at path: TreePath) {
        if queues.isEmpty { return }
        let top = queues.first(atOrAbove: path)?.path ?? path
        let transactions = all(at: top)
        for transaction in transactions {
            guard let failure = transaction.failure else { continue }
            sync.answer(transaction.writeID, isAccepted: false)
            end(transaction, .failed(failure))
        }
        runAgain(transactions.filter(\.isReady))
        sendReady(at: top)
    }

    private func runAgain(_ transactions: [Transaction]) {
        var stale = Set(transactions.map(\.writeID))
        for transaction in transactions {
            let former = transaction.writeID
            let input = sync.assumed(at: transaction.path, excluding: stale)
            stale.remove(former)
            rerun(transaction, input)
        }
    }

    private func rerun(_ transaction: Transaction, _ input: Node) {
        let former = transaction.writeID
        if transaction.sendings >= Self.sendingsMax {
            sync.answer(former, isAccepted: false)
            return end(transaction, .failed(.maxRetries))
        }
        guard let output = transaction.update(input) else {
            sync.answer(former, isAccepted: false)
            return end(transaction, .aborted(input))
        }
        transaction.input = input
        // Add the new write first, so that no view sees the location without both.
        write(output, of: transaction)
        sync.answer(former, isAccepted: false)
    }

    // MARK: Giving up

    /// Aborts the transactions at, above and below some locations, because of another write there.
    func abort(at paths: [TreePath], _ failure: WireFailure) {
        if queues.isEmpty { return }
        var tops: [TreePath] = []
        for path in paths {
            let top = queues.first(atOrAbove: path)?.path ?? path
            abort(at: path, failure)
            if top.count < path.count { tops.append(top) }
        }
        // Others may have waited for aborted transactions above them. Send them last: transactions that another path
        // aborts must not be sent.
        for top in tops { sendReady(at: top) }
    }

    private func abort(at path: TreePath, _ failure: WireFailure) {
        var touched = all(at: path)
        var above = path
        while let parent = above.parent {
            queues[parent]?.forEach { touched.append($1) }
            above = parent
        }
        for transaction in touched.sorted(by: { $0.number < $1.number }) {
            switch transaction.state {
            case .ready:
                sync.answer(transaction.writeID, isAccepted: false)
                end(transaction, .failed(failure))
            case .sent: transaction.state = .sentForTheLastTime(failure)
            case .sentForTheLastTime, .failed, .done: break
            }
        }
    }
}
