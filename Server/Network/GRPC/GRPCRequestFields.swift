/// The fields of a call that the engine itself uses, read in one pass.
struct GRPCRequestFields {
    enum Timeout: Equatable {
        case none
        case malformed
        case nanoseconds(UInt64)
    }

    enum Encoding { case identity, gzip, unknown }

    private(set) var isGRPC = false
    private(set) var timeout = Timeout.none
    private(set) var encoding = Encoding.identity
    private(set) var acceptsGzip = false

    mutating func note(name: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer) {
        // The length distinguishes nearly all other fields before a byte is compared.
        switch name.count {
        case 12 where name.equals("content-type"): isGRPC = GRPCContentType.matches(value)
        case 12 where name.equals("grpc-timeout"):
            timeout = GRPCTimeout.nanoseconds(value).map { .nanoseconds($0) } ?? .malformed
        case 13 where name.equals("grpc-encoding"):
            encoding = value.equals("identity") ? .identity : value.equals("gzip") ? .gzip : .unknown
        case 20 where name.equals("grpc-accept-encoding"): acceptsGzip = GRPCRequestFields.lists(value, "gzip")
        default: break
        }
    }
}

extension GRPCRequestFields {
    /// Whether a comma-separated list has this member.
    static func lists(_ list: UnsafeRawBufferPointer, _ member: StaticString) -> Bool {
        var start = 0
        while start < list.count {
            var end = start
            while end < list.count, list[end] != UInt8(ascii: ",") { end += 1 }
            while start < end, list[start] == UInt8(ascii: " ") { start += 1 }
            var last = end
            while last > start, list[last - 1] == UInt8(ascii: " ") { last -= 1 }
            if UnsafeRawBufferPointer(rebasing: list[start..<last]).equals(member) { return true }
            start = end + 1
        }
        return false
    }
}
