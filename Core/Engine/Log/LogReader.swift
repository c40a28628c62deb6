import HearthModel

/// Reads a log at a start.
struct LogReader {
    private let disk: any LogDisk
    /// Whether a log may be missing that the base had.
    private let acceptsLoss: Bool

    init(_ disk: any LogDisk, acceptsLoss: Bool = false) {
        self.disk = disk
        self.acceptsLoss = acceptsLoss
    }

    struct Found {
        /// From the one with the first record after the position on.
        var segments: [LogSegment] = []
        /// Files that aren't needed.
        var unused: [String] = []
        /// The greatest number of a file.
        var lastNumber: UInt64 = 0
        /// The sequence of the next record.
        var next: UInt64 = 1
        /// Where it goes in the last segment; nil when it must begin another one.
        var end: Int?
        /// The last one of the last segment.
        var lastRecord: (position: Int, bytes: [UInt8])?
        /// Of the records after the position.
        var bytes = 0
        /// A sentence about the torn record at the end, if there is one.
        var tornRecord: String?
    }

    /// Calls `body` with each change after a position.
    ///
    /// A torn record at the end is left out: its transaction wasn't acknowledged.
    /// - Throws: DATA_LOSS when something is missing before a valid record, or of which the base has a part; when there is no log,
    ///   but the base had one; or when it is another base's log.
    func read(after position: LogPosition, _ body: (LogChange) -> Void) throws(Status) -> Found {
        let found = try find(after: position, body)
        if found.next <= position.begun {
            throw Status(
                .dataLoss,
                "The log \(disk.path("")) ends with the record \(found.next - 1), but the database has parts of the"
                    + " records up to \(position.begun): it is older than the database's file, or missing.")
        }
        // The first file is durable before the mark is, and the last one stays until the mark is deleted.
        if position.hasLog, found.segments.isEmpty, !acceptsLoss {
            throw Status(
                .dataLoss,
                "The log \(disk.path("")) is missing, but the database's file had one: the last commits are lost with it. Restore the"
                    + " log's files, or a backup. `hearth check --accept-lost-logs` goes on without those commits.")
        }
        return found
    }

    private func find(after position: LogPosition, _ body: (LogChange) -> Void) throws(Status) -> Found {
        var found = Found()
        var segments = try readHeaders(&found, after: position)
        segments.sort { $0.number < $1.number }
        found.lastNumber = segments.last?.number ?? 0
        // Files before the one with the first needed record may be missing in part: their removal was interrupted.
        guard let start = segments.lastIndex(where: { $0.first <= position.sequence + 1 }) else {
            if let first = segments.first {
                throw damage(
                    first.name, 0,
                    "it begins with the record \(first.first), but the database ends with \(position.sequence)")
            }
            found.next = position.sequence + 1
            return found
        }
        found.unused += segments[..<start].map(\.name)
        found.segments = Array(segments[start...])
        found.next = found.segments[0].first
        for index in found.segments.indices {
            let following = index + 1 < found.segments.count ? found.segments[index + 1].first : nil
            try read(found.segments[index], until: following, after: position, &found, body)
        }
        if found.next <= position.sequence {
            // The base has what the log lacks; what would follow isn't where it belongs.
            found.next = position.sequence + 1
            found.end = nil
        }
        return found
    }

    private func readHeaders(_ found: inout Found, after position: LogPosition) throws(Status) -> [LogSegment] {
        var segments: [LogSegment] = []
        for name in try disk.names() {
            guard let number = UInt64(name) else {
                // Others' files stay.
                if CommitLog.isSpare(name) { found.unused.append(name) }
                continue
            }
            let file = try disk.open(name, isReadOnly: true)
            defer { file.close() }
            if file.sizeBytes < LogSegment.headerBytes {
                throw damage(name, 0, "it was cut short, to \(file.sizeBytes) bytes")
            }
            let bytes = try contents(file, name, max: LogSegment.headerBytes)
            defer { bytes.deallocate() }
            let header = UnsafeRawBufferPointer(bytes)
            let segment = try LogSegment(header: header)
            if let segment, segment.number == number {
                if segment.owner != position.owner { throw damage(name, 0, "it is the log of another database's file") }
                segments.append(segment)
                continue
            }
            // No record is written before the header is durable, and a file that is used again has a header.
            if segment == nil, try !hasNoRecords(file, name) { throw damage(name, 0, "its beginning is unreadable") }
            // Its making was interrupted, or its use for another one.
            found.unused.append(name)
        }
        return segments
    }

    /// - Parameter following: the first record of the segment after this one; nil when this one is the last.
    private func read(
        _ segment: LogSegment, until following: UInt64?, after position: LogPosition, _ found: inout Found,
        _ body: (LogChange) -> Void
    ) throws(Status) {
        if segment.first != found.next {
            throw damage(segment.name, 0, "it begins with the record \(segment.first) instead of \(found.next)")
        }
        let file = try disk.open(segment.name, isReadOnly: true)
        defer { file.close() }
        // Its size is durable before its header is written.
        if file.sizeBytes < segment.sizeBytes {
            throw damage(segment.name, file.sizeBytes, "it was cut short, from \(segment.sizeBytes) bytes")
        }
        let contents = try contents(file, segment.name, max: .max)
        defer { contents.deallocate() }
        let bytes = UnsafeRawBufferPointer(contents)
        var offset = LogSegment.headerBytes
        found.lastRecord = nil
        while found.next < following ?? .max,
            let length = LogRecord.length(bytes, at: offset, found.next, salt: segment.salt)
        {
            let end = offset + LogRecord.headerBytes + length
            if found.next > position.sequence {
                let changes = UnsafeRawBufferPointer(rebasing: bytes[offset + LogRecord.headerBytes..<end])
                if !LogRecord.forEachChange(changes, body) {
                    throw damage(segment.name, offset, "the record \(found.next) has unknown contents")
                }
                found.bytes += end - offset
            }
            if following == nil { found.lastRecord = (offset, Array(bytes[offset..<end])) }
            offset = end
            found.next += 1
        }
        found.end = offset
        if let following {
            if found.next < following {
                throw damage(segment.name, offset, "the records from \(found.next) to \(following - 1) are missing")
            }
        } else if let later = laterRecord(
            bytes, offset, after: max(found.next, position.sequence), segment.salt)
        {
            throw damage(segment.name, offset, "the record \(found.next) is missing, but \(later) follows")
        } else if found.next > position.sequence,
            LogRecord.sequence(bytes, at: offset, salt: segment.salt) == found.next
        {
            found.tornRecord =
                "The log \(disk.path(segment.name)) ends at byte \(offset) with a record that isn't whole: its commit wasn't"
                + " acknowledged, or the file is damaged there."
        }
    }

    /// The sequence of a valid record behind an offset and behind another one.
    private func laterRecord(
        _ bytes: UnsafeRawBufferPointer, _ start: Int, after earlier: UInt64, _ salt: UInt64
    ) -> UInt64? {
        for offset in stride(from: start + LogRecord.alignment, to: bytes.count, by: LogRecord.alignment) {
            if let sequence = LogRecord.sequence(bytes, at: offset, salt: salt), sequence > earlier,
                LogRecord.length(bytes, at: offset, sequence, salt: salt) != nil
            {
                return sequence
            }
        }
        return nil
    }

    /// Whether nothing was written into a file behind its header.
    private func hasNoRecords(_ file: any LogFile, _ name: String) throws(Status) -> Bool {
        let bytes = try contents(file, name, max: .max)
        defer { bytes.deallocate() }
        return bytes.dropFirst(LogSegment.headerBytes).allSatisfy { $0 == 0 }
    }

    private func contents(
        _ file: any LogFile, _ name: String, max: Int
    ) throws(Status) -> UnsafeMutableRawBufferPointer {
        guard file.sizeBytes <= LogSegment.sizeBytesMax else {
            throw damage(name, 0, "it has \(file.sizeBytes) bytes")
        }
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: min(max, file.sizeBytes), alignment: 16)
        do throws(Status) {
            try file.read(into: buffer, at: 0)
        } catch {
            buffer.deallocate()
            throw error
        }
        return buffer
    }

    private func damage(_ name: String, _ offset: Int, _ words: String) -> Status {
        Status(.dataLoss, "The log \(disk.path(name)) is damaged at byte \(offset): \(words).")
    }
}
