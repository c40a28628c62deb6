/// The Realtime Database's tree over a `Store`: the stored data of a namespace, and its only write interface.
///
/// `TreeDatabase` accepts writes, makes groups of them durable together, and provides `TreeView`s, each a version of
/// the tree. Deferred values are computed, conditions and rules are evaluated, and observers are notified on the
/// writer's thread, so no other write comes between decision, commit and events.
///
/// Invariants:
///
/// - A write is atomic over all its locations, and its cost depends on what it touches, not on the data beside or above
///   it.
/// - Only leaves, and the priorities of inner nodes, are stored; an inner node exists because there is a leaf below it.
///   So an inner node has at least one leaf below it, and nothing is below a leaf.
/// - Entries of indexes that are ready agree with the leaves, in every visible version.
/// - The size of a transaction is bounded: it does not grow with the new data, the replaced data, or the number of
///   locations. The changes that a large write makes in several transactions become visible at once. Up to
///   `Limits.treeReplacementLocationsMax` locations are replaced as ranges (`TreeGraft`); more locations, and those
///   that contain each other, are changed on a shadow of the tree (`WideUpdate`). A string is one record, whatever its
///   length is.
///
/// Layout in the store (each format is documented at the top of its file):
///
/// | data | keyspace | key | format |
/// |---|---|---|---|
/// | leaves, priorities of inner nodes | entries | 01, path | `PathCode`, `TreeRecord` |
/// | children by an `.indexOn` | entries | 02, index, path of the parent, 00, value, child | `IndexCode` |
/// | children that have a priority | entries | 03, path of the parent, 00, priority, child | `IndexCode` |
/// | long strings | documents | as the leaf's | UTF-8 |
/// | records of a large write that is not complete | as above | 04, ID, the whole key | `TreeGraft`, `TreeDelta` |
/// | last version, indexes, journal | meta | names | `TreeMeta` |
/// | records of a recorder of commits | meta | other names | `TreeRecorder` |
///
/// The store must not contain anything else.
package enum HearthTreeStorage {}
