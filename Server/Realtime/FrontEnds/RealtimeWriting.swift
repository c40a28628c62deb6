import HearthHost
import HearthModel
import HearthNetwork
import HearthRules
import HearthTree
import HearthTreeStorage

/// A PUT, PATCH, POST, DELETE or an upload: one atomic write.
///
/// A worker decodes large bodies and encodes large answers; the writer makes the write.
struct RealtimeWriting: Sendable {
    let service: RealtimeService
    let call: RealtimeCall
    let namespace: RealtimeNamespace
    let identity: RealtimeIdentity
    let path: TreePath
    /// The tag that the present value must have; nil for any.
    let condition: String?
    /// Of an upload: contains the data, which replaces what is there.
    var form: UploadForm?

    /// The tag of `if-match`.
    /// - Throws: INVALID_ARGUMENT where conditions are not supported.
    static func condition(of call: RealtimeCall) throws(Status) -> String? {
        let values = call.head.values("if-match")
        guard let value = values.first else { return nil }
        guard call.method == "PUT" || call.method == "DELETE" else {
            throw .invalidArgument("if-match is not supported on \(call.method) requests")
        }
        if call.parameters.hasQuery || call.parameters.isShallow {
            throw .invalidArgument("if-match can't be used together with a query")
        }
        let tag = RealtimeReading.unquoted(value)
        guard values.count == 1, !tag.isEmpty, !tag.utf8.contains(UInt8(ascii: ",")) else {
            throw .invalidArgument("if-match must be one tag")
        }
        return tag
    }

    func begin() {
        let guarding: (any TreeGuard)?
        do throws(Status) {
            guarding = try service.access.writeGuard(identity, namespace)
            // Only administrators may keep functions from being called.
            if call.parameters.disablesTriggers {
                try service.access.requireAdministrator(identity, of: namespace, writes: true)
            }
        } catch {
            return call.failAfterBody(error)
        }
        if mayBeLarge, !service.access.mayWrite(scope, identity, namespace) {
            return call.failAfterBody(RealtimeAccess.denied)
        }
        let limitBytes = identity.scope == nil ? Limits.realtimeClientBodyBytesMax : Limits.realtimeBodyBytesMax
        call.exchange.collectBody(limitBytes: limitBytes, for: call.requester) { [self] result in
            switch result {
            case .success(let body):
                if body.count >= LargeRequests.sizeBytesMin {
                    return service.decode(body, call) { [self] share throws(Status) in
                        try service.checkSize(of: body, identity)
                        try submit(body, guarding, share)
                    }
                }
                let parsedBytes = ParsedSize.ofJSON(body)
                if parsedBytes <= Limits.realtimeUncountedRequestsBytesMax { return begin(body, guarding, nil) }
                service.large.take(parsedBytes, for: call.requester, on: call.loop) { [self] share in
                    begin(body, guarding, share)
                }
            case .failure(let status):
                call.fail(status, http: call.exchange.isBodyTooLarge ? 413 : nil)
            }
        }
    }

    /// The size up to which a body is decoded on the loop.
    private func begin(_ body: [UInt8], _ guarding: (any TreeGuard)?, _ share: WorkingShare?) {
        if call.parameters.writeSize?.seconds == nil {
            return attempt { () throws(Status) in try submit(body, guarding, share) }
        }
        service.run(call) { [self] () throws(Status) in try submit(body, guarding, share) }
    }

    /// Whether the body may be so large that it must not be received before its limits are checked.
    private var mayBeLarge: Bool {
        if call.method == "DELETE" { return false }
        guard let length = call.head.firstValue("content-length").flatMap({ Int($0) }) else { return true }
        return length > Limits.realtimeUnaskedBytesMax
    }

    private var scope: TreeWriteScope {
        if form != nil { return .location(path) }
        switch call.method {
        case "PATCH": return .below(path)
        case "POST": return .child(of: path)
        default: return .location(path)
        }
    }

    private func attempt(_ body: () throws(Status) -> Void) {
        do throws(Status) {
            try body()
        } catch {
            call.onLoop { [call] in call.fail(error) }
        }
    }

    // MARK: Requests

    /// The data of the write, and the part of it that the answer contains.
    private struct Write {
        enum Answer {
            /// The value that was written.
            case value
            /// The members that were written, by their names.
            case members([String])
            case name(TreeKey)
            /// That it is done.
            case done
        }

        var changes: [TreeChange]
        var answer: Answer
        /// Whether it keeps the children that it does not name.
        var isMerge = false
    }

    /// - Parameter share: the memory of a large write, held until it is answered.
    private func submit(
        _ body: [UInt8], _ guarding: (any TreeGuard)?, _ share: WorkingShare?
    ) throws(Status) {
        let write: Write
        do throws(TreeDataError) {
            write = try self.write(body)
        } catch {
            throw .invalidArgument(error.message)
        }
        let now = service.nowMilliseconds
        let needsView = condition != nil || call.parameters.writeSize?.seconds != nil
        var checked: TreeWrite.Condition?
        if needsView {
            let view = try namespace.database.view()
            defer { view.close() }
            try checkSize(write, bodyBytes: body.count, view, guarding, now)
            checked = try condition.map { tag throws(Status) in
                // A client without the right to read would learn the data from the comparison.
                let reveals = try service.access.mayRead(path, query: nil, identity, namespace, view, now: now)
                return TreeWrite.Condition(
                    path: path, hash: tag == RealtimeReading.emptyTag ? "" : tag, reveals: reveals)
            }
        }
        if write.changes.isEmpty {
            // There is nothing to do, and no right is needed.
            return call.onLoop { [call] in call.respond(Array("{}".utf8)) }
        }
        let isLarge = body.count >= LargeRequests.sizeBytesMin
        var treeWrite = TreeWrite(
            changes: write.changes, condition: checked, guard: guarding, nowMilliseconds: now,
            base: write.isMerge ? path : nil, author: { [identity] in identity.author.stored })
        treeWrite.isRecorded = !call.parameters.disablesTriggers
        namespace.database.submit(treeWrite, for: call.requester) { [self] outcome in
            // The writer has other clients to serve.
            if isLarge || outcome.isStale {
                answerLater(outcome, write, isBrief: !isLarge, share)
            } else {
                call.loop.execute { [self] in
                    attempt { () throws(Status) in
                        defer { share?.end() }
                        try answer(outcome, write)
                    }
                }
            }
        }
    }

    private func write(_ body: [UInt8]) throws(TreeDataError) -> Write {
        if let form {
            guard let range = form.file(in: body) else { throw TreeDataError("The form has no file, or no end.") }
            let node = try TreeJSON.node(body, in: range, limits: TreeLimits.standard.below(path))
            return Write(changes: [TreeChange(path: path, node: node)], answer: .done)
        }
        switch call.method {
        case "DELETE": return Write(changes: [TreeChange(path: path, node: .empty)], answer: .value)
        case "PATCH":
            if path.last == .priority { throw .invalidPath }
            guard let names = try Self.names(body) else {
                return Write(changes: [TreeChange(path: path, node: .empty)], answer: .value)
            }
            return Write(
                changes: try TreeJSON.merge(body, at: path).changes, answer: .members(names), isMerge: true)
        case "POST":
            let name = service.pushIDs.next(nowMilliseconds: service.nowMilliseconds)
            let child = path.child(name)
            try TreeLimits.standard.check(child)
            let node = try TreeJSON.node(body, limits: TreeLimits.standard.below(child))
            return Write(changes: [TreeChange(path: child, node: node)], answer: .name(name))
        default:
            if path.last == .priority {
                let string = Array("{\".value\":true,\".priority\":".utf8) + body + [UInt8(ascii: "}")]
                _ = try TreeJSON.value(body)
                let priority = try TreeJSON.node(string).priority
                return Write(
                    changes: [TreeChange(path: path, node: priority.map { Node($0) } ?? .empty)], answer: .value)
            }
            let node = try TreeJSON.node(body, limits: TreeLimits.standard.below(path))
            return Write(changes: [TreeChange(path: path, node: node)], answer: .value)
        }
    }

    /// The names of an update's members, as the client sent them; nil for `null`, which deletes the location.
    /// Source: firebase-tools, src/database/removeRemote.ts: `database:remove` deletes a location by such a PATCH; that other
    /// values are no updates is in src/database/import.ts.
    private static func names(_ body: [UInt8]) throws(TreeDataError) -> [String]? {
        let spaces: [UInt8] = [0x20, 0x09, 0x0A, 0x0D]
        guard body.first(where: { !spaces.contains($0) }) == UInt8(ascii: "{") else {
            if try TreeJSON.value(body).isNull { return nil }
            throw .notAnObject
        }
        return try TreeJSON.members(body).map(\.name)
    }

    // MARK: Sizes

    /// The bytes of a tree that are assumed to be changed in a second. Deliberately low: tools split their work by it.
    static let bytesPerSecond = 4 << 20

    private func checkSize(
        _ write: Write, bodyBytes: Int, _ view: TreeView, _ guarding: (any TreeGuard)?, _ now: Int64
    ) throws(Status) {
        guard let seconds = call.parameters.writeSize?.seconds else { return }
        // Tools delete in parts what is too large, and a leaf has none: `database:remove` would never end.
        if write.changes.count == 1, write.changes[0].node.isEmpty, try view.leaf(at: write.changes[0].path) != nil {
            return
        }
        let most = seconds * Self.bytesPerSecond
        var size = bodyBytes
        for change in write.changes where !change.isPriority && size <= most {
            size += try view.sizeEstimate(at: change.path, upTo: most - size)
            try call.checkTime()
        }
        if size > most {
            // Only a client with the right to write receives the size.
            let after = TreeOverlay(base: view, changes: write.changes)
            try guarding?.judge(write.changes, before: view, after: after, now: now, stepsMax: nil)
            throw .invalidArgument("Data to write exceeds the maximum size that can be modified with a single request.")
        }
    }

    // MARK: Answers

    /// - Parameter isBrief: whether the answer may take only some milliseconds, because the written data is small.
    private func answerLater(_ outcome: TreeOutcome, _ write: Write, isBrief: Bool, _ share: WorkingShare?) {
        guard isBrief else {
            return service.answer(call) { [self] () throws(Status) in
                defer { share?.end() }
                try answer(outcome, write)
            }
        }
        service.answerBriefly(call) { [self] () throws(Status) in
            let view = try namespace.database.view()
            defer { view.close() }
            let isSmall = try view.isSmall(
                nil, at: path, sizeBytesMax: Limits.realtimeAnswerMemoryBytesMax,
                readsMax: Limits.realtimeBriefReadsMax)
            guard isSmall else { return answerLater(outcome, write, isBrief: false, share) }
            defer { share?.end() }
            try answer(outcome, write)
        }
    }

    private func answer(_ outcome: TreeOutcome, _ write: Write) throws(Status) {
        switch outcome {
        case .failed(let status):
            throw status.code == .permissionDenied ? RealtimeAccess.denied : status
        case .stale:
            let view = try namespace.database.view()
            defer { view.close() }
            // From the same view: the answer contains only data that may be read now.
            let mayRead = try service.access.mayRead(
                path, query: nil, identity, namespace, view, now: service.nowMilliseconds)
            guard mayRead else { return call.onLoop { [call] in call.conflict(Array("null".utf8), tag: nil) } }
            var json: [UInt8] = []
            try view.appendJSON(at: path, to: &json, form: .plain)
            let tag = RealtimeReading.tag(ofHash: try view.hash(at: path))
            call.onLoop { [call, json] in call.conflict(json, tag: tag) }
        case .committed(let commit):
            let json = json(write, commit)
            let node = commit.changes.first?.node ?? .empty
            let isTagged = call.wantsTag && call.method != "PATCH"
            let tag = isTagged ? RealtimeReading.tag(ofHash: node.hash) : nil
            call.onLoop { [call] in call.respond(json, tag: tag) }
        }
    }

    private func json(_ write: Write, _ commit: TreeCommit) -> [UInt8] {
        var json: [UInt8] = []
        if call.parameters.form == .silent { return json }
        switch write.answer {
        case .done: json += Array("{\"status\":\"ok\"}".utf8)
        case .value: TreeJSON.append(commit.changes.first?.node ?? .empty, to: &json, form: .plain)
        case .name(let name):
            json += Array("{\"name\":".utf8)
            TreeJSON.appendString(name.string, to: &json)
            json.append(UInt8(ascii: "}"))
        case .members(let names):
            json.append(UInt8(ascii: "{"))
            for (name, change) in zip(names, commit.changes) {
                if json.count > 1 { json.append(UInt8(ascii: ",")) }
                TreeJSON.appendString(name, to: &json)
                json.append(UInt8(ascii: ":"))
                TreeJSON.append(change.node, to: &json, form: .plain)
            }
            json.append(UInt8(ascii: "}"))
        }
        return json
    }
}

extension TreeOutcome {
    fileprivate var isStale: Bool { if case .stale = self { true } else { false } }
}
