import HearthConcurrency
import HearthModel
import HearthTree
import HearthTreeStorage

/// The read of a listener or of a single request: its rights are checked and its data read on one version of the tree,
/// on a worker's thread.
struct ListenReading: Sendable {
    struct Content: Sendable {
        /// JSON; nil when the client has it already.
        var json: RealtimeData?
        /// In place of the whole data: the ranges in which the client's data differs, as a JSON array.
        var ranges: RealtimeData?
        /// Whether the rules declare the index that the query needs.
        var isIndexed = true
    }

    let service: RealtimeService
    let namespace: RealtimeNamespace
    let identity: RealtimeIdentity
    let target: RealtimeTarget
    var form = TreeJSON.Form.export
    /// The data that the client has.
    var known = KnownData.nothing
    /// An index without which the read fails.
    var required: TreeQuery.Index?
    /// Whether the client is still connected.
    var cancellation: Cancellation?

    /// - Throws: PERMISSION_DENIED; `RealtimeAccess.readTakesLong` when the view has a bound.
    func judge(_ view: TreeView) throws(Status) {
        let isAllowed = try service.access.mayRead(
            target.path, query: target.query, identity, namespace, view, now: service.nowMilliseconds,
            stepsMax: view.judgeStepsMax)
        if !isAllowed { throw RealtimeAccess.denied }
    }

    /// Large data is only read for a caller that allows it: otherwise the read fails with `isLarge`, at little cost.
    static let isLarge = Status(.aborted, "The data is large.")

    /// - Parameters:
    ///   - requester: the account that is charged for the answer.
    ///   - mayBeLarge: whether the data may be written to a file.
    /// - Throws: PERMISSION_DENIED; `isLarge`; UNAVAILABLE when there is no space for a file.
    func read(_ view: TreeView, for requester: Requester, mayBeLarge: Bool) throws(Status) -> Content {
        if let cancellation { view.askWhileReading { () throws(Status) in try cancellation.check() } }
        try judge(view)
        var content = Content()
        if let required, !namespace.hasIndex(required, at: target.path) {
            throw RealtimeReading.missingIndex(required, target.path)
        }
        if let query = target.query {
            content.isIndexed = namespace.hasIndex(query.index, at: target.path)
        }
        if !mayBeLarge {
            let isSmall = try view.isSmall(
                target.query, at: target.path, sizeBytesMax: Limits.realtimeAnswerMemoryBytesMax,
                readsMax: Limits.realtimeBriefReadsMax)
            if !isSmall { throw Self.isLarge }
        }
        let writer = RealtimeDataWriter(
            folder: service.spoolFolder, service.spools.reservation(for: requester),
            sizeBytesMax: mayBeLarge ? Limits.realtimeReadBytesMax : Limits.realtimeAnswerMemoryBytesMax)
        do throws(Status) {
            try fill(&content, view, writer, mayBeLarge: mayBeLarge)
        } catch {
            throw !mayBeLarge && error == RealtimeDataWriter.tooLong ? Self.isLarge : error
        }
        return content
    }

    private func fill(
        _ content: inout Content, _ view: TreeView, _ writer: RealtimeDataWriter, mayBeLarge: Bool
    ) throws(Status) {
        if let compound = known.compound {
            let sizeBytesMax = mayBeLarge ? Limits.realtimeCompareTreeBytesMax : Limits.realtimeAnswerMemoryBytesMax
            let node = try view.node(of: target.query, at: target.path, sizeBytesMax: sizeBytesMax)
            if let node { return try compare(node, compound, &content, writer) }
            if !mayBeLarge { throw Self.isLarge }
        }
        if let hash = known.hash, !hash.isEmpty, UTF8Order.equal(try self.hash(view), hash) { return }
        let sink = { (piece: inout [UInt8]) throws(Status) in try writer.write(&piece) }
        if let query = target.query {
            try view.writeJSON(of: query, at: target.path, form: form, sink)
        } else {
            try view.writeJSON(at: target.path, form: form, sink)
        }
        content.json = writer.finish()
    }

    private func hash(_ view: TreeView) throws(Status) -> String {
        if let query = target.query { return try view.hash(of: query, at: target.path) }
        return try view.hash(at: target.path)
    }

    /// - Parameter node: the present value.
    private func compare(
        _ node: Node, _ compound: CompoundHash, _ content: inout Content, _ writer: RealtimeDataWriter
    ) throws(Status) {
        if let hash = known.hash, !hash.isEmpty, UTF8Order.equal(node.hash, hash) { return }
        let ranges = compound.differences(from: node)
        var json: [UInt8] = []
        if ranges.isEmpty {
            TreeJSON.append(node, to: &json, form: form)
            try writer.write(&json)
            content.json = writer.finish()
            return
        }
        for (position, range) in ranges.enumerated() {
            json.append(UInt8(ascii: position > 0 ? "," : "["))
            range.append(to: &json)
            try writer.write(&json)
        }
        json.append(UInt8(ascii: "]"))
        try writer.write(&json)
        content.ranges = writer.finish()
    }
}
