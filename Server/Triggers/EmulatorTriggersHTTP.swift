import HearthConcurrency
import HearthEvents
import HearthHost
import HearthModel
import HearthNetwork
import HearthWire
import Synchronization

/// The registration of functions by Firebase's tools, whose functions emulator gets their events. Only on servers for local
/// development. Source: observed on Google's emulators; firebase-tools, src/emulator/functionsEmulator.ts.
///
///     PUT  /emulator/v1/projects/P/triggers/KEY                        Cloud Firestore, first generation
///     POST /emulator/v1/projects/P/eventarcTrigger?eventarcTriggerId=KEY   second generation
///     POST, PUT, GET /.settings/functionTriggers.json                  Realtime Database
///
/// KEY again replaces the definition of the trigger. It is `REGION-NAME-GENERATION`, where each load of the functions has
/// another generation, which is another definition of the same trigger: what waits is sent to the new one. Nothing is ever
/// unregistered by the tools: a key that the functions emulator answers with 404 for two seconds is removed.
package struct EmulatorTriggersHTTP: HTTPExtension {
    private let triggers: EmulatorTriggers

    private static let bodyBytesMax = 1 << 20

    package init(_ triggers: EmulatorTriggers) { self.triggers = triggers }

    private enum Method: Sendable {
        case legacy(project: String, key: String)
        case event(project: String, key: String)
        case location(namespace: String?)
        case locations(namespace: String?)
        case list(namespace: String?)
    }

    package func begin(_ exchange: HTTPExchange) -> Bool {
        guard let method = Self.method(exchange.head) else { return false }
        let call = RESTCall(exchange, isStreaming: false, options: JSONOptions())
        if case .list(let namespace) = method {
            call.respond(triggers.list(namespace))
            return true
        }
        exchange.collectBody(limitBytes: Self.bodyBytesMax) { [triggers] body in
            // That may be hundreds of triggers, in hundreds of databases.
            triggers.background {
                let result = Result { () throws(Status) in try Self.answer(method, try body.get(), triggers) }
                call.onLoop {
                    switch result {
                    case .success(let json): call.respond(json)
                    case .failure(let status): call.finish(status)
                    }
                }
            }
        }
        return true
    }

    private static func method(_ head: HTTPRequestHead) -> Method? {
        if head.path == "/.settings/functionTriggers.json" {
            let namespace = parameter("ns", head)
            switch head.method {
            case "POST": return .location(namespace: namespace)
            case "PUT": return .locations(namespace: namespace)
            case "GET": return .list(namespace: namespace)
            default: return nil
            }
        }
        guard head.path.hasPrefix("/emulator/v1/projects/") else { return nil }
        let segments = URLCoding.segments(head.path)
        guard segments.count >= 6, let project = URLCoding.decode(segments[4]), !project.isEmpty else { return nil }
        if head.method == "PUT", segments.count == 7, segments[5] == "triggers",
            let key = URLCoding.decode(segments[6])
        {
            return .legacy(project: project, key: key)
        }
        if head.method == "POST", segments.count == 6, segments[5] == "eventarcTrigger" {
            return .event(project: project, key: parameter("eventarcTriggerId", head) ?? "")
        }
        return nil
    }

    private static func parameter(_ name: String, _ head: HTTPRequestHead) -> String? {
        URLCoding.parameters(head.query)?.first { $0.name == name }?.value
    }

    private static func answer(
        _ method: Method, _ body: [UInt8], _ triggers: EmulatorTriggers
    ) throws(Status) -> [UInt8] {
        let value = try ConfigurationValue(parsing: body, file: "body")
        switch method {
        case .legacy(let project, let key):
            try triggers.setLegacy(project, key, value)
            return Array("{}".utf8)
        case .event(let project, let key):
            try triggers.setEvent(project, key, value)
            var same: [UInt8] = []
            value.appendJSON(to: &same)
            return same
        case .location(let namespace): try triggers.setLocation(namespace, value)
        case .locations(let namespace): try triggers.setLocations(namespace, value)
        case .list: break
        }
        return Array("{\"status\":\"ok\"}".utf8)
    }
}

/// The triggers that Firebase's tools have registered: they live as long as the process.
package final class EmulatorTriggers: Sendable {
    private struct Location {
        let name: String
        let members: [UInt8]
    }

    private struct State {
        /// By namespace; those for all have an empty one.
        var locations: [String: [Location]] = [:]
        var hasWarned = false
    }

    private let service: TriggerService
    /// Of the functions emulator, `HOST:PORT`; nil when it isn't known.
    private let address: String?
    private let log: Log
    private let state = Mutex(State())
    /// Has registrations made one after the other.
    private let registering = Mutex(())

    private static let keyBytesMax = 500
    /// Of one registration of the Realtime Database, as it is listed: several times what one has. The list of all is
    /// made on an event loop.
    private static let membersBytesMax = 4 << 10

    package init(_ service: TriggerService, address: String?, log: Log) {
        self.service = service
        self.address = address
        self.log = log
    }

    /// Runs a registration, which may wait for others, on a thread of the service.
    func background(_ job: @escaping @Sendable () -> Void) { service.background(job) }

    // MARK: Cloud Firestore

    func setLegacy(_ project: String, _ key: String, _ value: ConfigurationValue) throws(Status) {
        let trigger = try value.required("eventTrigger")
        let type = try Self.type(try trigger.required("eventType"), .firestore)
        let resource = try trigger.required("resource")
        let string = try resource.string()
        // projects/P/databases/D/documents/PATTERN
        let parts = string.split(separator: "/", maxSplits: 5, omittingEmptySubsequences: false).map(String.init)
        guard parts.count == 6, parts[0] == "projects", parts[2] == "databases", parts[4] == "documents" else {
            throw resource.failure("Expected projects/{project}/databases/{database}/documents/{pattern}.")
        }
        let pattern = try resource.located { () throws(Status) in try EventPattern(parts[5], of: .documents) }
        try set(project, key, type, pattern, database: parts[3], value)
    }

    func setEvent(_ project: String, _ key: String, _ value: ConfigurationValue) throws(Status) {
        let type = try Self.type(try value.required("eventType"), .firestore)
        let database = try value.member("database")?.string() ?? DatabaseName.defaultDatabase
        let document = try value.required("document")
        let path = try document.required("value")
        let matchType = try document.member("matchType")
        let isExact: Bool
        switch try matchType?.string() ?? "PATH_PATTERN" {
        case "PATH_PATTERN": isExact = false
        case "EXACT": isExact = true
        default: throw (matchType ?? document).failure("Expected PATH_PATTERN or EXACT.")
        }
        let pattern = try path.located { () throws(Status) in
            isExact
                ? try EventPattern(exactly: try path.string()) : try EventPattern(try path.string(), of: .documents)
        }
        try set(project, key, type, pattern, database: database, value)
    }

    private func set(
        _ project: String, _ key: String, _ type: EventType, _ pattern: EventPattern, database: String,
        _ value: ConfigurationValue
    ) throws(Status) {
        try Self.check(key)
        guard let url = url(project, key) else { return }
        try service.set(
            TriggerDefinition(
                emulated: Self.name(project, key), type, pattern, project: project, database: database, url: url,
                registration: value))
    }

    /// A key without its generation, if it has one.
    private static func stem(_ key: String) -> Substring {
        guard let hyphen = key.utf8.lastIndex(of: UInt8(ascii: "-")) else { return key[...] }
        let generation = key.utf8[key.utf8.index(after: hyphen)...]
        let isNumber = generation.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
        return isNumber && !generation.isEmpty ? key[..<hyphen] : key[...]
    }

    private static func check(_ key: String) throws(Status) {
        if key.isEmpty { throw .invalidArgument("eventarcTriggerId: the trigger has no key.") }
        if key.utf8.count > keyBytesMax {
            throw .invalidArgument("The key of a trigger has at most \(keyBytesMax) bytes.")
        }
    }

    /// No other trigger has such a name. All generations of a function have the same one.
    private static func name(_ project: String, _ key: String) -> String { "emulator:\(project)/\(stem(key))" }

    private func url(_ project: String, _ key: String) -> String? {
        if let address {
            return "http://\(address)/functions/projects/\(URLCoding.encode(project))/triggers/\(URLCoding.encode(key))"
        }
        let isFirst = state.withLock { state in
            defer { state.hasWarned = true }
            return !state.hasWarned
        }
        if isFirst {
            log.warning(
                "functions were registered, but not the address of their emulator: name it with --functions-emulator")
        }
        return nil
    }

    // MARK: Realtime Database

    func setLocation(_ namespace: String?, _ value: ConfigurationValue) throws(Status) {
        let (location, definition, ofNamespace) = try location(namespace, value)
        try registering.withLock { _ throws(Status) in
            var all = state.withLock { $0.locations[ofNamespace] ?? [] }
            all.removeAll { $0.name == location.name }
            all.append(location)
            try check(count: all.count, of: ofNamespace)
            if let definition { try service.set(definition) }
            state.withLock { [all] state in state.locations[ofNamespace] = all }
        }
    }

    /// Replaces all that were registered before.
    func setLocations(_ namespace: String?, _ value: ConfigurationValue) throws(Status) {
        let elements = try value.elements()
        try registering.withLock { _ throws(Status) in
            try check(count: elements.count, of: namespace ?? "")
            var all: [Location] = []
            var indices: [String: Int] = [:]
            var definitions: [String: TriggerDefinition] = [:]
            for element in elements {
                let (location, definition, _) = try location(namespace, element)
                definitions[location.name] = definition
                if let index = indices.updateValue(all.count, forKey: location.name) {
                    indices[location.name] = index
                    all[index] = location
                } else {
                    all.append(location)
                }
            }
            let former = state.withLock { $0.locations[namespace ?? ""] ?? [] }
            // One that is a function of Cloud Firestore now is no location any more.
            let gone = former.map(\.name).filter {
                indices[$0] == nil && service.definition($0)?.type.product == .database
            }
            try service.change(set: Array(definitions.values), remove: gone)
            state.withLock { [all] state in state.locations[namespace ?? ""] = all }
        }
    }

    /// - Parameter count: of a namespace's registrations.
    private func check(count: Int, of namespace: String) throws(Status) {
        let others = state.withLock { state in
            state.locations.reduce(0) { $0 + ($1.key == namespace ? 0 : $1.value.count) }
        }
        if others + count > TriggerService.countMax {
            throw .resourceExhausted("A server has at most \(TriggerService.countMax) triggers.")
        }
    }

    func list(_ namespace: String?) -> [UInt8] {
        var json = Array("[".utf8)
        for (index, location) in state.withLock({ $0.locations[namespace ?? ""] ?? [] }).enumerated() {
            if index > 0 { json.append(UInt8(ascii: ",")) }
            json += location.members
        }
        return json + Array("]".utf8)
    }

    /// - Returns: the definition is nil when nobody would get its events.
    private func location(
        _ namespace: String?, _ value: ConfigurationValue
    ) throws(Status) -> (Location, TriggerDefinition?, namespace: String) {
        let type = try Self.type(try value.required("event"), .database)
        let path = try value.required("path")
        let pattern = try path.located { () throws(Status) in
            try EventPattern(try path.string(), of: .locations)
        }
        // projects/P/locations/L/functions/KEY, or triggers/KEY
        let nameValue = try value.required("name")
        let parts = try nameValue.string().split(separator: "/", maxSplits: 5, omittingEmptySubsequences: false)
            .map(String.init)
        guard parts.count == 6, parts[0] == "projects", parts[2] == "locations" else {
            throw nameValue.failure("Expected projects/{project}/locations/{location}/functions/{key}.")
        }
        let (project, key) = (parts[1], parts[5])
        try Self.check(key)
        var instance = InstancePattern.all
        if let namespace {
            instance = try InstancePattern(namespace)
        } else if let member = try value.member("namespacePattern") {
            instance = try member.located { () throws(Status) in try InstancePattern(try member.string()) }
        }
        var members: [UInt8] = []
        value.appendJSON(to: &members)
        if members.count > Self.membersBytesMax {
            throw value.failure("A registration has at most \(Self.membersBytesMax) bytes.")
        }
        let name = Self.name(project, key)
        let definition = url(project, key).map { url in
            TriggerDefinition(
                emulated: name, type, pattern, project: nil, database: nil, instance: instance, url: url,
                registration: value)
        }
        return (Location(name: name, members: members), definition, namespace ?? "")
    }

    // MARK: Members

    private static func type(
        _ value: ConfigurationValue, _ product: EventType.Product
    ) throws(Status) -> EventType {
        let type = try EventType(value)
        if type.product != product {
            throw value.failure(
                "Expected a type of events of \(product == .firestore ? "Cloud Firestore" : "the Realtime Database").")
        }
        return type
    }
}
