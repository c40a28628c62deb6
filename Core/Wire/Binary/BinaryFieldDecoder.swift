import HearthModel

/// Reads a message's fields from the binary form: each line of `visit` takes the current field if the numbers match.
package struct BinaryFieldDecoder: FieldVisitor {
    package var reader: ProtobufReader
    /// The tag of the current field; 0 after a line has taken it, which no line matches.
    var tag: UInt32 = 0
    private var fieldTag: UInt32 = 0
    /// Levels of messages around the current field.
    private(set) var depth = 0

    // When a second member of a oneof arrives, the first must be dropped. A line only has access to its own property.
    // So `visit` runs a second time with `clearsSiblings` set, and each line of the group clears its property.
    private var oneofMembersSeen = 0
    private var clearedGroup: StaticString = ""
    private var keptNumber: UInt32 = 0
    var clearsSiblings = false

    @inline(__always)
    package init(_ bytes: UnsafeRawBufferPointer) {
        reader = ProtobufReader(bytes)
    }

    mutating func skip(_ tag: UInt32) throws(Status) {
        try reader.skip(tag, depth: depth)
    }

    // MARK: The current field

    @inline(__always)
    private mutating func takes(_ number: UInt32, _ wireType: UInt32) -> Bool {
        if tag != number << 3 | wireType { return false }
        tag = 0
        return true
    }

    /// Like `takes`, for a member of a oneof; in the clearing walk it clears the value.
    @inline(__always)
    private mutating func takes<T>(
        _ number: UInt32, _ wireType: UInt32, _ group: StaticString, _ value: inout T?
    ) -> Bool {
        if tag == number << 3 | wireType {
            tag = 0
            noteOneof(number, group)
            return true
        }
        if clearsSiblings, shouldClear(number, group) { value = nil }
        return false
    }

    @inline(never)
    private mutating func noteOneof(_ number: UInt32, _ group: StaticString) {
        if oneofMembersSeen > 0 {
            clearsSiblings = true
            clearedGroup = group
            keptNumber = number
        }
        oneofMembersSeen += 1
    }

    @inline(never)
    private func shouldClear(_ number: UInt32, _ group: StaticString) -> Bool {
        number != keptNumber && group.hasSameBytes(as: clearedGroup)
    }

    // MARK: Scalars

    @inline(__always)
    package mutating func string(_ number: UInt32, _ name: StaticString, _ value: inout String)
        throws(Status)
    {
        if takes(number, 2) { value = try readString() }
    }

    @inline(__always)
    package mutating func string(
        _ number: UInt32, _ name: StaticString, oneof group: StaticString, _ value: inout String?
    ) throws(Status) {
        if takes(number, 2, group, &value) { value = try readString() }
    }

    @inline(__always)
    package mutating func strings(_ number: UInt32, _ name: StaticString, _ values: inout [String])
        throws(Status)
    {
        if takes(number, 2) { values.append(try readString()) }
    }

    @inline(__always)
    package mutating func bytes(_ number: UInt32, _ name: StaticString, _ value: inout [UInt8])
        throws(Status)
    {
        if takes(number, 2) { value = try readBytes() }
    }

    @inline(__always)
    package mutating func bytes(
        _ number: UInt32, _ name: StaticString, oneof group: StaticString, _ value: inout [UInt8]?
    ) throws(Status) {
        if takes(number, 2, group, &value) { value = try readBytes() }
    }

    @inline(__always)
    package mutating func bool(_ number: UInt32, _ name: StaticString, _ value: inout Bool) throws(Status) {
        if takes(number, 0) { value = try readVarint() != 0 }
    }

    @inline(__always)
    package mutating func bool(
        _ number: UInt32, _ name: StaticString, oneof group: StaticString, _ value: inout Bool?
    ) throws(Status) {
        if takes(number, 0, group, &value) { value = try readVarint() != 0 }
    }

    @inline(__always)
    package mutating func int32(_ number: UInt32, _ name: StaticString, _ value: inout Int32) throws(Status) {
        if takes(number, 0) { value = Int32(truncatingIfNeeded: try readVarint()) }
    }

    @inline(__always)
    package mutating func int32(
        _ number: UInt32, _ name: StaticString, oneof group: StaticString, _ value: inout Int32?
    ) throws(Status) {
        if takes(number, 0, group, &value) { value = Int32(truncatingIfNeeded: try readVarint()) }
    }

    @inline(__always)
    package mutating func int32s(_ number: UInt32, _ name: StaticString, _ values: inout [Int32])
        throws(Status)
    {
        if takes(number, 2) {
            try readPacked(&values)
        } else if takes(number, 0) {
            values.append(Int32(truncatingIfNeeded: try readVarint()))
        }
    }

    @inline(never)
    private mutating func readPacked(_ values: inout [Int32]) throws(Status) {
        let range = try reader.readRange()
        let outer = reader.end
        reader.position = range.lowerBound
        reader.end = range.upperBound
        while !reader.isAtEnd { values.append(Int32(truncatingIfNeeded: try readVarint())) }
        reader.end = outer
    }

    @inline(__always)
    package mutating func int64(_ number: UInt32, _ name: StaticString, _ value: inout Int64) throws(Status) {
        if takes(number, 0) { value = Int64(bitPattern: try readVarint()) }
    }

    @inline(__always)
    package mutating func uint32(_ number: UInt32, _ name: StaticString, _ value: inout UInt32)
        throws(Status)
    {
        if takes(number, 0) { value = UInt32(truncatingIfNeeded: try readVarint()) }
    }

    @inline(__always)
    package mutating func uint64(_ number: UInt32, _ name: StaticString, _ value: inout UInt64)
        throws(Status)
    {
        if takes(number, 0) { value = try readVarint() }
    }

    @inline(__always)
    package mutating func double(_ number: UInt32, _ name: StaticString, _ value: inout Double)
        throws(Status)
    {
        if takes(number, 1) { value = Double(bitPattern: try reader.readFixed64()) }
    }

    @inline(__always)
    package mutating func enumeration<E: WireEnum>(
        _ number: UInt32, _ name: StaticString, _ value: inout E
    ) throws(Status) {
        if takes(number, 0) { value = E(rawValue: Int32(truncatingIfNeeded: try readVarint())) }
    }

    @inline(__always)
    package mutating func enumeration<E: WireEnum>(
        _ number: UInt32, _ name: StaticString, oneof group: StaticString, _ value: inout E?
    ) throws(Status) {
        if takes(number, 0, group, &value) { value = E(rawValue: Int32(truncatingIfNeeded: try readVarint())) }
    }

    // The lists of fields are long: only the comparison of the tag is inlined, the reading is a call.

    @inline(never)
    private mutating func readString() throws(Status) -> String { try reader.readString() }

    @inline(never)
    private mutating func readBytes() throws(Status) -> [UInt8] { try reader.readBytes() }

    @inline(never)
    private mutating func readVarint() throws(Status) -> UInt64 { try reader.readVarint() }

    @inline(never)
    private mutating func readValue() throws(Status) -> Value { try reader.readNestedValue(depth: depth + 1) }

    // MARK: Messages

    @inline(__always)
    package mutating func message<M: WireMessage>(
        _ number: UInt32, _ name: StaticString, _ value: inout M?
    ) throws(Status) {
        if takes(number, 2) { try nested(&value) }
    }

    @inline(__always)
    package mutating func message<M: WireMessage>(
        _ number: UInt32, _ name: StaticString, oneof group: StaticString, _ value: inout M?
    ) throws(Status) {
        if takes(number, 2, group, &value) { try nested(&value) }
    }

    @inline(__always)
    package mutating func messages<M: WireMessage>(
        _ number: UInt32, _ name: StaticString, _ values: inout [M]
    ) throws(Status) {
        if takes(number, 2) { try element(&values) }
    }

    /// Reads a length, and merges the message of that length into `value`.
    @inline(never)
    private mutating func nested<M: WireMessage>(_ value: inout M?) throws(Status) {
        let outer = try begin(isMerged: value != nil)
        // In place: messages are large, and a copy would count references of every field.
        if value == nil { value = M() }
        try value?.decode(&self)
        end(outer)
    }

    @inline(never)
    private mutating func element<M: WireMessage>(_ values: inout [M]) throws(Status) {
        let outer = try begin(isMerged: false)
        values.append(M())
        try values[values.count - 1].decode(&self)
        end(outer)
    }

    /// The state to restore after a nested message.
    private struct Outer {
        var end: Int
        var oneofMembersSeen: Int
        var clearsSiblings: Bool
        var clearedGroup: StaticString
        var keptNumber: UInt32
    }

    /// Reads a length, and sets the reader's end accordingly.
    /// - Parameter isMerged: whether the message has fields already; then they count as seen, because another member of
    ///   a oneof may replace them.
    private mutating func begin(isMerged: Bool) throws(Status) -> Outer {
        let range = try reader.readRange()
        let outer = Outer(
            end: reader.end, oneofMembersSeen: oneofMembersSeen, clearsSiblings: clearsSiblings,
            clearedGroup: clearedGroup, keptNumber: keptNumber)
        reader.position = range.lowerBound
        reader.end = range.upperBound
        depth += 1
        if depth > Limits.messageDepthMax { throw ProtobufReader.tooDeep() }
        oneofMembersSeen = isMerged ? 1 : 0
        clearsSiblings = false
        return outer
    }

    private mutating func end(_ outer: Outer) {
        depth -= 1
        reader.end = outer.end
        oneofMembersSeen = outer.oneofMembersSeen
        clearsSiblings = outer.clearsSiblings
        clearedGroup = outer.clearedGroup
        keptNumber = outer.keptNumber
        tag = 0
    }

    // MARK: Well-known types

    @inline(__always)
    package mutating func int32Value(_ number: UInt32, _ name: StaticString, _ value: inout Int32?)
        throws(Status)
    {
        if takes(number, 2) { value = Int32(truncatingIfNeeded: try readWrapper(wireType: 0)) }
    }

    @inline(__always)
    package mutating func int64Value(_ number: UInt32, _ name: StaticString, _ value: inout Int64?)
        throws(Status)
    {
        if takes(number, 2) { value = Int64(bitPattern: try readWrapper(wireType: 0)) }
    }

    @inline(__always)
    package mutating func doubleValue(_ number: UInt32, _ name: StaticString, _ value: inout Double?)
        throws(Status)
    {
        if takes(number, 2) { value = Double(bitPattern: try readWrapper(wireType: 1)) }
    }

    /// Reads a wrapper message: one scalar as field 1.
    @inline(never)
    private mutating func readWrapper(wireType: UInt32) throws(Status) -> UInt64 {
        let range = try reader.readRange()
        let outer = reader.end
        reader.position = range.lowerBound
        reader.end = range.upperBound
        var value: UInt64 = 0
        while !reader.isAtEnd {
            let tag = try reader.readTag()
            if tag == 1 << 3 | wireType {
                value = wireType == 0 ? try readVarint() : try reader.readFixed64()
            } else {
                try skip(tag)
            }
        }
        reader.end = outer
        return value
    }

    @inline(__always)
    package mutating func fieldMask(_ number: UInt32, _ name: StaticString, _ value: inout [String]?)
        throws(Status)
    {
        if takes(number, 2) { try readFieldMask(&value) }
    }

    @inline(never)
    private mutating func readFieldMask(_ mask: inout [String]?) throws(Status) {
        var paths = mask ?? []
        mask = nil
        let range = try reader.readRange()
        let outer = reader.end
        reader.position = range.lowerBound
        reader.end = range.upperBound
        while !reader.isAtEnd {
            let tag = try reader.readTag()
            if tag == 1 << 3 | 2 { paths.append(try reader.readString()) } else { try skip(tag) }
        }
        reader.end = outer
        mask = paths
    }

    @inline(__always)
    package mutating func stringMap(_ number: UInt32, _ name: StaticString, _ value: inout StringMap)
        throws(Status)
    {
        if takes(number, 2) { try readStringMapEntry(&value) }
    }

    @inline(never)
    private mutating func readStringMapEntry(_ map: inout StringMap) throws(Status) {
        let range = try reader.readRange()
        let outer = reader.end
        reader.position = range.lowerBound
        reader.end = range.upperBound
        var key = ""
        var value = ""
        while !reader.isAtEnd {
            let tag = try reader.readTag()
            switch tag {
            case 1 << 3 | 2: key = try reader.readString()
            case 2 << 3 | 2: value = try reader.readString()
            default: try skip(tag)
            }
        }
        reader.end = outer
        if map.entries.count >= Limits.labelsMax { throw StringMap.tooMany() }
        map.set(key, value)
    }

    // MARK: Values

    @inline(__always)
    package mutating func value(_ number: UInt32, _ name: StaticString, _ value: inout Value?) throws(Status) {
        if takes(number, 2) { value = try readValue() }
    }

    @inline(__always)
    package mutating func value(
        _ number: UInt32, _ name: StaticString, oneof group: StaticString, _ value: inout Value?
    ) throws(Status) {
        if takes(number, 2, group, &value) { value = try readValue() }
    }

    @inline(__always)
    package mutating func values(_ number: UInt32, _ name: StaticString, _ values: inout [Value])
        throws(Status)
    {
        if takes(number, 2) { values.append(try readValue()) }
    }

    @inline(__always)
    package mutating func arrayValue(
        _ number: UInt32, _ name: StaticString, oneof group: StaticString, _ value: inout [Value]?
    ) throws(Status) {
        if takes(number, 2, group, &value) { value = try reader.readNestedArray(depth: depth + 1) }
    }

    @inline(__always)
    package mutating func fields(_ number: UInt32, _ name: StaticString, _ value: inout MapValue)
        throws(Status)
    {
        if takes(number, 2) { try readField(&value) }
    }

    @inline(never)
    private mutating func readField(_ value: inout MapValue) throws(Status) {
        var fields = MapBuilder(value)
        value = MapValue()
        var previousKey = UnsafeRawBufferPointer(start: nil, count: 0)
        try reader.readMapEntry(depth: depth + 1, after: &previousKey, into: &fields)
        value = fields.take()
    }

    /// Reads entries of a map under `number` until another field comes, which is the current one then; false at the
    /// end.
    ///
    /// A message with a large map calls this in its own `decode`, so that the map is sorted once and not at each entry.
    mutating func readFields(_ number: UInt32, into fields: inout MapBuilder) throws(Status) -> Bool {
        var previousKey = UnsafeRawBufferPointer(start: nil, count: 0)
        while !reader.isAtEnd {
            let tag = try reader.readTag()
            if tag != number << 3 | 2 {
                self.tag = tag
                fieldTag = tag
                return true
            }
            try reader.readMapEntry(depth: depth + 1, after: &previousKey, into: &fields)
        }
        return false
    }

    /// Skips the current field if no line took it.
    mutating func endField() throws(Status) {
        if tag != 0 { try skip(fieldTag) }
    }

    @inline(__always)
    package mutating func presence(
        _ number: UInt32, _ name: StaticString, oneof group: StaticString, _ value: inout Bool
    ) throws(Status) {
        if takes(number, 2) {
            _ = try reader.readRange()
            value = true
        }
    }
}
