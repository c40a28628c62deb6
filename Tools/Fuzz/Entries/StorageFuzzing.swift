import HearthDocuments
import HearthEngine
import HearthModel
import HearthWire

/// Entry points for fuzzing stored data: see `WireFuzzing`. A violated invariant traps.
package enum StorageFuzzing {
    /// Passes the bytes to every reader of stored keys, and two values made from them to the order of index keys.
    package static func fuzzIndexKeys(_ bytes: [UInt8]) {
        fuzzReaders(bytes)
        // The first byte is the start of the second value.
        guard let first = bytes.first else { return }
        let middle = 1 + (bytes.count - 1) * Int(first) / 256
        fuzzOrder(value(bytes[1..<middle]), value(bytes[middle...]))
    }

    /// Entries of a damaged file are rejected, and a value that was read equals the value that would be written.
    private static func fuzzReaders(_ bytes: [UInt8]) {
        if let path = DocumentKey.decode(bytes) {
            let canonical = DocumentKey.encode(path)
            precondition(DocumentKey.decode(canonical) == path, "a document key isn't stable")
            precondition(
                DocumentKey.fromPathKey(DocumentKey.encodePath(path)) == canonical, "the forms of a key differ")
            precondition(DocumentKey.toPathKey(canonical) == DocumentKey.encodePath(path), "the forms of a key differ")
        }
        if let key = IndexKey.documentKey(of: bytes, catalog: IndexCatalog()) { _ = DocumentKey.decode(key) }
        for start in 0..<min(bytes.count, 4) {
            let complement = bytes.map { ~$0 }
            let ascending = IndexValue.end(of: bytes, from: start, complemented: false)
            let descending = IndexValue.end(of: complement, from: start, complemented: true)
            precondition(ascending?.end == descending?.end, "the descending form ends elsewhere")
            precondition(ascending?.isCut == descending?.isCut, "the descending form is cut otherwise")
            if let end = ascending?.end { precondition(end > start && end <= bytes.count, "a value ends outside") }
            _ = IndexValue.decodeNumber(bytes, from: start)
        }
        do throws(Status) { _ = try StoredDocument(stored: bytes) } catch { precondition(error.code != .ok) }
        for split in [8, bytes.count / 2] where split <= bytes.count {
            do throws(Status) {
                _ = try Feed.Record(key: Array(bytes[..<split]), value: Array(bytes[split...]))
            } catch { precondition(error.code != .ok) }
        }
    }

    /// A value that a document may hold.
    private static func value(_ bytes: ArraySlice<UInt8>) -> Value? {
        do throws(Status) {
            let fields = try FieldsCodec.decode(Array(bytes))
            try ValueValidation.validate(fields)
            return fields.fields.count == 1 ? fields.fields[0].value : .map(fields)
        } catch {
            return nil
        }
    }

    private static func fuzzOrder(_ left: Value?, _ right: Value?) {
        for value in [left, right] {
            guard let value else { continue }
            let encoded = IndexValue.encode(value)
            var cut: [UInt8] = []
            IndexValue.appendCut(value, to: &cut)
            precondition(encoded.starts(with: cut), "the cut form is no prefix")
            let end = IndexValue.end(of: cut + [0x02, 0x00], from: 0, complemented: false)
            precondition(end?.end == cut.count, "a value in an index ends elsewhere than it was written")
            precondition(end?.isCut == (cut.count < encoded.count), "a value in an index is cut otherwise")
        }
        guard let left, let right else { return }
        let order = ValueOrder.compare(left, right).signum()
        precondition(ValueOrder.compare(right, left).signum() == -order, "the order of values has no inverse")
        let leftKey = IndexValue.encode(left)
        let rightKey = IndexValue.encode(right)
        let keyOrder = leftKey == rightKey ? 0 : leftKey.lexicographicallyPrecedes(rightKey) ? -1 : 1
        precondition(keyOrder == order, "the keys of \(left) and \(right) are ordered otherwise")
    }
}
