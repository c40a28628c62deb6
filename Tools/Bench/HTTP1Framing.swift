/// HTTP/1.1 with one request at a time. Source: RFC 9112.
enum HTTP1Framing: AnswerFraming {
    static func first(_ bytes: UnsafeRawBufferPointer) -> FramedAnswer? {
        var lineStart = 0
        var lengthBytes: Int?
        var failure: String?
        while let end = bytes[lineStart...].firstIndex(of: UInt8(ascii: "\n")) {
            let line = UnsafeRawBufferPointer(rebasing: bytes[lineStart..<end])
            if lineStart == 0, !isSuccess(line) { failure = String(decoding: line, as: UTF8.self) }
            // No Content: without a body, and without a length.
            if lineStart == 0, line.count > 12, line[9..<12].elementsEqual("204".utf8) { lengthBytes = 0 }
            lineStart = end + 1
            if line.count <= 1 {
                // Without a length it is chunked. No response follows it, so the last received chunk is its last.
                let size = lengthBytes.map { lineStart + $0 } ?? bytes.count
                if lengthBytes == nil, !bytes.suffix(5).elementsEqual("0\r\n\r\n".utf8) { return nil }
                return size <= bytes.count ? FramedAnswer(sizeBytes: size, failure: failure) : nil
            }
            lengthBytes = lengthBytes ?? contentLength(line)
        }
        return nil
    }

    private static func isSuccess(_ line: UnsafeRawBufferPointer) -> Bool {
        line.count > 12 && line[9] == UInt8(ascii: "2")
    }

    private static let field = Array("content-length:".utf8)

    private static func contentLength(_ line: UnsafeRawBufferPointer) -> Int? {
        guard line.count > field.count, line[7] == UInt8(ascii: "-") else { return nil }
        for (index, byte) in field.enumerated() where line[index] | 0x20 != byte { return nil }
        return line.dropFirst(field.count).reduce(0) { length, byte in
            (0x30...0x39).contains(byte) ? length * 10 + Int(byte & 15) : length
        }
    }
}
