import HearthDocuments
import HearthEvents
import HearthHTTPClient
import HearthHost
import HearthModel
import HearthTree
import HearthTreeStorage
import HearthWire

/// Tests of triggers, for administrators: one made-up event, which is sent as a delivery is and counts as none.
extension TriggerService {
    /// A made-up event, and what its endpoint has answered.
    package struct TestResult: Sendable {
        /// The event as one JSON object.
        let event: [UInt8]
        let url: String
        let headers: [HTTPField]
        let body: [UInt8]
        let answer: Delivery.Answer
        let response: EventSender.Response
        let milliseconds: Int
    }

    /// Tests that may wait for their endpoints at a time.
    static let testsMax = 16
    /// Of each body, what an administrator is shown.
    static let testBodyBytesMax = 64 << 10

    /// What the event of a test is about.
    enum TestSubject {
        /// A path below `documents/` in the trigger's database, or a full name.
        case document(String)
        /// A path, in a namespace; nil for the only one that the trigger is for, or the default one of the project.
        case location(String, namespace: String?)
    }

    /// Sends the event that there would be if a document or the value of a location were now created, written anew with
    /// what it has, or deleted: the first of these that the trigger wants. Nothing is stored, and the event is no delivery:
    /// it is sent once, also to a trigger that is paused. The header `x-hearth-test: true` marks it, and its id is no other
    /// event's.
    /// - Parameters:
    ///   - project: the server's, for a trigger of all projects; one of all databases means `(default)`.
    ///   - done: called once, on the sender's thread; it must not block.
    /// - Throws: NOT_FOUND for an unknown trigger, document or value, INVALID_ARGUMENT for a path that is none or that the
    ///   trigger does not match, RESOURCE_EXHAUSTED when too many tests wait, or for an event that is too large.
    func test(
        _ name: String, _ subject: TestSubject, project: String, _ done: @escaping @Sendable (TestResult) -> Void
    ) throws(Status) {
        let definition = try existing(name)
        let (request, event): (EventRequest, [UInt8])
        switch (subject, definition.type.product) {
        case (.document(let path), .firestore):
            let document = try Self.document(path, of: definition, project: project)
            (request, event) = try self.request(document, definition)
        case (.location(let path, let namespace), .database):
            let location = try Self.location(path, namespace, of: definition, project: project)
            (request, event) = try self.request(location.path, location.namespace, definition)
        case (.location, .firestore):
            throw .invalidArgument("ref: the trigger \"\(name)\" is for documents: expected \"document\".")
        case (.document, .database):
            throw .invalidArgument(
                "document: the trigger \"\(name)\" is for the Realtime Database: expected \"ref\".")
        }
        try send(request, event, definition, done)
    }

    private func send(
        _ request: EventRequest, _ event: [UInt8], _ definition: TriggerDefinition,
        _ done: @escaping @Sendable (TestResult) -> Void
    ) throws(Status) {
        if tests.add(1, ordering: .relaxed).newValue > Self.testsMax {
            tests.subtract(1, ordering: .relaxed)
            throw .resourceExhausted("\(Self.testsMax) tests of triggers wait for their endpoints; try again later.")
        }
        let target = definition.target
        let begin = clock.now()
        sender.test(request, to: target, keptBytesMax: Self.testBodyBytesMax) { [self] answer, response in
            tests.subtract(1, ordering: .relaxed)
            var headers = EventSender.headers(request, attempt: 1)
            if target.secret != nil { headers.append(HTTPField("authorization", "Bearer ***")) }
            done(
                TestResult(
                    event: event, url: target.url, headers: headers, body: request.body, answer: answer,
                    response: response, milliseconds: Int((clock.now().microseconds - begin.microseconds) / 1000)))
        }
    }

    /// A request that is marked as a test's.
    private static func marked(_ request: EventRequest) -> EventRequest {
        EventRequest(headers: request.headers + [.init(name: "x-hearth-test", value: "true")], body: request.body)
    }

    /// The id of a made-up event: no trigger can have such a name, so that a ledger of events never takes a real one for it.
    private static func id(
        _ version: Int64, _ incarnation: Int64, _ subject: String, _ definition: TriggerDefinition
    ) -> EventID {
        EventID(
            version: version, incarnation: incarnation, subject: Array(subject.utf8),
            trigger: definition.name + " (test)")
    }

    // MARK: Cloud Firestore

    private static func document(
        _ path: String, of definition: TriggerDefinition, project: String
    ) throws(Status) -> ResourceName {
        let database = DatabaseName(
            project: definition.project ?? project, database: definition.database ?? DatabaseName.defaultDatabase)
        let isFullName = path.hasPrefix("projects/") && path.split(separator: "/").dropFirst(4).first == "documents"
        let relative = path.hasPrefix("/") ? String(path.dropFirst()) : path
        let document: ResourceName
        do throws(Status) {
            document = try ResourceName(document: isFullName ? path : "\(database.documentsRoot)/\(relative)")
        } catch {
            throw .invalidArgument("document: \(error.message)")
        }
        guard definition.isFor(document.database) else {
            throw .invalidArgument("document: the trigger \"\(definition.name)\" is not for \(document.database).")
        }
        guard definition.pattern.matches(EventPath(document.path.string)) else {
            throw .invalidArgument(
                "document: the pattern \"\(definition.pattern.string)\" does not match \"\(document.path.string)\".")
        }
        return document
    }

    /// The request, and its event as one JSON object.
    private func request(
        _ document: ResourceName, _ definition: TriggerDefinition
    ) throws(Status) -> (EventRequest, event: [UInt8]) {
        let missing = Status.notFound("document: there is no document \"\(document)\".")
        // Opening a database that is not there would be the first use of it.
        guard let directory = state.withLock({ $0.directory }), try directory.names().contains(document.database),
            let open = try opened(document.database, directory)
        else { throw missing }
        let key = DocumentKey.encode(document.path)
        guard let stored = try open.reading({ snapshot throws(Status) in try snapshot.document(key) }) else {
            throw missing
        }
        let time = max(clock.now().microseconds, stored.updateVersion + 1)
        let id = Self.id(time, open.database.incarnation, document.string, definition)
        let states = Self.states(stored, at: time, definition.type.wanted)
        func make(_ definition: TriggerDefinition) throws(Status) -> EventRequest {
            try DocumentEventRequest.make(
                document, Timestamp(microseconds: time), states, author: EventAuthor.unknown.stored, id: id,
                for: definition, location: location)
        }
        return (Self.marked(try make(definition)), try make(definition.structured).body)
    }

    /// The document before and after the commit that is made up.
    static func states(
        _ document: StoredDocument, at time: Int64, _ wanted: EventType.Wanted
    ) -> QueuedEvent.States {
        var after = document
        after.updateVersion = time
        switch wanted {
        case .created:
            after.createVersion = time
            return QueuedEvent.States(before: nil, after: after)
        case .updated, .written: return QueuedEvent.States(before: document, after: after)
        case .deleted: return QueuedEvent.States(before: document, after: nil)
        }
    }

    // MARK: Realtime Database

    private static func location(
        _ string: String, _ namespace: String?, of definition: TriggerDefinition, project: String
    ) throws(Status) -> (path: TreePath, namespace: String) {
        let namespace = namespace ?? definition.instance.only ?? RealtimeName.standard(ofProject: project)
        guard RealtimeName.isValid(namespace), definition.isFor(namespace: namespace) else {
            throw .invalidArgument("instance: the trigger \"\(definition.name)\" is not for \"\(namespace)\".")
        }
        let path = TreePath(string)
        do throws(TreeDataError) {
            try TreeLimits.standard.check(path)
        } catch {
            throw .invalidArgument("ref: \(error)")
        }
        guard !path.isRoot, definition.pattern.matches(EventPath(path.string)) else {
            throw .invalidArgument(
                "ref: the pattern \"\(definition.pattern.string)\" does not match \"\(path.string)\".")
        }
        return (path, namespace)
    }

    private func request(
        _ path: TreePath, _ namespace: String, _ definition: TriggerDefinition
    ) throws(Status) -> (EventRequest, event: [UInt8]) {
        let missing = Status.notFound("ref: there is no value at \"\(path.string)\" of \"\(namespace)\".")
        // Opening a namespace that is not there would be the first use of it.
        guard let directory = state.withLock({ $0.directory }), try directory.namespaces().contains(namespace) else {
            throw missing
        }
        try directory.openNamespace(namespace)
        guard let open = trees.open(namespace) else { throw missing }
        let bounds = TreeEvents.Bounds()
        let view = try open.tree.view()
        defer { view.close() }
        let node = try view.node(at: path, sizeBytesMax: bounds.storedBytesMax)
        if node.isEmpty { throw missing }
        let (before, after, kind): (Node, Node, ChangeKind) =
            switch definition.type.wanted {
            case .created: (.empty, node, .created)
            case .updated, .written: (node, node, .updated)
            case .deleted: (node, .empty, .deleted)
            }
        var data: [UInt8] = []
        TreeEvent.appendData(before, after, to: &data)
        if data.count > bounds.eventBytesMax {
            throw .resourceExhausted("The event has \(data.count) bytes, of at most \(bounds.eventBytesMax).")
        }
        let event = Delivery.Event(
            version: max(clock.now().microseconds, view.version + 1), key: Array(path.string.utf8))
        let id = Self.id(event.version, 0, "\(namespace)/\(path.string)", definition)
        func make(_ definition: TriggerDefinition) throws(Status) -> EventRequest {
            try TreeEventRequest.make(
                event, TreeEventRecord(kind: kind, author: .own([]), content: .data(data)), by: .unknown,
                in: namespace, for: definition, location: location, id: id)
        }
        return (Self.marked(try make(definition)), try make(definition.structured).body)
    }
}

extension TriggerService.TestResult {
    /// `{"event", "request": {"method", "url", "headers", "body", "bodyBytes"}, "answer": {…}}`, where a body that is no
    /// string is `bodyBase64` instead.
    var json: [UInt8] {
        var writer = JSONWriter()
        writer.raw("{\"event\":")
        writer.raw(String(decoding: event, as: UTF8.self))
        writer.raw(",\"request\":{\"method\":\"POST\",\"url\":")
        writer.string(url)
        Self.append(headers, body.prefix(TriggerService.testBodyBytesMax), bodyBytes: body.count, to: &writer)
        writer.raw("},\"answer\":{\"acknowledged\":")
        writer.raw(answer == .acknowledged ? "true" : "false")
        writer.raw(",\"milliseconds\":\(milliseconds)")
        switch answer {
        case .failed(let failure, _), .unreachable(let failure), .impossible(let failure):
            if case .status(let number) = failure.kind {
                writer.raw(",\"status\":\(number)")
            } else {
                writer.raw(",\"status\":\"\(failure.status)\"")
            }
            writer.raw(",\"message\":")
            writer.string(failure.reason)
        case .acknowledged, .unsent, .gone: writer.raw(",\"status\":\(response.status)")
        }
        if response.status > 0 {
            Self.append(response.headers, response.body[...], bodyBytes: response.bodyBytes, to: &writer)
        }
        writer.raw("}}")
        return writer.bytes
    }

    private static func append(
        _ headers: [HTTPField], _ body: ArraySlice<UInt8>, bodyBytes: Int, to writer: inout JSONWriter
    ) {
        writer.raw(",\"headers\":[")
        for (index, header) in headers.enumerated() {
            writer.raw(index > 0 ? ",{\"name\":" : "{\"name\":")
            writer.string(header.name)
            writer.raw(",\"value\":")
            writer.string(header.value)
            writer.raw("}")
        }
        writer.raw("],")
        if let string = readable(body, isCut: body.count < bodyBytes) {
            writer.raw("\"body\":")
            writer.string(string)
        } else {
            writer.raw("\"bodyBase64\":\"\(Base64.encode(Array(body)))\"")
        }
        writer.raw(",\"bodyBytes\":\(bodyBytes)")
    }

    /// A body as a string; nil when it has control characters, as protobuf has, or is not UTF-8. A character that is cut at
    /// the end is left out.
    private static func readable(_ body: ArraySlice<UInt8>, isCut: Bool) -> String? {
        let isPlain = body.allSatisfy { $0 >= 0x20 && $0 != 0x7F || (0x09...0x0A).contains($0) || $0 == 0x0D }
        if !isPlain { return nil }
        for cut in 0...(isCut ? min(3, body.count) : 0) {
            if let string = String(validating: body.dropLast(cut), as: UTF8.self) { return string }
        }
        return nil
    }
}
