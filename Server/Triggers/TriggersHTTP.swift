import HearthConcurrency
import HearthEvents
import HearthHost
import HearthModel
import HearthNetwork
import HearthWire

/// The administrators' interface of triggers: `/hearth/v1/triggers`.
package struct TriggersHTTP: HTTPExtension {
    /// Calls back on the exchange's loop, with an error unless its sender administers the server.
    package typealias Permit =
        @Sendable (
            _ exchange: HTTPExchange, _ changes: Bool, _ done: @escaping @Sendable (Result<Void, Status>) -> Void
        ) -> Void

    private let service: TriggerService
    private let configuration: TriggerConfiguration
    private let permit: Permit
    private let observer: RequestObserver

    private static let bodyBytesMax = 64 << 10
    private static let pageMax = 1000

    package init(
        service: TriggerService, configuration: TriggerConfiguration, observer: RequestObserver,
        permit: @escaping Permit
    ) {
        self.service = service
        self.configuration = configuration
        self.permit = permit
        self.observer = observer
    }

    private enum Method: Sendable {
        case list
        case get(String)
        case put(String)
        case delete(String)
        case deadLetters(String, after: String?, limit: Int)
        case deleteDeadLetters(String)
        case replay(String)
        case retry(String)
        case test(String)

        var changes: Bool {
            switch self {
            case .list, .get, .deadLetters: false
            case .put, .delete, .deleteDeadLetters, .replay, .retry, .test: true
            }
        }

        var hasBody: Bool {
            switch self {
            case .put, .replay, .test: true
            default: false
            }
        }
    }

    package func begin(_ exchange: HTTPExchange) -> Bool {
        let path = exchange.head.path
        guard path == "/hearth/v1/triggers" || path.hasPrefix("/hearth/v1/triggers/") else { return false }
        let call = RESTCall(
            exchange, isStreaming: false, options: JSONOptions(),
            observation: observer.begin(.admin, .rest, remote: exchange.head.remoteAddress))
        let method: Method
        do throws(Status) {
            method = try Self.method(exchange.head)
        } catch {
            call.finish(error)
            return true
        }
        permit(exchange, method.changes) { result in
            do throws(Status) {
                try result.get()
            } catch {
                return call.finish(error)
            }
            guard method.hasBody else { return run(method, [], call) }
            exchange.collectBody(limitBytes: Self.bodyBytesMax) { body in
                switch body {
                case .success(let body): run(method, body, call)
                case .failure(let status): call.finish(status)
                }
            }
        }
        return true
    }

    private static func method(_ head: HTTPRequestHead) throws(Status) -> Method {
        var segments: [String] = []
        for segment in URLCoding.segments(head.path).dropFirst(4) {
            guard let decoded = URLCoding.decode(segment) else {
                throw .invalidArgument("The path segment \"\(segment)\" can't be decoded.")
            }
            segments.append(decoded)
        }
        guard let parameters = URLCoding.parameters(head.query) else {
            throw .invalidArgument("The query of the URL can't be decoded.")
        }
        let found: Method
        switch (head.method, segments.count, segments.last) {
        case ("GET", 0, _): found = .list
        case ("GET", 1, _): found = .get(segments[0])
        case ("PUT", 1, _): found = .put(segments[0])
        case ("DELETE", 1, _): found = .delete(segments[0])
        case ("GET", 2, "dead-letters"): return try deadLetters(segments[0], parameters)
        case ("DELETE", 2, "dead-letters"): found = .deleteDeadLetters(segments[0])
        case ("POST", 2, "replay"): found = .replay(segments[0])
        case ("POST", 2, "retry"): found = .retry(segments[0])
        case ("POST", 2, "test"): found = .test(segments[0])
        default: throw .notFound("There is no method \(head.method) \(head.path).")
        }
        if let first = parameters.first { throw .invalidArgument("There is no parameter \"\(first.name)\".") }
        return found
    }

    private static func deadLetters(
        _ name: String, _ parameters: [(name: String, value: String)]
    ) throws(Status) -> Method {
        var after: String?
        var limit = 100
        for (parameter, value) in parameters {
            switch parameter {
            case "after": after = value
            case "limit":
                guard let number = Int(value), (1...pageMax).contains(number) else {
                    throw .invalidArgument("limit: expected a number from 1 to \(pageMax).")
                }
                limit = number
            default: throw .invalidArgument("There is no parameter \"\(parameter)\".")
            }
        }
        return .deadLetters(name, after: after, limit: limit)
    }

    /// Waits for disks, so not on the loop; what may take long doesn't keep the rest waiting.
    private func run(_ method: Method, _ body: [UInt8], _ call: RESTCall) {
        switch method {
        case .list: answer(call) { () throws(Status) in list() }
        case .get(let name): answer(call) { () throws(Status) in try report(name) }
        case .put(let name):
            answer(call) { () throws(Status) in
                try configuration.put(name, body)
                return try report(name)
            }
        case .delete(let name):
            answer(call) { () throws(Status) in
                try configuration.delete(name)
                return Array("{}".utf8)
            }
        case .retry(let name):
            answer(call) { () throws(Status) in Array("{\"pending\":\(try service.retry(name))}".utf8) }
        case .deadLetters(let name, let after, let limit):
            service.longBackground {
                service.waitUntilOpened()
                finish(
                    call,
                    Result { () throws(Status) in
                        TriggerReport.deadLetters(try service.deadLetters(name, after: after, limit: limit))
                    })
            }
        case .test(let name): service.backgroundWhenOpened { test(name, body, call) }
        case .deleteDeadLetters(let name):
            run(call, "deadLetters") { () throws(Status) in try service.deletion(ofDeadLetters: name) }
        case .replay(let name): run(call, "events") { () throws(Status) in try replay(name, body) }
        }
    }

    private func answer(_ call: RESTCall, _ make: @escaping @Sendable () throws(Status) -> [UInt8]) {
        service.backgroundWhenOpened { finish(call, Result { () throws(Status) in try make() }) }
    }

    /// - Parameter member: what is counted.
    private func run(
        _ call: RESTCall, _ member: String, _ begin: @escaping @Sendable () throws(Status) -> any TriggerSteps
    ) {
        service.longBackground {
            do throws(Status) {
                service.waitUntilOpened()
                service.background(try begin()) { result in
                    finish(call, result.map { Array("{\"\(member)\":\($0)}".utf8) })
                }
            } catch {
                finish(call, .failure(error))
            }
        }
    }

    private func finish(_ call: RESTCall, _ result: Result<[UInt8], Status>) {
        call.onLoop {
            switch result {
            case .success(let json): call.respond(json)
            case .failure(let status): call.finish(status)
            }
        }
    }

    private func list() -> [UInt8] {
        var writer = JSONWriter()
        writer.raw("{\"triggers\":[")
        service.forgetDeleted()
        let totals = service.totals()
        for (index, definition) in service.definitions.enumerated() {
            if index > 0 { writer.raw(",") }
            TriggerReport.append(definition, service, totals[definition.id], to: &writer)
        }
        writer.raw("]}")
        return writer.bytes
    }

    /// Answers when the endpoint has, which other requests of administrators don't wait for.
    private func test(_ name: String, _ body: [UInt8], _ call: RESTCall) {
        do throws(Status) {
            try service.test(name, try Self.subject(body), project: configuration.project) { result in
                let json = result.json
                call.onLoop { call.respond(json) }
            }
        } catch {
            call.onLoop { call.finish(error) }
        }
    }

    /// What the event of a test is about.
    private static func subject(_ body: [UInt8]) throws(Status) -> TriggerService.TestSubject {
        let value = try ConfigurationValue(parsing: body, file: "body")
        let known = ["document", "ref", "instance"]
        for member in try value.members() where !known.contains(member.name) {
            throw member.value.failure("Unknown member\(Spelling.hint(for: member.name, among: known))")
        }
        let instance = try value.member("instance")
        switch (try value.member("document"), try value.member("ref")) {
        case (let document?, nil):
            if let instance { throw instance.failure("A document has no instance.") }
            return .document(try document.string())
        case (nil, let ref?): return .location(try ref.string(), namespace: try instance?.string())
        default: throw value.failure("Expected {\"document\": PATH} or {\"ref\": PATH}.")
        }
    }

    private func report(_ name: String) throws(Status) -> [UInt8] {
        guard let definition = service.definition(name) else { throw .notFound("There is no trigger \"\(name)\".") }
        service.forgetDeleted()
        var writer = JSONWriter()
        TriggerReport.append(definition, service, service.totals()[definition.id], to: &writer)
        return writer.bytes
    }

    private func replay(_ name: String, _ body: [UInt8]) throws(Status) -> any TriggerSteps {
        let value = try ConfigurationValue(parsing: body, file: "body")
        let known = ["deadLetters", "since"]
        for member in try value.members() where !known.contains(member.name) {
            throw member.value.failure("Unknown member\(Spelling.hint(for: member.name, among: known))")
        }
        let wantsLetters = try value.member("deadLetters")?.boolean() ?? false
        let since = try value.member("since")
        if wantsLetters, let since { throw since.failure("A replay is of dead letters or of a time, not of both.") }
        if wantsLetters { return try service.replay(ofDeadLetters: name) }
        guard let since else { throw value.failure("Expected {\"deadLetters\": true} or {\"since\": TIME}.") }
        guard let instant = RFC3339.parse(try since.string()),
            let time = Timestamp(seconds: instant.seconds, nanoseconds: Int64(instant.nanoseconds))
        else {
            throw since.failure("Expected a time such as \"2026-11-22T19:17:22Z\".")
        }
        return try service.replay(name, since: time)
    }
}

/// Triggers and dead letters as JSON.
enum TriggerReport {
    /// What no member of a definition is called in a report.
    static let ownMembers: Set<String> = [
        "name", "source", "state", "pending", "oldestPending", "delivered", "failedAttempts", "deadLetters",
        "lastError",
    ]

    static func append(
        _ definition: TriggerDefinition, _ service: TriggerService, _ known: TriggerTotals?, to writer: inout JSONWriter
    ) {
        let totals = known ?? TriggerTotals()
        let figures = service.journal.figures(definition.id)
        writer.raw("{\"name\":")
        writer.string(definition.name)
        // The members of the definition, without its braces.
        let members = definition.members.dropFirst().dropLast()
        if !members.isEmpty { writer.raw("," + String(decoding: members, as: UTF8.self)) }
        writer.raw(",\"source\":\"\(definition.source.rawValue)\",\"state\":\"")
        writer.raw(definition.terms.isPaused ? "paused" : figures.failure != nil ? "failing" : "active")
        writer.raw("\",\"pending\":\(totals.pending)")
        if let oldest = totals.oldest.map({ Timestamp(microseconds: $0) }) {
            writer.raw(",\"oldestPending\":\"\(EventTime.string(oldest, digits: 6))\"")
        }
        writer.raw(",\"delivered\":\(figures.delivered),\"failedAttempts\":\(figures.failedAttempts)")
        writer.raw(",\"deadLetters\":\(totals.deadLetters)")
        if let error = figures.lastError {
            writer.raw(",\"lastError\":")
            append(error.failure, at: error.time, to: &writer)
        }
        writer.raw("}")
    }

    private static func append(_ failure: DeliveryFailure, at time: Timestamp?, to writer: inout JSONWriter) {
        writer.raw("{")
        if let time { writer.raw("\"time\":\"\(EventTime.string(time, digits: 6))\",") }
        if case .status(let number) = failure.kind {
            writer.raw("\"status\":\(number),\"message\":")
        } else {
            writer.raw("\"status\":\"\(failure.status)\",\"message\":")
        }
        writer.string(failure.message)
        writer.raw("}")
    }

    static func deadLetters(_ items: [TriggerService.DeadLetterItem]) -> [UInt8] {
        var writer = JSONWriter()
        writer.raw("{\"deadLetters\":[")
        for (index, item) in items.enumerated() {
            if index > 0 { writer.raw(",") }
            writer.raw("{\"id\":\"\(item.id)\",\"time\":\"\(EventTime.string(item.time, digits: 6))\",\"document\":")
            writer.string(item.document)
            writer.raw(",\"attempts\":\(item.attempts),\"lastError\":")
            append(item.failure, at: nil, to: &writer)
            if let event = item.event {
                writer.raw(",\"event\":")
                writer.raw(String(decoding: event, as: UTF8.self))
            }
            writer.raw("}")
        }
        writer.raw("]}")
        return writer.bytes
    }
}
