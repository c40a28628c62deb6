import HearthModel

/// A traversal of a message's fields: reading or writing, binary or JSON.
///
/// A message lists its fields once, in `WireMessage.visit`; each visitor handles a line in its own way. The name is the
/// proto's (`read_time`); the JSON name follows from it by the proto3 rule. A line without `oneof` is a field without
/// presence, which is omitted at its zero value (a message's presence is its optional). A line with `oneof` is written
/// whenever it is set; of the lines of one group at most one is set.
///
/// Encoders never fail: their `Failure` is `Never`.
package protocol FieldVisitor {
    associatedtype Failure: Error

    mutating func string(_ number: UInt32, _ name: StaticString, _ value: inout String) throws(Failure)
    mutating func string(
        _ number: UInt32, _ name: StaticString, oneof group: StaticString, _ value: inout String?
    ) throws(Failure)
    mutating func strings(_ number: UInt32, _ name: StaticString, _ values: inout [String]) throws(Failure)

    mutating func bytes(_ number: UInt32, _ name: StaticString, _ value: inout [UInt8]) throws(Failure)
    mutating func bytes(
        _ number: UInt32, _ name: StaticString, oneof group: StaticString, _ value: inout [UInt8]?
    ) throws(Failure)

    mutating func bool(_ number: UInt32, _ name: StaticString, _ value: inout Bool) throws(Failure)
    mutating func bool(
        _ number: UInt32, _ name: StaticString, oneof group: StaticString, _ value: inout Bool?
    ) throws(Failure)

    mutating func int32(_ number: UInt32, _ name: StaticString, _ value: inout Int32) throws(Failure)
    mutating func int32(
        _ number: UInt32, _ name: StaticString, oneof group: StaticString, _ value: inout Int32?
    ) throws(Failure)
    mutating func int32s(_ number: UInt32, _ name: StaticString, _ values: inout [Int32]) throws(Failure)
    mutating func int64(_ number: UInt32, _ name: StaticString, _ value: inout Int64) throws(Failure)
    mutating func uint32(_ number: UInt32, _ name: StaticString, _ value: inout UInt32) throws(Failure)
    mutating func uint64(_ number: UInt32, _ name: StaticString, _ value: inout UInt64) throws(Failure)
    mutating func double(_ number: UInt32, _ name: StaticString, _ value: inout Double) throws(Failure)

    mutating func enumeration<E: WireEnum>(_ number: UInt32, _ name: StaticString, _ value: inout E) throws(Failure)
    mutating func enumeration<E: WireEnum>(
        _ number: UInt32, _ name: StaticString, oneof group: StaticString, _ value: inout E?
    ) throws(Failure)

    mutating func message<M: WireMessage>(_ number: UInt32, _ name: StaticString, _ value: inout M?) throws(Failure)
    mutating func message<M: WireMessage>(
        _ number: UInt32, _ name: StaticString, oneof group: StaticString, _ value: inout M?
    ) throws(Failure)
    mutating func messages<M: WireMessage>(
        _ number: UInt32, _ name: StaticString, _ values: inout [M]
    ) throws(Failure)

    /// google.protobuf.Int32Value
    mutating func int32Value(_ number: UInt32, _ name: StaticString, _ value: inout Int32?) throws(Failure)
    /// google.protobuf.Int64Value
    mutating func int64Value(_ number: UInt32, _ name: StaticString, _ value: inout Int64?) throws(Failure)
    /// google.protobuf.DoubleValue
    mutating func doubleValue(_ number: UInt32, _ name: StaticString, _ value: inout Double?) throws(Failure)
    /// google.protobuf.FieldMask: paths in the proto's spelling (`index_config`).
    mutating func fieldMask(_ number: UInt32, _ name: StaticString, _ value: inout [String]?) throws(Failure)
    /// map<string, string>
    mutating func stringMap(_ number: UInt32, _ name: StaticString, _ value: inout StringMap) throws(Failure)

    /// google.firestore.v1.Value
    mutating func value(_ number: UInt32, _ name: StaticString, _ value: inout Value?) throws(Failure)
    mutating func value(
        _ number: UInt32, _ name: StaticString, oneof group: StaticString, _ value: inout Value?
    ) throws(Failure)
    mutating func values(_ number: UInt32, _ name: StaticString, _ values: inout [Value]) throws(Failure)
    /// google.firestore.v1.ArrayValue
    mutating func arrayValue(
        _ number: UInt32, _ name: StaticString, oneof group: StaticString, _ value: inout [Value]?
    ) throws(Failure)
    /// map<string, google.firestore.v1.Value>
    mutating func fields(_ number: UInt32, _ name: StaticString, _ value: inout MapValue) throws(Failure)

    /// A message of which only the presence is read.
    mutating func presence(
        _ number: UInt32, _ name: StaticString, oneof group: StaticString, _ value: inout Bool
    ) throws(Failure)
}

/// An enumeration of a proto3 file: open, because a newer peer may send unknown numbers.
package protocol WireEnum: RawRepresentable, Hashable, Sendable where RawValue == Int32 {
    init(rawValue: Int32)
    /// The proto's full name, for errors about wrong values.
    static var typeName: String { get }
    /// Every number with its name.
    static var names: [(number: Int32, name: StaticString)] { get }
}

extension WireEnum {
    /// The value's name, or nil for a number that the proto does not declare.
    package var name: StaticString? { Self.names.first { $0.number == rawValue }?.name }
}

extension StaticString {
    /// Whether two literals have the same bytes.
    @inline(__always)
    func hasSameBytes(as other: StaticString) -> Bool {
        utf8CodeUnitCount == other.utf8CodeUnitCount
            && UTF8Order.compare(
                UnsafeRawBufferPointer(start: utf8Start, count: utf8CodeUnitCount),
                UnsafeRawBufferPointer(start: other.utf8Start, count: other.utf8CodeUnitCount)) == 0
    }
}
