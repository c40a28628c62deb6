/// Requests of the wire protocol, and what comes back.
enum DatabaseMessage {
    static let namespace = "bench"

    static func put(_ number: Int, _ path: String, _ value: String) -> [UInt8] {
        Array(#"{"t":"d","d":{"r":\#(number),"a":"p","b":{"p":"\#(path)","d":\#(value)}}}"#.utf8)
    }

    static func listen(_ number: Int, _ path: String) -> [UInt8] {
        Array(#"{"t":"d","d":{"r":\#(number),"a":"q","b":{"p":"\#(path)","h":""}}}"#.utf8)
    }

    enum Kind {
        case reply
        case event
        case other
    }

    private static let reply = Array(#"{"t":"d","d":{"r""#.utf8)
    private static let event = Array(#"{"t":"d","d":{"a""#.utf8)

    /// Reads only the beginning: many thousands of messages arrive per second.
    static func kind(_ string: UnsafeRawBufferPointer) -> Kind {
        guard string.count > reply.count else { return .other }
        if string.prefix(reply.count).elementsEqual(reply) { return .reply }
        return string.prefix(event.count).elementsEqual(event) ? .event : .other
    }

    private static let ok = Array(#""s":"ok""#.utf8)

    /// The error of a response.
    static func failure(_ string: UnsafeRawBufferPointer) -> String? {
        let isOK = string.indices.contains { start in
            start + ok.count <= string.count && string[start] == ok[0] && string[start + 1] == ok[1]
                && string[start..<(start + ok.count)].elementsEqual(ok)
        }
        return isOK ? nil : String(decoding: string.prefix(200), as: UTF8.self)
    }
}
