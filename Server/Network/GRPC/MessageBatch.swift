/// Messages of one response in one piece of memory, each behind its length prefix, as gRPC sends them.
package struct MessageBatch: Sendable {
    package private(set) var bytes: [UInt8] = []
    package private(set) var count = 0
    /// Where the message begins that is being written.
    private var start = 0

    package init() {}

    package mutating func append(_ message: [UInt8]) {
        GRPCPrefix(isCompressed: false, messageBytes: message.count).withBytes { bytes.append(contentsOf: $0) }
        bytes.append(contentsOf: message)
        count += 1
    }

    /// Begins a message. The caller appends it to the returned bytes, which are the batch's own memory, and passes them
    /// to `end`.
    package mutating func begin() -> [UInt8] {
        var taken: [UInt8] = []
        swap(&taken, &bytes)
        start = taken.count
        for _ in 0..<GRPCPrefix.sizeBytes { taken.append(0) }
        return taken
    }

    /// - Parameter written: empty afterwards, so that the batch again has the only reference.
    package mutating func end(_ written: inout [UInt8]) {
        swap(&bytes, &written)
        let length = bytes.count - start - GRPCPrefix.sizeBytes
        GRPCPrefix(isCompressed: false, messageBytes: length).withBytes { prefix in
            bytes.withUnsafeMutableBytes {
                UnsafeMutableRawBufferPointer(rebasing: $0[start...]).copyMemory(from: prefix)
            }
        }
        count += 1
    }

    /// The messages, without their prefixes.
    package var messages: [[UInt8]] {
        var messages: [[UInt8]] = []
        var start = GRPCPrefix.sizeBytes
        while start <= bytes.count {
            let length = bytes[(start - 4)..<start].reduce(0) { $0 << 8 | Int($1) }
            messages.append(Array(bytes[start..<(start + length)]))
            start += length + GRPCPrefix.sizeBytes
        }
        return messages
    }
}
