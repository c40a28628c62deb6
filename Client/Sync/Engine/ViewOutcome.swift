import HearthModel

/// The result of applied changes.
struct ViewOutcome {
    /// nil when there is nothing to deliver.
    var snapshot: ViewSnapshot?
    /// Sorted by key.
    var limboAdded: [ResourcePath] = []
    var limboRemoved: [ResourcePath] = []
}
