import HearthModel

/// Writes records to a new log.
package final class LogWriter {
    private let sink: FileSink
    private var blockPosition = 0

    package init(_ sink: FileSink) { self.sink = sink }

    package var sizeBytes: Int { sink.sizeBytes }

    package func append(_ record: [UInt8]) throws(Status) {
        try record.withBytes { record throws(Status) in try append(record) }
    }

    private func append(_ record: UnsafeRawBufferPointer) throws(Status) {
        var position = 0
        var isFirst = true
        repeat {
            let left = LogFormat.blockBytes - blockPosition
            if left < LogFormat.headerBytes {
                try sink.write([UInt8](repeating: 0, count: left))
                blockPosition = 0
                continue
            }
            let count = min(record.count - position, left - LogFormat.headerBytes)
            let isLast = position + count == record.count
            let type =
                isFirst
                ? (isLast ? LogFormat.Fragment.full : LogFormat.Fragment.first)
                : (isLast ? LogFormat.Fragment.last : LogFormat.Fragment.middle)
            try write(type, UnsafeRawBufferPointer(rebasing: record[position..<(position + count)]))
            position += count
            isFirst = false
        } while isFirst || position < record.count
    }

    private func write(_ type: UInt8, _ data: UnsafeRawBufferPointer) throws(Status) {
        var checksum = CRC32C()
        checksum.update(type)
        checksum.update(data)
        let masked = checksum.masked
        try sink.write([
            UInt8(truncatingIfNeeded: masked), UInt8(truncatingIfNeeded: masked >> 8),
            UInt8(truncatingIfNeeded: masked >> 16), UInt8(truncatingIfNeeded: masked >> 24),
            UInt8(truncatingIfNeeded: data.count), UInt8(truncatingIfNeeded: data.count >> 8), type,
        ])
        try sink.write(data)
        blockPosition += LogFormat.headerBytes + data.count
    }

    /// Writes the buffer, durably.
    package func finish() throws(Status) { try sink.finish() }
}
