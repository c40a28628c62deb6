import HearthModel

/// Writes a message's fields in the binary form.
package struct BinaryFieldEncoder: FieldVisitor {
    package typealias Failure = Never

    package var writer: ProtobufWriter

    package init(writer: ProtobufWriter = ProtobufWriter()) {
        self.writer = writer
    }

    // MARK: Scalars

    @inline(__always)
    package mutating func string(_ number: UInt32, _ name: StaticString, _ value: inout String) {
        if !value.isEmpty { append(number, value) }
    }

    @inline(__always)
    package mutating func string(
        _ number: UInt32, _ name: StaticString, oneof group: StaticString, _ value: inout String?
    ) {
        if let value { append(number, value) }
    }

    @inline(never)
    package mutating func strings(_ number: UInt32, _ name: StaticString, _ values: inout [String]) {
        for value in values { append(number, value) }
    }

    @inline(never)
    private mutating func append(_ number: UInt32, _ string: String) {
        writer.tag(number, 2)
        writer.string(string)
    }

    @inline(__always)
    package mutating func bytes(_ number: UInt32, _ name: StaticString, _ value: inout [UInt8]) {
        if !value.isEmpty { append(number, value) }
    }

    @inline(__always)
    package mutating func bytes(
        _ number: UInt32, _ name: StaticString, oneof group: StaticString, _ value: inout [UInt8]?
    ) {
        if let value { append(number, value) }
    }

    @inline(never)
    private mutating func append(_ number: UInt32, _ content: [UInt8]) {
        writer.tag(number, 2)
        writer.lengthDelimited(content)
    }

    @inline(never)
    private mutating func append(_ number: UInt32, varint: UInt64) {
        writer.tag(number, 0)
        writer.varint(varint)
    }

    @inline(__always)
    package mutating func bool(_ number: UInt32, _ name: StaticString, _ value: inout Bool) {
        if value { append(number, varint: 1) }
    }

    @inline(__always)
    package mutating func bool(
        _ number: UInt32, _ name: StaticString, oneof group: StaticString, _ value: inout Bool?
    ) {
        if let value { append(number, varint: value ? 1 : 0) }
    }

    @inline(__always)
    package mutating func int32(_ number: UInt32, _ name: StaticString, _ value: inout Int32) {
        if value != 0 { append(number, varint: UInt64(bitPattern: Int64(value))) }
    }

    @inline(__always)
    package mutating func int32(
        _ number: UInt32, _ name: StaticString, oneof group: StaticString, _ value: inout Int32?
    ) {
        if let value { append(number, varint: UInt64(bitPattern: Int64(value))) }
    }

    @inline(never)
    package mutating func int32s(_ number: UInt32, _ name: StaticString, _ values: inout [Int32]) {
        if values.isEmpty { return }
        writer.tag(number, 2)
        let start = writer.beginLength()
        for value in values { writer.varint(UInt64(bitPattern: Int64(value))) }
        writer.endLength(start)
    }

    @inline(__always)
    package mutating func int64(_ number: UInt32, _ name: StaticString, _ value: inout Int64) {
        if value != 0 { append(number, varint: UInt64(bitPattern: value)) }
    }

    @inline(__always)
    package mutating func uint32(_ number: UInt32, _ name: StaticString, _ value: inout UInt32) {
        if value != 0 { append(number, varint: UInt64(value)) }
    }

    @inline(__always)
    package mutating func uint64(_ number: UInt32, _ name: StaticString, _ value: inout UInt64) {
        if value != 0 { append(number, varint: value) }
    }

    @inline(never)
    package mutating func double(_ number: UInt32, _ name: StaticString, _ value: inout Double) {
        if value.bitPattern == 0 { return }
        writer.tag(number, 1)
        writer.fixed64(value.bitPattern)
    }

    @inline(__always)
    package mutating func enumeration<E: WireEnum>(_ number: UInt32, _ name: StaticString, _ value: inout E) {
        if value.rawValue != 0 { append(number, varint: UInt64(bitPattern: Int64(value.rawValue))) }
    }

    @inline(__always)
    package mutating func enumeration<E: WireEnum>(
        _ number: UInt32, _ name: StaticString, oneof group: StaticString, _ value: inout E?
    ) {
        if let value { append(number, varint: UInt64(bitPattern: Int64(value.rawValue))) }
    }

    // MARK: Messages

    @inline(__always)
    package mutating func message<M: WireMessage>(_ number: UInt32, _ name: StaticString, _ value: inout M?) {
        if let value { append(number, value) }
    }

    @inline(__always)
    package mutating func message<M: WireMessage>(
        _ number: UInt32, _ name: StaticString, oneof group: StaticString, _ value: inout M?
    ) {
        if let value { append(number, value) }
    }

    @inline(never)
    package mutating func messages<M: WireMessage>(
        _ number: UInt32, _ name: StaticString, _ values: inout [M]
    ) {
        for value in values { append(number, value) }
    }

    @inline(never)
    private mutating func append<M: WireMessage>(_ number: UInt32, _ message: M) {
        writer.tag(number, 2)
        let start = writer.beginLength()
        message.encode(&self)
        writer.endLength(start)
    }

    // MARK: Well-known types

    @inline(never)
    package mutating func int32Value(_ number: UInt32, _ name: StaticString, _ value: inout Int32?) {
        if let value { wrapper(number, varint: UInt64(bitPattern: Int64(value))) }
    }

    @inline(never)
    package mutating func int64Value(_ number: UInt32, _ name: StaticString, _ value: inout Int64?) {
        if let value { wrapper(number, varint: UInt64(bitPattern: value)) }
    }

    @inline(never)
    private mutating func wrapper(_ number: UInt32, varint: UInt64) {
        writer.tag(number, 2)
        let start = writer.beginLength()
        if varint != 0 { append(1, varint: varint) }
        writer.endLength(start)
    }

    @inline(never)
    package mutating func doubleValue(_ number: UInt32, _ name: StaticString, _ value: inout Double?) {
        guard let value else { return }
        writer.tag(number, 2)
        let start = writer.beginLength()
        if value.bitPattern != 0 {
            writer.tag(1, 1)
            writer.fixed64(value.bitPattern)
        }
        writer.endLength(start)
    }

    @inline(never)
    package mutating func fieldMask(_ number: UInt32, _ name: StaticString, _ value: inout [String]?) {
        guard let value else { return }
        writer.tag(number, 2)
        let start = writer.beginLength()
        for path in value { append(1, path) }
        writer.endLength(start)
    }

    @inline(never)
    package mutating func stringMap(_ number: UInt32, _ name: StaticString, _ value: inout StringMap) {
        for entry in value.entries {
            writer.tag(number, 2)
            let start = writer.beginLength()
            append(1, entry.key)
            append(2, entry.value)
            writer.endLength(start)
        }
    }

    // MARK: Values

    @inline(never)
    package mutating func value(_ number: UInt32, _ name: StaticString, _ value: inout Value?) {
        if let value { append(number, value) }
    }

    @inline(never)
    package mutating func value(
        _ number: UInt32, _ name: StaticString, oneof group: StaticString, _ value: inout Value?
    ) {
        if let value { append(number, value) }
    }

    @inline(never)
    package mutating func values(_ number: UInt32, _ name: StaticString, _ values: inout [Value]) {
        for value in values { append(number, value) }
    }

    @inline(never)
    private mutating func append(_ number: UInt32, _ value: Value) {
        writer.tag(number, 2)
        writer.nestedValue(value)
    }

    @inline(never)
    package mutating func arrayValue(
        _ number: UInt32, _ name: StaticString, oneof group: StaticString, _ value: inout [Value]?
    ) {
        guard let value else { return }
        writer.tag(number, 2)
        let start = writer.beginLength()
        writer.array(value)
        writer.endLength(start)
    }

    @inline(never)
    package mutating func fields(_ number: UInt32, _ name: StaticString, _ value: inout MapValue) {
        writer.fields(value, tag: UInt8(truncatingIfNeeded: number << 3 | 2))
    }

    @inline(never)
    package mutating func presence(
        _ number: UInt32, _ name: StaticString, oneof group: StaticString, _ value: inout Bool
    ) {
        if value {
            writer.tag(number, 2)
            writer.varint(0)
        }
    }
}
