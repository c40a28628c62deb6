import HearthHost
import HearthModel
import HearthWire

/// The methods of Google's Firebase Rules API (`firebaserules.googleapis.com` v1), from their path and body to their answer.
///
/// Source: the public description of the API, `firebaserules.v1`.
struct RulesRequests: Sendable {
    enum Route: Equatable {
        case createRuleset, listRulesets
        case getRuleset(String), deleteRuleset(String)
        case createRelease, listReleases
        case getRelease(String), updateRelease(String), deleteRelease(String), getExecutable(String)
        /// Nil tests the source in the request.
        case test(ruleset: String?)

        var effect: AdministratorEffect {
            switch self {
            case .createRuleset, .deleteRuleset, .createRelease, .updateRelease, .deleteRelease: .writes
            case .listRulesets, .getRuleset, .listReleases, .getRelease, .getExecutable, .test: .reads
            }
        }

        /// The parameters of its URL.
        var parameters: [String] {
            switch self {
            case .listRulesets, .listReleases: ["pageSize", "pageToken", "filter"]
            case .updateRelease: ["updateMask"]
            default: []
            }
        }
    }

    struct Request: Sendable {
        var route: Route
        var project: String
        /// Without the parameters of the transport.
        var parameters: [(name: String, value: String)] = []
        var body: [UInt8] = []
    }

    let library: RulesLibrary

    // MARK: Routes

    /// - Parameters:
    ///   - path: still percent-encoded.
    /// - Returns: nil for what is no method of this API.
    /// - Throws: INVALID_ARGUMENT for a path that can't be decoded.
    static func route(method: String, path: String) throws(Status) -> (route: Route, project: String)? {
        guard path.hasPrefix("/v1/projects/") else { return nil }
        var raw = Array(URLCoding.segments(path).dropFirst(3))
        guard let (kind, verb) = split(method, &raw) else { return nil }
        var segments: [String] = []
        for segment in raw {
            guard let decoded = URLCoding.decode(segment) else {
                throw .invalidArgument("The path segment \"\(segment)\" can't be decoded.")
            }
            segments.append(decoded)
        }
        // A name that is one segment must not become two.
        guard let project = segments.first, !project.isEmpty, !project.utf8.contains(UInt8(ascii: "/")) else {
            throw .invalidArgument("The path \"\(path)\" names no project.")
        }
        let name = segments.dropFirst(2).joined(separator: "/")
        return route(method, kind, name, verb).map { ($0, project) }
    }

    /// The kind of what the path names, without decoding anything, and the method behind a colon, which is removed.
    private static func split(_ method: String, _ raw: inout [String]) -> (kind: String, verb: String)? {
        guard let last = raw.last else { return nil }
        let kind = raw.count > 1 ? raw[1] : ""
        if raw.count > 1, kind != "rulesets", kind != "releases" { return nil }
        guard method == "POST" || method == "GET", let colon = last.utf8.lastIndex(of: UInt8(ascii: ":")),
            ["test", "getExecutable"].contains(String(last[last.utf8.index(after: colon)...]))
        else { return raw.count > 1 ? (kind, "") : nil }
        raw[raw.count - 1] = String(last[..<colon])
        return (kind, String(last[last.utf8.index(after: colon)...]))
    }

    private static func route(_ method: String, _ kind: String, _ name: String, _ verb: String) -> Route? {
        switch (kind, method, verb, name.isEmpty) {
        case ("", "POST", "test", true): .test(ruleset: nil)
        case ("rulesets", "POST", "test", false): .test(ruleset: name)
        case ("rulesets", "POST", "", true): .createRuleset
        case ("rulesets", "GET", "", true): .listRulesets
        case ("rulesets", "GET", "", false): .getRuleset(name)
        case ("rulesets", "DELETE", "", false): .deleteRuleset(name)
        case ("releases", "POST", "", true): .createRelease
        case ("releases", "GET", "", true): .listReleases
        case ("releases", "GET", "", false): .getRelease(name)
        case ("releases", "GET", "getExecutable", false): .getExecutable(name)
        case ("releases", "PATCH", "", false): .updateRelease(name)
        case ("releases", "DELETE", "", false): .deleteRelease(name)
        default: nil
        }
    }

    // MARK: Answers

    /// Runs a method; waits for the disk.
    /// - Parameter giveWay: called between the cases of a test.
    /// - Returns: the body of the answer.
    func answer(_ request: Request, giveWay: () throws(Status) -> Void) throws(Status) -> [UInt8] {
        for (name, _) in request.parameters where !request.route.parameters.contains(where: { isNamed($0, name) }) {
            throw .invalidArgument(
                "Invalid JSON payload received. Unknown name \"\(name)\": Cannot bind query parameter. Field '\(name)' "
                    + "could not be found in request message.")
        }
        let project = request.project
        switch request.route {
        case .createRuleset: return try createRuleset(request)
        case .listRulesets: return try listRulesets(request)
        case .getRuleset(let id):
            let stored = try library.ruleset(id, in: project)
            return json { stored.append(project: project, to: &$0) }
        case .deleteRuleset(let id):
            try library.delete(ruleset: id, in: project)
            return Array("{}".utf8)
        case .createRelease: return try createRelease(request)
        case .listReleases: return try listReleases(request)
        case .getRelease(let name):
            try RulesRelease.check(name: name)
            let release = try library.release(name, in: project)
            return json { release.append(project: project, to: &$0) }
        case .updateRelease(let name): return try updateRelease(name, request)
        case .deleteRelease(let name):
            try RulesRelease.check(name: name)
            try library.delete(release: name, in: project)
            return Array("{}".utf8)
        case .getExecutable: throw .unimplemented("The executable form of rules is not available in Hearth.")
        case .test(let ruleset):
            let stored = try ruleset.map { id throws(Status) in try library.ruleset(id, in: project).source }
            return try RulesTest(body: request.body, stored: stored).run(giveWay: giveWay)
        }
    }

    /// Whether a parameter has a name, which may be spelled as in the proto.
    private func isNamed(_ name: String, _ given: String) -> Bool {
        given == name || given.replacing("_", with: "").lowercased() == name.lowercased()
    }

    private func parameter(_ name: String, _ request: Request) -> String? {
        request.parameters.last { isNamed(name, $0.name) }?.value
    }

    private func createRuleset(_ request: Request) throws(Status) -> [UInt8] {
        // The name and the times of a resource are the server's; clients that send one back are not refused.
        let object = try RequestObject(
            body: request.body, known: StoredRuleset.members + ["name", "createTime", "metadata"])
        guard let source = try object.object("source", known: RulesetSource.members) else {
            throw .invalidArgument("The ruleset has no source.")
        }
        let stored = try library.create(
            try RulesetSource(source), attachmentPoint: try object.string("attachmentPoint"), in: request.project)
        return json { stored.append(project: request.project, to: &$0) }
    }

    private func listRulesets(_ request: Request) throws(Status) -> [UInt8] {
        let filter = try RulesFilter(parameter("filter", request) ?? "", of: .rulesets, project: request.project)
        let keys = library.rulesets(of: request.project).filter { filter.matches(name: $0.id, created: $0.createTime) }
        let items = keys.map { (PagedList.digits($0.createTime) + $0.id, $0) }
        return try list("rulesets", request, items) { key, writer in
            StoredRuleset.append(key, project: request.project, to: &writer)
        }
    }

    private func listReleases(_ request: Request) throws(Status) -> [UInt8] {
        let filter = try RulesFilter(parameter("filter", request) ?? "", of: .releases, project: request.project)
        let releases = library.releases(of: request.project).filter {
            filter.matches(name: $0.name, created: $0.createTime, ruleset: $0.ruleset)
        }
        let items = releases.map { (PagedList.digits($0.createTime) + $0.name, $0) }
        return try list("releases", request, items) { $0.append(project: request.project, to: &$1) }
    }

    /// Lists always have their member: Firebase's tools join the lists of all pages, whatever they find.
    private func list<Item>(
        _ name: StaticString, _ request: Request, _ items: [(key: String, item: Item)],
        _ append: (Item, inout JSONWriter) -> Void
    ) throws(Status) -> [UInt8] {
        let size = parameter("pageSize", request) ?? ""
        guard let number = size.isEmpty ? 0 : Int32(size) else {
            throw .invalidArgument("Invalid value at 'page_size' (TYPE_INT32), \"\(size.prefix(100))\"")
        }
        let list = try PagedList(
            keys: items.map(\.key), size: Int(number), token: parameter("pageToken", request) ?? "",
            list: ["\(name)", request.project, parameter("filter", request) ?? ""])
        var writer = JSONWriter()
        writer.raw("{\"\(name)\":[")
        for (index, entry) in items[list.page].enumerated() {
            if index > 0 { writer.raw(",") }
            append(entry.item, &writer)
        }
        writer.raw("]")
        if !list.nextPageToken.isEmpty {
            writer.raw(",\"nextPageToken\":")
            writer.string(list.nextPageToken)
        }
        writer.raw("}")
        return writer.bytes
    }

    private static let releaseMembers = ["name", "rulesetName", "createTime", "updateTime"]

    private func createRelease(_ request: Request) throws(Status) -> [UInt8] {
        let object = try RequestObject(body: request.body, known: Self.releaseMembers)
        let name = try Self.relative(try object.string("name"), "releases", request.project, member: "name")
        let ruleset = try rulesetID(object, request)
        let release = try library.create(release: name, ruleset: ruleset, in: request.project)
        return json { release.append(project: request.project, to: &$0) }
    }

    private func updateRelease(_ name: String, _ request: Request) throws(Status) -> [UInt8] {
        try RulesRelease.check(name: name)
        let object = try RequestObject(body: request.body, known: ["release", "updateMask"])
        guard let wanted = try object.object("release", known: Self.releaseMembers) else {
            throw .invalidArgument("The request has no release.")
        }
        let mask = try object.string("updateMask") ?? parameter("updateMask", request) ?? ""
        for field in mask.split(separator: ",")
        where !["rulesetName", "ruleset_name", "*"].contains(String(field)) {
            throw .invalidArgument("The field \"\(field.prefix(100))\" of a release can't be changed.")
        }
        if let given = try wanted.string("name"), !given.isEmpty {
            let given = try Self.relative(given, "releases", request.project, member: "release.name")
            guard UTF8Order.equal(given, name) else {
                throw .invalidArgument("The release's name is not the one in the URL: \"\(given)\", \"\(name)\".")
            }
        }
        let ruleset = try rulesetID(wanted, request)
        let release = try library.update(release: name, ruleset: ruleset, in: request.project)
        return json { release.append(project: request.project, to: &$0) }
    }

    private func rulesetID(_ release: RequestObject, _ request: Request) throws(Status) -> String {
        try Self.relative(
            try release.string("rulesetName"), "rulesets", request.project, member: release.path(of: "rulesetName"))
    }

    /// The part of a resource's name behind `projects/P/rulesets/`.
    /// - Throws: INVALID_ARGUMENT for a name of another form, or of another project.
    private static func relative(
        _ name: String?, _ kind: String, _ project: String, member: String
    ) throws(Status) -> String {
        let prefix = "projects/\(project)/\(kind)/"
        guard let name, name.utf8.starts(with: prefix.utf8), name.utf8.count > prefix.utf8.count else {
            throw .invalidArgument(
                "Invalid value at '\(member)': expected \(prefix)…, found \"\((name ?? "").prefix(200))\".")
        }
        return String(Substring(name.utf8.dropFirst(prefix.utf8.count)))
    }

    private func json(_ body: (inout JSONWriter) -> Void) -> [UInt8] {
        var writer = JSONWriter()
        body(&writer)
        return writer.bytes
    }
}
