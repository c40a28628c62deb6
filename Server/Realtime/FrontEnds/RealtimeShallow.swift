import HearthModel
import HearthTree
import HearthTreeStorage

/// `shallow=true`: the names of a location's children without a read of their values.
struct RealtimeShallow {
    let view: TreeView
    let path: TreePath
    let query: TreeQuery?

    private static let pageLength = 1000
    private static let pieceBytes = 64 << 10

    /// Passes the answer to `write` piece by piece; `write` empties each piece.
    func write(_ write: (inout [UInt8]) throws(Status) -> Void) throws(Status) {
        var output: [UInt8] = []
        if let value = try view.value(at: path) {
            // A query finds nothing at a leaf, but this is not the answer of a query.
            TreeJSON.append(Node(value), to: &output, form: .plain)
            return try write(&output)
        }
        var isFirst = true
        try forEachPage { keys throws(Status) in
            for key in keys {
                output.append(isFirst ? UInt8(ascii: "{") : UInt8(ascii: ","))
                isFirst = false
                TreeJSON.appendString(key.string, to: &output)
                output += Array(":true".utf8)
            }
            if output.count >= Self.pieceBytes { try write(&output) }
        }
        if isFirst {
            // Firebase's tools leave out namespaces that answer null to a query. Source: firebase-tools,
            // src/emulator/hubExport.ts.
            let isNothing = query == nil ? true : try !view.exists(at: path)
            output += Array((isNothing ? "null" : "{}").utf8)
        } else {
            output.append(UInt8(ascii: "}"))
        }
        try write(&output)
    }

    private func forEachPage(_ body: ([TreeKey]) throws(Status) -> Void) throws(Status) {
        if let query, !query.isUnfiltered { return try body(try view.keys(of: query, at: path).children.map(\.key)) }
        var last: TreeKey?
        while true {
            let keys = try view.children(of: path, after: last, limit: Self.pageLength)
            try body(keys)
            guard keys.count == Self.pageLength, let end = keys.last else { return }
            last = end
        }
    }
}
