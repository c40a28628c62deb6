import HearthTree

/// The request that a response belongs to.
enum WireAnswer {
    case auth
    case listen(Int)
    case unlisten(WireOutbox.ListenKey)
    case write(Int)
    case onDisconnect(Int)
    case get(Int)
}

/// Requests to send and requests without a response, by numbers in the order of the engine's calls.
struct WireOutbox {
    struct ListenKey: Hashable {
        var path: TreePath
        /// The query's tag; nil without one.
        var query: TreeQuery?
    }

    struct Listen {
        var number: Int
        var key: ListenKey
        var tag: Int?
        var hash: () -> ListenHash
        var done: (WireFailure?) -> Void
        var isSent = false
    }

    enum Change {
        case put(TreePath, Node, hash: String?)
        case merge(TreePath, [(path: TreePath, node: Node)])
        /// The onDisconnect operations.
        case cancel(TreePath)
    }

    struct Write {
        var change: Change
        var done: (WireFailure?) -> Void
        var isSent = false
    }

    struct Get {
        var path: TreePath
        var query: TreeQuery?
        var done: (Result<Node, WireFailure>) -> Void
        var isSent = false
    }

    enum Item {
        case listen(Int)
        case unlisten(ListenKey, tag: Int?)
        case write(Int)
        case onDisconnect(Int)
        case get(Int)
    }

    private(set) var listens: [Int: Listen] = [:]
    private var listenNumbers: [TreePath: [TreeQuery?: Int]] = [:]
    private(set) var writes: [Int: Write] = [:]
    private(set) var onDisconnects: [Int: Write] = [:]
    private(set) var gets: [Int: Get] = [:]
    private var lastNumber = 0

    /// Requests that are not sent over this connection, in order; empty without one.
    private var items: [Item] = []
    private var position = 0
    private var isConnected = false

    /// Listens that were sent when the connection began. Responses to writes wait until all of these listens have
    /// theirs: the engine would remove its own copy of the write before it has the server's data.
    private var restoredListens: Set<Int> = []
    private var heldAnswers: [() -> Void] = []

    // MARK: Adding

    private mutating func number() -> Int {
        lastNumber += 1
        return lastNumber
    }

    private mutating func add(_ item: Item) {
        if isConnected { items.append(item) }
    }

    /// Replaces a listen of the same path and query.
    mutating func listen(
        _ key: ListenKey, tag: Int?, hash: @escaping () -> ListenHash, done: @escaping (WireFailure?) -> Void
    ) {
        unlisten(key)
        let number = number()
        listens[number] = Listen(number: number, key: key, tag: tag, hash: hash, done: done)
        listenNumbers[key.path, default: [:]][key.query] = number
        add(.listen(number))
    }

    mutating func unlisten(_ key: ListenKey) {
        guard let number = listenNumbers[key.path]?[key.query], let listen = removeListen(number) else { return }
        if listen.isSent { add(.unlisten(key, tag: listen.tag)) }
    }

    @discardableResult
    mutating func removeListen(_ number: Int) -> Listen? {
        guard let listen = listens.removeValue(forKey: number) else { return nil }
        listenNumbers[listen.key.path]?[listen.key.query] = nil
        if listenNumbers[listen.key.path]?.isEmpty == true { listenNumbers[listen.key.path] = nil }
        restoredListens.remove(number)
        return listen
    }

    /// The listens of a query at a location. Without a query all listens of the location if none is without a
    /// query.
    func listens(at path: TreePath, _ query: TreeQuery?) -> [Listen] {
        let numbers = listenNumbers[path] ?? [:]
        let wanted = numbers[query].map { [$0] } ?? (query == nil ? numbers.values.sorted() : [])
        return wanted.compactMap { listens[$0] }
    }

    mutating func write(_ change: Change, done: @escaping (WireFailure?) -> Void) {
        let number = number()
        writes[number] = Write(change: change, done: done)
        add(.write(number))
    }

    mutating func onDisconnect(_ change: Change, done: @escaping (WireFailure?) -> Void) {
        let number = number()
        onDisconnects[number] = Write(change: change, done: done)
        add(.onDisconnect(number))
    }

    mutating func get(
        _ path: TreePath, _ query: TreeQuery?, done: @escaping (Result<Node, WireFailure>) -> Void
    ) -> Int {
        let number = number()
        gets[number] = Get(path: path, query: query, done: done)
        add(.get(number))
        return number
    }

    mutating func cancelGet(_ number: Int) {
        if gets[number]?.isSent == false { gets[number] = nil }
    }

    // MARK: Taking

    /// The next request that is still wanted; it is marked as sent.
    mutating func next() -> Item? {
        while position < items.count {
            let item = items[position]
            position += 1
            if mark(item) { return item }
        }
        items = []
        position = 0
        return nil
    }

    private mutating func mark(_ item: Item) -> Bool {
        switch item {
        case .listen(let number): listens[number]?.isSent = true
        case .unlisten: return true
        case .write(let number): writes[number]?.isSent = true
        case .onDisconnect(let number): onDisconnects[number]?.isSent = true
        case .get(let number): gets[number]?.isSent = true
        }
        return isWanted(item)
    }

    private func isWanted(_ item: Item) -> Bool {
        switch item {
        case .listen(let number): listens[number] != nil
        case .unlisten: true
        case .write(let number): writes[number] != nil
        case .onDisconnect(let number): onDisconnects[number] != nil
        case .get(let number): gets[number] != nil
        }
    }

    mutating func takeWrite(_ number: Int) -> Write? { writes.removeValue(forKey: number) }
    mutating func takeOnDisconnect(_ number: Int) -> Write? { onDisconnects.removeValue(forKey: number) }
    mutating func takeGet(_ number: Int) -> Get? { gets.removeValue(forKey: number) }

    /// Removes and returns all writes without a response, in order.
    mutating func takeAllWrites() -> [Write] {
        let all = (Array(writes) + Array(onDisconnects)).sorted { $0.key < $1.key }.map(\.value)
        writes = [:]
        onDisconnects = [:]
        return all
    }

    /// Removes everything. Returns the requests whose callers must be notified of the failure, in order.
    mutating func takeAll() -> [(WireFailure) -> Void] {
        let held = heldAnswers
        let waiting =
            (Array(writes) + Array(onDisconnects)).map { number, write in (number, { write.done($0) }) }
            + gets.map { number, get in (number, { get.done(.failure($0)) } as (WireFailure) -> Void) }
        self = WireOutbox()
        return held.map { answer in { _ in answer() } } + waiting.sorted { $0.0 < $1.0 }.map(\.1)
    }

    // MARK: Connections

    /// Queues listens first, so that the responses to writes find their data; then writes in order, and single
    /// reads.
    mutating func connectionDidBegin() {
        isConnected = true
        restoredListens = Set(listens.keys)
        items =
            listens.keys.sorted().map { .listen($0) } + writes.keys.sorted().map { .write($0) }
            + onDisconnects.keys.sorted().map { .onDisconnect($0) } + gets.keys.sorted().map { .get($0) }
        position = 0
    }

    /// - Returns: the requests that fail: puts with a hash and single reads that were sent.
    mutating func connectionDidEnd() -> [(WireFailure) -> Void] {
        isConnected = false
        items = []
        position = 0
        restoredListens = []
        for number in listens.keys { listens[number]?.isSent = false }
        var lost: [(number: Int, fail: (WireFailure) -> Void)] = []
        for (number, write) in writes where write.isSent {
            if case .put(_, _, _?) = write.change {
                writes[number] = nil
                lost.append((number, { write.done($0) }))
            } else {
                writes[number]?.isSent = false
            }
        }
        for number in onDisconnects.keys { onDisconnects[number]?.isSent = false }
        for (number, get) in gets where get.isSent {
            gets[number] = nil
            lost.append((number, { get.done(.failure($0)) }))
        }
        return lost.sorted { $0.number < $1.number }.map(\.fail)
    }

    // MARK: Answers that wait

    /// Runs the completion of a write, immediately or after all restored listens have their responses.
    mutating func hold(_ answer: @escaping () -> Void) -> Bool {
        guard !restoredListens.isEmpty || !heldAnswers.isEmpty else { return false }
        heldAnswers.append(answer)
        return true
    }

    mutating func listenDidAnswer(_ number: Int) { restoredListens.remove(number) }

    /// Removes and returns the completions that may run now.
    mutating func takeHeldAnswers() -> [() -> Void] {
        guard isConnected, restoredListens.isEmpty else { return [] }
        defer { heldAnswers = [] }
        return heldAnswers
    }
}
