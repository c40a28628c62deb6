import HearthModel

/// The state of one `decide` call, shared by its expressions. It belongs to the caller of `decide`.
final class Evaluation {
    let request: RulesRequest
    let reader: any DocumentReader
    let access: RulesAccess
    let observer: (any RulesObserver)?
    let ruleset: Ruleset

    /// `databases`, the database, `documents`, and the known part of the document's path.
    var segments: [String]
    /// The values of the captures of the match chain, by slot.
    var captures: [Capture]
    /// Parameters and variables of the running functions.
    var locals: [RuleValue] = []
    /// The index of the running function's first local.
    var base = 0
    /// `resource` of a list: what all documents of a branch have in common.
    var branch: RuleMap?

    /// The number of expressions evaluated so far.
    var spent = 0
    private var workDone = 0
    /// Whether the evaluation has ended: no operator absorbs that.
    private(set) var isAborted = false
    /// The reason why a document could not be read.
    private(set) var failure: Status?

    enum Capture {
        case segment(Int)
        /// Several segments, the end excluded. When open, segments that a query does not know may follow.
        case glob(Int, Int, isOpen: Bool)
        case unbound
    }

    init(
        _ ruleset: Ruleset, _ request: RulesRequest, _ reader: any DocumentReader, _ access: RulesAccess,
        _ observer: (any RulesObserver)?
    ) {
        self.ruleset = ruleset
        self.request = request
        self.reader = reader
        self.access = access
        self.observer = observer
        segments = []
        segments.reserveCapacity(request.path.segments.count + 3)
        segments.append("databases")
        segments.append(request.database)
        segments.append("documents")
        segments.append(contentsOf: request.path.segments)
        captures = Array(repeating: .unbound, count: ruleset.program.captureCount)
    }

    // MARK: Bounds

    /// Counts expressions in addition to the one that every node costs.
    @inline(__always)
    func spend(_ count: Int) {
        spent &+= count
    }

    /// Ends the evaluation: the request is denied.
    func abort() -> RuleValue {
        isAborted = true
        return .failure(.exhausted)
    }

    /// Ends the evaluation: the request fails.
    func fail(_ status: Status) -> RuleValue {
        if failure == nil { failure = status }
        return abort()
    }

    /// Counts elements of lists and maps that are read; false when there were too many.
    func work(_ count: Int) -> Bool {
        workDone &+= count &+ 1
        if workDone <= RulesLimits.elementWorkMax { return true }
        isAborted = true
        return false
    }

    /// A string that rules build, unless it is too long.
    func string(_ string: String) -> RuleValue {
        string.utf8.count > RulesLimits.stringSizeBytesMax ? abort() : .string(string)
    }

    func list(_ elements: [RuleValue]) -> RuleValue {
        elements.count > RulesLimits.elementsMax ? abort() : .list(.built(elements))
    }

    func set(_ elements: some Sequence<RuleValue>) -> RuleValue {
        let set = RuleValueSet(elements, self)
        return isAborted ? .failure(.exhausted) : .set(set)
    }

    // MARK: Objects

    var requestPath: RulePath { RulePath(strings: segments) }

    /// A member of an object; nil when it has none of this name.
    func member(_ member: KnownMember?, of object: RuleMap) -> RuleValue? {
        switch object {
        case .request: requestMember(member)
        case .auth:
            switch member {
            case .uid: request.auth.map { .string($0.uid) }
            case .token: request.auth.map { .map(.stored($0.token)) }
            default: nil
            }
        case .query: queryMember(member)
        case .document(let document):
            switch member {
            case .data: fields(of: document)
            case .id: document.path.segments.last.map { .string($0) }
            case .documentName: .path(path(of: document))
            default: nil
            }
        case .stored, .built, .large: nil
        }
    }

    private func requestMember(_ member: KnownMember?) -> RuleValue? {
        switch member {
        case .auth: request.auth == nil ? .null : .map(.auth)
        case .method: .string(request.method.rawValue)
        // A collection group query has no single path that is valid for all its results.
        case .path: request.query?.isGroup == true ? .failure(.unprovable) : .path(requestPath)
        case .time: .timestamp(RuleTime(request.time))
        case .query: request.method == .list ? .map(.query) : nil
        case .resource:
            switch request.method {
            case .create, .update: request.newResource.map { .map(.document($0)) } ?? .null
            // The documentation leaves it undefined; in the service it is null.
            case .delete: .null
            case .get, .list: nil
            }
        default: nil
        }
    }

    private func queryMember(_ member: KnownMember?) -> RuleValue? {
        switch member {
        case .limit: request.query?.limit.map { .int(Int64($0)) } ?? .null
        case .offset: .int(Int64(request.query?.offset ?? 0))
        case .orderBy:
            .map(
                .built(
                    BuiltMap(
                        (request.query?.orderBy ?? []).map { ($0.path.string, .string($0.descending ? "DESC" : "ASC")) }
                    ))
            )
        default: nil
        }
    }

    private func fields(of document: RulesDocument) -> RuleValue {
        if let large = document.large { return .map(.large(large)) }
        do throws(Status) {
            return .map(.stored(try document.fields()))
        } catch {
            return fail(error)
        }
    }

    private func path(of document: RulesDocument) -> RulePath {
        RulePath(database: request.database, path: document.path.segments)
    }

    /// `resource`
    var resource: RuleValue {
        if let branch { return .map(branch) }
        return request.resource.map { .map(.document($0)) } ?? .null
    }

    // MARK: Maps as a whole

    private func knownMembers(_ object: RuleMap) -> [KnownMember] {
        switch object {
        case .request: [.auth, .method, .path, .query, .resource, .time]
        case .auth: [.token, .uid]
        case .query: [.limit, .offset, .orderBy]
        case .document: [.documentName, .data, .id]
        case .stored, .built, .large: []
        }
    }

    /// The members in the order of their names.
    func entries(of map: RuleMap) -> [(name: String, value: RuleValue)] {
        switch map {
        case .stored(let map): return map.fields.map { ($0.name, RuleValue($0.value)) }
        case .large(let map): return whole(map).fields.map { ($0.name, RuleValue($0.value)) }
        case .built(let map): return map.entries
        case .request, .auth, .query, .document:
            return knownMembers(map).compactMap { known in member(known, of: map).map { (known.rawValue, $0) } }
        }
    }

    /// A member by a name that is only known at run time.
    func member(named name: String, of map: RuleMap) -> RuleValue? {
        switch map {
        case .stored(let map): map[name].map { RuleValue($0) }
        case .large(let map): member(name, of: map)
        case .built(let map): map[name]
        case .request, .auth, .query, .document: member(KnownMember(rawValue: name), of: map)
        }
    }

    func member(_ name: String, of map: LargeMap) -> RuleValue? {
        do throws(Status) {
            return try map.member(name)
        } catch {
            return fail(error)
        }
    }

    /// - Returns: an empty map when the evaluation has failed.
    private func whole(_ map: LargeMap) -> MapValue {
        do throws(Status) {
            return try map.whole()
        } catch {
            _ = fail(error)
            return MapValue()
        }
    }

    func count(of map: RuleMap) -> Int {
        switch map {
        case .stored(let map): map.count
        case .large(let map): whole(map).count
        case .built(let map): map.entries.count
        case .request, .auth, .query, .document: entries(of: map).count
        }
    }
}
