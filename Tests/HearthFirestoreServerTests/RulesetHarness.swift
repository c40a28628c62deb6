import HearthModel
import HearthRules
import HearthTestSupport
import Synchronization
import Testing

@testable import HearthFirestoreServer
@testable import HearthHost

/// A disk of rules that may end at any step, as a killed process does, and that a later process reads again.
final class BreakingRulesDisk: RulesDisk {
    private struct State {
        /// Steps until everything fails; nil for never.
        var stepsLeft: Int?
        /// Whether the step that is too many happens before the failure, as when a process ends before it answers.
        var completesLast = false
    }

    private let disk: MemoryRulesDisk
    private let state = Mutex(State())
    static let failure = Status.unavailable("Cannot write /secret/folder: No space left on device.")

    init(_ disk: MemoryRulesDisk = MemoryRulesDisk()) {
        self.disk = disk
    }

    func breakAfter(_ steps: Int?, completesLast: Bool = false) {
        state.withLock { $0 = State(stepsLeft: steps, completesLast: completesLast) }
    }

    private func step(_ body: () throws(Status) -> Void) throws(Status) {
        let (isBroken, completes) = state.withLock { state in
            guard let left = state.stepsLeft else { return (false, true) }
            state.stepsLeft = left - 1
            return (left <= 0, left > 0 || left == 0 && state.completesLast)
        }
        if completes { try body() }
        if isBroken { throw Self.failure }
    }

    func folders() -> [String] { disk.folders() }
    func folder(of project: String) -> String { disk.folder(of: project) }
    func path(_ name: String, in folder: String) -> String { disk.path(name, in: folder) }
    func names(in folder: String) -> [String] { disk.names(in: folder) }
    func read(_ name: String, in folder: String) -> [UInt8]? { disk.read(name, in: folder) }

    func write(_ bytes: [UInt8], _ name: String, in folder: String) throws(Status) {
        try step { () throws(Status) in try disk.write(bytes, name, in: folder) }
    }

    func remove(_ name: String, in folder: String) throws(Status) { try step { disk.remove(name, in: folder) } }
}

/// The rules of a server, and the methods of the API over them.
struct RulesetHarness {
    let registry = RulesRegistry()
    let library: RulesLibrary
    let clock: StoppedClock

    init(_ disk: any RulesDisk = MemoryRulesDisk(), project: String = "p", clock: StoppedClock = StoppedClock()) throws
    {
        self.clock = clock
        library = RulesLibrary(disk: disk, registry: registry, project: project, clock: clock, log: Log())
        try library.load()
    }

    static func source(_ condition: String) -> String {
        "rules_version = '2';\nservice cloud.firestore {\n  match /{d=**} { allow read: if \(condition); }\n}\n"
    }

    static func body(_ condition: String, name: String = "firestore.rules") -> String {
        let content = source(condition).split(separator: "\n", omittingEmptySubsequences: false)
            .joined(separator: "\\n")
        return #"{"source":{"files":[{"name":"\#(name)","content":"\#(content)"}]}}"#
    }

    /// The source in force for a database of the project.
    func inForce(_ database: String = "(default)", project: String = "p") -> String? {
        registry.ruleset(of: DatabaseName(project: project, database: database))?.source
    }

    func setFile(_ condition: String, database: String = "(default)") throws {
        let ruleset = try #require(Ruleset.compile(Self.source(condition)).ruleset)
        library.setFile(ruleset, name: "firestore.rules", database: database)
    }

    func send(_ method: String, _ path: String, _ body: String = "") throws -> MapValue {
        let parts = path.split(separator: "?", maxSplits: 1).map(String.init)
        let found = try #require(try RulesRequests.route(method: method, path: "/v1/" + parts[0]), "\(method) \(path)")
        var request = RulesRequests.Request(route: found.route, project: found.project, body: Array(body.utf8))
        request.parameters = try #require(URLCoding.parameters(parts.count > 1 ? parts[1] : nil))
        return try PlainJSON.object(try RulesRequests(library: library).answer(request) {})
    }

    func refusal(_ method: String, _ path: String, _ body: String = "") throws -> Status? {
        do {
            _ = try send(method, path, body)
            return nil
        } catch let status as Status {
            return status
        }
    }

    /// Makes a ruleset; returns its name.
    func create(_ condition: String) throws -> String {
        try string(try send("POST", "projects/p/rulesets", Self.body(condition))["name"])
    }

    /// Makes or changes a release as Firebase's tools do.
    func release(_ ruleset: String, _ name: String = "cloud.firestore") throws {
        let full = "projects/p/releases/\(name)"
        do {
            _ = try send(
                "PATCH", full, #"{"release":{"name":"\#(full)","rulesetName":"\#(ruleset)"}}"#)
        } catch let status as Status where status.code == .notFound {
            _ = try send("POST", "projects/p/releases", #"{"name":"\#(full)","rulesetName":"\#(ruleset)"}"#)
        }
    }

    private static func unexpected(_ value: Value?) -> Status {
        .internalError("unexpected: \(String(describing: value))")
    }

    func string(_ value: Value?) throws -> String {
        guard case .string(let string)? = value else { throw Self.unexpected(value) }
        return string
    }

    func list(_ value: Value?) throws -> [Value] {
        guard case .array(let elements)? = value else { throw Self.unexpected(value) }
        return elements
    }
}
