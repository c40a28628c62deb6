import HearthConcurrency
import HearthModel
import HearthEngine
import HearthDocuments

/// What a query with a limit or an offset gave at a version. `@unchecked Sendable`: used by one thread at a time.
final class WindowResult: @unchecked Sendable {
    struct Entry {
        var key: [UInt8]
        var updateVersion: Int64
        /// Nil when it is read again where it is wanted.
        var document: StoredDocument?
    }

    let version: Int64
    let documents: [Entry]
    /// The documents' update versions.
    let versions: [[UInt8]: Int64]
    let last: QueryResult?
    /// What a target takes to note them.
    let sizeBytes: Int
    let view: ReadView
    /// Of what it holds.
    private let meter: WorkMeter
    /// Whether more was found, to be kept, as far as there was room for it.
    let isToBeKept: Bool
    private var kept: (window: KeptWindow, memory: MemoryReservation)?
    /// Results of the query that were found in the store.
    let resultsFound: Int

    fileprivate init(
        _ documents: [Entry], last: QueryResult?, _ view: ReadView, _ meter: WorkMeter, isToBeKept: Bool,
        kept: (window: KeptWindow, memory: MemoryReservation)?, resultsFound: Int
    ) {
        version = view.version
        self.documents = documents
        self.last = last
        self.view = view
        self.meter = meter
        self.isToBeKept = isToBeKept
        self.kept = kept
        self.resultsFound = resultsFound
        sizeBytes = ListenWindow.sizeBytes(of: documents.lazy.map(\.key))
        versions = Dictionary(documents.map { ($0.key, $0.updateVersion) }) { $1 }
    }

    /// What is known already, as of the version of a view.
    convenience init(
        _ documents: [(key: [UInt8], updateVersion: Int64)], _ view: ReadView, _ memory: MemoryReservation
    ) throws(Status) {
        let meter = WorkMeter(memory: memory) { () throws(Status) in }
        try meter.hold(documents.reduce(0) { $0 + $1.key.count + Self.entryBytes })
        self.init(
            documents.map { Entry(key: $0.key, updateVersion: $0.updateVersion, document: nil) }, last: nil, view,
            meter,
            isToBeKept: false, kept: nil, resultsFound: 0)
    }

    /// Of an entry in two tables, besides its key.
    fileprivate static let entryBytes = 192

    /// Results that were looked at for it.
    var workCount: Int { max(resultsFound, documents.count) }

    /// What was found besides, once; nil when there was no room for it.
    func takeKept() -> (window: KeptWindow, memory: MemoryReservation)? {
        defer { kept = nil }
        return kept
    }

    func document(_ entry: Entry) throws(Status) -> StoredDocument? {
        if let document = entry.document { return document }
        return try view.document(key: entry.key)
    }
}

/// A query with a limit or an offset that is about to be run, by one thread or another. `@unchecked Sendable`: it is handed
/// over once.
final class WindowRun: @unchecked Sendable {
    private let live: LiveQuery
    private let view: ReadView
    private let execution: QueryExecution
    private let meter: WorkMeter
    /// Which of the execution's results are the window.
    private let ranks: Range<Int>
    private let isToBeKept: Bool
    private var kept: KeptWindow?
    /// For that.
    private let keptMemory: MemoryReservation?

    /// Documents of so many bytes are held; of most windows all of them.
    private static let documentBytesMax = 1 << 20
    /// How much more is reserved at a time for what is kept.
    private static let keptStepBytes = 16 << 10

    /// - Parameter keptMemory: nil when nothing is to be kept.
    init(
        _ live: LiveQuery, _ view: ReadView, _ memory: MemoryReservation, keptMemory: MemoryReservation?,
        check: @escaping () throws(Status) -> Void = {}
    ) throws(Status) {
        self.live = live
        self.view = view
        self.keptMemory = keptMemory
        meter = WorkMeter(memory: memory, check: check)
        isToBeKept = keptMemory != nil
        if isToBeKept, let kept = KeptWindow(of: live.query.query) {
            self.kept = kept
            ranks = kept.ranks
            execution = try QueryExecution(live.query.fromFirst(limit: kept.wantedCount), view: view, meter: meter)
        } else {
            ranks = 0..<Int.max
            execution = try QueryExecution(live.query, view: view, meter: meter)
        }
    }

    var isLight: Bool { execution.isLight }

    /// - Returns: nil when that is too much work for a loop.
    func finish(onLoop: Bool) throws(Status) -> WindowResult? {
        meter.mayPause = onLoop
        let wanted = kept.map { $0.wantedCount ?? .max }
        var documents: [WindowResult.Entry] = []
        var documentBytes = 0
        var last: QueryResult?
        var count = 0
        var bytesRead = 0
        // Behind the window as long as there is room to keep what is found.
        while kept != nil || count < ranks.upperBound, let result = try execution.next() {
            let size = result.document.fields.count
            bytesRead += size
            if onLoop, bytesRead > Limits.briefBytesMax { return nil }
            try keep(result)
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
        kept?.close(isComplete: wanted.map { count < $0 } ?? false)
        let found = kept.flatMap { window in keptMemory.map { (window: window, memory: $0) } }
        return WindowResult(
            documents, last: last, view, meter, isToBeKept: isToBeKept, kept: found, resultsFound: count)
    }

    /// Notes a result for what is kept, as long as there is room.
    private func keep(_ result: QueryResult) throws(Status) {
        guard let sizeBytes = kept?.sizeBytes, let keptMemory else { return }
        let position = try live.query.position(of: result)
        let size = sizeBytes + KeptWindow.size(result.key, position)
        let hasCapacity =
            size <= Limits.listenKeptWindowBytesMax
            && (size <= keptMemory.bytes || keptMemory.resize(to: size + Self.keptStepBytes))
        if hasCapacity {
            kept?.append(result.key, at: position, result.document.updateVersion)
        } else {
            kept = nil
            keptMemory.resize(to: 0)
        }
    }
}
