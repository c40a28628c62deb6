/// The fields of a request in one array. Strings are created only on demand: a gRPC client sends ten fields with every
/// call, and a handler reads one or two.
package struct HeaderBlock {
    /// In the format of `FieldBuffer`.
    private let bytes: [UInt8]

    package init() { bytes = [] }

    package var isEmpty: Bool { bytes.isEmpty }

    package init(_ buffer: FieldBuffer) { bytes = [UInt8](buffer.bytes) }

    /// Calls `body` with each field's name and value until it returns false.
    static func forEach(
        _ bytes: UnsafeRawBufferPointer, _ body: (UnsafeRawBufferPointer, UnsafeRawBufferPointer) -> Bool
    ) {
        var position = 0
        while position < bytes.count {
            let nameCount = Int(bytes.loadUnaligned(fromByteOffset: position, as: UInt32.self))
            let valueCount = Int(bytes.loadUnaligned(fromByteOffset: position + 4, as: UInt32.self))
            let middle = position + FieldBuffer.lengthsBytes + nameCount
            let name = UnsafeRawBufferPointer(rebasing: bytes[(position + FieldBuffer.lengthsBytes)..<middle])
            let value = UnsafeRawBufferPointer(rebasing: bytes[middle..<(middle + valueCount)])
            guard body(name, value) else { return }
            position = middle + valueCount
        }
    }

    package func firstValue(_ name: String) -> String? {
        var name = name
        var found: String?
        name.withUTF8 { wanted in
            bytes.withUnsafeBytes { bytes in
                HeaderBlock.forEach(bytes) { name, value in
                    guard name.equals(UnsafeRawBufferPointer(wanted)) else { return true }
                    found = String(decoding: value, as: UTF8.self)
                    return false
                }
            }
        }
        return found
    }

    /// Without the pseudo-header fields of HTTP/2.
    package var headers: [HTTPHeader] {
        var headers: [HTTPHeader] = []
        bytes.withUnsafeBytes { bytes in
            HeaderBlock.forEach(bytes) { name, value in
                if name.first != UInt8(ascii: ":") {
                    headers.append(
                        HTTPHeader(String(decoding: name, as: UTF8.self), String(decoding: value, as: UTF8.self)))
                }
                return true
            }
        }
        return headers
    }
}
