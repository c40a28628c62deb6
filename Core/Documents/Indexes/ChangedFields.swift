import HearthModel
import HearthWire

/// The top-level fields in which two states of a document differ.
struct ChangedFields {
    private(set) var old = MapValue()
    private(set) var new = MapValue()

    var isEmpty: Bool { old.fields.isEmpty && new.fields.isEmpty }

    /// Whether a field differs.
    func has(_ name: String) -> Bool {
        old.fields.contains { UTF8Order.equal($0.name, name) } || new.fields.contains { UTF8Order.equal($0.name, name) }
    }

    /// Walks over both in the order of names; only fields that differ are decoded.
    /// - Parameters:
    ///   - before: fields in wire form.
    ///   - after: fields in both forms, which have the same order.
    init(_ before: [UInt8], _ after: (tree: MapValue, encoded: [UInt8])) throws(Status) {
        let reader = FieldsReader(before)
        let entries = try reader.entries()
        let others = try FieldsReader(after.encoded).entries()
        var removed: [MapValue.Field] = []
        var added: [MapValue.Field] = []
        var i = 0
        var j = 0
        while i < entries.count || j < others.count {
            let order: Int
            if i == entries.count {
                order = 1
            } else if j == others.count {
                order = -1
            } else {
                order = Self.compare(before, entries[i].name, after.encoded, others[j].name)
            }
            let isSame =
                order == 0 && Self.compare(before, entries[i].value, after.encoded, others[j].value) == 0
            if order <= 0 {
                if !isSame {
                    let name = try reader.string(entries[i].name)
                    removed.append(MapValue.Field(name: name, value: try reader.value(entries[i].value)))
                }
                i += 1
            }
            if order >= 0 {
                if !isSame { added.append(after.tree.fields[j]) }
                j += 1
            }
        }
        old = MapValue(sorted: removed)
        new = MapValue(sorted: added)
    }

    private static func compare(_ left: [UInt8], _ a: Range<Int>, _ right: [UInt8], _ b: Range<Int>) -> Int {
        left.withUnsafeBytes { left in
            right.withUnsafeBytes { right in
                UTF8Order.compare(
                    UnsafeRawBufferPointer(rebasing: left[a]), UnsafeRawBufferPointer(rebasing: right[b]))
            }
        }
    }
}
