/// Appends protobuf fields to a buffer. Source: the protobuf encoding document.
public struct ProtobufWriter {
    public var bytes: [UInt8] = []

    public init() {}
}
