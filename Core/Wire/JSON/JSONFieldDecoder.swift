import HearthJSON
import HearthModel

/// Reads a message's fields from proto3 JSON: each line of `visit` takes the current member if the names match.
///
/// Of duplicate singular members the last one counts, and messages are merged; repeated keys of a map are errors.
/// Google's front end does the same.
package struct JSONFieldDecoder: FieldVisitor {
    package var reader: JSONReader
    /// The names of the current message's oneofs of which a member has arrived.
    var oneofsSeen: [StaticString] = []
    /// Accepts numbers and Booleans in quotes and single elements for lists, as in URL query parameters.
    var isLenient = false
    /// Accepts times and wrapped numbers also as objects, because some builders of bundles write them.
    var takesObjectForms = false

    private var key = JSONStringToken(range: 0..<0, hasEscapes: false)
    private var unescapedKey: [UInt8] = []
    /// The key's first byte, by which nearly all lines reject the member at once. Two values that are not bytes mark an
    /// empty key, and a member that a line has taken.
    private(set) var keyStart = Self.takenKey
    private static let emptyKey: UInt16 = 0x100
    private static let takenKey: UInt16 = 0x101
    private var isFirst = true
    private var failure: JSONFailure?

    /// - Throws: `INVALID_ARGUMENT` when the input is not valid UTF-8.
    package init(_ string: UnsafeRawBufferPointer) throws(Status) {
        reader = try JSONReader(string)
    }

    // MARK: Failures

    /// The error to return, after the decoder has thrown `error`.
    func status(_ error: Status, at path: String) -> Status {
        failure?.status(at: path) ?? error
    }

    /// Whether the error is a member that the message does not have.
    var failedOnName: Bool { failure?.isUnknownName ?? false }

    @inline(never)
    mutating func fail(_ kind: JSONFailure.Kind, namesParent: Bool = false) -> Status {
        let failure = JSONFailure(kind, namesParent: namesParent)
        self.failure = failure
        return failure.status(at: "")
    }

    /// The error for a value that the field does not accept.
    @inline(never)
    mutating func invalidValue(_ type: String) throws(Status) -> Status {
        switch reader.peek() {
        case UInt8(ascii: "["):
            return fail(.name(keyString, "Proto field is not repeating, cannot start list."), namesParent: true)
        case UInt8(ascii: "{"):
            return fail(.value(type, "Starting an object on a scalar field"))
        default:
            let range = try reader.skipValue()
            return fail(.value(type, string(range)))
        }
    }

    /// A part of the input for an error message, truncated when it is too long.
    func string(_ range: Range<Int>) -> String {
        String(decoding: UnsafeRawBufferPointer(rebasing: reader.bytes[range.prefix(200)]), as: UTF8.self)
    }

    /// The key of the current member, for an error message.
    private var keyString: String {
        String(decoding: key.hasEscapes ? unescapedKey : Array(reader.bytes[key.range]), as: UTF8.self)
    }

    @inline(never)
    mutating func note(_ name: StaticString) {
        failure?.note(name.description)
    }

    @inline(never)
    mutating func note(index: Int) {
        failure?.note("[\(index)]")
    }

    // MARK: Members

    mutating func beginMessage(_ typeName: String) throws(Status) {
        guard reader.peek() == UInt8(ascii: "{") else {
            throw try invalidValue("type.googleapis.com/\(typeName)")
        }
        try reader.openContainer(UInt8(ascii: "{"))
        isFirst = true
    }

    mutating func nextMember() throws(Status) -> Bool {
        guard let key = try reader.nextMember(&isFirst) else { return false }
        try setKey(key)
        return true
    }

    @inline(__always)
    mutating func setKey(_ key: JSONStringToken) throws(Status) {
        self.key = key
        if key.hasEscapes { unescapedKey = try reader.unescaped(key) }
        let first = key.hasEscapes ? unescapedKey.first : reader.bytes[key.range].first
        keyStart = first.map { UInt16($0) } ?? Self.emptyKey
    }

    /// Whether a line has taken the current member.
    private var isTaken: Bool {
        get { keyStart == Self.takenKey }
        set { if newValue { keyStart = Self.takenKey } }
    }

    mutating func endMember() throws(Status) {
        if !isTaken { throw unknownName() }
        isFirst = false
    }

    @inline(never)
    mutating func unknownName() -> Status { fail(.name(keyString, "Cannot find field.")) }

    /// Whether the current member has this name, in the proto's or in JSON's spelling.
    @inline(__always)
    func matches(_ name: StaticString) -> Bool {
        keyStart == UInt16(name.utf8Start[0]) && keyMatches(name)
    }

    @inline(never)
    func keyMatches(_ name: StaticString) -> Bool {
        if key.hasEscapes { return unescapedKey.withUnsafeBytes { Self.matches($0, name) } }
        return Self.matches(ProtobufReader.slice(reader.bytes, key.range), name)
    }

    private static func matches(_ key: UnsafeRawBufferPointer, _ name: StaticString) -> Bool {
        let count = name.utf8CodeUnitCount
        guard let first = key.first, first == name.utf8Start[0] else { return false }
        var index = 0
        var at = 0
        while at < count {
            guard index < key.count else { return false }
            let expected = name.utf8Start[at]
            let byte = key[index]
            if byte == expected {
                index += 1
                at += 1
            } else if expected == UInt8(ascii: "_"), at + 1 < count, byte == name.utf8Start[at + 1] &- 0x20 {
                index += 1
                at += 2
            } else {
                return false
            }
        }
        return index == key.count
    }

    /// Takes the current member if it has this name; its value is at the position then.
    @inline(__always)
    private mutating func takes(_ name: StaticString) -> Bool {
        guard matches(name) else { return false }
        isTaken = true
        return true
    }

    /// Like `takes`, for a member of a oneof. A null does not change the oneof and counts as taken.
    private mutating func takes(_ name: StaticString, _ group: StaticString) throws(Status) -> Bool {
        guard takes(name) else { return false }
        if try reader.takeNull() { return false }
        try noteOneof(group)
        return true
    }

    mutating func noteOneof(_ group: StaticString) throws(Status) {
        if oneofsSeen.contains(where: { $0.hasSameBytes(as: group) }) {
            throw fail(.value("oneof", "oneof field '\(group)' is already set. Cannot set '\(keyString)'"))
        }
        oneofsSeen.append(group)
    }

    /// Takes the current member if it has this name and is not null.
    @inline(__always)
    private mutating func takesValue(_ name: StaticString) throws(Status) -> Bool {
        guard takes(name) else { return false }
        return try !reader.takeNull()
    }

    /// Reads a value, and adds its location to the error if that fails.
    @inline(__always)
    mutating func reading<T>(
        _ name: StaticString, _ body: (inout JSONFieldDecoder) throws(Status) -> T
    ) throws(Status) -> T {
        do throws(Status) {
            return try body(&self)
        } catch {
            note(name)
            throw error
        }
    }

    /// Reads the elements of a list.
    private mutating func readList(
        _ name: StaticString, _ element: (inout JSONFieldDecoder) throws(Status) -> Void
    ) throws(Status) {
        do throws(Status) {
            guard reader.peek() == UInt8(ascii: "[") else {
                // Google's front end accepts a single element for a list of one.
                return try element(&self)
            }
            try reader.openContainer(UInt8(ascii: "["))
            var isFirstElement = true
            var index = 0
            while try reader.nextElement(&isFirstElement) {
                do throws(Status) {
                    try element(&self)
                } catch {
                    note(index: index)
                    throw error
                }
                index += 1
            }
        } catch {
            note(name)
            throw error
        }
    }

    // MARK: Scalars

    @inline(never)
    package mutating func string(_ number: UInt32, _ name: StaticString, _ value: inout String)
        throws(Status)
    {
        if try takesValue(name) { value = try reading(name) { decoder throws(Status) in try decoder.readString() } }
    }

    @inline(never)
    package mutating func string(
        _ number: UInt32, _ name: StaticString, oneof group: StaticString, _ value: inout String?
    ) throws(Status) {
        if try takes(name, group) { value = try reading(name) { decoder throws(Status) in try decoder.readString() } }
    }

    @inline(never)
    package mutating func strings(_ number: UInt32, _ name: StaticString, _ values: inout [String])
        throws(Status)
    {
        guard try takesValue(name) else { return }
        try readList(name) { decoder throws(Status) in values.append(try decoder.readString()) }
    }

    @inline(never)
    package mutating func bytes(_ number: UInt32, _ name: StaticString, _ value: inout [UInt8])
        throws(Status)
    {
        if try takesValue(name) { value = try reading(name) { decoder throws(Status) in try decoder.readBytes() } }
    }

    @inline(never)
    package mutating func bytes(
        _ number: UInt32, _ name: StaticString, oneof group: StaticString, _ value: inout [UInt8]?
    ) throws(Status) {
        if try takes(name, group) { value = try reading(name) { decoder throws(Status) in try decoder.readBytes() } }
    }

    @inline(never)
    package mutating func bool(_ number: UInt32, _ name: StaticString, _ value: inout Bool) throws(Status) {
        if try takesValue(name) { value = try reading(name) { decoder throws(Status) in try decoder.readBool() } }
    }

    @inline(never)
    package mutating func bool(
        _ number: UInt32, _ name: StaticString, oneof group: StaticString, _ value: inout Bool?
    ) throws(Status) {
        if try takes(name, group) { value = try reading(name) { decoder throws(Status) in try decoder.readBool() } }
    }

    @inline(never)
    package mutating func int32(_ number: UInt32, _ name: StaticString, _ value: inout Int32) throws(Status) {
        if try takesValue(name) { value = try reading(name) { decoder throws(Status) in try decoder.readInt32() } }
    }

    @inline(never)
    package mutating func int32(
        _ number: UInt32, _ name: StaticString, oneof group: StaticString, _ value: inout Int32?
    ) throws(Status) {
        if try takes(name, group) { value = try reading(name) { decoder throws(Status) in try decoder.readInt32() } }
    }

    @inline(never)
    package mutating func int32s(_ number: UInt32, _ name: StaticString, _ values: inout [Int32])
        throws(Status)
    {
        guard try takesValue(name) else { return }
        try readList(name) { decoder throws(Status) in values.append(try decoder.readInt32()) }
    }

    @inline(never)
    package mutating func int64(_ number: UInt32, _ name: StaticString, _ value: inout Int64) throws(Status) {
        if try takesValue(name) { value = try reading(name) { decoder throws(Status) in try decoder.readInt64() } }
    }

    @inline(never)
    package mutating func uint32(_ number: UInt32, _ name: StaticString, _ value: inout UInt32)
        throws(Status)
    {
        if try takesValue(name) { value = try reading(name) { decoder throws(Status) in try decoder.readUInt32() } }
    }

    @inline(never)
    package mutating func uint64(_ number: UInt32, _ name: StaticString, _ value: inout UInt64)
        throws(Status)
    {
        if try takesValue(name) { value = try reading(name) { decoder throws(Status) in try decoder.readUInt64() } }
    }

    @inline(never)
    package mutating func double(_ number: UInt32, _ name: StaticString, _ value: inout Double)
        throws(Status)
    {
        if try takesValue(name) { value = try reading(name) { decoder throws(Status) in try decoder.readDouble() } }
    }

    @inline(never)
    package mutating func enumeration<E: WireEnum>(
        _ number: UInt32, _ name: StaticString, _ value: inout E
    ) throws(Status) {
        if try takesValue(name) { value = try reading(name) { decoder throws(Status) in try decoder.readEnum() } }
    }

    @inline(never)
    package mutating func enumeration<E: WireEnum>(
        _ number: UInt32, _ name: StaticString, oneof group: StaticString, _ value: inout E?
    ) throws(Status) {
        if try takes(name, group) {
            value = try reading(name) { decoder throws(Status) in try decoder.readEnum() as E }
        }
    }

    // MARK: Messages

    @inline(never)
    package mutating func message<M: WireMessage>(
        _ number: UInt32, _ name: StaticString, _ value: inout M?
    ) throws(Status) {
        if try takesValue(name) { try nested(name, &value) }
    }

    @inline(never)
    package mutating func message<M: WireMessage>(
        _ number: UInt32, _ name: StaticString, oneof group: StaticString, _ value: inout M?
    ) throws(Status) {
        if try takes(name, group) { try nested(name, &value) }
    }

    @inline(never)
    package mutating func messages<M: WireMessage>(
        _ number: UInt32, _ name: StaticString, _ values: inout [M]
    ) throws(Status) {
        guard try takesValue(name) else { return }
        try readList(name) { decoder throws(Status) in
            values.append(M())
            try values[values.count - 1].decode(&decoder)
        }
        isTaken = true
    }

    private mutating func nested<M: WireMessage>(_ name: StaticString, _ value: inout M?) throws(Status) {
        // In place: messages are large, and a copy would count references of every field.
        if value == nil { value = M() }
        do throws(Status) {
            try value?.decode(&self)
        } catch {
            note(name)
            throw error
        }
        isTaken = true
    }

    // MARK: Well-known types

    @inline(never)
    package mutating func int32Value(_ number: UInt32, _ name: StaticString, _ value: inout Int32?)
        throws(Status)
    {
        guard try takesValue(name) else { return }
        value = try reading(name) { decoder throws(Status) in try decoder.readWrappedInt32() }
        isTaken = true
    }

    @inline(never)
    package mutating func int64Value(_ number: UInt32, _ name: StaticString, _ value: inout Int64?)
        throws(Status)
    {
        if try takesValue(name) { value = try reading(name) { decoder throws(Status) in try decoder.readInt64() } }
    }

    @inline(never)
    package mutating func doubleValue(_ number: UInt32, _ name: StaticString, _ value: inout Double?)
        throws(Status)
    {
        if try takesValue(name) { value = try reading(name) { decoder throws(Status) in try decoder.readDouble() } }
    }

    @inline(never)
    package mutating func fieldMask(_ number: UInt32, _ name: StaticString, _ value: inout [String]?)
        throws(Status)
    {
        guard try takesValue(name) else { return }
        let string = try reading(name) { decoder throws(Status) in try decoder.readString() }
        value = FieldMaskString.paths(string)
    }

    @inline(never)
    package mutating func stringMap(_ number: UInt32, _ name: StaticString, _ value: inout StringMap) throws(Status) {
        guard try takesValue(name) else { return }
        var map = value
        value = try reading(name) { decoder throws(Status) in
            try decoder.reader.openContainer(UInt8(ascii: "{"))
            var isFirstEntry = true
            while let key = try decoder.reader.nextMember(&isFirstEntry) {
                if map.entries.count >= Limits.labelsMax { throw StringMap.tooMany() }
                map.set(try decoder.reader.string(key), try decoder.readString())
            }
            return map
        }
    }

    // MARK: Values

    @inline(never)
    package mutating func value(_ number: UInt32, _ name: StaticString, _ value: inout Value?) throws(Status) {
        guard try takesValue(name) else { return }
        value = try reading(name) { decoder throws(Status) in try decoder.readValue() }
        isTaken = true
    }

    @inline(never)
    package mutating func value(
        _ number: UInt32, _ name: StaticString, oneof group: StaticString, _ value: inout Value?
    ) throws(Status) {
        guard try takes(name, group) else { return }
        value = try reading(name) { decoder throws(Status) in try decoder.readValue() }
        isTaken = true
    }

    @inline(never)
    package mutating func values(_ number: UInt32, _ name: StaticString, _ values: inout [Value])
        throws(Status)
    {
        guard try takesValue(name) else { return }
        try readList(name) { decoder throws(Status) in values.append(try decoder.readValue()) }
        isTaken = true
    }

    @inline(never)
    package mutating func arrayValue(
        _ number: UInt32, _ name: StaticString, oneof group: StaticString, _ value: inout [Value]?
    ) throws(Status) {
        guard try takes(name, group) else { return }
        value = try reading(name) { decoder throws(Status) in try decoder.readArrayValue() }
        isTaken = true
    }

    @inline(never)
    package mutating func fields(_ number: UInt32, _ name: StaticString, _ value: inout MapValue) throws(Status) {
        guard try takesValue(name) else { return }
        var builder = MapBuilder(value)
        value = try reading(name) { decoder throws(Status) in
            try decoder.readFields(into: &builder)
            return try decoder.takeUnique(&builder)
        }
        isTaken = true
    }

    @inline(never)
    package mutating func presence(
        _ number: UInt32, _ name: StaticString, oneof group: StaticString, _ value: inout Bool
    ) throws(Status) {
        guard try takes(name, group) else { return }
        try reader.skipValue()
        value = true
    }
}
