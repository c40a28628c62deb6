import HearthDocuments
import HearthWire

/// Which messages say what became of one document that still exists, to the targets that show it and to those that do not
/// show it any more.
///
/// A target that shows the document entitles its client to the contents, as far as the target's projection goes. A target
/// that the document left entitles to nothing: rules were asked about the results of the query, and the new contents are
/// not among them. So a client that rules judge gets the name alone (`DocumentRemove`); it asks for the document itself when
/// it wants to know more, and rules decide about that. Source: google.firestore.v1.DocumentRemove.
struct ListenDelivery {
    struct Change {
        var ids: [Int32] = []
        var removed: [Int32] = []
        /// Nil for the whole document.
        var projection: Projection?
    }

    /// Messages with contents.
    private(set) var changes: [Change] = []
    /// Targets that the document leaves without its contents being sent.
    private(set) var removedByName: [Int32] = []

    /// - Parameters:
    ///   - showing: targets that have the document among their results.
    ///   - left: targets that do not, and may have had it.
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
