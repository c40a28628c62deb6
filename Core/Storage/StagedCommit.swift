import HearthModel
import HearthWire

/// Works out what a list of writes does to the documents, without doing it.
///
/// Writes are applied in order, each on the state left by the earlier ones. Nothing is stored before all have succeeded.
struct StagedCommit {
    /// A document touched by the commit.
    private struct State {
        var key: [UInt8]
        var name: ResourceName
        var original: StoredDocument?
        var content: Content
        /// Deleted and made again within the commit: a new document, even with the same fields.
        var isRecreated = false
        var transformCount = 0
        /// The final fields in wire form, when they differ from the stored ones.
        var encoded: [UInt8]?

        /// Whether the state differs from what is stored. Known when the commit is whole.
        var isChanged = false

        var exists: Bool {
            if case .missing = content { false } else { true }
        }
    }

    private enum Content {
        /// As it is stored.
        case original
        case missing
        /// What the commit has made of it so far.
        case tree(MapValue)
    }

    /// What a write's answer will say.
    private enum Outcome {
        /// Nothing of the document's time.
        case none
        case unchanged(Int64)
        /// The update time that the document has when the commit is whole.
        case document(Int)
    }

    private let snapshot: any Snapshot
    private let catalog: IndexCatalog
    private let requestTime: Timestamp
    /// No version that was given out is later.
    private let latest: Int64
    /// In the order of first mention.
    private var states: [State] = []
    private var places: [[UInt8]: Int] = [:]
    /// So many keys are compared one by one; hashing them costs more.
    private static let comparedMax = 8
    private var outcomes: [(outcome: Outcome, transformResults: [Value])] = []

    private let defersPreconditions: Bool
    /// The first precondition that doesn't hold, when these are deferred: until somebody throws it, what is staged shows what
    /// the writes would come to.
    private(set) var deferredFailure: Status?

    /// - Parameters:
    ///   - snapshot: shows the state before the commit.
    ///   - defersPreconditions: those that don't hold are kept in `deferredFailure`.
    /// - Throws: the status of the first write that fails.
    init(
        _ writes: [Write], on snapshot: any Snapshot, catalog: IndexCatalog, requestTime: Timestamp, latest: Int64,
        defersPreconditions: Bool = false
    ) throws(Status) {
        self.defersPreconditions = defersPreconditions
        self.latest = latest
        self.snapshot = snapshot
        self.catalog = catalog
        self.requestTime = requestTime
        outcomes.reserveCapacity(writes.count)
        for write in writes { try stage(write) }
        for place in states.indices { try finish(place) }
    }

    // MARK: One write

    private mutating func stage(_ write: Write) throws(Status) {
        let key = DocumentKey.encode(write.document.path)
        let place: Int
        if let known = self.place(of: key) {
            place = known
        } else {
            let original = try snapshot.document(key)
            place = states.count
            states.append(
                State(
                    key: key, name: write.document, original: original, content: original == nil ? .missing : .original)
            )
            if place >= Self.comparedMax {
                if places.isEmpty { for (place, state) in states.enumerated() { places[state.key] = place } }
                places[key] = place
            }
        }
        do throws(Status) {
            try check(write.precondition, &states[place])
        } catch {
            if !defersPreconditions { throw error }
            if deferredFailure == nil { deferredFailure = error }
        }
        switch write.operation {
        case .verify:
            if case .original = states[place].content, let original = states[place].original {
                outcomes.append((.unchanged(original.updateVersion), []))
            } else {
                outcomes.append((states[place].exists ? .document(place) : .none, []))
            }
        case .delete:
            states[place].content = .missing
            outcomes.append((.none, []))
        case .update(let fields, let mask):
            let results = try update(&states[place], write, fields, mask)
            outcomes.append((.document(place), results))
        }
    }

    private func place(of key: [UInt8]) -> Int? {
        states.count > Self.comparedMax ? places[key] : states.firstIndex { $0.key == key }
    }

    private func check(_ precondition: Precondition, _ state: inout State) throws(Status) {
        switch precondition {
        case .none: break
        case .exists(true): if !state.exists { throw .notFound("No document to update: \(state.name)") }
        case .exists(false):
            if state.exists { throw Status(.alreadyExists, "Document already exists: \(state.name)") }
        case .updateTime(let required):
            if required.microseconds > latest {
                throw .invalidArgument(
                    "The required base version (\(required.microseconds)) of \(state.name) lies in the future.")
            }
            if isChangedByNow(&state) {
                throw .failedPrecondition(
                    "\(state.name) was changed by an earlier write of the same commit: its version can't match the "
                        + "required base version (\(required.microseconds))")
            }
            let stored = state.exists ? state.original?.updateVersion ?? 0 : 0
            if !state.exists || stored != required.microseconds {
                throw .failedPrecondition(
                    "the stored version (\(stored)) does not match the required base version (\(required.microseconds))"
                )
            }
        }
    }

    private func isChangedByNow(_ state: inout State) -> Bool {
        if state.isRecreated { return true }
        switch state.content {
        case .original: return false
        case .missing: return state.original != nil
        case .tree(let tree):
            // As they rest: there, one NaN stands for all that arithmetic makes.
            guard let original = state.original, original.fields == FieldsCodec.encode(tree) else { return true }
            state.content = .original
            return false
        }
    }

    private func update(
        _ state: inout State, _ write: Write, _ fields: MapValue, _ mask: [FieldPath]?
    ) throws(Status) -> [Value] {
        if !state.exists, state.original != nil { state.isRecreated = true }
        var tree = fields
        if let mask {
            tree = try takeTree(&state)
            tree.merge(fields, mask: mask)
        }
        var results: [Value] = []
        for transform in write.transforms {
            let (value, result) = transform.apply(to: tree[path: transform.path], requestTime: requestTime)
            try ValueValidation.validateDepth(of: value, at: transform.path)
            tree.set(transform.path, value)
            results.append(result)
        }
        state.transformCount += write.transforms.count
        if state.transformCount > Limits.transformsPerDocumentMax {
            throw .invalidArgument(
                "Document \(state.name) cannot have more than \(Limits.transformsPerDocumentMax) field transforms on a "
                    + "single document")
        }
        state.content = .tree(tree)
        return results
    }

    /// The present fields, taken out of the state so that changing them makes no copy.
    private func takeTree(_ state: inout State) throws(Status) -> MapValue {
        defer { state.content = .missing }
        switch state.content {
        case .missing: return MapValue()
        case .original: return try state.original.map(Self.decode) ?? MapValue()
        case .tree(let tree): return tree
        }
    }

    private static func decode(_ document: StoredDocument) throws(Status) -> MapValue {
        try FieldsCodec.decode(document.fields)
    }

    /// Looks at what all writes have made of a document together.
    private mutating func finish(_ place: Int) throws(Status) {
        let state = states[place]
        switch state.content {
        case .original: states[place].isChanged = false
        case .missing: states[place].isChanged = state.original != nil
        case .tree(let tree):
            try Self.checkSize(tree, of: state.name)
            let encoded = FieldsCodec.encode(tree)
            states[place].isChanged = state.isRecreated || state.original?.fields != encoded
            states[place].encoded = encoded
        }
    }

    private static func checkSize(_ tree: MapValue, of name: ResourceName) throws(Status) {
        let size = StorageSize.ofDocument(name.path, tree)
        if size > Limits.documentSizeBytesMax {
            throw .invalidArgument(
                "Document '\(name)' cannot be written because its size (\(grouped(size)) bytes) exceeds the maximum "
                    + "allowed size of \(grouped(Limits.documentSizeBytesMax)) bytes.")
        }
    }

    /// Thousands separated by commas.
    private static func grouped(_ number: Int) -> String {
        var text = ""
        for (index, digit) in String(number).reversed().enumerated() {
            if index > 0, index.isMultiple(of: 3) { text.append(",") }
            text.append(digit)
        }
        return String(text.reversed())
    }

    // MARK: The state after the commit

    func touches(_ key: [UInt8]) -> Bool { place(of: key) != nil }

    /// The fields that the commit leaves to a document that it touches; nil also when it leaves none.
    func fields(of key: [UInt8]) throws(Status) -> MapValue? {
        guard let place = place(of: key) else { return nil }
        switch states[place].content {
        case .missing: return nil
        case .original: return try states[place].original.map(Self.decode)
        case .tree(let tree): return tree
        }
    }

    // MARK: The result

    /// The documents that differ from what is stored, in the order of first mention.
    func changes(version: Int64) -> [Change] {
        states.compactMap { state in
            guard state.isChanged else { return nil }
            let after = state.encoded.map { encoded in
                StoredDocument(
                    createVersion: state.isRecreated ? version : state.original?.createVersion ?? version,
                    updateVersion: version, fields: encoded)
            }
            return Change(key: state.key, before: state.original, after: after)
        }
    }

    func results(version: Int64) -> [WriteResult] {
        outcomes.map { outcome, transformResults in
            let time: Int64? =
                switch outcome {
                case .none: nil
                case .unchanged(let stored): stored
                case .document(let place): updateTime(states[place], version: version)
                }
            return WriteResult(
                updateTime: time.map { Timestamp(microseconds: $0) }, transformResults: transformResults)
        }
    }

    private func updateTime(_ state: State, version: Int64) -> Int64 {
        guard !state.isChanged, let original = state.original else { return version }
        return original.updateVersion
    }

    /// The index entries that a change adds and removes.
    /// - Throws: INVALID_ARGUMENT when the document has too many of them.
    func difference(_ change: Change) throws(Status) -> IndexDifference {
        let state = states[place(of: change.key)!]
        var after: (tree: MapValue, encoded: [UInt8])?
        if case .tree(let tree) = state.content, let encoded = state.encoded { after = (tree, encoded) }
        return try IndexDifference(
            key: change.key, path: state.name.path, before: change.before?.fields, after: after, catalog: catalog)
    }
}
