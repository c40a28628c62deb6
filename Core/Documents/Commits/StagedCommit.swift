import HearthEngine
import HearthModel
import HearthWire

/// Computes the effect of a list of writes on the documents, without writing.
///
/// Writes are applied in order, each on the state after the earlier ones. Nothing is stored before all have succeeded.
struct StagedCommit: Sendable {
    /// A document touched by the commit.
    private struct State: Sendable {
        var key: [UInt8]
        var name: ResourceName
        var original: StoredDocument?
        var content: Content
        /// Deleted and made again within the commit: a new document, even with the same fields.
        var isRecreated = false
        /// Whether `content` is a tree with the stored fields; nil before they are compared.
        var equalsOriginal: Bool?
        var transformCount = 0
        /// The final fields in wire form, when they differ from the stored ones.
        var encoded: [UInt8]?

        /// Whether the state differs from the stored one. Known when all writes are applied.
        var isChanged = false

        var exists: Bool {
            if case .missing = content { false } else { true }
        }

        /// Whether the commit is known to have left the stored fields unchanged so far.
        var equalsOriginalByNow: Bool {
            if case .original = content { return true }
            return equalsOriginal == true
        }
    }

    private enum Content: Sendable {
        /// The stored state.
        case original
        case missing
        /// The state after the writes so far.
        case tree(MapValue)
    }

    /// The outcome of a write, for its answer.
    private enum Outcome: Sendable {
        /// No update time.
        case none
        case unchanged(Int64)
        /// The update time that the document has after the whole commit.
        case document(Int)
    }

    private let catalog: IndexCatalog
    private let requestTime: Timestamp
    /// No assigned version is later.
    private let latest: Int64
    /// In the order of first mention.
    private var states: [State] = []
    private var slots: [[UInt8]: Int] = [:]
    /// Up to this many keys are compared one by one, because hashing them costs more.
    private static let comparedMax = 8
    private var outcomes: [(outcome: Outcome, transformResults: [Value])] = []

    private let defersPreconditions: Bool
    /// The first precondition that fails, when these are deferred: until the caller throws it, the staged state shows
    /// the result of the writes.
    private(set) var deferredFailure: Status?

    /// Bytes of documents that were decoded, compared or searched. A few small writes can request that of large
    /// documents again and again.
    private(set) var workBytes = 0
    /// Bytes of stored documents that are held.
    private(set) var storedBytes = 0
    private let storedBytesMax: Int

    /// - Parameters:
    ///   - snapshot: shows the state before the commit.
    ///   - storedBytesMax: limit on the stored bytes of the documents; more fails with `isTooMuch`.
    ///   - defersPreconditions: failed preconditions are noted in `deferredFailure`.
    ///   - isWanted: called now and then.
    /// - Throws: the status of the first write that fails; CANCELLED when the commit is no longer wanted.
    init(
        _ writes: [Write], on snapshot: any Snapshot, catalog: IndexCatalog, requestTime: Timestamp, latest: Int64,
        defersPreconditions: Bool = false, storedBytesMax: Int = .max, isWanted: () -> Bool = { true }
    ) throws(Status) {
        self.defersPreconditions = defersPreconditions
        self.storedBytesMax = storedBytesMax
        self.latest = latest
        self.catalog = catalog
        self.requestTime = requestTime
        outcomes.reserveCapacity(writes.count)
        for (index, write) in writes.enumerated() {
            if index % Self.writesBetweenChecks == 0, index > 0, !isWanted() { throw CommitPipeline.unwanted }
            try stage(write, on: snapshot)
        }
        for slot in states.indices { try Self.finish(&states[slot]) }
    }

    private static let writesBetweenChecks = 256

    /// A commit that the writer computes fails with this when it rests on large documents.
    static let isTooMuch = Status(.aborted, "The commit rests on large documents.")

    static let tooBig = Status.invalidArgument("Transaction too big. Decrease transaction size.")

    // MARK: One write

    // Functions that work on one state are static and take that state alone: a mutating method of the whole would copy
    // all states to access one.

    private mutating func stage(_ write: Write, on snapshot: any Snapshot) throws(Status) {
        let slot = try self.slot(for: write, on: snapshot)
        // After the first failed precondition the others do not matter.
        if deferredFailure == nil {
            do throws(Status) {
                // Rules decide after it: the client may have no right to read.
                try Self.check(
                    write.precondition, &states[slot], latest: latest, revealsVersion: !defersPreconditions, &workBytes)
            } catch {
                if !defersPreconditions { throw error }
                deferredFailure = error
            }
        }
        switch write.operation {
        case .verify: outcomes.append((Self.verification(of: states[slot], slot), []))
        case .delete:
            states[slot].content = .missing
            outcomes.append((.none, []))
        case .update(let fields, let mask):
            let results = try Self.update(
                &states[slot], write, fields, mask, requestTime: requestTime, &workBytes)
            outcomes.append((.document(slot), results))
        }
        if workBytes > Limits.commitWorkBytesMax { throw Self.tooBig }
    }

    private mutating func slot(for write: Write, on snapshot: any Snapshot) throws(Status) -> Int {
        let key = DocumentKey.encode(write.document.path)
        if let known = slot(of: key) { return known }
        let original = try snapshot.document(key)
        storedBytes += original?.fields.count ?? 0
        if storedBytes > storedBytesMax { throw Self.isTooMuch }
        if storedBytes > Limits.commitBytesMax { throw Self.tooBig }
        let slot = states.count
        states.append(
            State(key: key, name: write.document, original: original, content: original == nil ? .missing : .original))
        if slot >= Self.comparedMax {
            if slots.isEmpty { for (slot, state) in states.enumerated() { slots[state.key] = slot } }
            slots[key] = slot
        }
        return slot
    }

    private func slot(of key: [UInt8]) -> Int? {
        states.count > Self.comparedMax ? slots[key] : states.firstIndex { $0.key == key }
    }

    private static func verification(of state: State, _ slot: Int) -> Outcome {
        guard let original = state.original else { return state.exists ? .document(slot) : .none }
        switch state.content {
        case .original: return .unchanged(original.updateVersion)
        case .tree where state.equalsOriginal == true: return .unchanged(original.updateVersion)
        case .tree: return .document(slot)
        case .missing: return .none
        }
    }

    private static func check(
        _ precondition: Precondition, _ state: inout State, latest: Int64, revealsVersion: Bool,
        _ workBytes: inout Int
    ) throws(Status) {
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
            if isChangedByNow(&state, &workBytes) {
                throw .failedPrecondition(
                    "\(state.name) was changed by an earlier write of the same commit: its version can't match the "
                        + "required base version (\(required.microseconds))")
            }
            let stored = state.exists ? state.original?.updateVersion ?? 0 : 0
            if !state.exists || stored != required.microseconds {
                throw .failedPrecondition(
                    "the stored version\(revealsVersion ? " (\(stored))" : "") does not match the required base version "
                        + "(\(required.microseconds))"
                )
            }
        }
    }

    private static func isChangedByNow(_ state: inout State, _ workBytes: inout Int) -> Bool {
        if state.isRecreated { return true }
        switch state.content {
        case .original: return false
        case .missing: return state.original != nil
        case .tree(let tree):
            guard let original = state.original else { return true }
            if let known = state.equalsOriginal { return !known }
            // In stored form: there, one NaN represents all that arithmetic makes.
            workBytes += original.fields.count
            let isSame = original.fields == FieldsCodec.encode(tree)
            state.equalsOriginal = isSame
            return !isSame
        }
    }

    private static func update(
        _ state: inout State, _ write: Write, _ fields: MapValue, _ mask: [FieldPath]?, requestTime: Timestamp,
        _ workBytes: inout Int
    ) throws(Status) -> [Value] {
        if !state.exists, state.original != nil { state.isRecreated = true }
        // A document that is written as a whole is not compared here; otherwise only the written fields are compared.
        var isSame = mask != nil && state.equalsOriginalByNow
        var tree = fields
        if let mask {
            tree = try takeTree(&state, &workBytes)
            let before = isSame ? mask.map { tree[path: $0] } : []
            tree.merge(fields, mask: mask)
            isSame = isSame && zip(mask, before).allSatisfy { tree[path: $0] == $1 }
        }
        var run = TransformRun(write.transforms, requestTime: requestTime)
        for transform in write.transforms { try run.apply(transform, to: &tree) }
        try run.finish(&tree)
        workBytes += run.workBytes
        isSame = isSame && run.isSame
        state.transformCount += write.transforms.count
        if state.transformCount > Limits.transformsPerDocumentMax {
            throw .invalidArgument(
                "Document \(state.name) cannot have more than \(Limits.transformsPerDocumentMax) field transforms on a "
                    + "single document")
        }
        state.content = .tree(tree)
        state.equalsOriginal = isSame ? true : nil
        return run.results
    }

    /// The present fields, moved out of the state so that changing them makes no copy.
    private static func takeTree(_ state: inout State, _ workBytes: inout Int) throws(Status) -> MapValue {
        defer { state.content = .missing }
        switch state.content {
        case .missing: return MapValue()
        case .original:
            workBytes += state.original?.fields.count ?? 0
            return try state.original.map(decode) ?? MapValue()
        case .tree(let tree): return tree
        }
    }

    private static func decode(_ document: StoredDocument) throws(Status) -> MapValue {
        try FieldsCodec.decode(document.fields)
    }

    /// Checks a document after all writes together.
    private static func finish(_ state: inout State) throws(Status) {
        switch state.content {
        case .original: state.isChanged = false
        case .missing: state.isChanged = state.original != nil
        case .tree(let tree):
            try checkSize(tree, of: state.name)
            let encoded = FieldsCodec.encode(tree)
            state.isChanged = state.isRecreated || state.original?.fields != encoded
            state.encoded = encoded
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
        var string = ""
        for (index, digit) in String(number).reversed().enumerated() {
            if index > 0, index.isMultiple(of: 3) { string.append(",") }
            string.append(digit)
        }
        return String(string.reversed())
    }

    // MARK: The state after the commit

    func touches(_ key: [UInt8]) -> Bool { slot(of: key) != nil }

    /// The stored state of a document that the commit touches.
    func original(of key: [UInt8]) -> StoredDocument? { slot(of: key).flatMap { states[$0].original } }

    /// The fields, after the commit, of a document that it touches; nil also when it has none.
    func fields(of key: [UInt8]) throws(Status) -> MapValue? {
        guard let slot = slot(of: key) else { return nil }
        switch states[slot].content {
        case .missing: return nil
        case .original: return try states[slot].original.map(Self.decode)
        case .tree(let tree): return tree
        }
    }

    // MARK: The result

    /// The documents that differ from the stored ones, in the order of first mention.
    func changes(version: Int64) -> [Change] {
        states.compactMap { state in
            guard state.isChanged else { return nil }
            return Change(key: state.key, before: state.original, after: Self.after(state, version: version))
        }
    }

    private static func after(_ state: State, version: Int64) -> StoredDocument? {
        switch state.content {
        case .missing: return nil
        case .original: return state.original
        case .tree:
            guard state.isChanged, let encoded = state.encoded else { return state.original }
            return StoredDocument(
                createVersion: state.isRecreated ? version : state.original?.createVersion ?? version,
                updateVersion: version, fields: encoded)
        }
    }

    func results(version: Int64) -> [WriteResult] {
        outcomes.map { outcome, transformResults in
            let time: Int64? =
                switch outcome {
                case .none: nil
                case .unchanged(let stored): stored
                case .document(let slot): updateTime(states[slot], version: version)
                }
            return WriteResult(
                updateTime: time.map { Timestamp(microseconds: $0) }, transformResults: transformResults)
        }
    }

    private func updateTime(_ state: State, version: Int64) -> Int64 {
        guard !state.isChanged, let original = state.original else { return version }
        return original.updateVersion
    }

    /// The state of a written document after the whole commit; nil when it does not exist.
    func document(afterWrite index: Int, version: Int64) -> StoredDocument? {
        guard case .document(let slot) = outcomes[index].outcome else { return nil }
        return Self.after(states[slot], version: version)
    }

    /// The keys of the documents that differ from the stored ones.
    var changedKeys: [[UInt8]] { states.lazy.filter(\.isChanged).map(\.key) }

    /// The index entries that each of the changes adds and removes, in the order of `changes`.
    /// - Throws: INVALID_ARGUMENT when a document has too many of them, or the commit would change too much.
    func differences(isWanted: () -> Bool = { true }) throws(Status) -> [IndexDifference] {
        var differences: [IndexDifference] = []
        var sizeBytes = 0
        var records = 0
        for state in states where state.isChanged {
            if differences.count % Self.writesBetweenChecks == 0, !differences.isEmpty, !isWanted() {
                throw CommitPipeline.unwanted
            }
            var after: (tree: MapValue, encoded: [UInt8])?
            if case .tree(let tree) = state.content, let encoded = state.encoded { after = (tree, encoded) }
            let difference = try IndexComparison.difference(
                key: state.key, path: state.name.path, before: state.original?.fields, after: after, catalog: catalog)
            // Checked as it grows, so that no commit can fill the memory before it fails.
            sizeBytes +=
                difference.sizeBytes + (state.original?.fields.count ?? 0) + (after?.encoded.count ?? 0)
            records += difference.count + Self.recordsPerChange
            if sizeBytes > Limits.commitBytesMax { throw Self.tooBig }
            // One document is bounded by the number of its own entries.
            if records > Limits.commitRecordsMax, !differences.isEmpty { throw Self.tooBig }
            differences.append(difference)
        }
        return differences
    }

    /// The document, its record in the feed, its tombstone.
    private static let recordsPerChange = 3
}
