import HearthConcurrency
import HearthModel
import HearthEngine
import HearthTree
import HearthTreeStorage

/// A query with listeners, with its window at the last commit. Belongs to the writer's thread of its database.
///
/// A query without a limit keeps no window: whether a child belongs to its result follows from the child alone, before
/// and after a commit. So such a query needs no memory, however many children the location has.
///
/// The window of a query with a limit is read beside the writer. Until the read ends, the query only records which
/// children commits change, and applies these changes at the end. The same happens when so much has changed that the
/// window must be read again.
final class RealtimeSharedQuery {
    let query: TreeQuery
    let path: TreePath
    /// Nil without a limit, and as long as it is not known.
    private var window: FilteredWindow?
    /// Its listeners, one per loop.
    var listens: [SharedListen] = []
    /// The account that is charged for its reads.
    var requester: Requester { listens.first?.requester ?? .server }
    /// It is newer than the events that listeners have received: it must be read again at the next change.
    private var isBroken = false
    /// Its key in the index of its location.
    var entry: WindowIndex.Entry?

    // Until the window is known.
    /// Of commits during a read. A read that begins later contains them.
    private var isReading = false
    private var touches: [(version: Int64, child: FilteredWindow.Touched)] = []
    private var isOvertaken = false
    private var readings = 0
    /// Whether it is being read, or waits to be read.
    var isToBeRead = false

    private static let touchesMax = 10_000
    static let isTooMuch = Status.resourceExhausted("The queries that you listen to need too much memory.")

    /// The number of reads beside the writer after which it is given up: its location is replaced faster than it can be
    /// read.
    private static let readingsMax = 20
    /// The number of children and entries that the writer reads to find a window again.
    private static let readsHereMax = 1000

    init(_ query: TreeQuery, _ path: TreePath) {
        self.query = query
        self.path = path
    }

    /// Whether it is kept up to date.
    var isKnown: Bool { window != nil || !needsWindow }

    private var needsWindow: Bool { query.limit != nil }

    /// The last position in the window, from the side of its limit; nil when the window contains everything within its
    /// bounds.
    var edge: FilteredWindow.Position? { isBroken ? nil : window?.edge }

    /// The positions that affect it.
    var range: KeyRange { edge.map { query.positions(upTo: $0.key, $0.value) } ?? query.positions }

    /// The number of children that were changed and moved; for tests that count work.
    var steps: Int { window?.steps ?? 0 }

    // MARK: Loading

    /// The content of a window at a version.
    struct Reading: Sendable {
        var version: Int64
        var window: FilteredWindow
        /// The memory of the content; nil when it isn't counted.
        var memory: MemoryReservation?
    }

    /// The memory is charged to the first listener.
    private var memory: MemoryReservation?
    /// Small changes of its size are not counted.
    private static let countedBytesMin = 1 << 10

    /// Whether there is memory for its present content.
    private func isCounted() -> Bool {
        guard let memory else { return true }
        let bytes = window?.sizeBytes ?? 0
        return abs(bytes - memory.bytes) < max(Self.countedBytesMin, memory.bytes / 8) || memory.resize(to: bytes)
    }

    /// It will be read from a version that contains all commits until now.
    func beginReading() {
        isReading = true
        touches = []
        isOvertaken = false
    }

    /// Applies the read that followed `beginReading`.
    /// - Parameter view: of the last commit.
    /// - Returns: false when too much has changed meanwhile, and the window must be read again.
    func begin(with reading: Reading, _ view: TreeView) throws(Status) -> Bool {
        isReading = false
        readings += 1
        memory = reading.memory
        var begun = reading.window
        var isFollowed = !isOvertaken
        if isFollowed, case .unsound = begun.apply(changes(since: reading.version)) { isFollowed = false }
        if isFollowed {
            try keep(begun)
        } else if let read = try readHere(view) {
            try keep(read)
        } else if readings < Self.readingsMax {
            return false
        } else {
            throw .unavailable("The data changes too fast to be read.")
        }
        return true
    }

    /// The changes of children after a version.
    private func changes(since version: Int64) -> [FilteredWindow.Touched] {
        var changes: [FilteredWindow.Touched] = []
        var positions: [TreeKey: Int] = [:]
        for touch in touches where touch.version > version {
            if let position = positions[touch.child.key] {
                changes[position].after = touch.child.after
            } else {
                positions[touch.child.key] = changes.count
                changes.append(touch.child)
            }
        }
        return changes
    }

    /// - Throws: RESOURCE_EXHAUSTED.
    private func keep(_ read: FilteredWindow) throws(Status) {
        window = read
        if !isCounted() {
            window = nil
            throw Self.isTooMuch
        }
        isBroken = false
        readings = 0
        touches = []
        isOvertaken = false
    }

    // MARK: Commits

    /// The effect of a commit on the listeners.
    enum Change {
        case push(RealtimePush)
        /// They must load all data.
        case lost
        /// The same, and the window isn't known any more.
        case unknown
    }

    /// Applies a commit that changes children.
    /// - Parameter keys: the children whose position before or after the commit affects the window.
    func change(_ keys: [TreeKey], _ children: TouchedChildren, _ version: Int64, _ after: TreeView) -> Change? {
        if isBroken { return forget() }
        var touched: [FilteredWindow.Touched] = []
        for key in keys {
            let before = matching(key, children.before(key))
            let now = matching(key, children.after(key))
            if before != nil || now != nil {
                touched.append(FilteredWindow.Touched(key: key, before: before, after: now))
            }
        }
        if touched.isEmpty { return nil }
        guard isKnown else {
            note(touched, version)
            return nil
        }
        do throws(Status) {
            let change = try move(touched, children, after)
            return isCounted() ? change : forget()
        } catch {
            return needsWindow ? forget() : .lost
        }
    }

    /// Applies a commit that replaces the location.
    /// - Parameter node: the new value; nil when it must be read beside the writer.
    func change(to node: Node?) -> Change? {
        if !needsWindow { return node.map { .push(RealtimePush(.put(path, query.result(of: $0)))) } ?? .lost }
        guard let window else {
            isOvertaken = true
            touches = []
            return nil
        }
        guard let node, !isBroken else { return forget() }
        var wider = query
        wider.limit = nil
        let all = wider.orderedChildren(of: node)
        let read = FilteredWindow(
            query, positions: all.map { FilteredWindow.Position(value: query.indexValue(of: $0.node), key: $0.key) },
            isComplete: true, keepsAll: window.keepsAll)
        self.window = read
        if !isCounted() { return forget() }
        if window.isEmpty, read.isEmpty { return nil }
        return .push(RealtimePush(.put(path, query.result(of: node))))
    }

    /// Undoes the changes since the last group of commits.
    func discard() {
        if !needsWindow { return }
        if isKnown { isBroken = true } else { isOvertaken = true }
    }

    private func note(_ touched: [FilteredWindow.Touched], _ version: Int64) {
        if isOvertaken || !isReading { return }
        if touches.count + touched.count > Self.touchesMax {
            isOvertaken = true
            touches = []
        } else {
            for child in touched { touches.append((version, child)) }
        }
    }

    private func forget() -> Change {
        window = nil
        memory = nil
        isBroken = false
        return .unknown
    }

    private func move(
        _ touched: [FilteredWindow.Touched], _ children: TouchedChildren, _ after: TreeView
    ) throws(Status) -> Change? {
        let difference: FilteredWindow.Difference
        switch needsWindow ? window?.apply(touched) : .changed(FilteredWindow.Difference(withoutLimit: touched)) {
        case nil: return nil
        case .changed(let found): difference = found
        case .unsound(let keysBefore):
            guard let read = try readHere(after) else { return forget() }
            window = read
            difference = read.difference(from: keysBefore, touched: Set(touched.map(\.key)))
        }
        var members: [(path: TreePath, node: Node)] = []
        for key in difference.leaving { members.append((TreePath(keys: [key]), .empty)) }
        for key in difference.entering {
            guard let node = try children.node(key, after) else { return .lost }
            members.append((TreePath(keys: [key]), node))
        }
        for key in difference.staying {
            for change in RealtimePush.ordered(children.changes(of: key)) {
                members.append((change.path.relative(to: path), change.node))
            }
        }
        switch members.count {
        case 0: return nil
        case 1: return .push(RealtimePush(.put(path + members[0].path, members[0].node)))
        default: return .push(RealtimePush(.merge(path, members)))
        }
    }

    private func matching(_ key: TreeKey, _ child: TouchedChildren.State) -> TreeIndexValue? {
        child.value(query.index).flatMap { query.contains(key, value: $0) ? $0 : nil }
    }

    // MARK: Reading

    /// Reads it on the writer's thread; nil when the read could cost much.
    private func readHere(_ view: TreeView) throws(Status) -> FilteredWindow? {
        if let limit = query.limit, limit <= FilteredWindow.refillMax {
            do throws(Status) {
                return try Self.read(query, path, view, readsMax: Self.readsHereMax)
            } catch {
                if error.code != .resourceExhausted { throw error }
            }
        }
        let bytesMax = Limits.realtimeCompareBytesMax
        return try view.sizeEstimate(at: path, upTo: bytesMax) > bytesMax ? nil : Self.read(query, path, view)
    }

    /// The children of a window during its read, while there is memory for them.
    private static let keysMax = [50_000, 250_000, Limits.treeWindowKeysMax]

    /// Reads a window beside the writer.
    /// - Parameters:
    ///   - memory: for the content.
    ///   - isBrief: whether the read may take only a short time.
    /// - Throws: RESOURCE_EXHAUSTED when there is no memory, the window is too large, or the read takes long.
    static func read(
        _ query: TreeQuery, _ path: TreePath, _ view: TreeView, _ memory: MemoryReservation, isBrief: Bool
    ) throws(Status) -> FilteredWindow {
        if isBrief {
            let bytesMax = Limits.realtimeCompareBytesMax
            let isSmall = try view.sizeEstimate(at: path, upTo: bytesMax) <= bytesMax
            let readsMax = isSmall ? .max : Limits.realtimeBriefReadsMax
            let window = try read(query, path, view, readsMax: readsMax)
            if !memory.resize(to: window.sizeBytes) { throw isTooMuch }
            return window
        }
        if try !view.isIndexed(query, at: path), let limit = query.limit {
            return try scan(query, limit, path, view, memory)
        }
        for keysMax in keysMax {
            if !memory.resize(to: keysMax > Self.keysMax[0] ? keysMax * FilteredWindow.bytesMin : 0) { throw isTooMuch }
            do throws(Status) {
                let window = try read(query, path, view, keysMax: keysMax)
                if !memory.resize(to: window.sizeBytes) { throw isTooMuch }
                return window
            } catch {
                if error != TreeView.isTooLarge || keysMax == Limits.treeWindowKeysMax { throw error }
            }
        }
        throw isTooMuch
    }

    /// Reads a window without an index, which scans all children: those that match are all kept, unless they are very
    /// many. Then a part is kept that makes another scan rare.
    private static func scan(
        _ query: TreeQuery, _ limit: Int, _ path: TreePath, _ view: TreeView, _ memory: MemoryReservation
    ) throws(Status) -> FilteredWindow {
        var window: FilteredWindow
        do throws(Status) {
            window = try read(query, path, view, keysMax: keysMax[0])
        } catch {
            if error != TreeView.isTooLarge { throw error }
            let reserve = FilteredWindow.scannedReserve
            // The read keeps up to twice as many.
            let (kept, isOverflow) = limit.addingReportingOverflow(reserve)
            if isOverflow || kept > Limits.treeWindowKeysMax / 2 { throw TreeView.isTooLarge }
            if kept * 2 > keysMax[0], !memory.resize(to: kept * 2 * FilteredWindow.bytesMin) { throw isTooMuch }
            window = try read(query, path, view, reserve: reserve)
        }
        if !memory.resize(to: window.sizeBytes) { throw isTooMuch }
        return window
    }

    /// - Parameter reserve: the number of children that are kept beyond the limit; nil for the usual number, which
    ///   without an index is all of them.
    /// - Throws: RESOURCE_EXHAUSTED when the window is too large.
    static func read(
        _ query: TreeQuery, _ path: TreePath, _ view: TreeView, readsMax: Int = .max,
        keysMax: Int = Limits.treeWindowKeysMax, reserve: Int? = nil
    ) throws(Status) -> FilteredWindow {
        var wider = query
        let isIndexed = try view.isIndexed(query, at: path)
        let keepsAll = !isIndexed && reserve == nil
        wider.limit = keepsAll ? nil : query.limit.map { $0 + (reserve ?? FilteredWindow.reserve(for: $0)) }
        let found = try view.keys(of: wider, at: path, readsMax: readsMax, keysMax: keysMax)
        return FilteredWindow(
            query, positions: found.children.map { FilteredWindow.Position(value: $0.value, key: $0.key) },
            isComplete: wider.limit.map { found.children.count < $0 } ?? true, keepsAll: keepsAll, reserve: reserve)
    }
}
