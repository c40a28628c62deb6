import HearthHost
import HearthModel
import HearthNetwork
import HearthTree
import HearthTreeStorage

/// A GET: the value of a location, the window of a query, or the names of the children.
///
/// Small values are read on the loop. A worker makes every other answer: it writes the whole answer, to a file when it
/// is large, and releases the snapshot. So a slow client uses no memory and blocks nothing.
struct RealtimeReading: Sendable {
    let service: RealtimeService
    let call: RealtimeCall
    let namespace: RealtimeNamespace
    let identity: RealtimeIdentity
    let path: TreePath
    let query: TreeQuery?

    private enum Answer {
        case value([UInt8], tag: String?)
        case file(SpillFile, tag: String?)
        case unchanged(tag: String)
    }

    func begin() {
        // A body has no meaning here, but it must be received.
        call.exchange.onBody = { _ in }
        do throws(Status) {
            let view = try namespace.database.view()
            defer { view.close() }
            view.judgeStepsMax = Limits.treeJudgeStepsMax
            try check(view)
            if try isInline(view) { return deliver(try answer(view)) }
            readBriefly()
        } catch RealtimeAccess.readTakesLong {
            readLater()
        } catch {
            call.fail(error)
        }
    }

    /// Reads of some milliseconds precede all long reads, of every client.
    private func readBriefly() {
        service.answerBriefly(call) { [self] () throws(Status) in
            let view = try namespace.database.view()
            defer { view.close() }
            view.judgeStepsMax = Limits.treeJudgeStepsMax
            do throws(Status) {
                try check(view)
            } catch RealtimeAccess.readTakesLong {
                return call.onLoop { [self] in readLater() }
            }
            guard try isBrief(view) else { return call.onLoop { [self] in readLater() } }
            let answer = try answer(view)
            call.onLoop { [self] in deliver(answer) }
        }
    }

    /// The snapshot is taken when a worker begins: a waiting request holds none.
    private func readLater() {
        let request = service.longReads.whenFree(for: call.requester) { [self] result in
            call.onLoop { [call] in call.onCancel = nil }
            switch result {
            case .failure(let status): call.onLoop { [call] in call.fail(status) }
            case .success(let read):
                service.answerInSlices(call) { [self] slice throws(Status) in
                    let view = try namespace.database.view(under: read)
                    defer { view.close() }
                    view.askWhileReading { [call] () throws(Status) in
                        try call.checkTime()
                        slice.giveWay()
                    }
                    try check(view)
                    let answer = try answer(view)
                    call.onLoop { [self] in deliver(answer) }
                }
            }
        }
        if let request { call.onCancel = { request.cancel() } }
    }

    private func check(_ view: TreeView) throws(Status) {
        let location = path.last == .priority ? path.parent ?? .root : path
        guard
            try service.access.mayRead(
                location, query: query, identity, namespace, view, now: service.nowMilliseconds,
                stepsMax: view.judgeStepsMax)
        else { throw RealtimeAccess.denied }
        if let query, !namespace.hasIndex(query.index, at: path) { throw Self.missingIndex(query.index, path) }
    }

    /// Source: the error message of the service.
    static func missingIndex(_ index: TreeQuery.Index, _ path: TreePath) -> Status {
        let name =
            switch index {
            case .value: ".value"
            case .child(let path): path.string
            // These need none: `RealtimeNamespace.hasIndex`.
            case .key: ".key"
            case .priority: ".priority"
            }
        return .invalidArgument(
            "Index not defined, add \".indexOn\": \"\(name)\", for path \"\(path)\", to the rules")
    }

    private func isBrief(_ view: TreeView) throws(Status) -> Bool {
        let readsMax = Limits.realtimeBriefReadsMax
        if call.parameters.isShallow, query == nil {
            // The tag is that of the whole value.
            if isTagged { return false }
            return try view.children(of: path, limit: readsMax + 1).count <= readsMax
        }
        return try view.isSmall(
            query, at: path, sizeBytesMax: Limits.realtimeAnswerMemoryBytesMax, readsMax: readsMax)
    }

    private func isInline(_ view: TreeView) throws(Status) -> Bool {
        if path.last == .priority { return true }
        if query != nil || call.parameters.isShallow { return false }
        return try view.sizeEstimate(at: path, upTo: Limits.realtimeReadInlineBytesMax)
            < Limits.realtimeReadInlineBytesMax
    }

    private func deliver(_ answer: Answer) {
        switch answer {
        case .value(let json, let tag): call.respond(json, tag: tag)
        case .file(let file, let tag): call.respond(file, tag: tag, readers: service.pool.group(.short))
        case .unchanged(let tag): call.respondUnchanged(tag: tag)
        }
    }

    // MARK: Answers

    private func answer(_ view: TreeView) throws(Status) -> Answer {
        if path.last == .priority { return try priority(view) }
        if let query, !call.parameters.isShallow { return try filtered(query, view) }
        let tag = try tag { () throws(Status) in try view.hash(at: path) }
        if let tag, isKnown(tag) { return .unchanged(tag: tag) }
        if call.parameters.form == .silent { return .value([], tag: tag) }
        let writer = RealtimeSpool(call, folder: service.spoolFolder, service.spools)
        if call.parameters.isShallow {
            try RealtimeShallow(view: view, path: path, query: query).write { piece throws(Status) in
                try writer.write(&piece)
            }
        } else {
            try view.writeJSON(at: path, form: call.parameters.isExport ? .export : .plain) { piece throws(Status) in
                try writer.write(&piece)
            }
        }
        switch try writer.finish() {
        case .memory(let json): return .value(json, tag: tag)
        case .file(let file): return .file(file, tag: tag)
        }
    }

    private func priority(_ view: TreeView) throws(Status) -> Answer {
        let priority = try view.priority(at: path.parent ?? .root)
        let node = priority.map { Node($0) } ?? .empty
        let tag = try tag { () throws(Status) in node.hash }
        var json: [UInt8] = []
        TreeJSON.append(node, to: &json, form: .plain)
        return .value(json, tag: tag)
    }

    private func filtered(_ query: TreeQuery, _ view: TreeView) throws(Status) -> Answer {
        let tag = try tag { () throws(Status) in try view.hash(of: query, at: path) }
        if let tag, isKnown(tag) { return .unchanged(tag: tag) }
        try call.checkTime()
        let writer = RealtimeSpool(call, folder: service.spoolFolder, service.spools)
        let form: TreeJSON.Form = call.parameters.isExport ? .export : .plain
        try view.writeJSON(of: query, at: path, form: form) { piece throws(Status) in try writer.write(&piece) }
        switch try writer.finish() {
        case .memory(let json):
            // An empty result is an object here.
            return .value(json == Array("null".utf8) ? Array("{}".utf8) : json, tag: tag)
        case .file(let file): return .file(file, tag: tag)
        }
    }

    // MARK: Tags

    static let emptyTag = "null_etag"

    static func tag(ofHash hash: String) -> String { hash.isEmpty ? emptyTag : hash }

    /// Nil when no tag is requested: it costs as much as the read.
    private func tag(_ hash: () throws(Status) -> String) throws(Status) -> String? {
        guard isTagged else { return nil }
        return Self.tag(ofHash: try hash())
    }

    private var isTagged: Bool { call.wantsTag || call.head.firstValue("if-none-match") != nil }

    private func isKnown(_ tag: String) -> Bool {
        call.head.values("if-none-match").contains { Self.unquoted($0) == tag }
    }

    static func unquoted(_ string: String) -> String {
        string.utf8.count >= 2 && string.hasPrefix("\"") && string.hasSuffix("\"")
            ? String(string.dropFirst().dropLast()) : string
    }
}
