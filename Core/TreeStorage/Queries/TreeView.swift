import HearthModel
import HearthEngine
import HearthTree

/// The tree at one version, independent of later writes.
///
/// Used by one thread at a time, but may be passed from one to another. Close it soon: it retains old pages.
package final class TreeView: TreeData, @unchecked Sendable {
    // The snapshot's contract and the rule above: the owner of the view owns it.
    let snapshot: any Snapshot
    let indexes: TreeIndexes
    /// The version of the last commit that is visible; 0 before the first.
    package let version: Int64
    private let isOwner: Bool
    private var longRead: LongRead?
    private(set) var check: ReadCheck?
    /// The number of steps that rules may take for a decision on the view; nil for their general limit.
    package var judgeStepsMax: Int?

    /// - Parameter isOwner: whether the snapshot is closed with the view.
    init(_ snapshot: any Snapshot, version: Int64, indexes: TreeIndexes, isOwner: Bool) {
        self.snapshot = snapshot
        self.version = version
        self.indexes = indexes
        self.isOwner = isOwner
    }

    deinit { close() }

    /// Frees the view; a later call is a programmer's error. A second `close` does nothing.
    package func close() {
        if isOwner { snapshot.close() }
        longRead?.end()
        longRead = nil
    }

    /// The view is used for a long read from now on, which ends with the view.
    package func hold(_ read: LongRead) {
        if longRead == nil { snapshot.becomeLong() }
        longRead = read
    }

    /// Every read of more than a few records calls `body` regularly, which can end the read or yield to others. Must be
    /// called once for each `body`.
    /// - Parameter body: an error that it throws ends the read.
    package func askWhileReading(_ body: @escaping () throws(Status) -> Void) {
        let earlier = check
        check = ReadCheck { () throws(Status) in
            try earlier?.ask()
            try body()
        }
    }

    /// The error of a read that exceeds its limit.
    package static let isTooLarge = SubtreeWalk.tooLarge

    // MARK: TreeData

    func record(_ location: [UInt8]) throws(Status) -> TreeRecord? {
        guard let bytes = try snapshot.get(.entries, location) else { return nil }
        return try TreeRecord(stored: bytes)
    }

    /// The value of the leaf with the given record.
    func value(_ record: TreeRecord, _ location: [UInt8]) throws(Status) -> Scalar? {
        try record.value { () throws(Status) in
            guard let string = try snapshot.get(.documents, location) else { throw TreeRecord.damaged }
            return string
        }
    }

    package func value(at path: TreePath) throws(Status) -> Scalar? {
        let location = PathCode.location(path)
        guard let record = try record(location) else { return nil }
        return try value(record, location)
    }

    package func leaf(at path: TreePath) throws(Status) -> Leaf? {
        let location = PathCode.location(path)
        guard let record = try record(location) else { return nil }
        if record.isStoredElsewhere { return .largeString(sizeBytes: try record.valueSizeBytes) }
        return try value(record, location).map(Leaf.init)
    }

    package func priority(at path: TreePath) throws(Status) -> Scalar? {
        guard let record = try record(PathCode.location(path)) else { return nil }
        return try record.priority
    }

    package func hasChildren(at path: TreePath) throws(Status) -> Bool {
        try snapshot.count(.entries, PathCode.below(PathCode.location(path)), limit: 1) > 0
    }

    package func exists(at path: TreePath) throws(Status) -> Bool { try exists(PathCode.location(path)) }

    func exists(_ location: [UInt8]) throws(Status) -> Bool {
        try snapshot.count(.entries, KeyRange(prefix: location), limit: 1) > 0
    }

    /// - Throws: RESOURCE_EXHAUSTED when it is more than `Limits.treeReadSizeBytesMax`.
    package func node(at path: TreePath) throws(Status) -> Node { try node(PathCode.location(path)) }

    func node(_ location: [UInt8]) throws(Status) -> Node {
        var assembler = NodeAssembler()
        var walk = try SubtreeWalk(location, in: snapshot, sizeBytesMax: Limits.treeReadSizeBytesMax, check: check)
        try walk.run(&assembler)
        return assembler.result
    }

    package func keys(at path: TreePath, after key: TreeKey?, limit: Int) throws(Status) -> [TreeKey] {
        try children(of: path, after: key, limit: limit)
    }

    // MARK: Additional reads

    /// The hash of all data at a location, as clients compute it; "" when there is none.
    /// - Throws: RESOURCE_EXHAUSTED when the data is more than `Limits.treeReadSizeBytesMax`.
    package func hash(at path: TreePath) throws(Status) -> String {
        try hash(at: path, .exact, Limits.treeReadSizeBytesMax).hash
    }

    /// The hash, and that of the SDK for the web where it differs.
    func hashes(at path: TreePath, sizeBytesMax: Int = Limits.treeReadSizeBytesMax) throws(Status) -> TreeHashes {
        let exact = try hash(at: path, .exact, sizeBytesMax)
        if !exact.differsOnWeb { return TreeHashes(exact: exact.hash) }
        return TreeHashes(exact: exact.hash, web: try hash(at: path, .web, sizeBytesMax).hash)
    }

    private func hash(
        at path: TreePath, _ numbers: HashedNumbers, _ sizeBytesMax: Int
    ) throws(Status) -> NodeHashBuilder {
        var builder = NodeHashBuilder(numbers)
        var walk = try SubtreeWalk(PathCode.location(path), in: snapshot, sizeBytesMax: sizeBytesMax, check: check)
        try walk.run(&builder)
        return builder
    }

    /// The keys of children, in order, without reading the data below them.
    /// - Parameter key: returns those behind it; nil from the first on.
    package func children(of path: TreePath, after key: TreeKey? = nil, limit: Int) throws(Status) -> [TreeKey] {
        let location = PathCode.location(path)
        var range = PathCode.below(location)
        if let key { range.lower = PathCode.after(PathCode.bound(location, key)) }
        let walk = try ChildWalk(location, in: snapshot, range: range)
        defer { walk.close() }
        var keys: [TreeKey] = []
        while keys.count < limit, try walk.next() { keys.append(walk.key) }
        return keys
    }

    /// The approximate size of the data at a location: its keys, its values as strings, and a little for each leaf.
    /// Counting stops above `limit`.
    package func sizeEstimate(at path: TreePath, upTo limit: Int) throws(Status) -> Int {
        let location = PathCode.location(path)
        let cursor = try snapshot.scan(
            .entries, KeyRange(prefix: location), reverse: false, values: true, dropping: location.count)
        defer { cursor.close() }
        var size = 0
        while size <= limit, try cursor.next() {
            let record = try TreeRecord(stored: cursor.value)
            size += cursor.key.count + (try record.valueSizeBytes) + 4
        }
        return size
    }

    // MARK: Indexes

    /// The order value of a child in an index; nil when there is no such child.
    /// - Parameter location: the child's.
    func indexed(_ location: [UInt8], by index: TreeIndex) throws(Status) -> TreeIndexValue? {
        guard let inside = index.inside else { return try content(location) }
        var target = location
        PathCode.append(inside, to: &target)
        if let found = try content(target) { return found }
        return try exists(location) ? TreeIndexValue.null : nil
    }

    /// The order value of a location; nil when there is no data.
    private func content(_ location: [UInt8]) throws(Status) -> TreeIndexValue? {
        if let record = try record(location) {
            guard let value = try value(record, location) else { return .inner }
            return .scalar(value)
        }
        return try snapshot.count(.entries, PathCode.below(location), limit: 1) > 0 ? .inner : nil
    }
}
