import COpenSSL
import HearthConcurrency
import HearthHost
import HearthModel
import HearthRules
import Synchronization

/// The rulesets and releases of all projects, as Google's Firebase Rules API has them, and what of them is in force.
///
/// Invariants:
///
/// - A change is durable before it is in force, and in force before its caller learns of it. Whenever the process ends, a start
///   finds the state before or after the change.
/// - The last change wins, whether it comes from a rules file or over the API. A file whose content is another than that which a
///   project has taken notice of (`ProjectRules.File`) is in force at once; then it is made a ruleset and released, in the
///   server's own project and in those that have rulesets. A failure to store that changes nothing about the former.
/// - Where the ruleset of a release can't be read, nobody but administrators may do anything.
///
/// Methods wait for the disk and for each other: they are not for event loops.
package final class RulesLibrary: Sendable {
    /// A rules file that is in force.
    private struct File {
        var fingerprint: String
        var name: String
        var content: String
        var ruleset: Ruleset
    }

    private struct State {
        var projects: [String: ProjectRules] = [:]
        /// By database.
        var files: [String: File] = [:]
    }

    private let state = Mutex(State())
    private let disk: any RulesDisk
    private let registry: RulesRegistry
    private let project: String
    private let clock: any Clock
    private let log: Log

    /// - Parameters:
    ///   - registry: gets what is in force.
    ///   - project: the server's own, in which rules files are released.
    package init(
        disk: any RulesDisk, registry: RulesRegistry, project: String, clock: any Clock = SystemClock(), log: Log
    ) {
        self.disk = disk
        self.registry = registry
        self.project = project
        self.clock = clock
        self.log = log
    }

    // MARK: Start

    /// Reads what is stored, before the server accepts requests and before the rules files are read.
    /// - Throws: FAILED_PRECONDITION, or UNAVAILABLE, for releases that can't be read: it is not known whose rules they are.
    package func load() throws(Status) {
        for folder in try disk.folders() {
            guard let file = try disk.read(ProjectRules.fileName, in: folder) else { continue }
            var rules: ProjectRules
            do throws(Status) {
                rules = try ProjectRules(file: file)
            } catch {
                let path = disk.path(ProjectRules.fileName, in: folder)
                throw .failedPrecondition("The releases in \(path) can't be read: \(error.message)")
            }
            let names = try disk.names(in: folder)
            // What a kill has left of a file that was being written.
            for draft in names where draft.hasSuffix(".new") { try disk.remove(draft, in: folder) }
            rules.rulesets = names.compactMap { RulesetKey(fileName: $0) }.sorted()
            for release in rules.releases.values where release.database != nil {
                rules.compiled[release.ruleset] = compile(release, of: rules)
            }
            state.withLock { $0.projects[rules.project] = rules }
            registry.decide(decisions(of: rules, files: [:]), project: rules.project)
        }
    }

    /// - Returns: nil, and a record in the log, when the ruleset can't be read or compiled.
    private func compile(_ release: RulesRelease, of rules: ProjectRules) -> Ruleset? {
        if let known = rules.compiled[release.ruleset] { return known }
        var reason: String
        do throws(Status) {
            let source = try stored(release.ruleset, of: rules).source
            let compilation = Ruleset.compile(source.content)
            if let ruleset = compilation.ruleset { return ruleset }
            reason = compilation.issues.first { $0.severity == .error }?.description ?? "It does not compile."
        } catch {
            reason = error.message
        }
        log.error(
            "the rules of a release can't be used; clients are refused", ("project", .string(rules.project)),
            ("release", .string(release.name)), ("reason", .string(reason)))
        return nil
    }

    /// What holds for the databases of a project instead of rules files.
    private func decisions(of rules: ProjectRules, files: [String: File]) -> [String: RulesRegistry.Decision] {
        var decisions: [String: RulesRegistry.Decision] = [:]
        for database in rules.databases {
            decisions[database] = rules.decision(database, fingerprint: files[database]?.fingerprint)
        }
        return decisions
    }

    // MARK: Rules files

    /// Puts a rules file into force that was read at the start, or has changed.
    /// - Parameter name: of the file in the ruleset that is made of it.
    func setFile(_ ruleset: Ruleset, name: String, database: String) {
        state.withLock { state in
            let file = File(
                fingerprint: Self.digest(ruleset.source), name: name, content: ruleset.source, ruleset: ruleset)
            state.files[database] = file
            let informed = state.projects.values.filter { $0.files[database]?.fingerprint == file.fingerprint }
            registry.setFile(ruleset, database: database, keeping: Set(informed.map(\.project)))
            // What has no file may hold although there is one now: deleted releases.
            for rules in informed { registry.decide(decisions(of: rules, files: state.files), project: rules.project) }
            for project in Set(state.projects.keys).union([project]) {
                if state.projects[project]?.files[database]?.fingerprint == file.fingerprint { continue }
                do throws(Status) {
                    try release(file, database, of: project, &state)
                } catch {
                    log.error(
                        "the rules of a file are in force, but can't be stored as a release",
                        ("project", .string(project)), ("file", .string(name)), ("reason", .string(error.message)))
                }
            }
        }
    }

    private func release(
        _ file: File, _ database: String, of project: String, _ state: inout State
    ) throws(Status) {
        let name = RulesRelease.name(ofDatabase: database)
        try RulesRelease.check(name: name)
        let source = RulesetSource(fileName: file.name, content: file.content)
        let stored = try add(source, attachmentPoint: nil, to: project, &state)
        guard var rules = state.projects[project] else { return }
        let former = rules.files[database]?.ruleset
        let now = clock.now()
        rules.releases[name] = RulesRelease(
            name: name, ruleset: stored.key.id, createTime: rules.releases[name]?.createTime ?? now, updateTime: now)
        rules.files[database] = ProjectRules.File(fingerprint: file.fingerprint, ruleset: stored.key.id)
        rules.compiled[stored.key.id] = file.ruleset
        rules.dropUnused()
        try store(rules)
        state.projects[project] = rules
        registry.decide(decisions(of: rules, files: state.files), project: project)
        // Who edits a file all day must not fill the project with rulesets.
        if let former, let key = rules.key(former), !rules.isReleased(former) { try remove(key, of: project, &state) }
    }

    private static func digest(_ string: String) -> String {
        var digest = [UInt8](repeating: 0, count: 32)
        let bytes = Array(string.utf8)
        _ = EVP_Digest(bytes, bytes.count, &digest, nil, EVP_sha256(), nil)
        let digits = Array("0123456789abcdef".utf8)
        return String(decoding: digest.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }, as: UTF8.self)
    }

    // MARK: Rulesets

    /// Stores a ruleset, which is then in force nowhere.
    /// - Throws: INVALID_ARGUMENT for a source that doesn't compile, RESOURCE_EXHAUSTED beyond the number that a project may
    ///   have, UNAVAILABLE when it can't be stored.
    func create(_ source: RulesetSource, attachmentPoint: String?, in project: String) throws(Status) -> StoredRuleset {
        try Self.check(project: project)
        if let attachmentPoint, attachmentPoint.utf8.count > Limits.rulesNamesBytesMax {
            throw .invalidArgument("An attachment point has at most \(Limits.rulesNamesBytesMax) bytes.")
        }
        _ = try source.compile()
        return try state.withLock { state throws(Status) in
            try add(source, attachmentPoint: attachmentPoint, to: project, &state)
        }
    }

    private func add(
        _ source: RulesetSource, attachmentPoint: String?, to project: String, _ state: inout State
    ) throws(Status) -> StoredRuleset {
        if state.projects[project] == nil { try begin(project, &state) }
        guard var rules = state.projects[project] else { throw .internalError("The project was not begun.") }
        if rules.rulesets.count >= Limits.rulesetsPerProjectMax {
            throw .resourceExhausted(
                "A project has at most \(Limits.rulesetsPerProjectMax) rulesets; delete some that no release uses.")
        }
        let last = rules.rulesets.last?.createTime.microseconds ?? 0
        let time = Timestamp(microseconds: max(clock.now().microseconds, last + 1))
        let stored = StoredRuleset(
            key: RulesetKey(createTime: time, id: UUIDString.random()), source: source, attachmentPoint: attachmentPoint
        )
        try storing(rules.project) { () throws(Status) in
            try disk.write(stored.file, stored.key.fileName, in: disk.folder(of: project))
        }
        rules.rulesets.append(stored.key)
        state.projects[project] = rules
        return stored
    }

    /// The first file of a project's folder names the project.
    private func begin(_ project: String, _ state: inout State) throws(Status) {
        try Self.check(project: project)
        if state.projects.count >= Limits.projectsWithRulesMax {
            throw .resourceExhausted("A server has rulesets of at most \(Limits.projectsWithRulesMax) projects.")
        }
        let folder = disk.folder(of: project)
        if state.projects.keys.contains(where: { disk.folder(of: $0) == folder }) {
            throw .failedPrecondition("Another project has the folder \(folder) for its rules.")
        }
        let rules = ProjectRules(project: project)
        try store(rules)
        state.projects[project] = rules
    }

    /// - Throws: NOT_FOUND.
    func ruleset(_ id: String, in project: String) throws(Status) -> StoredRuleset {
        try state.withLock { state throws(Status) in
            guard let rules = state.projects[project] else { throw Self.missing(ruleset: id, project) }
            return try stored(id, of: rules)
        }
    }

    private func stored(_ id: String, of rules: ProjectRules) throws(Status) -> StoredRuleset {
        guard let key = rules.key(id) else { throw Self.missing(ruleset: id, rules.project) }
        do throws(Status) {
            guard let file = try disk.read(key.fileName, in: disk.folder(of: rules.project)) else {
                throw .notFound("The file is missing.")
            }
            return try StoredRuleset(key: key, file: file)
        } catch {
            log.error(
                "a ruleset can't be read", ("project", .string(rules.project)), ("ruleset", .string(id)),
                ("file", .string(disk.path(key.fileName, in: disk.folder(of: rules.project)))),
                ("reason", .string(error.message)))
            throw Status(.dataLoss, "The ruleset \(id) can't be read.")
        }
    }

    /// All rulesets of a project, newest first.
    func rulesets(of project: String) -> [RulesetKey] {
        state.withLock { $0.projects[project]?.rulesets.reversed() ?? [] }
    }

    /// - Throws: NOT_FOUND; FAILED_PRECONDITION while a release uses the ruleset.
    func delete(ruleset id: String, in project: String) throws(Status) {
        try state.withLock { state throws(Status) in
            guard let rules = state.projects[project], let key = rules.key(id) else {
                throw Self.missing(ruleset: id, project)
            }
            if let release = rules.releases.values.filter({ $0.ruleset == id }).map(\.name).min() {
                throw .failedPrecondition(
                    "The ruleset \(id) is in use by the release projects/\(project)/releases/\(release).")
            }
            try remove(key, of: project, &state)
        }
    }

    private func remove(_ key: RulesetKey, of project: String, _ state: inout State) throws(Status) {
        try storing(project) { () throws(Status) in try disk.remove(key.fileName, in: disk.folder(of: project)) }
        state.projects[project]?.rulesets.removeAll { $0 == key }
    }

    // MARK: Releases

    /// All releases of a project, newest first.
    func releases(of project: String) -> [RulesRelease] {
        let all = state.withLock { $0.projects[project].map { Array($0.releases.values) } ?? [] }
        return all.sorted { ($0.createTime, $0.name) > ($1.createTime, $1.name) }
    }

    /// - Throws: NOT_FOUND.
    func release(_ name: String, in project: String) throws(Status) -> RulesRelease {
        guard let release = state.withLock({ $0.projects[project]?.releases[name] }) else {
            throw Self.missing(release: name, project)
        }
        return release
    }

    /// Makes a release, which is in force when this returns.
    /// - Parameter ruleset: the id of a ruleset of the project.
    /// - Throws: ALREADY_EXISTS; NOT_FOUND for the ruleset; RESOURCE_EXHAUSTED beyond the bounds of releases; UNAVAILABLE when it
    ///   can't be stored.
    func create(release name: String, ruleset id: String, in project: String) throws(Status) -> RulesRelease {
        try RulesRelease.check(name: name)
        return try change(name, in: project) { rules throws(Status) in
            if rules.releases[name] != nil {
                throw Status(.alreadyExists, "The release projects/\(project)/releases/\(name) exists already.")
            }
            if rules.releases.count >= Limits.releasesPerProjectMax {
                throw .resourceExhausted("A project has at most \(Limits.releasesPerProjectMax) releases.")
            }
            guard rules.key(id) != nil else { throw Self.missing(ruleset: id, project) }
            let now = clock.now()
            return RulesRelease(name: name, ruleset: id, createTime: now, updateTime: now)
        }
    }

    /// Has a release use another ruleset, which is in force when this returns.
    /// - Throws: NOT_FOUND for the release or the ruleset; further as `create`.
    func update(release name: String, ruleset id: String, in project: String) throws(Status) -> RulesRelease {
        try change(name, in: project) { rules throws(Status) in
            guard var release = rules.releases[name] else { throw Self.missing(release: name, project) }
            guard rules.key(id) != nil else { throw Self.missing(ruleset: id, project) }
            release.ruleset = id
            release.updateTime = max(
                clock.now(), Timestamp(microseconds: release.updateTime.microseconds + 1))
            return release
        }
    }

    /// Ends a release: its database is then without rules, also where there is a rules file, until that is changed.
    /// - Throws: NOT_FOUND; UNAVAILABLE when that can't be stored.
    func delete(release name: String, in project: String) throws(Status) {
        try state.withLock { state throws(Status) in
            guard var rules = state.projects[project], rules.releases.removeValue(forKey: name) != nil else {
                throw Self.missing(release: name, project)
            }
            try replace(&rules, RulesRelease.database(ofName: name), &state)
        }
    }

    private func change(
        _ name: String, in project: String, _ body: (ProjectRules) throws(Status) -> RulesRelease
    ) throws(Status) -> RulesRelease {
        try state.withLock { state throws(Status) in
            var rules = state.projects[project] ?? ProjectRules(project: project)
            let release = try body(rules)
            rules.releases[name] = release
            if release.database != nil, rules.compiled[release.ruleset] == nil {
                let source = try stored(release.ruleset, of: rules).source
                let held = state.projects.values.reduce(0) { $0 + $1.compiledBytes }
                if held + source.content.utf8.count > Limits.rulesInForceBytesMax {
                    throw .resourceExhausted(
                        "The rules of all releases have at most \(Limits.rulesInForceBytesMax >> 20) MiB together.")
                }
                rules.compiled[release.ruleset] = try source.compile()
            }
            try replace(&rules, release.database, &state)
            return release
        }
    }

    /// Stores changed releases and has them in force.
    /// - Parameter database: that of the change; nil when it concerns none.
    private func replace(_ rules: inout ProjectRules, _ database: String?, _ state: inout State) throws(Status) {
        rules.dropUnused()
        // From here on the project knows of the present file, and its own decision is newer.
        if let database, let file = state.files[database] {
            rules.files[database] = ProjectRules.File(
                fingerprint: file.fingerprint, ruleset: rules.files[database]?.ruleset)
        }
        try store(rules)
        state.projects[rules.project] = rules
        guard let database else { return }
        registry.decide(
            decisions(of: rules, files: state.files), project: rules.project, supersedingTestsOf: database)
    }

    // MARK: Storing

    private func store(_ rules: ProjectRules) throws(Status) {
        try storing(rules.project) { () throws(Status) in
            try disk.write(rules.file, ProjectRules.fileName, in: disk.folder(of: rules.project))
        }
    }

    /// Logs the reason of a failure, and throws a status without it: clients need not know the server's paths.
    private func storing(_ project: String, _ body: () throws(Status) -> Void) throws(Status) {
        do throws(Status) { try body() } catch {
            if error.code == .resourceExhausted { throw error }
            log.error(
                "rulesets can't be stored", ("project", .string(project)), ("reason", .string(error.message)))
            throw .unavailable("The rules of \(project) can't be stored.")
        }
    }

    private static func check(project: String) throws(Status) {
        let isPlain = project.utf8.allSatisfy { byte in
            (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte | 0x20)
                || (UInt8(ascii: "0")...UInt8(ascii: ":")).contains(byte) || byte == UInt8(ascii: "-")
                || byte == UInt8(ascii: ".") || byte == UInt8(ascii: "_")
        }
        guard isPlain, (1...Limits.rulesProjectBytesMax).contains(project.utf8.count) else {
            throw .invalidArgument(
                "Invalid project \"\(project.prefix(200))\": a project with rulesets has 1 to \(Limits.rulesProjectBytesMax) "
                    + "letters, digits, \"-\", \".\", \":\" and \"_\".")
        }
    }

    private static func missing(ruleset id: String, _ project: String) -> Status {
        .notFound("There is no ruleset projects/\(project)/rulesets/\(id).")
    }

    private static func missing(release name: String, _ project: String) -> Status {
        .notFound("There is no release projects/\(project)/releases/\(name).")
    }
}
