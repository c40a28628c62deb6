import HearthModel
import HearthWire

/// Works out what a list of writes does to the documents, without doing it.
///
/// Writes are applied in order, each on the state left by the earlier ones. Nothing is stored before all have succeeded.
struct StagedCommit {
    /// A document touched by the commit.
    private struct State {
        var path: ResourcePath
        var original: StoredDocument?
        /// The present fields in both forms; nil when the document does not exist.
        var tree: MapValue?
        var encoded: [UInt8]?
        /// Deleted and made again within the commit: a new document, even with the same fields.
        var isRecreated = false
        var transformCount = 0

        /// Whether the state differs from what is stored.
        var isChanged: Bool {
            if isRecreated { return true }
            guard let original, let encoded else { return (original == nil) != (encoded == nil) }
            return original.fields != encoded
        }
    }

    /// What a write's answer will say.
    private enum Outcome {
        case deleted
        case unchanged(Int64)
        case changed
        case missing
    }

    private let snapshot: any Snapshot
    private let catalog: IndexCatalog
    private let requestTime: Timestamp
    /// No version that was given out is later.
    private let latest: Int64
    private var states: [[UInt8]: State] = [:]
    private var order: [[UInt8]] = []
    private var outcomes: [(outcome: Outcome, transformResults: [Value])] = []

    /// - Parameter snapshot: shows the state before the commit.
    /// - Throws: the status of the first write that fails.
    init(
        _ writes: [Write], on snapshot: any Snapshot, catalog: IndexCatalog, requestTime: Timestamp, latest: Int64
    ) throws(Status) {
        self.latest = latest
        self.snapshot = snapshot
        self.catalog = catalog
        self.requestTime = requestTime
        for write in writes { try stage(write) }
    }

    // MARK: One write

    private mutating func stage(_ write: Write) throws(Status) {
        let key = DocumentKey.encode(write.document.path)
        if states[key] == nil {
            let original = try snapshot.get(.documents, key).map { bytes throws(Status) in
                try StoredDocument(stored: bytes)
            }
            states[key] = State(path: write.document.path, original: original, encoded: original?.fields)
            order.append(key)
        }
        // Taken out, changed and put back, so that no copy is made.
        var state = states.removeValue(forKey: key)!
        defer { states[key] = state }
        try check(write.precondition, of: write.document, state)
        switch write.operation {
        case .verify:
            outcomes.append((state.encoded == nil ? .missing : outcome(state), []))
        case .delete:
            state.tree = nil
            state.encoded = nil
            outcomes.append((.deleted, []))
        case .update(let fields, let mask):
            let results = try update(&state, write, fields, mask)
            outcomes.append((outcome(state), results))
        }
    }

    private func outcome(_ state: State) -> Outcome {
        if let original = state.original, !state.isChanged { return .unchanged(original.updateVersion) }
        return .changed
    }

    private func check(_ precondition: Precondition, of name: ResourceName, _ state: State) throws(Status) {
        let exists = state.encoded != nil
        switch precondition {
        case .none: break
        case .exists(true): if !exists { throw .notFound("No document to update: \(name)") }
        case .exists(false): if exists { throw Status(.alreadyExists, "Document already exists: \(name)") }
        case .updateTime(let required):
            if required.microseconds > latest {
                throw .invalidArgument(
                    "The required base version (\(required.microseconds)) of \(name) lies in the future.")
            }
            if state.isChanged {
                throw .failedPrecondition(
                    "\(name) was changed by an earlier write of the same commit: its version can't match the required "
                        + "base version (\(required.microseconds))")
            }
            let stored = exists ? state.original?.updateVersion ?? 0 : 0
            if stored != required.microseconds {
                throw .failedPrecondition(
                    "the stored version (\(stored)) does not match the required base version (\(required.microseconds))")
            }
        }
    }

    private func update(
        _ state: inout State, _ write: Write, _ fields: MapValue, _ mask: [FieldPath]?
    ) throws(Status) -> [Value] {
        let existed = state.encoded != nil
        var tree: MapValue
        if let mask {
            tree = try current(state)
            Self.merge(fields, mask, into: &tree)
        } else {
            tree = fields
        }
        var results: [Value] = []
        for transform in write.transforms {
            let (value, result) = transform.apply(to: tree[path: transform.path], requestTime: requestTime)
            tree.set(transform.path, value)
            results.append(result)
        }
        state.transformCount += write.transforms.count
        if state.transformCount > Limits.transformsPerDocumentMax {
            throw .invalidArgument(
                "Document \(write.document) cannot have more than \(Limits.transformsPerDocumentMax) field transforms on a "
                    + "single document.")
        }
        try Self.checkSize(tree, of: write.document)
        if !existed, state.original != nil { state.isRecreated = true }
        state.tree = tree
        state.encoded = FieldsCodec.encode(tree)
        return results
    }

    private func current(_ state: State) throws(Status) -> MapValue {
        if let tree = state.tree { return tree }
        return try state.encoded.map { bytes throws(Status) in try FieldsCodec.decode(bytes) } ?? MapValue()
    }

    /// Sets what the mask names from the input, and deletes what the input lacks. Of overlapping paths the shorter counts.
    private static func merge(_ fields: MapValue, _ mask: [FieldPath], into tree: inout MapValue) {
        for path in mask where !mask.contains(where: { $0.segments.count < path.segments.count && $0.isPrefix(of: path) }) {
            if let value = fields[path: path] {
                tree.set(path, value)
            } else {
                tree.remove(path)
            }
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

    // MARK: The result

    /// The documents that differ from what is stored, in the order of first mention.
    func changes(version: Int64) -> [Change] {
        order.compactMap { key in
            guard let state = states[key], state.isChanged else { return nil }
            let after = state.encoded.map { encoded in
                StoredDocument(
                    createVersion: state.isRecreated ? version : state.original?.createVersion ?? version,
                    updateVersion: version, fields: encoded)
            }
            return Change(key: key, before: state.original, after: after)
        }
    }

    func results(version: Int64) -> [WriteResult] {
        outcomes.map { outcome, transformResults in
            let time: Int64? =
                switch outcome {
                case .deleted, .missing: nil
                case .unchanged(let stored): stored
                case .changed: version
                }
            return WriteResult(
                updateTime: time.map { Timestamp(microseconds: $0) }, transformResults: transformResults)
        }
    }

    /// The index entries that a change adds and removes.
    /// - Throws: INVALID_ARGUMENT when the document has too many of them.
    func difference(_ change: Change) throws(Status) -> IndexDifference {
        let state = states[change.key]!
        var after: (tree: MapValue, encoded: [UInt8])?
        if let encoded = state.encoded { after = (try current(state), encoded) }
        return try IndexDifference(
            key: change.key, path: state.path, before: change.before?.fields, after: after, catalog: catalog)
    }
}
