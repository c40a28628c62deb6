/// Detects a connection's protocol by its first bytes. Pure: the caller collects the bytes.
package enum ProtocolDetector {
    package enum Verdict: Equatable {
        case needsMore
        case http1
        case http2
        case tls
    }

    /// The first byte of a TLS handshake record; no HTTP method begins with it.
    static let tlsHandshakeByte: UInt8 = 0x16

    private static let tlsHeaderBytes = 5
    /// With its header. Source: RFC 8446, 5.1.
    static let tlsRecordBytesMax = tlsHeaderBytes + 16_384

    /// Whether a record has arrived completely. OpenSSL rejects one that is too long by its header.
    static func isCompleteTLSRecord(_ bytes: UnsafeRawBufferPointer) -> Bool {
        guard bytes.count >= tlsHeaderBytes else { return false }
        let length = Int(bytes[3]) << 8 | Int(bytes[4])
        return bytes.count >= min(tlsHeaderBytes + length, tlsRecordBytesMax)
    }

    /// The client connection preface. Source: RFC 9113, 3.4.
    static let http2Preface = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8)

    /// For plaintext on a TLS port: a response that a user with a browser or curl understands.
    static let plaintextRefusal: [UInt8] = {
        let string = "This port speaks TLS only: use https.\n"
        let head = "HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain\r\nconnection: close\r\n"
        return Array("\(head)content-length: \(string.utf8.count)\r\n\r\n\(string)".utf8)
    }()

    /// For TLS on a plaintext port: the fatal alert handshake_failure.
    static let tlsRefusal: [UInt8] = [0x15, 0x03, 0x01, 0x00, 0x02, 0x02, 0x28]

    package static func detect(_ bytes: UnsafeRawBufferPointer) -> Verdict {
        guard let first = bytes.first else { return .needsMore }
        if first == tlsHandshakeByte { return .tls }
        let compared = min(bytes.count, http2Preface.count)
        for position in 0..<compared where bytes[position] != http2Preface[position] { return .http1 }
        return compared == http2Preface.count ? .http2 : .needsMore
    }
}
