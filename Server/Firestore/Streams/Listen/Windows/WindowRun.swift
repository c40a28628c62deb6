import HearthConcurrency
import HearthModel
import HearthDocuments

/// A prepared run of a query with a limit or an offset, by any one thread. `@unchecked Sendable`: it is handed over
/// once.
final class WindowRun: @unchecked Sendable {
    private let live: LiveQuery
    private let view: ReadView
    private let execution: QueryExecution
    private let meter: WorkMeter
    /// The ranks of the execution's results that form the window.
    private let ranks: Range<Int>
    private let isCaching: Bool
    private var cached: CachedWindow?
    /// Memory for `cached`.
    private let cacheMemory: MemoryReservation?

    /// The most bytes of documents that are held; most windows fit completely.
    private static let documentBytesMax = 1 << 20
    /// The extra memory of each reservation for the cache.
    private static let cacheStepBytes = 16 << 10

    /// - Parameter cacheMemory: nil when the window is not cached.
    init(
        _ live: LiveQuery, _ view: ReadView, _ memory: MemoryReservation, cacheMemory: MemoryReservation?,
        check: @escaping () throws(Status) -> Void = {}
    ) throws(Status) {
        self.live = live
        self.view = view
        self.cacheMemory = cacheMemory
        meter = WorkMeter(memory: memory, check: check)
        isCaching = cacheMemory != nil
        if isCaching, let cached = CachedWindow(of: live.query.query) {
            self.cached = cached
            ranks = cached.ranks
            execution = try QueryExecution(live.query.fromFirst(limit: cached.wantedCount), view: view, meter: meter)
        } else {
            ranks = 0..<Int.max
            execution = try QueryExecution(live.query, view: view, meter: meter)
        }
    }

    var isLight: Bool { execution.isLight }

    /// - Returns: nil when the work is too much for a loop.
    func finish(onLoop: Bool) throws(Status) -> WindowResult? {
        meter.mayPause = onLoop
        let wanted = cached.map { $0.wantedCount ?? .max }
        var documents: [WindowResult.Entry] = []
        var documentBytes = 0
        var last: QueryResult?
        var count = 0
        var bytesRead = 0
        // Beyond the window as long as memory for the cache is available.
        while cached != nil || count < ranks.upperBound, let result = try execution.next() {
            let size = result.document.fields.count
            bytesRead += size
            if onLoop, bytesRead > Limits.briefBytesMax { return nil }
            try cache(result)
            count += 1
            guard ranks.contains(count - 1) else { continue }
            let isHeld = documentBytes + size <= Self.documentBytesMax
            if isHeld { documentBytes += size }
            try meter.hold(result.key.count + WindowResult.entryBytes + (isHeld ? size : 0))
            documents.append(
                WindowResult.Entry(
                    key: result.key, updateVersion: result.document.updateVersion,
                    document: isHeld ? result.document : nil))
            last = result
        }
        if meter.isPaused { return nil }
        cached?.close(isComplete: wanted.map { count < $0 } ?? false)
        let found = cached.flatMap { window in cacheMemory.map { (window: window, memory: $0) } }
        return WindowResult(
            documents, last: last, view, meter, isCaching: isCaching, cached: found, resultsFound: count)
    }

    /// Appends a result to the cache, as long as memory is available.
    private func cache(_ result: QueryResult) throws(Status) {
        guard let sizeBytes = cached?.sizeBytes, let cacheMemory else { return }
        let position = try live.query.position(of: result)
        let size = sizeBytes + CachedWindow.size(result.key, position)
        let hasCapacity =
            size <= Limits.listenCachedWindowBytesMax
            && (size <= cacheMemory.bytes || cacheMemory.resize(to: size + Self.cacheStepBytes))
        if hasCapacity {
            cached?.append(result.key, at: position, result.document.updateVersion)
        } else {
            cached = nil
            cacheMemory.resize(to: 0)
        }
    }
}
