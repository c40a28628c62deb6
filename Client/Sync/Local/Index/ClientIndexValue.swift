import HearthModel
import HearthDocuments

/// The order-preserving bytes of values in client-side indexes. They are those of `IndexValue`, with one more type:
///
///     pending server timestamp: 16 and (local write time in µs + 2^63) in 8 bytes, between timestamps and strings
///
/// No encoding is a prefix of another one, so encodings can be concatenated. With every bit inverted they sort in
/// reverse order. An encoding longer than `sizeBytesMax` is truncated: entries with equal bytes then may have different
/// values. The documents that an index returns are matched against the query in any case.
struct ClientIndexValue {
    var bytes: [UInt8]
    var isCut: Bool

    static let sizeBytesMax = Limits.indexedValueSizeBytesMax
    private static let pendingTag: UInt8 = 0x16

    init(_ value: Value) {
        bytes = []
        Self.append(value, to: &bytes)
        isCut = bytes.count > Self.sizeBytesMax
        if isCut { bytes.removeLast(bytes.count - Self.sizeBytesMax) }
    }

    private static func append(_ value: Value, to bytes: inout [UInt8]) {
        switch value {
        case .array(let elements):
            bytes.append(IndexValue.Tag.array)
            for element in elements { append(element, to: &bytes) }
            bytes.append(IndexValue.Tag.terminator)
        case .map(let map):
            if let pending = PendingServerTimestamp(value) {
                bytes.append(pendingTag)
                let time = UInt64(bitPattern: pending.localWriteTime.microseconds)
                return IndexValue.appendBigEndian(time ^ (1 << 63), to: &bytes)
            }
            bytes.append(IndexValue.Tag.map)
            for field in map.fields {
                bytes.append(IndexValue.Tag.string)
                IndexValue.appendString(field.name, to: &bytes)
                append(field.value, to: &bytes)
            }
            bytes.append(IndexValue.Tag.terminator)
        default: IndexValue.append(value, to: &bytes)
        }
    }

    static func inverted(_ bytes: [UInt8]) -> [UInt8] { bytes.map { ~$0 } }
}
