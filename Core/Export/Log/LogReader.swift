import HearthModel

/// Reads the records of a log one after another. Holds one block, and the record that is read when it spans several.
package final class LogReader {
    private let source: any ByteSource
    private let block: UnsafeMutableRawBufferPointer
    /// The filled part of `block`, and the position in it.
    private var filled = 0
    private var position = 0
    /// The position of `block` in the file.
    private var blockOffset = 0
    private var isAtEnd = false
    /// The fragments of a record that spans blocks.
    private var assembled: [UInt8] = []
    private var isAssembling = false
    private let recordBytesMax: Int

    /// The number of the record that was read last, from 1.
    package private(set) var recordNumber = 0
    /// Its position in the file, in bytes.
    package private(set) var recordOffset = 0

    /// - Parameter recordBytesMax: longer records are refused.
    package init(_ source: any ByteSource, recordBytesMax: Int = Limits.exportRecordBytesMax) {
        self.source = source
        self.recordBytesMax = recordBytesMax
        block = .allocate(byteCount: LogFormat.blockBytes, alignment: 16)
    }

    deinit { block.deallocate() }

    /// Bytes that were consumed.
    package var consumedBytes: Int { blockOffset + position }

    /// Passes the next record to `body`; its bytes are valid during the call.
    /// - Returns: what `body` returns; nil at the end of the file.
    /// - Throws: INVALID_ARGUMENT with the file and the position when the file is damaged; what `body` throws, with the
    ///   number of the record before it.
    package func next<T>(_ body: (UnsafeRawBufferPointer) throws(Status) -> T) throws(Status) -> T? {
        while let (type, data) = try nextFragment() {
            switch type {
            case LogFormat.Fragment.full, LogFormat.Fragment.first:
                if isAssembling { throw damaged("a record begins within another") }
                recordNumber += 1
                if type == LogFormat.Fragment.full { return try deliver(data, body) }
                isAssembling = true
                assembled.removeAll(keepingCapacity: true)
                try append(data)
            case LogFormat.Fragment.middle, LogFormat.Fragment.last:
                if !isAssembling { throw damaged("a record has no beginning") }
                try append(data)
                if type == LogFormat.Fragment.middle { continue }
                isAssembling = false
                let record = assembled
                assembled = []
                defer { if record.count < 1 << 20 { assembled = record } }
                return try record.withBytes { record throws(Status) in try deliver(record, body) }
            default: throw damaged("there is no record of type \(type)")
            }
        }
        if isAssembling { throw damaged("the file ends within a record") }
        return nil
    }

    private func deliver<T>(
        _ record: UnsafeRawBufferPointer, _ body: (UnsafeRawBufferPointer) throws(Status) -> T
    ) throws(Status) -> T {
        do throws(Status) {
            return try body(record)
        } catch {
            throw Status(
                error.code, "\(source.name): record \(recordNumber) at byte \(recordOffset): \(error.message)")
        }
    }

    private func append(_ data: UnsafeRawBufferPointer) throws(Status) {
        if assembled.count + data.count > recordBytesMax {
            throw .invalidArgument(
                "\(source.name) at byte \(recordOffset): a record is longer than \(recordBytesMax) bytes.")
        }
        assembled.append(contentsOf: data)
    }

    // MARK: Fragments

    private func nextFragment() throws(Status) -> (type: UInt8, data: UnsafeRawBufferPointer)? {
        while true {
            let left = filled - position
            if left < LogFormat.headerBytes {
                try skipZeros()
                guard try fill() else { return nil }
                continue
            }
            let start = position
            let length = Int(block[start + 4]) | Int(block[start + 5]) << 8
            let type = block[start + 6]
            if type == 0, length == 0, isZero(start..<(start + 4)) {
                try skipZeros()
                continue
            }
            if !isAssembling { recordOffset = blockOffset + start }
            let data = start + LogFormat.headerBytes
            if length > filled - data {
                throw damaged(
                    filled < LogFormat.blockBytes
                        ? "the file ends within a record" : "a record is longer than its block")
            }
            let content = UnsafeRawBufferPointer(rebasing: block[data..<(data + length)])
            var checksum = CRC32C()
            checksum.update(type)
            checksum.update(content)
            let stored = UInt32(littleEndian: block.loadUnaligned(fromByteOffset: start, as: UInt32.self))
            if checksum.masked != stored { throw damaged("checksum differs") }
            position = data + length
            return (type, content)
        }
    }

    /// The rest of a block holds zeros only.
    private func skipZeros() throws(Status) {
        if !isZero(position..<filled) {
            throw damaged(filled < LogFormat.blockBytes ? "the file ends within a record" : "a block's rest isn't zero")
        }
        position = filled
    }

    private func isZero(_ range: Range<Int>) -> Bool { block[range].allSatisfy { $0 == 0 } }

    /// Reads the next block.
    /// - Returns: false at the end.
    private func fill() throws(Status) -> Bool {
        if isAtEnd { return false }
        blockOffset += filled
        filled = 0
        position = 0
        while filled < LogFormat.blockBytes {
            let count = try source.read(into: UnsafeMutableRawBufferPointer(rebasing: block[filled...]))
            if count == 0 {
                isAtEnd = true
                break
            }
            filled += count
        }
        return filled > 0
    }

    private func damaged(_ reason: String) -> Status {
        .invalidArgument("\(source.name) at byte \(blockOffset + position): \(reason).")
    }
}
