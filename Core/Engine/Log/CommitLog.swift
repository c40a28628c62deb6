import HearthConcurrency
import HearthModel
import Synchronization

/// The log of a `LoggedStore`: one record a transaction, in files of a fixed size that are written one after the other.
///
/// Invariants:
///
/// - A record is written when the one before it is durable. So only the last can be torn, and whatever is followed by a
///   valid record was whole once.
/// - After a failed write the file is abandoned. The next one begins with the sequence of the failed record, which makes
///   that one void; while no such file can be made, nothing is written.
/// - The file with the last record stays until a later one is durable, or the base has everything.
/// - When another program has removed or replaced a file, the record that is being written is void, and none is written until the
///   base has everything and `removeAll` has ended this log: records that follow a missing one are damage.
///
/// `@unchecked Sendable`: everything but `shared` belongs to whoever holds the store's gate.
final class CommitLog: @unchecked Sendable {
    private let disk: any LogDisk
    private let sizes: LogSegmentSizes
    private var file: (any LogFile)?
    /// Where the next record goes.
    private var position = 0
    /// The sequence of the next record.
    private(set) var next: UInt64 = 1
    /// The number of the last file that was begun, or tried.
    private(set) var lastNumber: UInt64 = 0
    /// Whether the present file must not be written any more.
    private(set) var mustRoll = false
    /// The last record that the log began to write before it was opened, if it isn't whole.
    private(set) var tornRecord: String?
    private var nextSizeBytes: Int
    /// That of the base, and of all files; see `LogPosition`.
    private var owner: UInt64 = 0
    private let shared = Mutex(Shared())
    /// Bytes of records since `beginCounting`.
    let bytes = Atomic(0)
    private let wantsSpare = Atomic(false)

    private struct Shared {
        /// In their order; the last is the present one, unless it must not be written.
        var segments: [LogSegment] = []
        /// Files for later use.
        var spares: [(name: String, sizeBytes: Int)] = []
        var spareCount = 0
        /// Why nothing may be written: files were removed or replaced. `removeAll` ends this.
        var loss: Status?
        /// None is made before, because the disk was full.
        var spareNotBefore = MonotonicTime(nanoseconds: 0)

        mutating func nextSpareName() -> String {
            spareCount += 1
            return CommitLog.spareMark + String(spareCount)
        }
    }

    fileprivate static let spareMark = "spare-"
    private static let sparesMax = 2
    private static let spareRetryMilliseconds = 1000

    static func isSpare(_ name: String) -> Bool { name.hasPrefix(spareMark) }

    init(_ disk: any LogDisk, _ sizes: LogSegmentSizes) {
        self.disk = disk
        self.sizes = sizes
        nextSizeBytes = sizes.min
    }

    /// The last record that is durable.
    var lastSequence: UInt64 { next - 1 }

    var hasFiles: Bool { shared.withLock { !$0.segments.isEmpty } }

    var sizeBytes: Int {
        shared.withLock { shared in
            shared.segments.reduce(0) { $0 + $1.sizeBytes } + shared.spares.reduce(0) { $0 + $1.sizeBytes }
        }
    }

    /// The bytes of later records count anew.
    func beginCounting() { bytes.store(0, ordering: .relaxed) }

    func close() {
        file?.close()
        file = nil
        mustRoll = true
    }

    // MARK: Writing

    /// Makes the first file, if there is none.
    func begin(for record: LogRecord) throws(Status) {
        if file == nil || mustRoll { try roll(record.count + LogRecord.alignment) }
    }

    /// Makes a transaction durable. When it throws, the transaction is void.
    /// - Returns: whether `prepareSpare` has something to do.
    func append(_ record: LogRecord) throws(Status) -> Bool {
        // Of an earlier file: this one's is found below. Behind what is missing a start can read nothing.
        if let loss = shared.withLock({ $0.loss }) { throw loss }
        let needed = record.count + LogRecord.alignment
        if file == nil || mustRoll {
            try roll(needed)
        } else if let segment = present, position + needed > segment.sizeBytes {
            nextSizeBytes = sizes.after(segment.sizeBytes)
            try roll(needed)
        }
        guard let file, let segment = present else { throw .internalError("The log has no file.") }
        do throws(Status) {
            let bytes = record.seal(next, salt: segment.salt)
            try file.write(bytes, at: position)
            try file.synchronize()
            if !disk.has(segment.name, file) { throw lose(Self.lostFile) }
            try checkBase()
            position += bytes.count
            self.bytes.add(bytes.count, ordering: .relaxed)
            next += 1
        } catch {
            mustRoll = true
            voidRecord()
            throw error
        }
        return position > segment.sizeBytes / 2 && askForSpare(sizes.after(segment.sizeBytes))
    }

    /// From here on the log is of a base with another number. There must be no files.
    func begin(owner: UInt64) {
        precondition(!hasFiles, "the files have the number of their base")
        self.owner = owner
    }

    // MARK: Files that other programs remove

    private static let lostFile = Status.unavailable(
        "A file of the log was deleted or replaced while the server was running. Commits succeed again when the database's file has "
            + "what was in it.")

    /// Whether files were removed or replaced.
    var isLost: Bool { shared.withLock { $0.loss != nil } }

    private func lose(_ status: Status) -> Status {
        shared.withLock { $0.loss = status }
        return status
    }

    private func checkBase() throws(Status) {
        do throws(Status) { try disk.checkBase() } catch { throw lose(error) }
    }

    /// - Throws: UNAVAILABLE when files of the log or of the base were removed or replaced.
    func checkFiles() throws(Status) {
        let (loss, segments) = shared.withLock { ($0.loss, $0.segments) }
        if let loss { throw loss }
        for segment in segments where !disk.has(segment.name, segment.number == lastNumber ? file : nil) {
            // The applier's thread may have released it meanwhile.
            if shared.withLock({ $0.segments.contains { $0.number == segment.number } }) { throw lose(Self.lostFile) }
        }
        try checkBase()
    }

    private var present: LogSegment? { shared.withLock { $0.segments.last } }

    /// At once, because the record may be on the disk.
    private func voidRecord() {
        do throws(Status) {
            try recover()
        } catch {
            // The failure of the write is reported; the next write and this one try again.
        }
    }

    /// Makes void what a failed write may have left. With a file of the usual size: a smaller one would fit on a full disk,
    /// and the next writes would fail again.
    func recover() throws(Status) {
        if let loss = shared.withLock({ $0.loss }) { throw loss }
        if mustRoll { try roll(0) }
    }

    /// Begins the next file, which is durable when this returns.
    private func roll(_ recordBytes: Int) throws(Status) {
        precondition(owner != 0, "no file before the base has its number")
        try checkFiles()
        mustRoll = true
        file?.close()
        file = nil
        lastNumber += 1
        var segment = LogSegment(
            number: lastNumber, first: next, salt: UInt64.random(in: .min ... .max), owner: owner,
            sizeBytes: sizes.fitting(LogSegment.headerBytes + recordBytes, atLeast: nextSizeBytes))
        do throws(Status) {
            let spare = if let spare = takeSpare(segment.sizeBytes) { spare } else { try makeSpare(segment.sizeBytes) }
            segment.sizeBytes = spare.sizeBytes
            do throws(Status) {
                try disk.rename(spare.name, to: segment.name)
            } catch {
                removeUnused(spare.name)
                throw error
            }
            let new = try disk.open(segment.name, isReadOnly: false)
            let header = segment.header
            try header.withUnsafeBytes { header in Result { () throws(Status) in try new.write(header, at: 0) } }.get()
            try new.synchronize()
            try disk.synchronizeNames()
            file = new
        } catch {
            removeUnused(segment.name)
            throw error
        }
        shared.withLock { $0.segments.append(segment) }
        position = LogSegment.headerBytes
        mustRoll = false
    }

    // MARK: Files

    private func removeUnused(_ name: String) {
        do throws(Status) {
            try disk.remove(name)
        } catch {
            // Without records it does no harm, and the next start removes it.
        }
    }

    private func takeSpare(_ sizeBytes: Int) -> (name: String, sizeBytes: Int)? {
        shared.withLock { shared in
            guard let index = shared.spares.firstIndex(where: { $0.sizeBytes >= sizeBytes }) else { return nil }
            return shared.spares.remove(at: index)
        }
    }

    /// Only whole files get numbers, so that a file with a number that is short was cut.
    private func makeSpare(_ sizeBytes: Int) throws(Status) -> (name: String, sizeBytes: Int) {
        let name = shared.withLock { $0.nextSpareName() }
        do throws(Status) {
            try disk.make(name, sizeBytes: sizeBytes)
        } catch {
            removeUnused(name)
            throw error
        }
        return (name, sizeBytes)
    }

    private func askForSpare(_ sizeBytes: Int) -> Bool {
        let isWanted = shared.withLock { shared in
            !shared.spares.contains { $0.sizeBytes >= sizeBytes } && MonotonicTime.now >= shared.spareNotBefore
        }
        return isWanted && !wantsSpare.exchange(true, ordering: .relaxed)
    }

    /// Makes the next file in advance, if there will soon be a need; for the applier's thread.
    func prepareSpare() {
        guard wantsSpare.load(ordering: .relaxed) else { return }
        defer { wantsSpare.store(false, ordering: .relaxed) }
        let sizeBytes = shared.withLock { sizes.after($0.segments.last?.sizeBytes ?? 0) }
        do throws(Status) {
            let spare = try makeSpare(sizeBytes)
            shared.withLock { $0.spares.append(spare) }
        } catch {
            // The writer makes its file itself, or fails, and reports that.
            shared.withLock { $0.spareNotBefore = .now.advanced(milliseconds: Self.spareRetryMilliseconds) }
        }
    }

    /// Gives back the files whose records are all in the base; for the applier's thread.
    func release(upTo sequence: UInt64) {
        while let (segment, spare) = takeReleased(sequence) {
            do throws(Status) {
                if let spare {
                    try disk.rename(segment.name, to: spare)
                    shared.withLock { $0.spares.append((spare, segment.sizeBytes)) }
                } else {
                    try disk.remove(segment.name)
                }
            } catch {
                // A file that stays is ignored while a later one is there; `removeAll` and the next start remove it.
            }
        }
    }

    private func takeReleased(_ sequence: UInt64) -> (segment: LogSegment, spare: String?)? {
        shared.withLock { shared in
            guard shared.segments.count > 1, shared.segments[1].first <= sequence + 1 else { return nil }
            let segment = shared.segments.removeFirst()
            guard shared.spares.count < Self.sparesMax, segment.sizeBytes == sizes.max else { return (segment, nil) }
            return (segment, shared.nextSpareName())
        }
    }

    /// - Throws: when the files can't be removed now.
    func checkRemoval() throws(Status) {
        if isLost {
            // Of the base nothing may be missing.
            try disk.checkBase()
        } else {
            // A record whose write failed may be in the last file.
            try recover()
        }
    }

    /// Removes all files, when the base has everything and its mark is deleted. The last file goes when the removal of the others is durable:
    /// it makes records of theirs void.
    func removeAll() throws(Status) {
        try checkRemoval()
        let segments = shared.withLock { $0.segments }
        // One that stays is removed by the next start.
        while let spare = shared.withLock({ $0.spares.popLast() }) { try disk.remove(spare.name) }
        if segments.isEmpty { return }
        file?.close()
        file = nil
        // Also those that `release` failed to remove.
        let names = try disk.names()
        for name in names where UInt64(name) != nil && name != segments.last?.name { try disk.remove(name) }
        if let last = segments.last, names.contains(last.name) {
            // Also when it is the only one: `release` has removed others.
            try disk.synchronizeNames()
            try disk.remove(last.name)
        }
        shared.withLock { ($0.segments, $0.loss) = ([], nil) }
        nextSizeBytes = sizes.min
        mustRoll = false
        beginCounting()
    }

    // MARK: Start

    /// Calls `body` with each change after a position, and makes the log ready for writing.
    func open(
        after position: LogPosition, isReadOnly: Bool, acceptsLoss: Bool, _ body: (LogChange) -> Void
    ) throws(Status) {
        let reader = LogReader(disk, acceptsLoss: acceptsLoss)
        let found = try reader.read(after: position, body)
        next = found.next
        owner = position.owner
        tornRecord = found.tornRecord
        lastNumber = max(position.segment, found.lastNumber)
        bytes.store(found.bytes, ordering: .relaxed)
        shared.withLock { $0.segments = found.segments }
        if isReadOnly { return mustRoll = true }
        for name in found.unused { try disk.remove(name) }
        guard let last = found.segments.last else { return }
        nextSizeBytes = min(sizes.max, max(sizes.min, last.sizeBytes))
        if found.end == nil { return mustRoll = true }
        let opened = try disk.open(last.name, isReadOnly: false)
        try secure(last, opened, found.lastRecord)
        file = opened
        self.position = found.end ?? 0
    }

    /// The process before this one may have failed to make its last steps durable, and the system shows them
    /// nevertheless; only what is written again is sure to be written.
    private func secure(
        _ segment: LogSegment, _ file: any LogFile, _ record: (position: Int, bytes: [UInt8])?
    ) throws(Status) {
        for (position, bytes) in [(0, segment.header)] + (record.map { [$0] } ?? []) {
            try bytes.withUnsafeBytes { bytes in
                Result { () throws(Status) in try file.write(bytes, at: position) }
            }.get()
        }
        try file.synchronize()
        try disk.synchronizeNames()
    }

    /// Defects of what isn't in the base yet, at most `max` sentences. Reads the files.
    func damage(after position: LogPosition, max: Int) throws(Status) -> [String] {
        do throws(Status) {
            let found = try LogReader(disk).read(after: position) { _ in }
            if found.next >= next || max <= 0 { return [] }
            return ["The log ends at the record \(found.next - 1), but \(next - 1) was written."]
        } catch {
            if error.code == .dataLoss, max > 0 { return [error.message] }
            throw error
        }
    }
}

/// The sizes of a log's files: small at first, because there may be many databases of which few are written.
package struct LogSegmentSizes: Sendable {
    package var min = 256 << 10
    package var max = 16 << 20
    /// How many times as large the next file is when one was filled.
    private static let growth = 4
    private static let unitBytes = 4096

    package init() {}

    func after(_ sizeBytes: Int) -> Int { Swift.min(max, Swift.max(min, sizeBytes * Self.growth)) }

    /// A record may be larger than all files.
    func fitting(_ bytes: Int, atLeast sizeBytes: Int) -> Int {
        Swift.max(sizeBytes, (bytes + Self.unitBytes - 1) / Self.unitBytes * Self.unitBytes)
    }
}
