import Foundation
import HearthModel
import HearthWire

@testable import HearthSync

/// Runs one spec test: executes its steps, and compares after each.
final class SpecRunner {
    typealias Object = [String: Any]

    private let steps: [Object]
    private let driver: SpecDriver
    private let serializer = MutationSerializer(database: SpecDriver.database)
    /// Writes without an answer, in the order of their creation.
    private var outstanding: [ClientUser: [WriteMessage]] = [:]
    private var expectedTargets: Object = [:]
    private var expectedLimbo: Set<String> = []
    private var expectedEnqueuedLimbo: Set<String> = []
    /// A test checks the watch stream during its backoff.
    private var leavesWatchBackoff = false

    init(_ test: Object, cache: SpecCache) throws {
        guard let steps = test["steps"] as? [Object], let config = test["config"] as? Object,
            let isEager = config["useEagerGCForMemory"] as? Bool
        else { throw SpecFailure("A test needs steps and a config.") }
        self.steps = steps
        driver = try SpecDriver(
            cache: cache, isEager: isEager,
            limboResolutionsMax: config["maxConcurrentLimboResolutions"] as? Int ?? .max)
    }

    func run() throws {
        defer { driver.shutDown() }
        for (index, step) in steps.enumerated() {
            do {
                try perform(step)
                try check(step)
            } catch {
                let action = step.keys.filter { !$0.hasPrefix("expected") }.sorted().joined(separator: ", ")
                throw SpecFailure("Step \(index + 1) (\(action)): \(error)")
            }
        }
    }

    // MARK: Steps

    private func perform(_ step: Object) throws {
        let actions = step.keys.filter { !$0.hasPrefix("expected") && $0 != "clientIndex" }
        guard actions.count == 1, let action = actions.first, let argument = step[action] else {
            throw SpecFailure("A step has one action, not \(actions).")
        }
        switch action {
        case "userListen": try listen(try object(argument))
        case "userUnlisten":
            let list = try self.list(argument)
            try driver.unlisten(try SpecQuery.parse(list[1]))
        case "userSet":
            let (path, fields) = try pathAndFields(argument)
            try write(Mutation(key: ResourcePath(string: path), kind: .set(try SpecQuery.map(fields))))
        case "userPatch": try patch(argument)
        case "userDelete": try write(Mutation(key: ResourcePath(string: try string(argument)), kind: .delete))
        case "addSnapshotsInSyncListener": try driver.addInSyncListener()
        case "removeSnapshotsInSyncListener": try driver.removeInSyncListener()
        case "waitForPendingWrites": try driver.waitForPendingWrites()
        case "loadBundle": try driver.loadBundle(try string(argument))
        case "changeUser":
            driver.credentials.change(ClientUser(uid: argument as? String))
            driver.core.queue.drain()
        case "enableNetwork": try enableNetwork(try flag(argument))
        case "restart":
            try driver.restart()
            expectedTargets = [:]
            expectedLimbo = []
            expectedEnqueuedLimbo = []
        case "triggerLruGC": try driver.collectGarbage(thresholdBytes: Int64(try number(argument)))
        case "runTimer": try runTimer(try string(argument))
        case "drainQueue": driver.core.queue.drain()
        case "writeAck": try acknowledgeWrite(try object(argument))
        case "failWrite": try failWrite(try object(argument))
        case "watchStreamClose":
            let close = try object(argument)
            leavesWatchBackoff = try !flag(close["runBackoffTimer"] ?? true)
            try driver.backend.closeWatch(try status(close["error"]))
            driver.core.queue.drain()
        default:
            for response in try SpecMessages.responses(action, argument, driver.backend) { try driver.say(response) }
        }
        driver.skipBackoff(ofWatchStream: !leavesWatchBackoff)
    }

    private func listen(_ argument: Object) throws {
        guard let query = argument["query"] else { throw SpecFailure("A listen needs a query.") }
        let options = argument["options"] as? Object
        let isCache = options?["source"] as? String == "cache"
        let targetID = try driver.listen(try SpecQuery.parse(query), source: isCache ? .cache : .default)
        try expect(Int(targetID), try number(argument["targetId"]), "the target's id")
    }

    private func patch(_ argument: Any) throws {
        let (path, fields) = try pathAndFields(argument)
        var value = MapValue()
        var mask: [FieldPath] = []
        for (name, member) in fields {
            let field = SpecQuery.fieldPath(name)
            mask.append(field)
            if member as? String != "<DELETE>" { value.set(field, try SpecQuery.value(member)) }
        }
        try write(
            Mutation(
                key: ResourcePath(string: path), kind: .patch(value, mask: mask.sorted()), precondition: .exists(true)))
    }

    private func write(_ mutation: Mutation) throws {
        outstanding[driver.credentials.user, default: []].append(serializer.message(mutation))
        try driver.write(mutation)
    }

    private func enableNetwork(_ isEnabled: Bool) throws {
        try driver.engine { engine throws(Status) in
            if isEnabled {
                engine.remoteStore.enableNetwork()
            } else {
                engine.remoteStore.fillWritePipeline()
                engine.remoteStore.disableNetwork()
            }
        }
    }

    private func runTimer(_ name: String) throws {
        if name == "all" { return driver.core.queue.runDelayed(through: nil) }
        guard let timer = WorkerQueue.TimerName(rawValue: name) else { throw SpecFailure("No timer \(name).") }
        guard driver.core.queue.isScheduled(timer) else { throw SpecFailure("The timer \(name) doesn't run.") }
        driver.core.queue.runDelayed(through: timer)
    }

    private func acknowledgeWrite(_ argument: Object) throws {
        try takeSentWrite(keeps: argument["keepInQueue"] as? Bool ?? false)
        let version = TimestampMessage(Timestamp(microseconds: Int64(try number(argument["version"]))))
        try driver.backend.answerWrite(
            WriteResponse(
                streamToken: Array("ack".utf8), writeResults: [WriteResultMessage(updateTime: version)],
                commitTime: version))
        driver.core.queue.drain()
    }

    private func failWrite(_ argument: Object) throws {
        try takeSentWrite(keeps: argument["keepInQueue"] as? Bool ?? false)
        try driver.backend.failWrite(try status(argument["error"]))
        driver.core.queue.drain()
    }

    /// The next request must be the first of the writes without an answer.
    private func takeSentWrite(keeps: Bool) throws {
        guard let expected = outstanding[driver.credentials.user]?.first else {
            throw SpecFailure("There is no write without an answer.")
        }
        let sent = try driver.backend.takeWrite()
        try expect(sent.writes.map { $0.protobuf() }, [expected.protobuf()], "the write sent")
        if !keeps { outstanding[driver.credentials.user]?.removeFirst() }
    }

    // MARK: Expectations

    private func check(_ step: Object) throws {
        try checkEvents(step["expectedSnapshotEvents"] as? [Object] ?? [])
        let state = step["expectedState"] as? Object ?? [:]
        try checkState(state)
        let callbacks = state["userCallbacks"] as? Object ?? [:]
        try expect(driver.acknowledged, callbacks["acknowledgedDocs"] as? [String] ?? [], "acknowledged writes")
        try expect(driver.rejected, callbacks["rejectedDocs"] as? [String] ?? [], "rejected writes")
        try checkLimbo()
        try checkTargets()
        try expect(driver.inSyncCount, step["expectedSnapshotsInSyncEvents"] as? Int ?? 0, "snapshots-in-sync events")
        try expect(
            driver.pendingWritesCount, step["expectedWaitForPendingWritesEvents"] as? Int ?? 0,
            "pending-writes events")
        driver.events = []
        driver.acknowledged = []
        driver.rejected = []
        driver.inSyncCount = 0
        driver.pendingWritesCount = 0
    }

    private func checkEvents(_ expected: [Object]) throws {
        var sorted: [(query: ClientQuery, event: Object)] = []
        for event in expected {
            guard let query = event["query"] else { throw SpecFailure("An event needs a query.") }
            sorted.append((try SpecQuery.parse(query), event))
        }
        sorted = stable(sorted) { $0.query.canonicalID }
        let events = stable(driver.events) { $0.query.canonicalID }
        try expect(events.map(\.query.canonicalID), sorted.map(\.query.canonicalID), "the events' queries")
        for (event, (query, expected)) in zip(events, sorted) { try check(event, query, expected) }
    }

    private func stable<Element>(_ list: [Element], by id: (Element) -> String) -> [Element] {
        list.enumerated().sorted { left, right in
            let ids = (id(left.element), id(right.element))
            return ids.0 != ids.1 ? ids.0 < ids.1 : left.offset < right.offset
        }.map(\.element)
    }

    private func check(_ event: SpecDriver.Event, _ query: ClientQuery, _ expected: Object) throws {
        let code = expected["errorCode"] as? Int ?? 0
        switch event {
        case .failure(_, let error): try expect(error.code.rawValue, code, "the error of \(query.canonicalID)")
        case .snapshot(let snapshot):
            try expect(0, code, "the error of \(query.canonicalID)")
            try expect(snapshot.query, query, "the query")
            try expect(snapshot.isFromCache, expected["fromCache"] as? Bool ?? false, "from cache")
            try expect(snapshot.hasPendingWrites, expected["hasPendingWrites"] as? Bool ?? false, "pending writes")
            let kinds: [(String, ViewSnapshot.Change.Kind)] = [
                ("added", .added), ("removed", .removed), ("modified", .modified), ("metadata", .metadata),
            ]
            for (name, kind) in kinds {
                let documents = try (expected[name] as? [Object] ?? []).map { try SpecMessages.document($0) }
                let actual = snapshot.changes.filter { $0.kind == kind }.map(\.document)
                let sortedActual = actual.sorted { $0.key.string < $1.key.string }
                try expect(sortedActual, documents.sorted { $0.key.string < $1.key.string }, "\(name) documents")
            }
        }
    }

    private func checkState(_ state: Object) throws {
        for (name, value) in state {
            switch name {
            case "activeTargets": expectedTargets = try object(value)
            case "activeLimboDocs": expectedLimbo = Set(try list(value).map(string))
            case "enqueuedLimboDocs": expectedEnqueuedLimbo = Set(try list(value).map(string))
            case "userCallbacks", "isPrimary": break
            case "numOutstandingWrites":
                let count = try driver.engine { $0.remoteStore.outstandingWriteCount }
                try expect(count, try number(value), "outstanding writes")
            case "writeStreamRequestCount":
                try expect(driver.backend.writeRequestCount, try number(value), "requests on the write stream")
            case "watchStreamRequestCount":
                try expect(driver.backend.watchRequestCount, try number(value), "requests on the watch stream")
            default: throw SpecFailure("No expectation \(name).")
            }
        }
    }

    private func checkLimbo() throws {
        let (active, enqueued) = try driver.engine { engine in
            (engine.limbo.active, Set(engine.limbo.enqueued.map(\.string)))
        }
        try expect(Set(active.keys.map(\.string)), expectedLimbo, "documents in limbo")
        for (key, targetID) in active where expectedTargets["\(targetID)"] == nil {
            throw SpecFailure("The limbo target \(targetID) of \(key.string) isn't expected.")
        }
        try expect(enqueued, expectedEnqueuedLimbo, "enqueued limbo documents")
    }

    private func checkTargets() throws {
        let actual = driver.backend.activeTargets
        guard try driver.engine({ $0.remoteStore.canUseNetwork }) else {
            return try expect(actual.keys.sorted(), [], "targets without a network")
        }
        try expect(actual.keys.sorted(), expectedTargets.keys.compactMap { Int32($0) }.sorted(), "active targets")
        for (targetID, active) in actual {
            guard let expected = expectedTargets["\(targetID)"] as? Object else { continue }
            try check(active, try object(expected), targetID)
        }
    }

    private func check(_ active: SpecBackend.ActiveTarget, _ expected: Object, _ targetID: Int32) throws {
        guard let queries = expected["queries"] as? [Any], let first = queries.first else {
            throw SpecFailure("An active target needs queries.")
        }
        let target = try SpecQuery.parse(first).target
        let message = TargetSerializer(database: SpecDriver.database).message(target)
        let label = "target \(targetID)"
        try expect(active.message.query?.protobuf(), message.query?.protobuf(), "\(label): query")
        try expect(active.message.documents?.documents, message.documents?.documents, "\(label): documents")
        let token = Array((expected["resumeToken"] as? String ?? "").utf8)
        try expect(active.message.resumeToken ?? [], token, "\(label): resume token")
        if token.isEmpty {
            let readTime = try active.message.readTime?.timestamp().microseconds
            let expectedTime = (expected["readTime"] as? Int).map { Int64($0) }
            try expect(readTime ?? 0, expectedTime ?? 0, "\(label): read time")
        }
        if let count = expected["expectedCount"] as? Int {
            try expect(active.message.expectedCount.map { Int($0) }, count, "\(label): expected count")
        }
        let purposes = [
            "TargetPurposeListen": nil, "TargetPurposeExistenceFilterMismatch": "existence-filter-mismatch",
            "TargetPurposeExistenceFilterMismatchBloom": "existence-filter-mismatch-bloom",
            "TargetPurposeLimboResolution": "limbo-document",
        ]
        let purpose = expected["targetPurpose"] as? String ?? "TargetPurposeListen"
        guard let expectedLabel = purposes[purpose] else { throw SpecFailure("No purpose \(purpose).") }
        try expect(active.label, expectedLabel, "\(label): purpose")
    }

    // MARK: Reading

    private func expect<Value: Equatable>(_ actual: Value, _ expected: Value, _ what: String) throws {
        if actual != expected { throw SpecFailure("\(what): expected \(expected), got \(actual)") }
    }

    private func pathAndFields(_ argument: Any) throws -> (String, Object) {
        let list = try list(argument)
        guard list.count == 2 else { throw SpecFailure("Expected a path and fields: \(argument)") }
        return (try string(list[0]), try object(list[1]))
    }

    private func status(_ json: Any?) throws -> Status { try SpecMessages.status(json) }

    private func object(_ json: Any) throws -> Object {
        guard let object = json as? Object else { throw SpecFailure("Expected an object: \(json)") }
        return object
    }

    private func list(_ json: Any) throws -> [Any] {
        guard let list = json as? [Any] else { throw SpecFailure("Expected a list: \(json)") }
        return list
    }

    private func string(_ json: Any) throws -> String {
        guard let string = json as? String else { throw SpecFailure("Expected a string: \(json)") }
        return string
    }

    private func number(_ json: Any?) throws -> Int {
        guard let number = json as? Int else { throw SpecFailure("Expected a number: \(String(describing: json))") }
        return number
    }

    private func flag(_ json: Any) throws -> Bool {
        guard let flag = json as? Bool else { throw SpecFailure("Expected true or false: \(json)") }
        return flag
    }
}
