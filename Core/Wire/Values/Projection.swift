import HearthModel

/// A document mask or a query's projection, prepared for cutting stored fields without decoding them.
///
/// Paths become a tree of names, sorted like the fields, so that one walk handles both. A path below another path of
/// the mask is part of it. A map on the path is kept with the members that the paths select. It is omitted when they
/// select nothing: the map is missing or lacks the name, or the value is an array or a vector.
package struct Projection: Sendable {
    private indirect enum Node: Sendable {
        case whole
        case members([(name: [UInt8], node: Node)])
    }

    private let members: [(name: [UInt8], node: Node)]

    /// - Parameter paths: an empty list selects no field.
    package init(_ paths: [FieldPath]) {
        members = Self.members(paths.sorted().map { $0.segments[...] })
    }

    /// - Parameter paths: sorted, so that paths with one first segment are adjacent, the shortest first.
    private static func members(_ paths: [ArraySlice<String>]) -> [(name: [UInt8], node: Node)] {
        var result: [(name: [UInt8], node: Node)] = []
        var index = 0
        while index < paths.count {
            guard let name = paths[index].first else {
                index += 1
                continue
            }
            var end = index
            while end < paths.count, let other = paths[end].first, UTF8Order.equal(other, name) { end += 1 }
            let isWhole = paths[index].count == 1
            let node = isWhole ? Node.whole : .members(members(paths[index..<end].map { $0.dropFirst() }))
            result.append((Array(name.utf8), node))
            index = end
        }
        return result
    }

    /// The fields that the paths name.
    /// - Throws: `DATA_LOSS` when the bytes are malformed.
    package func apply(to fields: [UInt8]) throws(Status) -> [UInt8] {
        if members.isEmpty || fields.isEmpty { return [] }
        var writer = ProtobufWriter()
        writer.reserve(fields.count)
        do throws(Status) {
            try fields.withBytes { buffer throws(Status) in
                var reader = ProtobufReader(buffer)
                try Self.project(&reader, UInt32(FieldsCodec.entryTag), members, &writer)
            }
        } catch {
            throw FieldsCodec.damaged(error)
        }
        return writer.bytes
    }

    private static func project(
        _ reader: inout ProtobufReader, _ tag: UInt32, _ members: [(name: [UInt8], node: Node)],
        _ writer: inout ProtobufWriter
    ) throws(Status) {
        var index = 0
        while index < members.count, let entry = try reader.nextEntry(tag: tag) {
            let name = reader.slice(entry.name)
            index = firstIndex(from: index, count: members.count) { compare(members[$0].name, name) < 0 }
            guard index < members.count, compare(members[index].name, name) == 0 else { continue }
            switch members[index].node {
            case .whole: writer.bytes.append(contentsOf: reader.slice(entry.entry))
            case .members(let inner): try project(reader.bytes, entry, tag, inner, &writer)
            }
            index += 1
        }
    }

    /// Skips names that a document does not have, in growing steps: a mask of thousands of paths costs a small document
    /// only O(its own fields).
    package static func firstIndex(from start: Int, count: Int, isBefore: (Int) -> Bool) -> Int {
        var low = start
        var high = start
        var step = 1
        while high < count, isBefore(high) {
            low = high + 1
            high += step
            step *= 2
        }
        high = min(high, count)
        while low < high {
            let middle = (low + high) / 2
            if isBefore(middle) { low = middle + 1 } else { high = middle }
        }
        return low
    }

    /// Appends an entry with the selected part of its map; nothing when that part is empty.
    private static func project(
        _ bytes: UnsafeRawBufferPointer, _ entry: FieldsReader.Entry, _ tag: UInt32,
        _ members: [(name: [UInt8], node: Node)], _ writer: inout ProtobufWriter
    ) throws(Status) {
        guard let entries = try FieldsReader.mapEntries(bytes, entry.value) else { return }
        let before = writer.bytes.count
        writer.varint(UInt64(tag))
        let outer = writer.beginLength()
        writer.bytes.append(0x0a)
        writer.varint(UInt64(entry.name.count))
        writer.bytes.append(contentsOf: ProtobufReader.slice(bytes, entry.name))
        writer.bytes.append(0x12)
        let value = writer.beginLength()
        writer.bytes.append(UInt8(ProtobufReader.ValueTag.map))
        let map = writer.beginLength()
        var reader = ProtobufReader(bytes, entries)
        try project(&reader, ProtobufReader.mapEntryTag, members, &writer)
        if writer.bytes.count == map {
            writer.bytes.removeLast(writer.bytes.count - before)
            return
        }
        writer.endLength(map)
        writer.endLength(value)
        writer.endLength(outer)
    }

    private static func compare(_ lhs: [UInt8], _ rhs: UnsafeRawBufferPointer) -> Int {
        lhs.withUnsafeBytes { UTF8Order.compare($0, rhs) }
    }
}

extension FieldsCodec {
    /// The fields that the paths name. For many documents, `Projection` is faster.
    package static func project(_ fields: [UInt8], paths: [FieldPath]) throws(Status) -> [UInt8] {
        try Projection(paths).apply(to: fields)
    }
}
