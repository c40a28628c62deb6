import HearthModel
import HearthWire

/// Writes documents as records of a managed export, from wire form, without a value tree.
package struct EntityWriter {
    private let app: [UInt8]
    /// Empty for the default database.
    private let databaseID: [UInt8]
    private var writer = ProtobufWriter()

    /// - Parameter database: of all documents.
    package init(database: DatabaseName) {
        app = Array("dev~\(database.project)".utf8)
        databaseID = database.database == DatabaseName.defaultDatabase ? [] : Array(database.database.utf8)
    }

    /// - Parameters:
    ///   - path: below the database.
    ///   - fields: in canonical order.
    /// - Returns: the record.
    /// - Throws: DATA_LOSS when the fields are malformed, INVALID_ARGUMENT when the record is longer than
    ///   `Limits.exportRecordBytesMax`.
    package mutating func record(path: String, fields: [UInt8]) throws(Status) -> [UInt8] {
        writer = ProtobufWriter()
        writer.reserve(2 * fields.count + 2 * path.utf8.count + 128)
        let segments = path.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        guard segments.count.isMultiple(of: 2), !segments.isEmpty else {
            throw .invalidArgument("\"\(path)\" is no document's path.")
        }
        writeKey(segments)
        do throws(Status) {
            try fields.withBytes { fields throws(Status) in
                try writeFields(fields, 0..<fields.count, tag: 2 << 3 | 2, depth: 1)
            }
        } catch {
            throw Status(error.code, "\(path): \(error.message)")
        }
        writer.tag(16, 2)
        let group = writer.beginLength()
        writeElement(segments[0], segments[1])
        writer.endLength(group)
        return writer.bytes
    }

    // MARK: Keys and references

    private mutating func writeKey(_ segments: [Substring.UTF8View]) {
        writer.tag(13, 2)
        let key = writer.beginLength()
        writer.tag(13, 2)
        writer.lengthDelimited(app)
        writer.tag(14, 2)
        let path = writer.beginLength()
        for index in stride(from: 0, to: segments.count, by: 2) { writeElement(segments[index], segments[index + 1]) }
        writer.endLength(path)
        if !databaseID.isEmpty {
            writer.tag(23, 2)
            writer.lengthDelimited(databaseID)
        }
        writer.endLength(key)
    }

    private mutating func writeElement(_ type: Substring.UTF8View, _ id: Substring.UTF8View) {
        writer.tag(1, 3)
        writer.tag(2, 2)
        writeBytes(type)
        writeID(id, number: 3, name: 4)
        writer.tag(1, 4)
    }

    private mutating func writeID(_ id: Substring.UTF8View, number numberField: UInt32, name nameField: UInt32) {
        if id.first == UInt8(ascii: "_"), let number = ResourcePath.numericID(String(Substring(id))), number != 0 {
            writer.tag(numberField, 0)
            writer.varint(UInt64(bitPattern: number))
        } else {
            writer.tag(nameField, 2)
            writeBytes(id)
        }
    }

    private mutating func writeBytes(_ bytes: Substring.UTF8View) {
        writer.varint(UInt64(bytes.count))
        writer.bytes.append(contentsOf: bytes)
    }

    private mutating func writeReference(_ name: String) throws(Status) {
        let resource = try ResourceName(reference: name)
        writer.tag(12, 3)
        writer.tag(13, 2)
        writer.string("dev~\(resource.database.project)")
        let segments = resource.path.segments
        for index in stride(from: 0, to: segments.count, by: 2) {
            writer.tag(14, 3)
            writer.tag(15, 2)
            writer.string(segments[index])
            writeID(Substring(segments[index + 1]).utf8, number: 16, name: 17)
            writer.tag(14, 4)
        }
        if resource.database.database != DatabaseName.defaultDatabase {
            writer.tag(23, 2)
            writer.string(resource.database.database)
        }
        writer.tag(12, 4)
    }

    // MARK: Properties

    /// Writes the entries of a map: first the empty arrays, whose field comes first, then all others.
    private mutating func writeFields(
        _ bytes: UnsafeRawBufferPointer, _ range: Range<Int>, tag: UInt32, depth: Int
    ) throws(Status) {
        if depth > Limits.messageDepthMax { throw .invalidArgument("It nests too deep.") }
        var hasEmptyArray = false
        var reader = ProtobufReader(bytes, range)
        while let entry = try reader.nextEntry(tag: tag) {
            guard Self.isEmptyArray(bytes, entry.value) else { continue }
            hasEmptyArray = true
            try writeProperty(
                field: 14, bytes, entry.name, meaning: EntityFormat.Meaning.emptyArray, isMultiple: false
            ) { (_) throws(Status) in }
        }
        reader = ProtobufReader(bytes, range)
        while let entry = try reader.nextEntry(tag: tag) {
            if hasEmptyArray, Self.isEmptyArray(bytes, entry.value) { continue }
            try writeEntry(bytes, entry, depth: depth)
        }
    }

    /// Of canonical fields an empty array has these two bytes.
    private static func isEmptyArray(_ bytes: UnsafeRawBufferPointer, _ value: Range<Int>) -> Bool {
        value.count == 2 && bytes[value.lowerBound] == 0x4A && bytes[value.lowerBound + 1] == 0
    }

    private mutating func writeEntry(
        _ bytes: UnsafeRawBufferPointer, _ entry: FieldsReader.Entry, depth: Int
    ) throws(Status) {
        var reader = ProtobufReader(bytes, entry.value)
        if reader.isAtEnd { throw ValueError.unset() }
        let tag = try reader.readTag()
        if tag == ProtobufReader.ValueTag.array {
            let elements = try reader.readRange()
            return try writeElements(bytes, elements) { writer, value throws(Status) in
                try writer.writeValue(bytes, entry.name, value, isMultiple: true, depth: depth)
            }
        }
        if tag == ProtobufReader.ValueTag.map {
            let entries = try reader.readRange()
            if try FieldsReader.isVector(bytes, entries) {
                return try writeVector(bytes, entry.name, entries)
            }
        }
        try writeValue(bytes, entry.name, entry.value, isMultiple: false, depth: depth)
    }

    /// Passes each element of an ArrayValue to `body`.
    private mutating func writeElements(
        _ bytes: UnsafeRawBufferPointer, _ range: Range<Int>,
        _ body: (inout EntityWriter, Range<Int>) throws(Status) -> Void
    ) throws(Status) {
        var reader = ProtobufReader(bytes, range)
        while !reader.isAtEnd {
            let tag = try reader.readTag()
            if tag != 1 << 3 | 2 {
                try reader.skip(tag)
                continue
            }
            try body(&self, try reader.readRange())
            if writer.bytes.count > Limits.exportRecordBytesMax {
                throw .invalidArgument(
                    "It is larger than \(Limits.exportRecordBytesMax >> 20) MiB in the form of a managed export, which "
                        + "repeats a field's name for each element of an array.")
            }
        }
    }

    private mutating func writeVector(
        _ bytes: UnsafeRawBufferPointer, _ name: Range<Int>, _ entries: Range<Int>
    ) throws(Status) {
        var reader = ProtobufReader(bytes, entries)
        _ = try reader.nextEntry(tag: ProtobufReader.mapEntryTag)
        guard let components = try reader.nextEntry(tag: ProtobufReader.mapEntryTag) else {
            throw .invalidArgument("A vector has no components.")
        }
        var value = ProtobufReader(bytes, components.value)
        guard !value.isAtEnd, try value.readTag() == ProtobufReader.ValueTag.array else {
            throw .invalidArgument("A vector's components are no array.")
        }
        try writeElements(bytes, try value.readRange()) { writer, element throws(Status) in
            var reader = ProtobufReader(bytes, element)
            guard !reader.isAtEnd, try reader.readTag() == ProtobufReader.ValueTag.double else {
                throw .invalidArgument("A vector's component is no double.")
            }
            let bits = try reader.readFixed64()
            try writer.writeProperty(
                field: 15, bytes, name, meaning: EntityFormat.Meaning.vector, isMultiple: true
            ) { (writer) throws(Status) in
                writer.writer.tag(4, 1)
                writer.writer.fixed64(bits)
            }
        }
    }

    /// Writes one property around the value that `body` writes.
    @inline(__always)
    private mutating func writeProperty(
        field: UInt32, _ bytes: UnsafeRawBufferPointer, _ name: Range<Int>, meaning: UInt64, isMultiple: Bool,
        _ body: (inout EntityWriter) throws(Status) -> Void
    ) throws(Status) {
        writer.tag(field, 2)
        let property = writer.beginLength()
        if meaning != 0 {
            writer.tag(1, 0)
            writer.varint(meaning)
        }
        writer.tag(3, 2)
        writer.lengthDelimited(UnsafeRawBufferPointer(rebasing: bytes[name]))
        writer.tag(4, 0)
        writer.varint(isMultiple ? 1 : 0)
        writer.tag(5, 2)
        let value = writer.beginLength()
        try body(&self)
        writer.endLength(value)
        writer.endLength(property)
    }

    // MARK: Values

    private static func meaning(ofValue tag: UInt32) -> UInt64 {
        switch tag {
        case ProtobufReader.ValueTag.timestamp: EntityFormat.Meaning.timestamp
        case ProtobufReader.ValueTag.bytes: EntityFormat.Meaning.bytes
        case ProtobufReader.ValueTag.geoPoint: EntityFormat.Meaning.geoPoint
        case ProtobufReader.ValueTag.map: EntityFormat.Meaning.map
        default: 0
        }
    }

    private mutating func writeValue(
        _ bytes: UnsafeRawBufferPointer, _ name: Range<Int>, _ value: Range<Int>, isMultiple: Bool, depth: Int
    ) throws(Status) {
        var reader = ProtobufReader(bytes, value)
        if reader.isAtEnd { throw ValueError.unset() }
        let tag = try reader.readTag()
        try writeProperty(
            field: 15, bytes, name, meaning: Self.meaning(ofValue: tag), isMultiple: isMultiple
        ) { (writer) throws(Status) in
            try writer.writeMember(tag, &reader, depth: depth)
        }
    }

    private mutating func writeMember(
        _ tag: UInt32, _ reader: inout ProtobufReader, depth: Int
    ) throws(Status) {
        switch tag {
        case ProtobufReader.ValueTag.null: break
        case ProtobufReader.ValueTag.boolean:
            writer.tag(2, 0)
            writer.varint(try reader.readVarint() == 0 ? 0 : 1)
        case ProtobufReader.ValueTag.integer:
            writer.tag(1, 0)
            writer.varint(try reader.readVarint())
        case ProtobufReader.ValueTag.double:
            writer.tag(4, 1)
            writer.fixed64(ProtobufReader.canonical(try reader.readFixed64()).bitPattern)
        case ProtobufReader.ValueTag.timestamp:
            writer.tag(1, 0)
            let time = try reader.readNestedTimestampMessage().timestamp()
            writer.varint(UInt64(bitPattern: time.microseconds))
        case ProtobufReader.ValueTag.string, ProtobufReader.ValueTag.bytes:
            writer.tag(3, 2)
            writer.lengthDelimited(UnsafeRawBufferPointer(rebasing: reader.bytes[try reader.readRange()]))
        case ProtobufReader.ValueTag.reference: try writeReference(try reader.readString())
        case ProtobufReader.ValueTag.geoPoint:
            let point = try reader.readNestedGeoPoint()
            writer.tag(5, 3)
            writer.tag(6, 1)
            writer.fixed64(point.latitude.bitPattern)
            writer.tag(7, 1)
            writer.fixed64(point.longitude.bitPattern)
            writer.tag(5, 4)
        case ProtobufReader.ValueTag.map: try writeMap(&reader, depth: depth)
        case ProtobufReader.ValueTag.array: throw .invalidArgument("An array is in an array.")
        default: throw ValueError.unset()
        }
    }

    private mutating func writeMap(_ reader: inout ProtobufReader, depth: Int) throws(Status) {
        let entries = try reader.readRange()
        if try FieldsReader.isVector(reader.bytes, entries) { throw .invalidArgument("A vector is in an array.") }
        writer.tag(3, 2)
        let map = writer.beginLength()
        writer.bytes.append(contentsOf: EntityFormat.emptyKey)
        try writeFields(reader.bytes, entries, tag: ProtobufReader.mapEntryTag, depth: depth + 1)
        writer.bytes.append(contentsOf: EntityFormat.emptyGroup)
        writer.endLength(map)
    }
}
