import CZlib
import Glibc
import HearthModel
import HearthSQLite
import Synchronization

/// The writes that have not reached the database yet: a file beside it, so that a write is stored when its call returns,
/// whatever the client's queue does at the time.
///
/// A call appends a record on its own thread and enqueues the write. The queue then puts the write into the database, with
/// the record's number in the same transaction (`applied`). So after the end of a process the records above the database's
/// number are exactly the writes that are not in it, in their order: the next opening puts them there (`Record`s of `init`).
/// The file is emptied when all of its records are in the database.
///
/// An append hands the record to the system and does not wait for the disk, as the database's log: a kill loses nothing;
/// a power failure may cut off the end. The file belongs to who holds the cache's lock.
///
/// A record, numbers in little endian: the size of the contents (4 bytes), the CRC-32 of the contents and the number (4),
/// the record's number (8), its state (0: withdrawn, 255: valid, so that no damaged bit withdraws it), the contents.
package final class WriteJournal: Sendable {
    /// A stored write.
    package struct Record: Sendable {
        package let number: Int64
        package let contents: [UInt8]
    }

    /// A write between the call and the database.
    package struct Entry: Sendable {
        package let number: Int64
        fileprivate let offset: Int
    }

    private struct State: ~Copyable {
        /// -1: closed.
        var descriptor: Int32
        var sizeBytes = 0
        var last: Int64
        var applied: Int64
        /// The end of the file has a part of a record that could not be removed.
        var isTorn = false
    }

    private static let headSizeBytes = 17
    private static let stateOffset = 16
    /// A file that is longer is emptied when all of its records are in the database.
    private static let keptSizeBytesMax = 1 << 16
    package static let closed = Status.failedPrecondition("The cache was closed.")

    private let path: String
    private let state: Mutex<State>

    /// - Parameters:
    ///   - applied: the number of the last record that the database has.
    ///   - lost: called with a warning when a part of the file cannot be read.
    /// - Returns: the journal and the records that the database does not have.
    package static func open(
        _ file: CacheFile, applied: Int64, lost: (String) -> Void
    ) throws(Status) -> (journal: WriteJournal, records: [Record]) {
        let descriptor = Glibc.open(file.journal, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        if descriptor < 0 { throw failure("open \(file.journal)") }
        let journal = WriteJournal(path: file.journal, descriptor: descriptor, applied: applied)
        return (journal, try journal.load(lost))
    }

    private init(path: String, descriptor: Int32, applied: Int64) {
        self.path = path
        state = Mutex(State(descriptor: descriptor, last: applied, applied: applied))
    }

    deinit { close() }

    /// The records of a file that no process uses.
    package static func records(path: String, after applied: Int64) throws(Status) -> [Record] {
        let descriptor = Glibc.open(path, O_RDONLY | O_CLOEXEC)
        if descriptor < 0 {
            if errno == ENOENT { return [] }
            throw failure("open \(path)")
        }
        defer { Glibc.close(descriptor) }
        return parse(try contents(descriptor, path), after: applied).records
    }

    // MARK: Calls

    /// Stores a write, and then enqueues it: writes are enqueued in the order of their records.
    /// - Parameter enqueue: runs with other writes excluded; it must only enqueue.
    /// - Throws: `RESOURCE_EXHAUSTED` on a full disk, `UNAVAILABLE` when the disk has errors, `closed`. The write is not
    ///   stored.
    package func append(_ contents: [UInt8], _ enqueue: (Entry) -> Void) throws(Status) {
        var record = Self.head(of: contents)
        record += contents
        let sum = contents.withUnsafeBytes { Self.checksum($0) }
        try state.withLock { (state) throws(Status) in
            guard state.descriptor >= 0 else { throw Self.closed }
            if state.isTorn { try cut(&state) }
            let number = state.last + 1
            withUnsafeBytes(of: number.littleEndian) { record.replaceSubrange(8..<16, with: $0) }
            let whole = Self.extended(sum, by: number)
            withUnsafeBytes(of: whole.littleEndian) { record.replaceSubrange(4..<8, with: $0) }
            do throws(Status) {
                try Self.write(record, to: state.descriptor, at: state.sizeBytes, path)
            } catch {
                // A part of a record must not hide those after it.
                state.isTorn = true
                try? cut(&state)
                throw error
            }
            let entry = Entry(number: number, offset: state.sizeBytes)
            state.last = number
            state.sizeBytes += record.count
            enqueue(entry)
        }
    }

    private func cut(_ state: inout State) throws(Status) {
        if ftruncate(state.descriptor, state.sizeBytes) != 0 { throw Self.failure("shorten \(path)") }
        state.isTorn = false
    }

    // MARK: The client's queue

    /// The writes up to this number are in the database, or withdrawn.
    package func applied(_ number: Int64) {
        state.withLock { state in
            state.applied = max(state.applied, number)
            if state.applied == state.last, state.sizeBytes > Self.keptSizeBytesMax { empty(&state) }
        }
    }

    /// The write failed and is not in the database: a later process must not make it.
    package func withdraw(_ entry: Entry) throws(Status) {
        try state.withLock { (state) throws(Status) in
            guard state.descriptor >= 0 else { return }
            // It overwrites a byte, which a full disk permits.
            try Self.write([0], to: state.descriptor, at: entry.offset + Self.stateOffset, path)
            state.applied = max(state.applied, entry.number)
        }
    }

    /// Later calls fail. What is not in the database stays in the file.
    package func close() {
        state.withLock { state in
            if state.descriptor < 0 { return }
            if state.applied == state.last { empty(&state) }
            Glibc.close(state.descriptor)
            state.descriptor = -1
        }
    }

    /// All records are in the database. If the file cannot be emptied now, the database's number makes them invalid.
    private func empty(_ state: inout State) {
        if ftruncate(state.descriptor, 0) == 0 { state.sizeBytes = 0 }
    }

    // MARK: The file

    private func load(_ lost: (String) -> Void) throws(Status) -> [Record] {
        try state.withLock { (state) throws(Status) in
            let bytes = try Self.contents(state.descriptor, path)
            let found = Self.parse(bytes, after: state.applied)
            if found.unreadableBytes > 0 {
                lost(
                    "\(found.unreadableBytes) bytes of the journal of writes \(path) cannot be read: "
                        + "writes in them whose calls had returned are lost.")
            }
            state.last = max(state.applied, found.last ?? 0)
            // What is of no use any more is removed by the next append at the latest: with it the numbers would have a gap.
            state.sizeBytes = found.records.isEmpty ? 0 : found.sizeBytes
            state.isTorn = state.sizeBytes < bytes.count
            if found.records.isEmpty {
                state.applied = state.last
                empty(&state)
            }
            return found.records
        }
    }

    /// A record is no more than the database's numbers can be: see `CacheDatabase.counter`.
    private static let numbers: ClosedRange<Int64> = 1...(1 << 53)
    /// How often the file's bytes are read in search of a whole record: damage must not cost more than that.
    private static let searchesMax = 8

    private struct Contents {
        /// Without withdrawn ones, and without those that the database has.
        var records: [Record] = []
        /// The number of the last record; nil when there is none.
        var last: Int64?
        /// The end of the last record.
        var sizeBytes = 0
        /// Of what lies before, between and behind the records.
        var unreadableBytes = 0
    }

    /// The whole records. What lies behind the last one is of a call that did not return, or the power failed, or the file
    /// is damaged: which of them is unknown. Damage before it costs the records in which it is: their writes do not depend
    /// on each other.
    private static func parse(_ file: [UInt8], after applied: Int64) -> Contents {
        var found = Contents()
        file.withUnsafeBytes { bytes in
            var searchedBytes = 0
            var offset = 0
            while offset < bytes.count {
                let isNext = offset == found.sizeBytes
                // In a search the number says whether it may be a record: it is not far above the last one.
                let above = found.last ?? (isNext ? 0 : applied)
                let first = found.last.map { $0 + 1 } ?? numbers.lowerBound
                let last =
                    isNext
                    ? found.last.map { $0 + 1 } ?? numbers.upperBound : above + 1 + Int64(bytes.count / headSizeBytes)
                guard first <= last, let (number, size) = head(bytes, at: offset, numbers: first...last) else {
                    offset += 1
                    continue
                }
                if !isNext { searchedBytes += size }
                if searchedBytes > searchesMax * bytes.count { break }
                guard isWhole(bytes, at: offset, size: size) else {
                    offset += 1
                    continue
                }
                if number > applied, bytes[offset + stateOffset] != 0 {
                    let start = offset + headSizeBytes
                    found.records.append(Record(number: number, contents: [UInt8](bytes[start..<(start + size)])))
                }
                found.unreadableBytes += offset - found.sizeBytes
                found.last = number
                offset += headSizeBytes + size
                found.sizeBytes = offset
            }
        }
        found.unreadableBytes += file.count - found.sizeBytes
        return found
    }

    /// The number of a record at an offset and the size of its contents; nil when there can be none.
    private static func head(
        _ bytes: UnsafeRawBufferPointer, at offset: Int, numbers: ClosedRange<Int64>
    ) -> (number: Int64, size: Int)? {
        guard bytes.count - offset >= headSizeBytes else { return nil }
        let size = Int(UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt32.self)))
        let number = Int64(littleEndian: bytes.loadUnaligned(fromByteOffset: offset + 8, as: Int64.self))
        guard numbers ~= number, bytes.count - offset - headSizeBytes >= size else { return nil }
        return (number, size)
    }

    private static func isWhole(_ bytes: UnsafeRawBufferPointer, at offset: Int, size: Int) -> Bool {
        let sum = UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: offset + 4, as: UInt32.self))
        let number = Int64(littleEndian: bytes.loadUnaligned(fromByteOffset: offset + 8, as: Int64.self))
        let contents = UnsafeRawBufferPointer(
            rebasing: bytes[(offset + headSizeBytes)..<(offset + headSizeBytes + size)])
        return extended(checksum(contents), by: number) == sum
    }

    private static func head(of contents: [UInt8]) -> [UInt8] {
        var head: [UInt8] = []
        head.reserveCapacity(headSizeBytes + contents.count)
        withUnsafeBytes(of: UInt32(contents.count).littleEndian) { head += $0 }
        // The checksum and the number, which are known when it is written.
        head += [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255]
        return head
    }

    private static func checksum(_ bytes: UnsafeRawBufferPointer) -> UInt32 {
        // Without a pointer zlib answers with the first sum of all.
        UInt32(truncatingIfNeeded: crc32_z(0, bytes.baseAddress, bytes.count))
    }

    private static func extended(_ sum: UInt32, by number: Int64) -> UInt32 {
        withUnsafeBytes(of: number.littleEndian) { bytes in
            UInt32(
                truncatingIfNeeded: crc32(uLong(sum), bytes.bindMemory(to: UInt8.self).baseAddress, uInt(bytes.count)))
        }
    }

    private static func write(_ bytes: [UInt8], to descriptor: Int32, at offset: Int, _ path: String) throws(Status) {
        var done = 0
        while done < bytes.count {
            let count = bytes.withUnsafeBytes { bytes in
                pwrite(descriptor, bytes.baseAddress.map { $0 + done }, bytes.count - done, offset + done)
            }
            if count < 0, errno == EINTR { continue }
            if count <= 0 { throw failure("write \(path)", count < 0 ? errno : ENOSPC) }
            done += count
        }
    }

    private static func contents(_ descriptor: Int32, _ path: String) throws(Status) -> [UInt8] {
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw failure("read \(path)") }
        var bytes = [UInt8](repeating: 0, count: Int(status.st_size))
        var done = 0
        while done < bytes.count {
            let count = bytes.withUnsafeMutableBytes { bytes in
                pread(descriptor, bytes.baseAddress.map { $0 + done }, bytes.count - done, done)
            }
            if count < 0, errno == EINTR { continue }
            if count < 0 { throw failure("read \(path)") }
            if count == 0 { break }
            done += count
        }
        return Array(bytes.prefix(done))
    }

    /// The codes of the cache's other failures: see `CacheDatabase.failure`.
    private static func failure(_ action: String, _ code: Int32 = errno) -> Status {
        var status = DataFolder.failure(action, code)
        status.code = code == ENOSPC || code == EDQUOT ? .resourceExhausted : .unavailable
        return status
    }
}
