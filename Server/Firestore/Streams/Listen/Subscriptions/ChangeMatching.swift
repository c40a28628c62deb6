import HearthModel
import HearthDocuments

/// Matches one change of a commit with the targets that it concerns, step by step. A step checks one query, or notes
/// the change for one target. Belongs to the loop.
final class ChangeMatching {
    private let change: Change
    private let version: Int64
    private let before: FieldTable?
    private let after: FieldTable?
    private var queries: ArraySlice<SharedQuery>
    /// Targets of the query that was checked last, or of the document itself.
    private var targets: ArraySlice<ListenSubscription>
    private var was: Bool
    private var now: Bool
    private var isWindow = false

    /// - Parameters:
    ///   - watching: targets that name the document.
    ///   - queries: queries that the change may concern.
    init(_ change: Change, _ version: Int64, watching: [ListenSubscription], queries: [SharedQuery]) {
        self.change = change
        self.version = version
        self.queries = queries[...]
        targets = watching[...]
        was = change.before != nil
        now = change.after != nil
        before = queries.isEmpty ? nil : change.before.map { FieldTable($0) }
        after = queries.isEmpty ? nil : change.after.map { FieldTable($0) }
    }

    /// - Parameter noted: called with the stream of a target that the change concerns.
    /// - Returns: false when nothing is left to do.
    func step(_ noted: (ListenStream) -> Void) throws(Status) -> Bool {
        if let target = targets.popFirst() {
            guard version > target.since, let stream = target.stream else { return true }
            if isWindow {
                stream.noteWindow(target)
            } else {
                stream.note(change.key, target, was: was, now: now, change.after)
            }
            noted(stream)
        } else if let shared = queries.popFirst() {
            was = try shared.live.matches(before, key: change.key)
            now = try shared.live.matches(after, key: change.key)
            guard was || now else { return true }
            isWindow = shared.live.isWindow
            if isWindow {
                let state = now ? after.map { ($0, change.after?.updateVersion ?? version) } : nil
                if try !shared.take(key: change.key, before: before, after: state, version) { return true }
            }
            targets = Array(shared.targets.values)[...]
        } else {
            return false
        }
        return true
    }
}
