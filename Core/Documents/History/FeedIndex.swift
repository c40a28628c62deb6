import HearthModel
import Synchronization

/// Which collections recent commits changed: a guide to the change feed, which is ordered by version alone.
///
/// A client that reconnects, and a read in the past, need the changes of one collection since a version. The feed alone
/// would need a walk over all commits since; this index names the relevant commits, so that changes elsewhere cost
/// nothing. It is held in memory, because a key per commit and collection in the store would make every commit write
/// another page. The feed contains everything that the index does not know: after a start the first question walks over
/// the keys of the feed once, for all collections, and adds the result to the index (`Walk`).
///
/// For each collection and each collection id:
///
/// - the versions that changed it, complete after `since`, in generations of which the oldest is forgotten as a whole;
/// - the last version that changed it, complete after `quietSince`, which reaches back much farther: for most questions
///   the answer is that nothing has changed.
final class FeedIndex: Sendable {
    /// The known versions of some commits, by the prefix of a collection or the encoded id of collections.
    struct Generation {
        var collections: [ByteKey: [Int64]] = [:]
        var groups: [ByteKey: [Int64]] = [:]
        /// The approximate memory that it takes, in units of eight bytes.
        var units = 0
        var last: Int64 = 0

        /// Memory of a name that is new in a generation, besides its bytes: the array and the slot in the table.
        private static let unitsPerName = 16

        mutating func note(_ location: FeedIndex.Location, _ version: Int64) {
            last = max(last, version)
            Self.note(ByteKey(location.prefix), version, &collections, &units)
            Self.note(ByteKey(location.segment), version, &groups, &units)
        }

        private static func note(
            _ name: ByteKey, _ version: Int64, _ table: inout [ByteKey: [Int64]], _ units: inout Int
        ) {
            let before = units
            func add(_ versions: inout [Int64]) {
                units += versions.isEmpty ? unitsPerName + FeedIndex.units(ofName: name) : 1
                // A commit of many documents counts once.
                if versions.last == version { units = before } else { versions.append(version) }
            }
            add(&table[name, default: []])
        }
    }

    /// The last version of each name, in two halves of which the older one is forgotten as a whole.
    private struct LastVersions {
        var older: [ByteKey: Int64] = [:]
        var newer: [ByteKey: Int64] = [:]
        /// The greatest version in `older`.
        var olderLast: Int64 = 0
        /// The approximate memory that each half takes, in units of eight bytes.
        private var olderUnits = 0
        private var newerUnits = 0

        var units: Int { olderUnits + newerUnits }

        /// Memory of a name, besides its bytes.
        private static let unitsPerName = 8

        /// - Parameter unitsMax: limit for each half.
        /// - Returns: a version up to which names may have been forgotten.
        mutating func note(_ table: [ByteKey: [Int64]], unitsMax: Int) -> Int64 {
            var forgotten: Int64 = 0
            for (name, versions) in table {
                guard let last = versions.last else { continue }
                if let known = newer[name] {
                    newer[name] = max(known, last)
                } else {
                    newer[name] = last
                    newerUnits += Self.unitsPerName + FeedIndex.units(ofName: name)
                }
            }
            if newerUnits > unitsMax {
                forgotten = olderLast
                (older, olderUnits) = (newer, newerUnits)
                (newer, newerUnits) = ([:], 0)
                olderLast = older.values.max() ?? 0
            }
            return forgotten
        }

        subscript(_ name: ByteKey) -> Int64 { max(newer[name] ?? 0, older[name] ?? 0) }
    }

    private struct State {
        /// The result of a walk over the feed, before `older`.
        var walked = Generation()
        var older = Generation()
        var newer = Generation()
        /// The versions of the generations are complete after this one.
        var since: Int64
        var collections = LastVersions()
        var groups = LastVersions()
        /// Last versions are complete after this one.
        var quietSince: Int64
        /// The last commit that the index has; snapshots may show later ones.
        var latest: Int64

        init(_ version: Int64) {
            since = version
            quietSince = version
            latest = version
        }

        var units: Int { walked.units + older.units + newer.units + collections.units + groups.units }
    }

    /// A collection that a document is in.
    struct Location {
        /// The common prefix of its documents' keys.
        var prefix: [UInt8]
        /// The encoded id of the collection.
        var segment: [UInt8]

        /// Nil when the bytes are not the key of a document.
        init?(of key: [UInt8]) {
            var position = 0
            var start = 0
            while position < key.count, key[position] != IndexValue.Tag.terminator {
                guard let end = DocumentKey.segmentEnd(key, position) else { return nil }
                start = position
                position = end
            }
            guard position < key.count, position > start else { return nil }
            prefix = Array(key[...position])
            segment = Array(key[start..<position])
        }

        /// Whether a key lies in the same collection.
        func holds(_ key: [UInt8]) -> Bool { key.starts(with: prefix) }
    }

    /// The limit of one generation, in units of eight bytes.
    static let generationUnitsMax = 1 << 18
    /// The same, while those of all databases are crowded.
    private static let generationUnitsMin = 1 << 13
    /// The limit of each half of the last versions of one kind: 32,768 short names.
    private static let lastUnitsMax = 1 << 19

    /// The bytes of a name with its array.
    fileprivate static func units(ofName name: ByteKey) -> Int { 4 + name.bytes.count / 8 }

    /// The total of all databases of the process.
    private let shared: SharedCacheBytes
    private let state: Mutex<State>
    private let unitsMax: Int
    private let lastUnitsMax: Int

    /// - Parameters:
    ///   - version: of the last commit; earlier changes are not known.
    ///   - unitsMax: limit for a generation; smaller in tests.
    init(
        after version: Int64, unitsMax: Int = FeedIndex.generationUnitsMax,
        shared: SharedCacheBytes = SharedCacheBytes(max: .max)
    ) {
        self.shared = shared
        state = Mutex(State(version))
        self.unitsMax = unitsMax
        lastUnitsMax = min(Self.lastUnitsMax, 2 * unitsMax)
    }

    /// The approximate memory that it takes.
    var heldBytes: Int { state.withLock { 8 * $0.units } }

    deinit { state.withLock { count(-$0.units) } }

    private func count(_ units: Int) { shared.used.add(8 * units, ordering: .relaxed) }

    // MARK: Commits

    /// On the writer's thread, in order.
    func append(_ set: ChangeSet) {
        state.withLock { state in
            state.latest = set.version
            let before = state.units
            var last: Location?
            for change in set.changes {
                if let last, last.holds(change.key) { continue }
                guard let location = Location(of: change.key) else { continue }
                state.newer.note(location, set.version)
                last = location
            }
            let isCrowded = shared.isCrowded
            if state.newer.units > (isCrowded ? min(unitsMax, littleUnits) : unitsMax) {
                Self.forgetOldest(&state, lastUnitsMax: isCrowded ? littleUnits : lastUnitsMax)
            }
            count(state.units - before)
        }
    }

    private var littleUnits: Int { shared.littleBytes(Self.generationUnitsMin) }

    /// Drops what is now too much: because other databases hold more, or memory is tight.
    func fit() {
        state.withLock { state in
            guard shared.isCrowded, state.units > 8 * littleUnits else { return }
            count(-state.units)
            // As at the beginning: later commits will be known.
            state = State(state.latest)
        }
    }

    private static func forgetOldest(_ state: inout State, lastUnitsMax: Int) {
        for generation in [state.walked, state.older] where generation.last > 0 {
            let forgotten = [
                state.collections.note(generation.collections, unitsMax: lastUnitsMax),
                state.groups.note(generation.groups, unitsMax: lastUnitsMax),
            ]
            state.quietSince = forgotten.reduce(min(state.quietSince, state.since), max)
            state.since = max(state.since, generation.last)
        }
        state.walked = Generation()
        state.older = state.newer
        state.newer = Generation()
    }

    /// Everything was deleted by a commit that leaves no history.
    func reset(to version: Int64) {
        state.withLock { state in
            count(-state.units)
            state = State(version)
        }
    }

    // MARK: Questions

    package struct Answer {
        /// Commits that changed something in the scope, ascending.
        var versions: [Int64] = []
        /// Later commits are not known here.
        var through: Int64
    }

    /// The commits after a version that changed something in a scope; nil when that is not known.
    func versions(in scope: WatchScope, after version: Int64) -> Answer? {
        switch scope {
        case .collection(let prefix): return versions(ByteKey(prefix), after: version, \.collections, \.collections)
        case .collectionGroup(let id):
            var segment: [UInt8] = []
            IndexValue.appendSegment(String(decoding: id, as: UTF8.self), to: &segment)
            return versions(ByteKey(segment), after: version, \.groups, \.groups)
        case .document, .everything: return nil
        }
    }

    private func versions(
        _ name: ByteKey, after version: Int64, _ table: KeyPath<Generation, [ByteKey: [Int64]]>,
        _ lasts: KeyPath<State, LastVersions>
    ) -> Answer? {
        state.withLock { state in
            var answer = Answer(through: state.latest)
            let lists = [state.walked, state.older, state.newer].compactMap { $0[keyPath: table][name] }
            let last = max(lists.last?.last ?? 0, state[keyPath: lasts][name])
            if last <= version, version >= min(state.quietSince, state.since) { return answer }
            guard version >= state.since else { return nil }
            for list in lists {
                var low = 0
                var high = list.count
                while low < high {
                    let middle = (low + high) / 2
                    if list[middle] <= version { low = middle + 1 } else { high = middle }
                }
                answer.versions += list[low...]
            }
            return answer
        }
    }

    // MARK: Walks over the feed

    /// Gathers the versions that the index lacks, while the caller walks over the feed from a version on.
    struct Walk {
        /// The walk begins after this version, and counts up to the version from which on the index is complete.
        fileprivate let begin: Int64
        let end: Int64
        fileprivate var generation = Generation()
        fileprivate let unitsMax: Int
        private var last: (location: Location, version: Int64)?

        fileprivate init(begin: Int64, end: Int64, unitsMax: Int) {
            self.begin = begin
            self.end = end
            self.unitsMax = unitsMax
        }

        mutating func note(_ key: [UInt8], _ version: Int64) {
            if version > end || generation.units > unitsMax { return }
            if let last, last.version == version, last.location.holds(key) { return }
            guard let location = Location(of: key) else { return }
            generation.note(location, version)
            last = (location, version)
        }
    }

    /// - Parameter snapshotVersion: the last commit that the walk can see.
    /// - Returns: nil when the index knows everything after the version, or the snapshot does not show what it lacks.
    func walk(after version: Int64, snapshotVersion: Int64) -> Walk? {
        state.withLock { state in
            guard version < state.since, snapshotVersion >= state.since else { return nil }
            return Walk(begin: version, end: state.since, unitsMax: 4 * unitsMax)
        }
    }

    /// Adds the result of a complete walk.
    func learn(_ walk: Walk) {
        if walk.generation.units > (shared.isCrowded ? littleUnits : walk.unitsMax) { return }
        state.withLock { state in
            // Other walks may have reached farther, and commits may have pushed out the end of this walk.
            guard walk.end == state.since, walk.begin < state.since else { return }
            // A shorter walk came before this one: its result is later.
            guard state.walked.last == 0 else { return join(walk, &state) }
            count(walk.generation.units)
            state.walked = walk.generation
            // The end of the walked versions, even if its last commit is earlier.
            state.walked.last = walk.end
            state.since = walk.begin
        }
    }

    private func join(_ walk: Walk, _ state: inout State) {
        if walk.generation.units + state.walked.units > walk.unitsMax { return }
        let before = state.units
        state.walked.collections.merge(walk.generation.collections) { $1 + $0 }
        state.walked.groups.merge(walk.generation.groups) { $1 + $0 }
        state.walked.units += walk.generation.units
        state.since = walk.begin
        count(state.units - before)
    }
}
