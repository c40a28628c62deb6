import HearthModel

/// Writes a message's fields as proto3 JSON.
package struct JSONFieldEncoder: FieldVisitor {
    package typealias Failure = Never

    package var writer: JSONWriter
    private let options: JSONOptions
    private var needsComma = false
    /// Levels of google.protobuf.Any around the current field.
    var anyDepth = 0

    package init(options: JSONOptions = JSONOptions(), writer: JSONWriter = JSONWriter()) {
        self.options = options
        self.writer = writer
    }

    // MARK: Structure

    mutating func beginObject() {
        writer.byte(UInt8(ascii: "{"))
        needsComma = false
    }

    mutating func endObject() {
        writer.byte(UInt8(ascii: "}"))
        needsComma = true
    }

    /// Begins a member: the comma before it, its name in camel case and the colon.
    mutating func member(_ name: StaticString) {
        if needsComma { writer.byte(UInt8(ascii: ",")) }
        needsComma = true
        writer.byte(UInt8(ascii: "\""))
        var isCapital = false
        for index in 0..<name.utf8CodeUnitCount {
            let byte = name.utf8Start[index]
            if byte == UInt8(ascii: "_") {
                isCapital = true
            } else {
                writer.byte(isCapital && byte >= UInt8(ascii: "a") ? byte - 0x20 : byte)
                isCapital = false
            }
        }
        writer.raw("\":")
    }

    /// Begins a member whose name is data.
    mutating func member(_ name: String) {
        if needsComma { writer.byte(UInt8(ascii: ",")) }
        needsComma = true
        writer.string(name)
        writer.byte(UInt8(ascii: ":"))
    }

    @inline(never)
    private mutating func list<T>(_ values: [T], _ element: (inout JSONFieldEncoder, T) -> Void) {
        writer.byte(UInt8(ascii: "["))
        for (index, value) in values.enumerated() {
            if index > 0 { writer.byte(UInt8(ascii: ",")) }
            element(&self, value)
        }
        writer.byte(UInt8(ascii: "]"))
        needsComma = true
    }

    // MARK: Scalars

    @inline(never)
    package mutating func string(_ number: UInt32, _ name: StaticString, _ value: inout String) {
        if !value.isEmpty { append(name, value) }
    }

    @inline(never)
    package mutating func string(
        _ number: UInt32, _ name: StaticString, oneof group: StaticString, _ value: inout String?
    ) {
        if let value { append(name, value) }
    }

    @inline(never)
    private mutating func append(_ name: StaticString, _ string: String) {
        member(name)
        writer.string(string)
    }

    @inline(never)
    package mutating func strings(_ number: UInt32, _ name: StaticString, _ values: inout [String]) {
        if values.isEmpty { return }
        member(name)
        list(values) { $0.writer.string($1) }
    }

    @inline(never)
    package mutating func bytes(_ number: UInt32, _ name: StaticString, _ value: inout [UInt8]) {
        if !value.isEmpty { append(name, value) }
    }

    @inline(never)
    package mutating func bytes(
        _ number: UInt32, _ name: StaticString, oneof group: StaticString, _ value: inout [UInt8]?
    ) {
        if let value { append(name, value) }
    }

    @inline(never)
    private mutating func append(_ name: StaticString, _ content: [UInt8]) {
        member(name)
        content.withUnsafeBytes { writer.base64($0) }
    }

    @inline(never)
    package mutating func bool(_ number: UInt32, _ name: StaticString, _ value: inout Bool) {
        if value { append(name, value) }
    }

    @inline(never)
    package mutating func bool(
        _ number: UInt32, _ name: StaticString, oneof group: StaticString, _ value: inout Bool?
    ) {
        if let value { append(name, value) }
    }

    @inline(never)
    private mutating func append(_ name: StaticString, _ value: Bool) {
        member(name)
        writer.bool(value)
    }

    @inline(never)
    private mutating func append(_ name: StaticString, _ value: Int64) {
        member(name)
        writer.integer(value)
    }

    @inline(never)
    package mutating func int32(_ number: UInt32, _ name: StaticString, _ value: inout Int32) {
        if value != 0 { append(name, Int64(value)) }
    }

    @inline(never)
    package mutating func int32(
        _ number: UInt32, _ name: StaticString, oneof group: StaticString, _ value: inout Int32?
    ) {
        if let value { append(name, Int64(value)) }
    }

    @inline(never)
    package mutating func int32s(_ number: UInt32, _ name: StaticString, _ values: inout [Int32]) {
        if values.isEmpty { return }
        member(name)
        list(values) { $0.writer.integer(Int64($1)) }
    }

    @inline(never)
    package mutating func int64(_ number: UInt32, _ name: StaticString, _ value: inout Int64) {
        if value == 0 { return }
        member(name)
        writer.quotedInteger(value)
    }

    @inline(never)
    package mutating func uint32(_ number: UInt32, _ name: StaticString, _ value: inout UInt32) {
        if value != 0 { append(name, Int64(value)) }
    }

    @inline(never)
    package mutating func uint64(_ number: UInt32, _ name: StaticString, _ value: inout UInt64) {
        if value == 0 { return }
        member(name)
        writer.byte(UInt8(ascii: "\""))
        writer.unsigned(value)
        writer.byte(UInt8(ascii: "\""))
    }

    @inline(never)
    package mutating func double(_ number: UInt32, _ name: StaticString, _ value: inout Double) {
        if value.bitPattern == 0 { return }
        member(name)
        writer.double(value)
    }

    @inline(never)
    package mutating func enumeration<E: WireEnum>(_ number: UInt32, _ name: StaticString, _ value: inout E) {
        if value.rawValue != 0 { append(name, value.rawValue, value.name) }
    }

    @inline(never)
    package mutating func enumeration<E: WireEnum>(
        _ number: UInt32, _ name: StaticString, oneof group: StaticString, _ value: inout E?
    ) {
        if let value { append(name, value.rawValue, value.name) }
    }

    @inline(never)
    private mutating func append(_ name: StaticString, _ number: Int32, _ string: StaticString?) {
        member(name)
        if let string, !options.enumsAsNumbers {
            writer.byte(UInt8(ascii: "\""))
            writer.raw(string)
            writer.byte(UInt8(ascii: "\""))
        } else {
            writer.integer(Int64(number))
        }
    }

    // MARK: Messages

    @inline(never)
    package mutating func message<M: WireMessage>(_ number: UInt32, _ name: StaticString, _ value: inout M?) {
        if let value { append(name, value) }
    }

    @inline(never)
    package mutating func message<M: WireMessage>(
        _ number: UInt32, _ name: StaticString, oneof group: StaticString, _ value: inout M?
    ) {
        if let value { append(name, value) }
    }

    @inline(never)
    private mutating func append<M: WireMessage>(_ name: StaticString, _ message: M) {
        member(name)
        message.encode(&self)
        needsComma = true
    }

    @inline(never)
    package mutating func messages<M: WireMessage>(
        _ number: UInt32, _ name: StaticString, _ values: inout [M]
    ) {
        if values.isEmpty { return }
        member(name)
        list(values) { $1.encode(&$0) }
    }

    // MARK: Well-known types

    @inline(never)
    package mutating func int32Value(_ number: UInt32, _ name: StaticString, _ value: inout Int32?) {
        if let value { append(name, Int64(value)) }
    }

    @inline(never)
    package mutating func int64Value(_ number: UInt32, _ name: StaticString, _ value: inout Int64?) {
        guard let value else { return }
        member(name)
        writer.quotedInteger(value)
    }

    @inline(never)
    package mutating func doubleValue(_ number: UInt32, _ name: StaticString, _ value: inout Double?) {
        guard let value else { return }
        member(name)
        writer.double(value)
    }

    @inline(never)
    package mutating func fieldMask(_ number: UInt32, _ name: StaticString, _ value: inout [String]?) {
        if let value { append(name, FieldMaskString.string(value)) }
    }

    @inline(never)
    package mutating func stringMap(_ number: UInt32, _ name: StaticString, _ value: inout StringMap) {
        if value.entries.isEmpty { return }
        member(name)
        beginObject()
        for entry in value.entries {
            member(entry.key)
            writer.string(entry.value)
        }
        endObject()
    }

    // MARK: Values

    @inline(never)
    package mutating func value(_ number: UInt32, _ name: StaticString, _ value: inout Value?) {
        if let value { append(name, value) }
    }

    @inline(never)
    package mutating func value(
        _ number: UInt32, _ name: StaticString, oneof group: StaticString, _ value: inout Value?
    ) {
        if let value { append(name, value) }
    }

    @inline(never)
    private mutating func append(_ name: StaticString, _ value: Value) {
        member(name)
        writer.value(value)
    }

    @inline(never)
    package mutating func values(_ number: UInt32, _ name: StaticString, _ values: inout [Value]) {
        if values.isEmpty { return }
        member(name)
        list(values) { $0.writer.value($1) }
    }

    @inline(never)
    package mutating func arrayValue(
        _ number: UInt32, _ name: StaticString, oneof group: StaticString, _ value: inout [Value]?
    ) {
        guard let value else { return }
        member(name)
        writer.arrayValue(value)
    }

    @inline(never)
    package mutating func fields(_ number: UInt32, _ name: StaticString, _ value: inout MapValue) {
        if value.isEmpty { return }
        member(name)
        writer.fields(value)
    }

    @inline(never)
    package mutating func presence(
        _ number: UInt32, _ name: StaticString, oneof group: StaticString, _ value: inout Bool
    ) {
        if !value { return }
        member(name)
        writer.raw("{}")
    }
}
