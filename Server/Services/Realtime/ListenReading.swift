import HearthModel
import HearthTree
import HearthTreeStorage

/// What is read for a listener or a single read: judged and read on one state of the tree, on a worker's thread.
struct ListenReading: Sendable {
    struct Content: Sendable {
        /// JSON; nil when the client has it already.
        var json: [UInt8]?
        /// In place of the whole: ranges in which the client has something else, as a JSON array.
        var ranges: [UInt8]?
        /// Whether the rules declare the index that the query needs.
        var isIndexed = true
    }

    let service: RealtimeService
    let namespace: RealtimeNamespace
    let identity: RealtimeIdentity
    let target: RealtimeTarget
    var form = TreeJSON.Form.export
    /// What the client has.
    var known = KnownData.nothing
    /// An index without which the reading is refused.
    var required: TreeQuery.Index?

    /// - Throws: PERMISSION_DENIED.
    func judge(_ view: TreeView) throws(Status) {
        let isAllowed = try service.access.mayRead(
            target.path, query: target.query, identity, namespace, view, now: service.nowMilliseconds)
        if !isAllowed { throw RealtimeAccess.denied }
    }

    func read(_ view: TreeView) throws(Status) -> Content {
        try judge(view)
        var content = Content()
        if let required, !namespace.hasIndex(required, at: target.path) {
            throw RealtimeReading.missingIndex(required, target.path)
        }
        if let query = target.query { content.isIndexed = namespace.hasIndex(query.index, at: target.path) }
        try fill(&content, view)
        return content
    }

    private func fill(_ content: inout Content, _ view: TreeView) throws(Status) {
        if target.query == nil, known.compound == nil {
            if let hash = known.hash, !hash.isEmpty, UTF8Order.equal(try view.hash(at: target.path), hash) { return }
            var json: [UInt8] = []
            try view.appendJSON(at: target.path, to: &json, form: form)
            content.json = json
            return
        }
        let node =
            if let query = target.query {
                try HubWindow.result(query, target.path, view)
            } else {
                try view.node(at: target.path)
            }
        if let hash = known.hash, !hash.isEmpty, UTF8Order.equal(node.hash, hash) { return }
        var json: [UInt8] = []
        let ranges = known.compound?.differences(from: node) ?? []
        if ranges.isEmpty {
            TreeJSON.append(node, to: &json, form: form)
            content.json = json
            return
        }
        json.append(UInt8(ascii: "["))
        for (position, range) in ranges.enumerated() {
            if position > 0 { json.append(UInt8(ascii: ",")) }
            range.append(to: &json)
        }
        json.append(UInt8(ascii: "]"))
        content.ranges = json
    }
}
