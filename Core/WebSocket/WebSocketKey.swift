import COpenSSL

package enum WebSocketKey {
    /// 22 characters for 16 bytes, and two characters of padding.
    static func isValid(_ key: String) -> Bool {
        let bytes = Array(key.utf8)
        return bytes.count == 24 && bytes.suffix(2).elementsEqual("==".utf8)
            && bytes.prefix(22).allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                    UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "+"), UInt8(ascii: "/"):
                    true
                default: false
                }
            }
    }

    /// Proves that the server has read the request and supports WebSocket. Source: RFC 6455, 4.2.2.
    /// - Throws: 500 when OpenSSL has no SHA-1, as with some policies of cryptography.
    package static func accept(_ key: String) throws(WebSocketHandshakeFailure) -> String {
        let string = Array((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").utf8)
        var digest = [UInt8](repeating: 0, count: 20)
        let isDone = EVP_Digest(string, string.count, &digest, nil, EVP_sha1(), nil) == 1
        guard isDone else { throw WebSocketHandshakeFailure(status: 500, reason: "OpenSSL has no SHA-1") }
        return base64(digest)
    }

    static func base64(_ bytes: [UInt8]) -> String {
        // Four characters for every three bytes, and a terminating zero.
        var string = [UInt8](repeating: 0, count: (bytes.count + 2) / 3 * 4 + 1)
        let count = EVP_EncodeBlock(&string, bytes, Int32(bytes.count))
        return String(decoding: string[..<Int(count)], as: UTF8.self)
    }
}
