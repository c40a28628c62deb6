import HearthTree

/// The response to a request.
struct WireReply {
    var number: Int
    var status: String
    /// The whole message, and the range of the response's data in it; nil for none.
    var string: [UInt8]
    var data: Range<Int>?

    /// The error status; nil for `ok`.
    var failure: WireFailure? {
        guard status != "ok" else { return nil }
        return WireFailure(status, (try? value())?.string ?? "")
    }

    /// The decoded data. Only for small data.
    func value() throws(TreeDataError) -> JSONValue {
        guard let data else { return .null }
        return try TreeJSON.value(string, in: data)
    }

    func node() throws(TreeDataError) -> Node {
        guard let data else { return .empty }
        return try TreeJSON.node(string, in: data)
    }
}
