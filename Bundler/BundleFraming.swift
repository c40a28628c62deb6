import HearthModel

/// Splits a stream of bytes into a bundle's elements: digits, followed by that many bytes of JSON.
///
/// Feed a piece, take elements until there is none, feed the next piece. Feeding discards the elements that were taken.
package struct BundleFraming: Sendable {
    /// The location of an element.
    package struct Frame: Sendable, Equatable {
        /// The offset of the element's first digit from the start of the bundle.
        package var offset: Int64
        /// The number of digits before the JSON.
        package var prefixSizeBytes: Int
        /// The JSON, as a range of `buffer`; it is valid until the next piece is fed.
        package var json: Range<Int>

        /// The size of the element with its length.
        package var sizeBytes: Int { prefixSizeBytes + json.count }
    }

    /// The bytes of the current element and of those after it.
    package private(set) var buffer: [UInt8] = []
    /// The start of the next element in the buffer.
    private var position = 0
    /// The offset of the buffer's first byte from the start of the bundle.
    private var bufferOffset: Int64 = 0
    private var isEnded = false

    /// An empty stream.
    package init() {}

    /// The size of all elements that were taken.
    package var offset: Int64 { bufferOffset + Int64(position) }

    /// Adds a piece of the stream. Must not be called after `finish`.
    /// - Parameter piece: bytes of any number.
    package mutating func feed(_ piece: some Collection<UInt8>) {
        precondition(!isEnded, "feed was called after finish")
        if position > 0 {
            buffer.removeSubrange(..<position)
            bufferOffset += Int64(position)
            position = 0
        }
        buffer.append(contentsOf: piece)
    }

    /// Marks the end of the stream.
    package mutating func finish() {
        isEnded = true
    }

    /// Takes the next element.
    /// - Returns: the element's location; nil when more bytes are needed or, after `finish`, when there are no more.
    /// - Throws: `DATA_LOSS` when an element does not begin with a number, or the stream ends within one.
    package mutating func next() throws(Status) -> Frame? {
        if position == buffer.count { return nil }
        guard let (digits, length) = try prefix() else { return try incomplete("within an element's length") }
        let start = position + digits
        guard buffer.count - start >= length else {
            return try incomplete("\(length - (buffer.count - start)) bytes before the end of an element")
        }
        let frame = Frame(offset: offset, prefixSizeBytes: digits, json: start..<start + length)
        position = start + length
        return frame
    }

    private func incomplete(_ location: String) throws(Status) -> Frame? {
        if isEnded { throw Status(.dataLoss, "The bundle is cut off \(location), which begins at byte \(offset).") }
        return nil
    }

    /// The number of digits and their value; nil when the brace after them is still missing.
    private func prefix() throws(Status) -> (digits: Int, length: Int)? {
        var length = 0
        var index = position
        while index < buffer.count {
            let byte = buffer[index]
            let count = index - position
            if byte == UInt8(ascii: "{"), count > 0 {
                if length > Limits.bundleElementSizeBytesMax {
                    throw Status(
                        .dataLoss,
                        "The bundle's element at byte \(offset) claims to have \(length) bytes; at most "
                            + "\(Limits.bundleElementSizeBytesMax) are read.")
                }
                return (count, length)
            }
            let digit = byte &- UInt8(ascii: "0")
            guard digit < 10, count < Limits.bundlePrefixDigitsMax else {
                throw Status(.dataLoss, "The bundle's element at byte \(offset) does not begin with its length.")
            }
            length = length * 10 + Int(digit)
            index += 1
        }
        return nil
    }
}
