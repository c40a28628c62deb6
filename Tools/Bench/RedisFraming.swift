/// Redis: simple and bulk strings, and errors. Source: "Redis serialization protocol specification".
enum RedisFraming: AnswerFraming {
    static func first(_ bytes: UnsafeRawBufferPointer) -> FramedAnswer? {
        guard let end = bytes.firstIndex(of: UInt8(ascii: "\n")) else { return nil }
        let string = { String(decoding: bytes[..<(end - 1)], as: UTF8.self) }
        switch bytes[0] {
        case UInt8(ascii: "+"), UInt8(ascii: ":"): return FramedAnswer(sizeBytes: end + 1)
        case UInt8(ascii: "$"):
            guard let length = Int(string().dropFirst()), length >= 0 else {
                return FramedAnswer(sizeBytes: end + 1, failure: "There is no such key.")
            }
            let size = end + 1 + length + 2
            return size <= bytes.count ? FramedAnswer(sizeBytes: size) : nil
        default: return FramedAnswer(sizeBytes: end + 1, failure: string())
        }
    }
}
