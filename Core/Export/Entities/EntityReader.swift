import HearthModel
import HearthWire

/// Reads the records of a managed export: an EntityProto into a document in wire form, without a value tree.
package struct EntityReader {
    /// References into the database of the document's own key become references into this one; nil keeps all.
    private let target: [UInt8]?
    /// Values whose meaning only databases in Datastore mode have; their bare values were taken.
    package private(set) var legacyValueCount = 0

    /// The database of the last key, as it was written and as it is.
    private var app: [UInt8] = []
    private var databaseID: [UInt8] = []
    private var database = DatabaseName(project: "")

    /// The properties of the message that is read, behind those of the messages around it.
    private var properties: [Property] = []
    private var path: [UInt8] = []
    /// Properties of the record, those of its maps among them.
    private var propertyCount = 0

    private struct Property {
        var name: Range<Int>
        var value: Range<Int>
        var meaning: UInt64
        var isMultiple: Bool
    }

    /// - Parameter target: the database that references into the source are moved to; nil keeps them.
    package init(target: DatabaseName? = nil) {
        self.target = target.map { Array($0.documentsRoot.utf8) }
    }

    /// - Throws: INVALID_ARGUMENT when the record is malformed, or holds what Firestore's documents do not have.
    package mutating func read(_ record: UnsafeRawBufferPointer) throws(Status) -> ExportedDocument {
        properties.removeAll(keepingCapacity: true)
        propertyCount = 0
        guard let key = try scan(record, 0..<record.count) else { throw Self.malformed("it has no key") }
        try readKey(record, key)
        let path = String(decoding: self.path, as: UTF8.self)
        var writer = ProtobufWriter()
        writer.reserve(record.count)
        try writeFields(record, from: 0, tag: 2 << 3 | 2, depth: 1, to: &writer)
        return ExportedDocument(database: database, path: path, fields: writer.bytes)
    }

    private static func malformed(_ reason: String) -> Status {
        .invalidArgument("The entity is malformed: \(reason).")
    }

    private static func slice(_ bytes: UnsafeRawBufferPointer, _ range: Range<Int>) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(rebasing: bytes[range])
    }

    // MARK: Properties

    /// Appends the properties of an entity, sorted by name; those of one name keep their order.
    /// - Returns: the range of its key.
    private mutating func scan(_ bytes: UnsafeRawBufferPointer, _ range: Range<Int>) throws(Status) -> Range<Int>? {
        var reader = ProtobufReader(bytes, range)
        var key: Range<Int>?
        let base = properties.count
        var isSorted = true
        while !reader.isAtEnd {
            let tag = try reader.readTag()
            switch tag {
            case EntityFormat.Entity.key: key = try reader.readRange()
            case EntityFormat.Entity.property, EntityFormat.Entity.rawProperty:
                // Each counts at least a byte of the document's size; what cannot be a document is not held in memory.
                propertyCount += 1
                if propertyCount > Limits.documentSizeBytesMax {
                    throw .invalidArgument(
                        "It has more values than a document of \(Limits.documentSizeBytesMax) bytes can have.")
                }
                let property = try Self.property(bytes, try reader.readRange())
                if isSorted, let last = properties.last, properties.count > base {
                    isSorted = Self.order(bytes, last, property) <= 0
                }
                properties.append(property)
            default: try reader.skip(tag)
            }
        }
        if !isSorted { sort(bytes, from: base) }
        return key
    }

    private static func order(_ bytes: UnsafeRawBufferPointer, _ left: Property, _ right: Property) -> Int {
        UTF8Order.compare(slice(bytes, left.name), slice(bytes, right.name))
    }

    private mutating func sort(_ bytes: UnsafeRawBufferPointer, from base: Int) {
        let order = (base..<properties.count).sorted { [properties] left, right in
            let names = Self.order(bytes, properties[left], properties[right])
            return names != 0 ? names < 0 : left < right
        }
        properties.replaceSubrange(base..., with: order.map { properties[$0] })
    }

    private static func property(_ bytes: UnsafeRawBufferPointer, _ range: Range<Int>) throws(Status) -> Property {
        var reader = ProtobufReader(bytes, range)
        var name: Range<Int>?
        var value: Range<Int>?
        var meaning: UInt64 = 0
        var isMultiple: Bool?
        while !reader.isAtEnd {
            let tag = try reader.readTag()
            switch tag {
            case EntityFormat.Property.meaning: meaning = try reader.readVarint()
            case EntityFormat.Property.name: name = try reader.readRange()
            case EntityFormat.Property.multiple: isMultiple = try reader.readVarint() != 0
            case EntityFormat.Property.value: value = try reader.readRange()
            default: try reader.skip(tag)
            }
        }
        guard let name, let value, let isMultiple else { throw malformed("a property lacks its name or its value") }
        return Property(name: name, value: value, meaning: meaning, isMultiple: isMultiple)
    }

    /// Writes the properties from `base` on as entries of a map, and removes them.
    private mutating func writeFields(
        _ bytes: UnsafeRawBufferPointer, from base: Int, tag: UInt8, depth: Int, to writer: inout ProtobufWriter
    ) throws(Status) {
        let end = properties.count
        var first = base
        while first < end {
            let name = Self.slice(bytes, properties[first].name)
            var next = first + 1
            while next < end, UTF8Order.compare(name, Self.slice(bytes, properties[next].name)) == 0 { next += 1 }
            guard UTF8String.isValid(name) else { throw Self.malformed("a property's name is not valid UTF-8") }
            writer.bytes.append(tag)
            let entry = writer.beginLength()
            writer.bytes.append(0x0A)
            writer.lengthDelimited(name)
            writer.bytes.append(0x12)
            let value = writer.beginLength()
            do throws(Status) {
                try writeValue(bytes, first..<next, depth: depth, to: &writer)
            } catch {
                throw Status(error.code, "\(String(decoding: name, as: UTF8.self)): \(error.message)")
            }
            writer.endLength(value)
            writer.endLength(entry)
            first = next
        }
        properties.removeSubrange(base...)
    }

    /// Writes the value that the properties of one name make.
    private mutating func writeValue(
        _ bytes: UnsafeRawBufferPointer, _ group: Range<Int>, depth: Int, to writer: inout ProtobufWriter
    ) throws(Status) {
        let first = properties[group.lowerBound]
        if group.contains(where: { properties[$0].meaning == EntityFormat.Meaning.vector }) {
            return try writeVector(bytes, group, to: &writer)
        }
        if group.count == 1, !first.isMultiple || first.meaning == EntityFormat.Meaning.emptyArray {
            return try writeScalar(bytes, first, depth: depth, to: &writer)
        }
        writer.bytes.append(0x4A)
        let array = writer.beginLength()
        for index in group {
            writer.bytes.append(0x0A)
            let element = writer.beginLength()
            try writeScalar(bytes, properties[index], depth: depth, to: &writer)
            writer.endLength(element)
        }
        writer.endLength(array)
    }

    /// Writes the map that represents a vector: `{"__type__": "__vector__", "value": [...]}`.
    private func writeVector(
        _ bytes: UnsafeRawBufferPointer, _ group: Range<Int>, to writer: inout ProtobufWriter
    ) throws(Status) {
        var elements: [Double] = []
        elements.reserveCapacity(group.count)
        for index in group {
            let property = properties[index]
            var reader = ProtobufReader(bytes, property.value)
            guard property.meaning == EntityFormat.Meaning.vector, !reader.isAtEnd,
                try reader.readTag() == EntityFormat.Value.double
            else { throw Self.malformed("a component of a vector is no double") }
            elements.append(Double(bitPattern: try reader.readFixed64()))
            guard reader.isAtEnd else { throw Self.malformed("a component of a vector has two values") }
        }
        writer.value(.vector(elements))
    }

    // MARK: Values

    private enum Member {
        case absent, boolean(Bool), integer(Int64), double(UInt64), string(Range<Int>), point(UInt64, UInt64)
        case reference(Range<Int>)
    }

    private mutating func writeScalar(
        _ bytes: UnsafeRawBufferPointer, _ property: Property, depth: Int, to writer: inout ProtobufWriter
    ) throws(Status) {
        let member = try Self.member(bytes, property.value)
        switch property.meaning {
        case 0: try writeBare(bytes, member, to: &writer)
        case EntityFormat.Meaning.timestamp:
            guard case .integer(let microseconds) = member else { throw Self.mismatch(property.meaning) }
            try Self.writeTimestamp(microseconds, to: &writer)
        case EntityFormat.Meaning.geoPoint:
            guard case .point = member else { throw Self.mismatch(property.meaning) }
            try writeBare(bytes, member, to: &writer)
        case EntityFormat.Meaning.bytes, EntityFormat.Meaning.blob:
            guard case .string(let range) = member else { throw Self.mismatch(property.meaning) }
            writer.tag(18, 2)
            writer.lengthDelimited(Self.slice(bytes, range))
        case EntityFormat.Meaning.map:
            guard case .string(let range) = member else { throw Self.mismatch(property.meaning) }
            try writeMap(bytes, range, depth: depth, to: &writer)
        case EntityFormat.Meaning.emptyArray:
            guard case .absent = member else { throw Self.mismatch(property.meaning) }
            writer.bytes.append(contentsOf: [0x4A, 0])
        case let meaning where EntityFormat.Meaning.legacy.contains(meaning):
            legacyValueCount += 1
            try writeBare(bytes, member, to: &writer)
        default: throw .invalidArgument("Its meaning \(property.meaning) is none of Firestore's.")
        }
    }

    private static func mismatch(_ meaning: UInt64) -> Status {
        malformed("the value does not have meaning \(meaning)")
    }

    /// The one value of a PropertyValue.
    private static func member(_ bytes: UnsafeRawBufferPointer, _ range: Range<Int>) throws(Status) -> Member {
        var reader = ProtobufReader(bytes, range)
        var member = Member.absent
        var count = 0
        while !reader.isAtEnd {
            let tag = try reader.readTag()
            count += 1
            switch tag {
            case EntityFormat.Value.integer: member = .integer(Int64(bitPattern: try reader.readVarint()))
            case EntityFormat.Value.boolean: member = .boolean(try reader.readVarint() != 0)
            case EntityFormat.Value.string: member = .string(try reader.readRange())
            case EntityFormat.Value.double: member = .double(try reader.readFixed64())
            case EntityFormat.Value.point: member = try point(&reader)
            case EntityFormat.Value.reference:
                let start = reader.position
                try reader.skip(tag)
                member = .reference(start..<reader.position)
            case EntityFormat.Value.user:
                throw .invalidArgument("It is a user, which Firestore's documents do not have.")
            default:
                count -= 1
                try reader.skip(tag)
            }
        }
        if count > 1 { throw malformed("a property has two values") }
        return member
    }

    private static func point(_ reader: inout ProtobufReader) throws(Status) -> Member {
        var latitude: UInt64 = 0
        var longitude: UInt64 = 0
        while true {
            let tag = try reader.readTag()
            switch tag {
            case EntityFormat.Value.latitude: latitude = try reader.readFixed64()
            case EntityFormat.Value.longitude: longitude = try reader.readFixed64()
            case EntityFormat.Value.pointEnd: return .point(latitude, longitude)
            default: try reader.skip(tag)
            }
        }
    }

    private mutating func writeBare(
        _ bytes: UnsafeRawBufferPointer, _ member: Member, to writer: inout ProtobufWriter
    ) throws(Status) {
        switch member {
        case .absent: writer.value(.null)
        case .boolean(let flag): writer.value(.boolean(flag))
        case .integer(let number): writer.value(.integer(number))
        case .double(let bits): writer.value(.double(Double(bitPattern: bits)))
        case .string(let range):
            let string = Self.slice(bytes, range)
            guard UTF8String.isValid(string) else { throw Self.malformed("a string is not valid UTF-8") }
            writer.tag(17, 2)
            writer.lengthDelimited(string)
        case .point(let latitude, let longitude):
            writer.value(
                .geoPoint(
                    GeoPoint(latitude: Double(bitPattern: latitude), longitude: Double(bitPattern: longitude))))
        case .reference(let range): try writeReference(bytes, range, to: &writer)
        }
    }

    private static func writeTimestamp(_ microseconds: Int64, to writer: inout ProtobufWriter) throws(Status) {
        let time = Timestamp(microseconds: microseconds)
        guard time.seconds >= Timestamp.secondsMin, time.seconds <= Timestamp.secondsMax else {
            throw .invalidArgument("The timestamp of \(microseconds) microseconds is not within years 1 to 9999.")
        }
        writer.value(.timestamp(time))
    }

    /// Writes a map, which is an entity without a key.
    private mutating func writeMap(
        _ bytes: UnsafeRawBufferPointer, _ range: Range<Int>, depth: Int, to writer: inout ProtobufWriter
    ) throws(Status) {
        guard depth < Limits.exportEntityDepthMax else {
            throw .invalidArgument("It nests deeper than \(Limits.valueDepthMax) levels.")
        }
        let base = properties.count
        if let key = try scan(bytes, range), try Self.hasPath(bytes, key) {
            throw .invalidArgument("It is an entity with a key, which Firestore's documents do not have.")
        }
        writer.bytes.append(0x32)
        let map = writer.beginLength()
        try writeFields(bytes, from: base, tag: 1 << 3 | 2, depth: depth + 1, to: &writer)
        writer.endLength(map)
    }

    private static func hasPath(_ bytes: UnsafeRawBufferPointer, _ key: Range<Int>) throws(Status) -> Bool {
        var reader = ProtobufReader(bytes, key)
        while !reader.isAtEnd {
            let tag = try reader.readTag()
            if tag == EntityFormat.Reference.path { return try !reader.readRange().isEmpty }
            try reader.skip(tag)
        }
        return false
    }

    // MARK: Keys and references

    /// The parts of a key or a reference that are outside of its path.
    private struct Owner {
        var app = 0..<0
        var database = 0..<0

        /// Takes a field; false when it is another one.
        mutating func take(_ tag: UInt32, _ reader: inout ProtobufReader) throws(Status) -> Bool {
            switch tag {
            case EntityFormat.Reference.app: app = try reader.readRange()
            case EntityFormat.Reference.database: database = try reader.readRange()
            case EntityFormat.Reference.namespace:
                if try !reader.readRange().isEmpty {
                    throw .invalidArgument("It is in a namespace, which Firestore's databases do not have.")
                }
            default: return false
            }
            return true
        }
    }

    /// Reads the document's key into `database` and `path`.
    private mutating func readKey(_ bytes: UnsafeRawBufferPointer, _ range: Range<Int>) throws(Status) {
        var reader = ProtobufReader(bytes, range)
        var owner = Owner()
        path.removeAll(keepingCapacity: true)
        while !reader.isAtEnd {
            let tag = try reader.readTag()
            if tag == EntityFormat.Reference.path {
                try readPath(bytes, try reader.readRange())
            } else if try !owner.take(tag, &reader) {
                try reader.skip(tag)
            }
        }
        if path.isEmpty { throw Self.malformed("its key has no path") }
        let app = Self.slice(bytes, owner.app)
        let databaseID = Self.slice(bytes, owner.database)
        // Nearly all records of an export are of one database.
        if app.elementsEqual(self.app), databaseID.elementsEqual(self.databaseID), !database.project.isEmpty { return }
        database = try Self.database(app, databaseID)
        self.app = Array(app)
        self.databaseID = Array(databaseID)
    }

    /// `s~project` and the id of a database, whose absence means the default one.
    private static func database(
        _ app: UnsafeRawBufferPointer, _ id: UnsafeRawBufferPointer
    ) throws(Status) -> DatabaseName {
        let project = app.firstIndex(of: UInt8(ascii: "~")).map { app[($0 + 1)...] } ?? app[...]
        guard !project.isEmpty, !project.contains(UInt8(ascii: "/")), !id.contains(UInt8(ascii: "/")),
            UTF8String.isValid(app), UTF8String.isValid(id)
        else { throw malformed("a key does not name its project and database") }
        return DatabaseName(
            project: String(decoding: project, as: UTF8.self),
            database: id.isEmpty ? DatabaseName.defaultDatabase : String(decoding: id, as: UTF8.self))
    }

    private mutating func readPath(_ bytes: UnsafeRawBufferPointer, _ range: Range<Int>) throws(Status) {
        var reader = ProtobufReader(bytes, range)
        while !reader.isAtEnd {
            let tag = try reader.readTag()
            guard tag == EntityFormat.Element.start else {
                try reader.skip(tag)
                continue
            }
            try readElement(
                &reader, type: EntityFormat.Element.type, id: EntityFormat.Element.id,
                name: EntityFormat.Element.name, end: EntityFormat.Element.end)
        }
    }

    /// Appends a collection id and a document id to `path`.
    private mutating func readElement(
        _ reader: inout ProtobufReader, type typeTag: UInt32, id idTag: UInt32, name nameTag: UInt32, end: UInt32
    ) throws(Status) {
        var type: Range<Int>?
        var name: Range<Int>?
        var id: Int64?
        while true {
            let tag = try reader.readTag()
            switch tag {
            case end:
                guard let type, name == nil || id == nil, id != 0 else {
                    throw Self.malformed("an element of a path is malformed")
                }
                try appendSegment(reader.bytes, type)
                if let id {
                    path.append(UInt8(ascii: "/"))
                    path.append(contentsOf: "__id\(id)__".utf8)
                } else if let name {
                    try appendSegment(reader.bytes, name)
                } else {
                    throw Self.malformed("a key has no id")
                }
                return
            case typeTag: type = try reader.readRange()
            case nameTag: name = try reader.readRange()
            case idTag: id = Int64(bitPattern: try reader.readVarint())
            default: try reader.skip(tag)
            }
        }
    }

    private mutating func appendSegment(_ bytes: UnsafeRawBufferPointer, _ range: Range<Int>) throws(Status) {
        let segment = Self.slice(bytes, range)
        guard !segment.isEmpty, !segment.contains(UInt8(ascii: "/")), UTF8String.isValid(segment) else {
            throw Self.malformed("an element of a path is empty, has a slash or is not valid UTF-8")
        }
        if !path.isEmpty { path.append(UInt8(ascii: "/")) }
        path.append(contentsOf: segment)
    }

    /// Writes a reference. The id of its database follows the path.
    private mutating func writeReference(
        _ bytes: UnsafeRawBufferPointer, _ range: Range<Int>, to writer: inout ProtobufWriter
    ) throws(Status) {
        var reader = ProtobufReader(bytes, range)
        var owner = Owner()
        path.removeAll(keepingCapacity: true)
        while true {
            let tag = try reader.readTag()
            if tag == EntityFormat.Value.referenceEnd { break }
            if tag == EntityFormat.Reference.element {
                try readElement(
                    &reader, type: EntityFormat.Reference.type, id: EntityFormat.Reference.id,
                    name: EntityFormat.Reference.name, end: EntityFormat.Reference.elementEnd)
            } else if try !owner.take(tag, &reader) {
                try reader.skip(tag)
            }
        }
        if path.isEmpty { throw Self.malformed("a reference has no path") }
        let named = try Self.database(Self.slice(bytes, owner.app), Self.slice(bytes, owner.database))
        writer.tag(5, 2)
        let start = writer.beginLength()
        if let target, named == database {
            writer.bytes.append(contentsOf: target)
        } else {
            writer.raw(named.documentsRoot)
        }
        writer.bytes.append(UInt8(ascii: "/"))
        writer.bytes.append(contentsOf: path)
        writer.endLength(start)
    }
}

extension ProtobufWriter {
    mutating func lengthDelimited(_ content: UnsafeRawBufferPointer) {
        varint(UInt64(content.count))
        bytes.append(contentsOf: content)
    }
}
