import HearthConcurrency
import HearthHost
import HearthModel
import Synchronization

/// Which triggers there are, from all sources: `hearth.json`, administrators, and Firebase's tools. Where a file and
/// administrators define the same name, the file's is in force.
///
/// Its methods wait for files, and for each other.
package final class TriggerConfiguration: Sendable {
    private struct State {
        var file: [String: TriggerDefinition] = [:]
        var api: [String: TriggerDefinition] = [:]
        var stamp: FileStamp?
        /// The files of the last reading, of a refused one the secrets' too, which may come; nil to repeat it.
        var reading: FileReading?
        /// What is wrong with it.
        var fault: String?
    }

    private let state: Mutex<State>
    private let service: TriggerService
    private let source: TriggerFile
    private let store: TriggerStore
    private let polls: Bool
    private let log: Log
    private let clock: any Clock

    /// - Parameters:
    ///   - source: `hearth.json`, which need not exist.
    ///   - file: what it defines at the start.
    ///   - stored: what administrators have defined; `inForce` is what the service was made with.
    ///   - polls: whether the file is read again when it changes.
    package init(
        service: TriggerService, source: TriggerFile, file: [TriggerDefinition], store: TriggerStore,
        stored: [TriggerDefinition], polls: Bool, log: Log, clock: any Clock = SystemClock()
    ) {
        self.polls = polls
        self.clock = clock
        self.service = service
        self.source = source
        self.store = store
        self.log = log
        state = Mutex(State(file: Self.byName(file), api: Self.byName(stored), stamp: source.stamp))
        state.withLock { warnOfDouble($0) }
    }

    private static func byName(_ definitions: [TriggerDefinition]) -> [String: TriggerDefinition] {
        Dictionary(definitions.map { ($0.name, $0) }) { first, _ in first }
    }

    /// What is in force of the definitions of a file and of administrators.
    package static func inForce(file: [TriggerDefinition], stored: [TriggerDefinition]) -> [TriggerDefinition] {
        Array(byName(stored).merging(byName(file)) { _, file in file }.values)
    }

    private func warnOfDouble(_ state: State) {
        for name in state.api.keys.filter({ state.file[$0] != nil }).sorted() {
            log.warning("a trigger of hearth.json is in force instead of the stored one", ("trigger", .string(name)))
        }
    }

    // MARK: The file

    /// Reads the file when it has changed. After an error in it, or while it is missing, the triggers before it stay in force. To be called about once
    /// a second.
    package func poll() {
        if !polls { return }
        state.withLock { state in
            let stamp = source.stamp
            if state.stamp == stamp, state.reading?.isCurrent == true { return }
            state.stamp = stamp
            do throws(Status) {
                try read(&state)
                state.fault = nil
            } catch {
                if state.fault == error.message { return }
                state.fault = error.message
                log.error(
                    "the triggers of the configuration are wrong; those before stay in force",
                    ("file", .string(source.path)), ("reason", .string(error.message)))
            }
        }
    }

    private func read(_ state: inout State) throws(Status) {
        var reading = FileReading(at: clock.now())
        if state.stamp == nil, state.file.isEmpty {
            state.reading = reading
            return
        }
        let definitions: [TriggerDefinition]
        do throws(Status) {
            definitions = try source.definitions(&reading)
        } catch {
            state.reading = reading
            throw error
        }
        // What keeps triggers from being taken may be over at any time.
        state.reading = nil
        try take(definitions, &state)
        reading.forget { $0 != source.path }
        state.reading = reading
    }

    private func take(_ definitions: [TriggerDefinition], _ state: inout State) throws(Status) {
        let new = Self.byName(definitions)
        let former = state.file
        if new == former { return }
        // What administrators have stored under a name that is not in the file any more is in force again.
        let gone = former.keys.filter { new[$0] == nil }
        let changed = new.filter { former[$0.key] != $0.value }
        try service.change(
            set: changed.values + gone.compactMap { state.api[$0] }, remove: gone.filter { state.api[$0] == nil })
        state.file = new
        log.info("triggers reloaded", ("file", .string(source.path)), ("triggers", .integer(new.count)))
        warnOfDouble(state)
    }

    // MARK: Administrators

    /// The server's project.
    var project: String { source.project }

    /// Stores a trigger, and has it in force.
    /// - Throws: INVALID_ARGUMENT that names the member; ALREADY_EXISTS for one of the file, RESOURCE_EXHAUSTED beyond the
    ///   number that a server may have, UNAVAILABLE when it can't be stored.
    package func put(_ name: String, _ body: [UInt8]) throws(Status) {
        let value = try ConfigurationValue(parsing: body, file: "body")
        let definition = try source.definition(name, value, source: .api)
        try state.withLock { state throws(Status) in
            try refuseFile(name, state)
            if service.definition(name) == nil, service.definitions.count >= TriggerService.countMax {
                throw .resourceExhausted("A server has at most \(TriggerService.countMax) triggers.")
            }
            let former = state.api
            var api = former
            api[name] = definition
            try store.write(Array(api.values))
            do throws(Status) {
                try service.set(definition)
            } catch {
                try store.write(Array(former.values))
                throw error
            }
            state.api = api
        }
    }

    /// Ends a trigger that administrators have made, and drops its events.
    /// - Throws: NOT_FOUND for an unknown one, ALREADY_EXISTS for one of the file, UNAVAILABLE when that can't be stored.
    package func delete(_ name: String) throws(Status) {
        try state.withLock { state throws(Status) in
            try refuseFile(name, state)
            var api = state.api
            guard api.removeValue(forKey: name) != nil else {
                // Those of Firebase's tools are nowhere but in the service.
                if service.definition(name)?.source == .emulator, service.remove(name) { return }
                throw .notFound("There is no trigger \"\(name)\".")
            }
            try store.write(Array(api.values))
            state.api = api
            _ = service.remove(name)
        }
    }

    private func refuseFile(_ name: String, _ state: State) throws(Status) {
        if state.file[name] == nil { return }
        throw Status(.alreadyExists, "The trigger \"\(name)\" is one of \(source.path): change it there.")
    }
}

/// `hearth.json`, as far as triggers are concerned.
package struct TriggerFile: Sendable, Equatable {
    package let path: String
    /// Of triggers that name no project.
    let project: String

    package init(path: String, project: String) {
        self.path = path
        self.project = project
    }

    var stamp: FileStamp? { FileStamp(path) }

    /// The folder that the names of secrets' files are relative to.
    private var folder: String {
        guard let slash = path.lastIndex(of: "/") else { return "" }
        return String(path[...slash])
    }

    /// - Throws: INVALID_ARGUMENT with file, line and member, FAILED_PRECONDITION for a file that can't be read, or is not
    ///   there: it may be replaced at this moment, and without its triggers their events would be lost.
    func definitions(_ reading: inout FileReading) throws(Status) -> [TriggerDefinition] {
        guard let bytes = try reading.read(path) else { throw .failedPrecondition("The file is missing.") }
        let value = try ConfigurationValue(parsing: bytes, file: path).member("triggers")
        return try definitions(value, source: .file, &reading)
    }

    /// - Parameter value: the member `triggers`.
    /// - Throws: INVALID_ARGUMENT with file, line and member.
    package func definitions(
        _ value: ConfigurationValue?, source: TriggerDefinition.Source
    ) throws(Status) -> [TriggerDefinition] {
        var reading = FileReading()
        return try definitions(value, source: source, &reading)
    }

    private func definitions(
        _ value: ConfigurationValue?, source: TriggerDefinition.Source, _ reading: inout FileReading
    ) throws(Status) -> [TriggerDefinition] {
        guard let value else { return [] }
        var names: Set<String> = []
        var definitions: [TriggerDefinition] = []
        for member in try value.members() {
            if !names.insert(member.name).inserted {
                throw member.value.failure("There are two triggers of this name.")
            }
            definitions.append(try definition(member.name, member.value, source: source, &reading))
        }
        if definitions.count > TriggerService.countMax {
            throw value.failure("A server has at most \(TriggerService.countMax) triggers.")
        }
        return definitions
    }

    /// What a start of the server would find wrong in the file, for people: the first error of each trigger.
    /// - Returns: how many triggers are right, and for each error a sentence with file, line, column and member.
    /// - Throws: INVALID_ARGUMENT for what is no JSON, FAILED_PRECONDITION for a file that can't be read or is not there.
    package func check() throws(Status) -> (count: Int, errors: [Status]) {
        guard let bytes = try TextFile.read(path) else { throw .failedPrecondition("\(path) is not there.") }
        guard let value = try ConfigurationValue(parsing: bytes, file: path).member("triggers") else { return (0, []) }
        var names: Set<String> = []
        var (count, errors): (Int, [Status]) = (0, [])
        let members = try value.members()
        if members.count > TriggerService.countMax {
            errors.append(value.failure("A server has at most \(TriggerService.countMax) triggers."))
        }
        for member in members {
            do throws(Status) {
                try define(member, &names)
                count += 1
            } catch {
                errors.append(error)
            }
        }
        return (count, errors)
    }

    private func define(_ member: ConfigurationValue.Member, _ names: inout Set<String>) throws(Status) {
        if !names.insert(member.name).inserted { throw member.value.failure("There are two triggers of this name.") }
        _ = try definition(member.name, member.value, source: .file)
    }

    func definition(
        _ name: String, _ value: ConfigurationValue, source: TriggerDefinition.Source
    ) throws(Status) -> TriggerDefinition {
        var reading = FileReading()
        return try definition(name, value, source: source, &reading)
    }

    private func definition(
        _ name: String, _ value: ConfigurationValue, source: TriggerDefinition.Source, _ reading: inout FileReading
    ) throws(Status) -> TriggerDefinition {
        try TriggerDefinition(name: name, value, source: source, defaultProject: project) { file throws(Status) in
            // An administrator over the network could have any file's content sent to an address of their own.
            if source == .api, !Self.isSecretOfNetwork(file) {
                throw .invalidArgument(
                    "Expected the name of a file below the folder of the configuration that ends with \".trigger-secret\"."
                )
            }
            guard let bytes = try reading.read(file.hasPrefix("/") ? file : folder + file) else {
                throw .failedPrecondition("The file \(file) is not there.")
            }
            return bytes
        }
    }
}

extension TriggerFile {
    /// Whether a definition that came over the network may name a file.
    private static func isSecretOfNetwork(_ file: String) -> Bool {
        !file.hasPrefix("/") && !file.utf8.split(separator: UInt8(ascii: "/")).contains { $0.elementsEqual("..".utf8) }
            && file.hasSuffix(".trigger-secret")
    }
}

/// The triggers that administrators have made, kept with the data.
package struct TriggerStore: Sendable {
    /// Nil keeps nothing.
    private let path: String?
    private let file: TriggerFile
    private let replace: @Sendable (_ path: String, _ bytes: [UInt8]) throws(Status) -> Void

    /// - Parameters:
    ///   - path: nil when the data is in memory.
    ///   - file: the configuration, beside which secrets are.
    ///   - replace: writes a file, durably and all or nothing.
    package init(
        path: String?, file: TriggerFile,
        replace: @escaping @Sendable (_ path: String, _ bytes: [UInt8]) throws(Status) -> Void
    ) {
        self.path = path
        self.file = file
        self.replace = replace
    }

    /// - Throws: INVALID_ARGUMENT or FAILED_PRECONDITION for a file that can't be read: without its triggers their events would
    ///   be dropped.
    package func read() throws(Status) -> [TriggerDefinition] {
        guard let path, let bytes = try TextFile.read(path) else { return [] }
        return try file.definitions(
            try ConfigurationValue(parsing: bytes, file: path).member("triggers"), source: .api)
    }

    func write(_ definitions: [TriggerDefinition]) throws(Status) {
        guard let path else { return }
        var json = Array("{\"triggers\":{".utf8)
        let sorted = definitions.sorted { UTF8Order.compare($0.name, $1.name) < 0 }
        for (index, definition) in sorted.enumerated() {
            json += Array("\(index > 0 ? "," : "")\n\"\(definition.name)\":".utf8)
            json += definition.members
        }
        json += Array("}}\n".utf8)
        try replace(path, json)
    }
}
