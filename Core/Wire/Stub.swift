import HearthModel
public struct EncodedDocument: Sendable { public init(name: String, fields: [UInt8], createTime: Timestamp?, updateTime: Timestamp?) {} }
public enum FieldsCodec { public static func encode(_ m: MapValue) -> [UInt8] { [] }; public static func decode(_ b: [UInt8]) throws(Status) -> MapValue { MapValue() } }
public struct FieldsReader { public init(_ b: [UInt8]) {}; public func value(at p: FieldPath) throws(Status) -> Value? { nil }
 public func topLevelFields() throws(Status) -> [(name: Range<Int>, value: Range<Int>)] { [] } }
