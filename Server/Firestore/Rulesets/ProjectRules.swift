import HearthHost
import HearthModel
import HearthRules
import HearthWire

/// The rulesets and releases of one project.
///
/// All but the sources is in one small file, which is replaced as a whole: a release is in force or not, whenever the
/// process ends.
struct ProjectRules: Sendable {
    /// What is known of the rules file of a database.
    struct File: Sendable, Equatable {
        /// The digest of the last rules file that the project has taken notice of. A file with another one is newer than the
        /// project's releases.
        var fingerprint: String
        /// The ruleset that was made of it.
        var ruleset: String?
    }

    let project: String
    /// Oldest first.
    var rulesets: [RulesetKey] = []
    /// By name.
    var releases: [String: RulesRelease] = [:]
    /// By database.
    var files: [String: File] = [:]
    /// The rulesets of releases that are for a database, by id.
    var compiled: [String: Ruleset] = [:]

    static let fileName = "releases.json"
    private static let format = 1

    init(project: String) {
        self.project = project
    }

    func key(_ id: String) -> RulesetKey? { rulesets.first { $0.id == id } }

    func isReleased(_ id: String) -> Bool { releases.values.contains { $0.ruleset == id } }

    /// Forgets the compiled form of what no release has in force.
    mutating func dropUnused() {
        let used = Set(releases.values.filter { $0.database != nil }.map(\.ruleset))
        compiled = compiled.filter { used.contains($0.key) }
    }

    /// What holds for a database instead of a rules file; nil when the file is newer, or the project has nothing to say.
    /// - Parameter fingerprint: of the present rules file; nil without one.
    func decision(_ database: String, fingerprint: String?) -> RulesRegistry.Decision? {
        if let fingerprint, files[database]?.fingerprint != fingerprint { return nil }
        guard let release = releases[RulesRelease.name(ofDatabase: database)] else {
            return fingerprint == nil ? nil : .withoutRules
        }
        // One that is not compiled could not be read; nobody may do what it may not allow.
        return .rules(compiled[release.ruleset] ?? RulesRegistry.denial)
    }

    /// The databases that the project decides about.
    var databases: Set<String> { Set(releases.values.compactMap(\.database)).union(files.keys) }

    /// Of the sources of all that is compiled.
    var compiledBytes: Int { compiled.values.reduce(0) { $0 + $1.source.utf8.count } }

    // MARK: The file

    /// - Throws: INVALID_ARGUMENT, or FAILED_PRECONDITION for a file of a newer version.
    init(file: [UInt8]) throws(Status) {
        let object = try RequestObject(body: file, known: ["format", "project", "releases", "files"])
        guard case .integer(let format)? = object["format"] else { throw .invalidArgument("It has no format.") }
        if format > Self.format {
            throw .failedPrecondition("It has format \(format), and this version of hearth knows \(Self.format).")
        }
        guard let project = try object.string("project") else { throw .invalidArgument("It has no project.") }
        self.init(project: project)
        for (index, value) in (try object.list("releases") ?? []).enumerated() {
            let release = try RequestObject(
                value, at: "releases[\(index)]", known: ["name", "ruleset", "createTime", "updateTime"])
            guard let name = try release.string("name"), let ruleset = try release.string("ruleset"),
                let created = try Self.time(release, "createTime"), let updated = try Self.time(release, "updateTime")
            else { throw .invalidArgument("'\(release.path)' is not whole.") }
            releases[name] = RulesRelease(name: name, ruleset: ruleset, createTime: created, updateTime: updated)
        }
        for (index, value) in (try object.list("files") ?? []).enumerated() {
            let file = try RequestObject(value, at: "files[\(index)]", known: ["database", "fingerprint", "ruleset"])
            guard let database = try file.string("database"), let fingerprint = try file.string("fingerprint") else {
                throw .invalidArgument("'\(file.path)' is not whole.")
            }
            files[database] = File(fingerprint: fingerprint, ruleset: try file.string("ruleset"))
        }
    }

    private static func time(_ object: RequestObject, _ name: String) throws(Status) -> Timestamp? {
        guard let instant = try object.string(name).flatMap(RFC3339.parse) else { return nil }
        return Timestamp(seconds: instant.seconds, nanoseconds: Int64(instant.nanoseconds))
    }

    var file: [UInt8] {
        var writer = JSONWriter()
        writer.raw("{\"format\":\(Self.format),\"project\":")
        writer.string(project)
        writer.raw(",\"releases\":[")
        for (index, release) in releases.values.sorted(by: { $0.name < $1.name }).enumerated() {
            writer.raw(index > 0 ? ",\n{\"name\":" : "\n{\"name\":")
            writer.string(release.name)
            writer.raw(",\"ruleset\":")
            writer.string(release.ruleset)
            writer.raw(",\"createTime\":")
            writer.time(release.createTime)
            writer.raw(",\"updateTime\":")
            writer.time(release.updateTime)
            writer.raw("}")
        }
        writer.raw("],\"files\":[")
        for (index, entry) in files.sorted(by: { $0.key < $1.key }).enumerated() {
            writer.raw(index > 0 ? ",\n{\"database\":" : "\n{\"database\":")
            writer.string(entry.key)
            writer.raw(",\"fingerprint\":")
            writer.string(entry.value.fingerprint)
            if let ruleset = entry.value.ruleset {
                writer.raw(",\"ruleset\":")
                writer.string(ruleset)
            }
            writer.raw("}")
        }
        writer.raw("]}\n")
        return writer.bytes
    }
}
