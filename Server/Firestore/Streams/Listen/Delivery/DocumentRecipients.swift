import HearthDocuments
import HearthWire

/// Selects the messages about one existing document: for the targets that show it, and for those that no longer show
/// it.
///
/// A target that shows the document entitles its client to the contents, within the target's projection. A target that
/// the document left entitles its client to nothing: rules allowed the results of the query, and the new contents are
/// not among them. A client that rules judge therefore gets only the name (`DocumentRemove`). It can request the
/// document itself, and rules decide about that request. Source: google.firestore.v1.DocumentRemove.
struct DocumentRecipients {
    struct Change {
        var ids: [Int32] = []
        var removed: [Int32] = []
        /// Nil for the whole document.
        var projection: Projection?
    }

    /// Messages with contents.
    private(set) var changes: [Change] = []
    /// Targets that the document leaves without sending its contents.
    private(set) var removedByName: [Int32] = []

    /// - Parameters:
    ///   - showing: targets that have the document among their results.
    ///   - left: targets that do not have it now, and may have had it.
    ///   - isJudged: whether rules decide what the client reads.
    init(showing: [ListenSubscription], left: [ListenSubscription], isJudged: Bool) {
        let whole = showing.filter { $0.projection == nil }.map(\.id)
        if !whole.isEmpty {
            changes.append(Change(ids: whole, removed: left.map(\.id)))
        } else if isJudged {
            removedByName = left.map(\.id)
        } else {
            let removed = left.filter { $0.projection == nil }.map(\.id)
            if !removed.isEmpty { changes.append(Change(removed: removed)) }
            for target in left where target.projection != nil {
                changes.append(Change(removed: [target.id], projection: target.projection))
            }
        }
        for target in showing where target.projection != nil {
            changes.append(Change(ids: [target.id], projection: target.projection))
        }
    }
}
