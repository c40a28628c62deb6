import HearthTree

/// The messages that the server sends, as strings; `RealtimeClientMessage` reads what clients send.
enum RealtimeServerMessage {
    /// The first message of every connection.
    /// - Parameters:
    ///   - host: the host for this client's next connections; clients store it.
    ///   - session: identifies the connection to the connection that follows it.
    static func handshake(nowMilliseconds: Int64, host: String, session: String) -> [UInt8] {
        var string = Array(#"{"t":"c","d":{"t":"h","d":{"ts":\#(nowMilliseconds),"v":"5","h":"#.utf8)
        TreeJSON.appendString(host, to: &string)
        string.append(contentsOf: #","s":"#.utf8)
        TreeJSON.appendString(session, to: &string)
        string.append(contentsOf: "}}}".utf8)
        return string
    }

    /// The member `d` must exist: clients use it to recognize the kind of the message.
    static let pong = Array(#"{"t":"c","d":{"t":"o","d":null}}"#.utf8)

    /// Redirects the client to another connection.
    static func reset(host: String) -> [UInt8] {
        var string = Array(#"{"t":"c","d":{"t":"r","d":"#.utf8)
        TreeJSON.appendString(host, to: &string)
        string.append(contentsOf: "}}".utf8)
        return string
    }

    /// Ends the connection permanently.
    static func shutdown(_ reason: String) -> [UInt8] {
        var string = Array(#"{"t":"c","d":{"t":"s","d":"#.utf8)
        TreeJSON.appendString(reason, to: &string)
        string.append(contentsOf: "}}".utf8)
        return string
    }

    static func reply(to number: Int64, _ status: RealtimeStatus, data: [UInt8]) -> [UInt8] {
        var string = replyHead(number, status)
        string.reserveCapacity(string.count + data.count + replyTail.count)
        string.append(contentsOf: data)
        string.append(contentsOf: replyTail)
        return string
    }

    /// A reply up to its data.
    static func replyHead(_ number: Int64, _ status: RealtimeStatus) -> [UInt8] {
        Array(#"{"t":"d","d":{"r":\#(number),"b":{"s":"\#(status.rawValue)","d":"#.utf8)
    }

    static let replyTail = Array("}}}".utf8)

    static func reply(to number: Int64, _ refusal: RealtimeRefusal) -> [UInt8] {
        var string: [UInt8] = []
        TreeJSON.appendString(refusal.string, to: &string)
        return reply(to: number, refusal.status, data: string)
    }

    /// A push up to its data: `{"t":"d","d":{"a":"d","b":{"p":"a/b","d":`.
    static func pushHead(_ action: String, _ path: TreePath) -> [UInt8] {
        var string = Array(#"{"t":"d","d":{"a":"\#(action)","b":{"p":"#.utf8)
        TreeJSON.appendString(path.string, to: &string)
        string.append(contentsOf: #","d":"#.utf8)
        return string
    }

    /// The end of a push after its data.
    static func pushTail(tag: Int64?) -> [UInt8] {
        Array((tag.map { #","t":\#($0)}}}"# } ?? "}}}").utf8)
    }

    /// A listen that may not continue. Clients find a filtered one by its query.
    static func revoked(_ path: TreePath, query: TreeQuery?) -> [UInt8] {
        var string = Array(#"{"t":"d","d":{"a":"c","b":{"p":"#.utf8)
        TreeJSON.appendString(path.string, to: &string)
        if let query {
            string.append(contentsOf: #","q":["#.utf8)
            TreeJSON.append(query.wire, to: &string)
            string.append(UInt8(ascii: "]"))
        }
        string.append(contentsOf: "}}}".utf8)
        return string
    }

    static let tokenExpired = Array(
        #"{"t":"d","d":{"a":"ac","b":{"s":"expired_token","d":"Auth token is expired"}}}"#.utf8)
}
