import HearthModel

/// google.protobuf.Struct: JSON inside of a message.
package struct StructMessage: WireMessage {
    /// google.protobuf.Value
    package enum Member: Sendable {
        case null
        case number(Double)
        case string(String)
        case bool(Bool)
        case object(StructMessage)
        case list([Member])
    }

    package struct Field: Sendable {
        package var name: String
        package var value: Member

        package init(name: String, value: Member) {
            self.name = name
            self.value = value
        }
    }

    /// In the given order; each name occurs once.
    package var fields: [Field]

    package init() {
        fields = []
    }

    package init(_ fields: [(name: String, value: Member)]) {
        self.fields = fields.map { Field(name: $0.name, value: $0.value) }
    }

    package subscript(name: String) -> Member? {
        fields.last { UTF8Order.equal($0.name, name) }?.value
    }

    package static let typeName = "google.protobuf.Struct"

    /// A struct's fields are data, not declarations: the codecs below replace the list.
    package mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {}

    // MARK: Binary

    package mutating func decode(_ decoder: inout BinaryFieldDecoder) throws(Status) {
        try decode(&decoder.reader, depth: decoder.depth)
    }

    private mutating func decode(_ reader: inout ProtobufReader, depth: Int) throws(Status) {
        if depth > Limits.messageDepthMax { throw ProtobufReader.tooDeep() }
        while !reader.isAtEnd {
            let tag = try reader.readTag()
            if tag == 1 << 3 | 2 {
                let range = try reader.readRange()
                var entry = ProtobufReader(reader.bytes, range)
                fields.append(try Self.field(&entry, depth: depth + 1))
            } else {
                try reader.skip(tag, depth: depth)
            }
        }
    }

    private static func field(_ reader: inout ProtobufReader, depth: Int) throws(Status) -> Field {
        var field = Field(name: "", value: .null)
        while !reader.isAtEnd {
            let tag = try reader.readTag()
            switch tag {
            case 1 << 3 | 2: field.name = try reader.readString()
            case 2 << 3 | 2:
                var nested = ProtobufReader(reader.bytes, try reader.readRange())
                field.value = try member(&nested, depth: depth + 1)
            default: try reader.skip(tag, depth: depth)
            }
        }
        return field
    }

    private static func member(_ reader: inout ProtobufReader, depth: Int) throws(Status) -> Member {
        if depth > Limits.messageDepthMax { throw ProtobufReader.tooDeep() }
        var member = Member.null
        while !reader.isAtEnd {
            let tag = try reader.readTag()
            switch tag {
            case 1 << 3:
                _ = try reader.readVarint()
                member = .null
            case 2 << 3 | 1: member = .number(Double(bitPattern: try reader.readFixed64()))
            case 3 << 3 | 2: member = .string(try reader.readString())
            case 4 << 3: member = .bool(try reader.readVarint() != 0)
            case 5 << 3 | 2:
                var nested = ProtobufReader(reader.bytes, try reader.readRange())
                var object = StructMessage()
                try object.decode(&nested, depth: depth + 1)
                member = .object(object)
            case 6 << 3 | 2:
                var nested = ProtobufReader(reader.bytes, try reader.readRange())
                member = .list(try list(&nested, depth: depth + 1))
            default: try reader.skip(tag, depth: depth)
            }
        }
        return member
    }

    private static func list(_ reader: inout ProtobufReader, depth: Int) throws(Status) -> [Member] {
        var elements: [Member] = []
        while !reader.isAtEnd {
            let tag = try reader.readTag()
            if tag == 1 << 3 | 2 {
                var nested = ProtobufReader(reader.bytes, try reader.readRange())
                elements.append(try member(&nested, depth: depth + 1))
            } else {
                try reader.skip(tag, depth: depth)
            }
        }
        return elements
    }

    package func encode(_ encoder: inout BinaryFieldEncoder) {
        Self.write(self, &encoder.writer)
    }

    private static func write(_ object: StructMessage, _ writer: inout ProtobufWriter) {
        for field in object.fields {
            writer.tag(1, 2)
            let entry = writer.beginLength()
            writer.tag(1, 2)
            writer.string(field.name)
            writer.tag(2, 2)
            write(field.value, &writer)
            writer.endLength(entry)
        }
    }

    /// Appends a length and a google.protobuf.Value.
    private static func write(_ member: Member, _ writer: inout ProtobufWriter) {
        let start = writer.beginLength()
        switch member {
        case .null:
            writer.tag(1, 0)
            writer.varint(0)
        case .number(let number):
            writer.tag(2, 1)
            writer.fixed64(number.bitPattern)
        case .string(let string):
            writer.tag(3, 2)
            writer.string(string)
        case .bool(let flag):
            writer.tag(4, 0)
            writer.varint(flag ? 1 : 0)
        case .object(let object):
            writer.tag(5, 2)
            let nested = writer.beginLength()
            write(object, &writer)
            writer.endLength(nested)
        case .list(let elements):
            writer.tag(6, 2)
            let nested = writer.beginLength()
            for element in elements {
                writer.tag(1, 2)
                write(element, &writer)
            }
            writer.endLength(nested)
        }
        writer.endLength(start)
    }

    // MARK: JSON

    package mutating func decode(_ decoder: inout JSONFieldDecoder) throws(Status) {
        try decoder.beginMessage(Self.typeName)
        var isFirst = true
        while let key = try decoder.reader.nextMember(&isFirst) {
            let name = try decoder.reader.string(key)
            fields.append(Field(name: name, value: try Self.member(&decoder)))
        }
    }

    private static func member(_ decoder: inout JSONFieldDecoder) throws(Status) -> Member {
        switch decoder.reader.peek() {
        case UInt8(ascii: "{"):
            var object = StructMessage()
            try object.decode(&decoder)
            return .object(object)
        case UInt8(ascii: "["):
            try decoder.reader.openContainer(UInt8(ascii: "["))
            var elements: [Member] = []
            var isFirst = true
            while try decoder.reader.nextElement(&isFirst) { elements.append(try member(&decoder)) }
            return .list(elements)
        case UInt8(ascii: "\""): return .string(try decoder.reader.readString())
        default: break
        }
        if try decoder.reader.takeNull() { return .null }
        if let flag = try decoder.reader.takeBool() { return .bool(flag) }
        return .number(try decoder.readDouble())
    }

    package func encode(_ encoder: inout JSONFieldEncoder) {
        Self.write(.object(self), &encoder.writer)
    }

    private static func write(_ member: Member, _ writer: inout JSONWriter) {
        switch member {
        case .null: writer.raw("null")
        case .number(let number): writer.double(number)
        case .string(let string): writer.string(string)
        case .bool(let flag): writer.bool(flag)
        case .object(let object):
            writer.byte(UInt8(ascii: "{"))
            for (index, field) in object.fields.enumerated() {
                if index > 0 { writer.byte(UInt8(ascii: ",")) }
                writer.string(field.name)
                writer.byte(UInt8(ascii: ":"))
                write(field.value, &writer)
            }
            writer.byte(UInt8(ascii: "}"))
        case .list(let elements):
            writer.byte(UInt8(ascii: "["))
            for (index, element) in elements.enumerated() {
                if index > 0 { writer.byte(UInt8(ascii: ",")) }
                write(element, &writer)
            }
            writer.byte(UInt8(ascii: "]"))
        }
    }
}
