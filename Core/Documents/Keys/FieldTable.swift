import HearthEngine
import HearthModel
import HearthWire

/// The input of decisions about a document's fields: one document, as it is stored.
protocol FieldSource {
    func contains(_ path: FieldPath) throws(Status) -> Bool
    func value(at path: FieldPath) throws(Status) -> Value?
    func typeClass(at path: FieldPath) throws(Status) -> ValueOrder.TypeClass?
}

extension FieldsReader: FieldSource {
    func contains(_ path: FieldPath) throws(Status) -> Bool { try locate(path) != nil }
}

/// The fields of a document in one state, for many queries that read it: each map is walked once and each value decoded
/// once, however many queries name it. Used by one thread at a time.
package final class FieldTable: FieldSource {
    private let reader: FieldsReader
    private var searches = 0
    private var topEntries: [FieldsReader.Entry]?
    /// By the position of the map's value.
    private var mapEntries: [Int: [FieldsReader.Entry]] = [:]
    private var values: [FieldPath: Value] = [:]
    /// Fields that were read to find others, for tests.
    package private(set) var entriesRead = 0

    /// Up to this many fields are searched like in `FieldsReader`, which takes no memory.
    private static let plainSearchesMax = 4

    package init(_ document: StoredDocument) {
        reader = FieldsReader(document.fields)
    }

    func contains(_ path: FieldPath) throws(Status) -> Bool { try locate(path) != nil }

    func typeClass(at path: FieldPath) throws(Status) -> ValueOrder.TypeClass? {
        guard let range = try locate(path) else { return nil }
        return try reader.typeClass(of: range)
    }

    func value(at path: FieldPath) throws(Status) -> Value? {
        if let known = values[path] { return known }
        guard let range = try locate(path) else { return nil }
        let value = try reader.value(range)
        if topEntries != nil { values[path] = value }
        return value
    }

    private func locate(_ path: FieldPath) throws(Status) -> Range<Int>? {
        if topEntries == nil, searches < Self.plainSearchesMax {
            searches += 1
            return try reader.locate(path)
        }
        var entries = try entriesOfDocument()
        for (depth, segment) in path.segments.enumerated() {
            guard let value = find(segment, in: entries) else { return nil }
            if depth == path.segments.count - 1 { return value }
            entries = try self.entries(ofMap: value)
        }
        return nil
    }

    private func entriesOfDocument() throws(Status) -> [FieldsReader.Entry] {
        if let topEntries { return topEntries }
        let entries = try reader.entries()
        entriesRead += entries.count
        topEntries = entries
        return entries
    }

    private func entries(ofMap value: Range<Int>) throws(Status) -> [FieldsReader.Entry] {
        if let known = mapEntries[value.lowerBound] { return known }
        let entries = try reader.entries(ofMap: value)
        entriesRead += entries.count
        mapEntries[value.lowerBound] = entries
        return entries
    }

    /// Names are sorted by their bytes.
    private func find(_ name: String, in entries: [FieldsReader.Entry]) -> Range<Int>? {
        var name = name
        return name.withUTF8 { name in
            reader.bytes.withUnsafeBytes { bytes in
                var low = 0
                var high = entries.count
                while low < high {
                    let middle = (low + high) / 2
                    let order = UTF8Order.compare(
                        UnsafeRawBufferPointer(rebasing: bytes[entries[middle].name]), UnsafeRawBufferPointer(name))
                    if order == 0 { return entries[middle].value }
                    if order < 0 { low = middle + 1 } else { high = middle }
                }
                return nil
            }
        }
    }
}
