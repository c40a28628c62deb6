import HearthModel

/// Reads parts of stored fields without decoding them: one value, one type, one range of bytes.
///
/// Names are sorted, so a search stops at the first greater name. All ranges are positions in `bytes`. Damaged bytes
/// are a `DATA_LOSS` error, never a crash.
package struct FieldsReader {
    /// One field: its name and its value (the content of the Value message), as ranges.
    package struct Entry {
        /// The whole entry, with its tag and length.
        package var entry: Range<Int>
        package var name: Range<Int>
        package var value: Range<Int>
    }

    /// The entries of Document.fields: see `FieldsCodec`.
    package let bytes: [UInt8]

    package init(_ bytes: [UInt8]) {
        self.bytes = bytes
    }

    package init(_ document: EncodedDocument) {
        bytes = document.fields
    }

    // MARK: Search

    /// Decodes the value at a path; nil when there is none. Paths only lead through maps, never into arrays or vectors.
    package func value(at path: FieldPath) throws(Status) -> Value? {
        try reading { buffer throws(Status) in
            guard let range = try Self.locate(path, in: buffer) else { return nil }
            var reader = ProtobufReader(buffer, range)
            return try reader.readValue(depth: 1 + 3 * path.segments.count)
        }
    }

    package enum Part {
        /// - sizeBytes: in wire form.
        case value(Value, sizeBytes: Int)
        /// A map that was not decoded.
        case largeMap
    }

    /// The same, but maps whose wire form is larger than the limit are not decoded.
    /// - Returns: also the number of names that were read.
    package func part(at path: FieldPath, mapSizeBytesMax: Int) throws(Status) -> (part: Part?, namesSeen: Int) {
        try reading { buffer throws(Status) in
            var namesSeen = 0
            guard let range = try Self.locate(path, in: buffer, &namesSeen) else { return (nil, namesSeen) }
            if range.count > mapSizeBytesMax, try Self.mapEntries(buffer, range) != nil {
                return (.largeMap, namesSeen)
            }
            var reader = ProtobufReader(buffer, range)
            let value = try reader.readValue(depth: 1 + 3 * path.segments.count)
            return (.value(value, sizeBytes: range.count), namesSeen)
        }
    }

    /// The range of the value at a path: the content of a google.firestore.v1.Value.
    package func locate(_ path: FieldPath) throws(Status) -> Range<Int>? {
        try reading { buffer throws(Status) in try Self.locate(path, in: buffer) }
    }

    /// The type of the value at a path; nil when there is none.
    package func typeClass(at path: FieldPath) throws(Status) -> ValueOrder.TypeClass? {
        try reading { buffer throws(Status) in
            guard let range = try Self.locate(path, in: buffer) else { return nil }
            return try Self.typeClass(buffer, range)
        }
    }

    /// The type of a value at a range from `locate` or `entries`.
    package func typeClass(of value: Range<Int>) throws(Status) -> ValueOrder.TypeClass {
        try reading { buffer throws(Status) in try Self.typeClass(buffer, value) }
    }

    /// Decodes a value at a range from `locate` or `entries`.
    package func value(_ range: Range<Int>) throws(Status) -> Value {
        try reading { buffer throws(Status) in
            var reader = ProtobufReader(buffer, range)
            return try reader.readValue(depth: 1)
        }
    }

    package func string(_ range: Range<Int>) throws(Status) -> String {
        precondition(range.lowerBound >= 0 && range.upperBound <= bytes.count)
        return try reading { buffer throws(Status) in try UTF8String.string(ProtobufReader.slice(buffer, range)) }
    }

    /// The top-level fields in order.
    package func entries() throws(Status) -> [Entry] {
        try reading { buffer throws(Status) in
            var entries: [Entry] = []
            var reader = ProtobufReader(buffer)
            while let entry = try reader.nextEntry(tag: UInt32(FieldsCodec.entryTag)) { entries.append(entry) }
            return entries
        }
    }

    /// The top-level field at a position, which moves behind it; nil at the end.
    package func nextEntry(_ position: inout Int) throws(Status) -> Entry? {
        let start = position
        let (entry, end) = try reading { buffer throws(Status) in
            var reader = ProtobufReader(buffer, start..<buffer.count)
            let entry = try reader.nextEntry(tag: UInt32(FieldsCodec.entryTag))
            return (entry, reader.position)
        }
        position = end
        return entry
    }

    /// The entries of a map value; none for other values and for vectors.
    package func entries(ofMap value: Range<Int>) throws(Status) -> [Entry] {
        try reading { buffer throws(Status) in
            guard let range = try Self.mapEntries(buffer, value) else { return [] }
            var entries: [Entry] = []
            var reader = ProtobufReader(buffer, range)
            while let entry = try reader.nextEntry(tag: ProtobufReader.mapEntryTag) { entries.append(entry) }
            return entries
        }
    }

    private func reading<T>(
        _ body: (UnsafeRawBufferPointer) throws(Status) -> T
    ) throws(Status) -> T {
        do throws(Status) {
            return try bytes.withBytes(body)
        } catch {
            throw FieldsCodec.damaged(error)
        }
    }

    // MARK: Walking

    static func locate(_ path: FieldPath, in buffer: UnsafeRawBufferPointer) throws(Status) -> Range<Int>? {
        var namesSeen = 0
        return try locate(path, in: buffer, &namesSeen)
    }

    @inline(__always)
    private static func locate(
        _ path: FieldPath, in buffer: UnsafeRawBufferPointer, _ namesSeen: inout Int
    ) throws(Status) -> Range<Int>? {
        var reader = ProtobufReader(buffer)
        var tag = UInt32(FieldsCodec.entryTag)
        for (index, segment) in path.segments.enumerated() {
            guard let value = try find(segment, tag, &reader, &namesSeen) else { return nil }
            if index == path.segments.count - 1 { return value }
            guard let entries = try mapEntries(buffer, value) else { return nil }
            reader = ProtobufReader(buffer, entries)
            tag = ProtobufReader.mapEntryTag
        }
        return nil
    }

    /// The value of the entry with a name, among the entries up to the reader's end.
    @inline(__always)
    private static func find(
        _ name: String, _ tag: UInt32, _ reader: inout ProtobufReader, _ namesSeen: inout Int
    ) throws(Status) -> Range<Int>? {
        var name = name
        return try name.withBytes { name throws(Status) in
            while let entry = try reader.nextEntry(tag: tag) {
                namesSeen &+= 1
                let order = UTF8Order.compare(reader.slice(entry.name), name)
                if order == 0 { return entry.value }
                if order > 0 { return nil }
            }
            return nil
        }
    }

    /// The range of the entries of a map value; nil for other values and for vectors.
    static func mapEntries(_ buffer: UnsafeRawBufferPointer, _ value: Range<Int>) throws(Status) -> Range<Int>? {
        var reader = ProtobufReader(buffer, value)
        guard try reader.readTag() == ProtobufReader.ValueTag.map else { return nil }
        let entries = try reader.readRange()
        return try isVector(buffer, entries) ? nil : entries
    }

    /// Whether the entries of a map represent a vector. Validation allows no other map with a first key `__type__`.
    package static func isVector(_ buffer: UnsafeRawBufferPointer, _ entries: Range<Int>) throws(Status) -> Bool {
        var reader = ProtobufReader(buffer, entries)
        guard let first = try reader.nextEntry(tag: ProtobufReader.mapEntryTag) else { return false }
        return buffer[first.name].elementsEqual(VectorForm.typeKey.utf8)
    }

    private static func typeClass(
        _ buffer: UnsafeRawBufferPointer, _ value: Range<Int>
    ) throws(Status) -> ValueOrder.TypeClass {
        var reader = ProtobufReader(buffer, value)
        if reader.isAtEnd { throw ValueError.unset() }
        switch try reader.readTag() {
        case ProtobufReader.ValueTag.null: return .null
        case ProtobufReader.ValueTag.boolean: return .boolean
        case ProtobufReader.ValueTag.integer: return .number
        case ProtobufReader.ValueTag.double:
            return Double(bitPattern: try reader.readFixed64()).isNaN ? .nan : .number
        case ProtobufReader.ValueTag.timestamp: return .timestamp
        case ProtobufReader.ValueTag.string: return .string
        case ProtobufReader.ValueTag.bytes: return .bytes
        case ProtobufReader.ValueTag.reference: return .reference
        case ProtobufReader.ValueTag.geoPoint: return .geoPoint
        case ProtobufReader.ValueTag.array: return .array
        case ProtobufReader.ValueTag.map: return try isVector(buffer, try reader.readRange()) ? .vector : .map
        default: throw ValueError.unset()
        }
    }
}

extension String {
    /// The UTF-8 bytes, without a copy for native strings.
    @inline(__always)
    mutating func withBytes<T>(_ body: (UnsafeRawBufferPointer) throws(Status) -> T) throws(Status) -> T {
        let result = withUTF8 { buffer -> Result<T, Status> in
            do throws(Status) { return .success(try body(UnsafeRawBufferPointer(buffer))) } catch {
                return .failure(error)
            }
        }
        return try result.get()
    }
}

extension ProtobufReader {
    /// The tag of an entry of MapValue.fields.
    package static let mapEntryTag: UInt32 = 1 << 3 | 2

    /// The next entry of a map<string, Value>; nil at the end. Other fields are skipped.
    @inline(__always)
    package mutating func nextEntry(tag entryTag: UInt32) throws(Status) -> FieldsReader.Entry? {
        while !isAtEnd {
            let start = position
            let tag = try readTag()
            if tag != entryTag {
                try skip(tag)
                continue
            }
            let content = try readRange()
            let outer = end
            position = content.lowerBound
            end = content.upperBound
            let entry = try readEntry(start)
            end = outer
            return entry
        }
        return nil
    }

    @inline(__always)
    private mutating func readEntry(_ start: Int) throws(Status) -> FieldsReader.Entry {
        var entry = FieldsReader.Entry(entry: start..<end, name: end..<end, value: end..<end)
        while !isAtEnd {
            let tag = try readTag()
            switch tag {
            case 1 << 3 | 2: entry.name = try readRange()
            case 2 << 3 | 2: entry.value = try readRange()
            default: try skip(tag)
            }
        }
        return entry
    }
}
