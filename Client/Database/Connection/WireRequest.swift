import HearthTree

/// Encodes requests in the wire protocol.
enum WireRequest {
    /// A keep-alive, sent when no other message was sent for a while.
    static let keepAlive: [UInt8] = [UInt8(ascii: "0")]

    static func listen(_ number: Int, _ path: TreePath, _ query: TreeQuery?, tag: Int?, _ hash: ListenHash) -> [UInt8] {
        request(number, "q") { body in
            member("p", path, to: &body)
            if let query { member("q", query.wire, to: &body) }
            if let tag { member("t", .integer(Int64(tag)), to: &body) }
            member("h", .string(hash.simple), to: &body)
            if let compound = hash.compound {
                let paths = compound.paths.map { JSONValue.string($0.isRoot ? "/" : $0.string) }
                member(
                    "ch",
                    .object([("hs", .array(compound.hashes.map { .string($0) })), ("ps", .array(paths))]), to: &body)
            }
        }
    }

    static func unlisten(_ number: Int, _ path: TreePath, _ query: TreeQuery?, tag: Int?) -> [UInt8] {
        request(number, "n") { body in
            member("p", path, to: &body)
            if let query { member("q", query.wire, to: &body) }
            if let tag { member("t", .integer(Int64(tag)), to: &body) }
        }
    }

    static func get(_ number: Int, _ path: TreePath, _ query: TreeQuery?) -> [UInt8] {
        request(number, "g") { body in
            member("p", path, to: &body)
            member("q", query?.wire ?? .object([]), to: &body)
        }
    }

    /// - Parameter action: `p`, or `o` for onDisconnect.
    static func put(_ number: Int, _ action: String, _ path: TreePath, _ node: Node, hash: String?) -> [UInt8] {
        request(number, action) { body in
            member("p", path, to: &body)
            member("d", node, to: &body)
            if let hash { member("h", .string(hash), to: &body) }
        }
    }

    /// - Parameter action: `m`, or `om` for onDisconnect.
    static func merge(
        _ number: Int, _ action: String, _ path: TreePath, _ members: [(path: TreePath, node: Node)]
    ) -> [UInt8] {
        request(number, action) { body in
            member("p", path, to: &body)
            name("d", to: &body)
            body.append(UInt8(ascii: "{"))
            for (location, node) in members {
                name(location.string, to: &body)
                TreeJSON.append(node, to: &body, form: .export)
            }
            body.append(UInt8(ascii: "}"))
        }
    }

    static func onDisconnectCancel(_ number: Int, _ path: TreePath) -> [UInt8] {
        request(number, "oc") { body in
            member("p", path, to: &body)
            member("d", .null, to: &body)
        }
    }

    static func auth(_ number: Int, token: String) -> [UInt8] {
        request(number, "auth") { member("cred", .string(token), to: &$0) }
    }

    static func unauth(_ number: Int) -> [UInt8] { request(number, "unauth") { _ in } }

    // MARK: Strings

    private static func request(_ number: Int, _ action: String, _ write: (inout [UInt8]) -> Void) -> [UInt8] {
        var string = Array(#"{"t":"d","d":{"r":\#(number),"a":"\#(action)","b":{"#.utf8)
        write(&string)
        string += Array("}}}".utf8)
        return string
    }

    private static func name(_ name: String, to string: inout [UInt8]) {
        if string.last != UInt8(ascii: "{") { string.append(UInt8(ascii: ",")) }
        TreeJSON.appendString(name, to: &string)
        string.append(UInt8(ascii: ":"))
    }

    private static func member(_ name: String, _ value: JSONValue, to string: inout [UInt8]) {
        self.name(name, to: &string)
        TreeJSON.append(value, to: &string)
    }

    private static func member(_ name: String, _ node: Node, to string: inout [UInt8]) {
        self.name(name, to: &string)
        TreeJSON.append(node, to: &string, form: .export)
    }

    private static func member(_ name: String, _ path: TreePath, to string: inout [UInt8]) {
        member(name, .string(path.description), to: &string)
    }
}
