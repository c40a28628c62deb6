import HearthConcurrency
import HearthDocuments
import HearthEngine
import HearthEvents
import HearthModel

/// The events of a trigger in the change feed of a database, read in steps.
struct FeedReplay {
    struct Position {
        /// The first version that is to be read.
        var version: Int64
        /// The key within it behind which the next step begins.
        var key: [UInt8] = []
        var isEnd = false
        /// What is known of documents that change often.
        fileprivate var states = DocumentStates()

        init(version: Int64) { self.version = version }
    }

    let database: Database
    let definition: TriggerDefinition

    /// The records of a step, whether the trigger wants them or not.
    private static let recordsMax = 5000
    /// A step ends after so long: large documents take their time.
    private static let stepMilliseconds = 50

    /// - Throws: OUT_OF_RANGE when the feed does not go back so far.
    func check(_ time: Timestamp) throws(Status) {
        let snapshot = try database.store.snapshot()
        defer { snapshot.close() }
        let forgotten = try Feed.forgottenVersion(in: snapshot)
        if time.microseconds > forgotten { return }
        let begin = EventTime.string(Timestamp(microseconds: forgotten + 1), digits: 6)
        throw Status(.outOfRange, "since: the change feed of \(database.name) goes back to \(begin).")
    }

    /// The next events, in the order of commits; nil at the end. There may be none in a step.
    func step(_ position: inout Position, countMax: Int) throws(Status) -> [Delivery.Event]? {
        if position.isEnd { return nil }
        let snapshot = try database.store.snapshot()
        defer { snapshot.close() }
        var events: [Delivery.Event] = []
        var count = 0
        let cursor = try Feed.changes(from: position.version, behind: position.key, in: snapshot)
        defer { cursor.close() }
        let end = MonotonicTime.now.advanced(milliseconds: Self.stepMilliseconds)
        while events.count < countMax, count < Self.recordsMax, count == 0 || MonotonicTime.now < end {
            guard try cursor.next() else {
                position.isEnd = true
                break
            }
            count += 1
            let (version, key) = Feed.change(cursor.key)
            position.version = version
            position.key = key
            let event = Delivery.Event(version: version, key: key)
            guard let path = DocumentKey.decode(key), definition.pattern.matches(EventPath(path.string)) else {
                continue
            }
            let (before, after) = try position.states.states(of: event, in: snapshot)
            guard before?.updateVersion != after?.updateVersion else { continue }
            let kind: ChangeKind = before == nil ? .created : after == nil ? .deleted : .updated
            if definition.type.wants(kind) { events.append(event) }
        }
        return events
    }
}
