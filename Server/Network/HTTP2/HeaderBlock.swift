/// The fields of a request as they came, in one buffer. Strings are made only of what somebody asks for: a gRPC
/// client sends ten fields with every call, and a handler looks at one or two.
struct HeaderBlock {
    private struct Field {
        var start: UInt32
        var nameCount: UInt32
        var valueCount: UInt32
    }

    private var bytes: [UInt8] = []
    private var fields: [Field] = []

    var count: Int { fields.count }
    var sizeBytes: Int { bytes.count }

    mutating func append(name: UnsafeBufferPointer<UInt8>, value: UnsafeBufferPointer<UInt8>) {
        if fields.isEmpty {
            bytes.reserveCapacity(512)
            fields.reserveCapacity(12)
        }
        fields.append(
            Field(start: UInt32(bytes.count), nameCount: UInt32(name.count), valueCount: UInt32(value.count)))
        bytes.append(contentsOf: name)
        bytes.append(contentsOf: value)
    }

    func firstValue(_ name: String) -> String? {
        var name = name
        return name.withUTF8 { wanted in
            bytes.withUnsafeBufferPointer { bytes in
                for field in fields where Int(field.nameCount) == wanted.count {
                    let start = Int(field.start)
                    let middle = start + wanted.count
                    guard bytes[start..<middle].elementsEqual(wanted) else { continue }
                    return String(decoding: bytes[middle..<(middle + Int(field.valueCount))], as: UTF8.self)
                }
                return nil
            }
        }
    }

    var headers: [HTTPHeader] {
        bytes.withUnsafeBufferPointer { bytes in
            fields.map { field in
                let start = Int(field.start)
                let middle = start + Int(field.nameCount)
                return HTTPHeader(
                    String(decoding: bytes[start..<middle], as: UTF8.self),
                    String(decoding: bytes[middle..<(middle + Int(field.valueCount))], as: UTF8.self))
            }
        }
    }
}
