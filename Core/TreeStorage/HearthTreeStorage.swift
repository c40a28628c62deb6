/// The Realtime Database's tree over a `Store`: what a namespace keeps, and the one way by which it changes.
///
/// `TreeDatabase` takes writes, makes those that have gathered durable together, and gives out `TreeView`s, each a state of
/// the tree. Values that the server works out are worked out, conditions and rules are asked, and observers told on the
/// writer's thread, so nothing comes between judgement, commit and what listeners hear.
///
/// What holds at all times:
///
/// - A write is applied with all its places or not at all, and costs what it touches, whatever lies beside or above it.
/// - Only leaves, and the priorities of inner nodes, are stored; inner nodes are there because something lies below them.
///   So an inner node has at least one leaf below it, and nothing lies below a leaf.
/// - Entries of indexes that are ready agree with the leaves, in every state that can be seen.
/// - No transaction grows with the size of what is put, of what it replaces, or with the number of locations; what a large
///   write does in several transactions becomes visible at once. Up to `Limits.treeReplacementLocationsMax` locations are
///   replaced as ranges (`TreeGraft`); more, and those that meet each other, are changed on a shadow of the tree
///   (`WideUpdate`). A string is one record, however long.
///
/// How it lies in the store (each format at the top of its file):
///
/// | what | keyspace | key | format |
/// |---|---|---|---|
/// | leaves, priorities of inner nodes | entries | 01, path | `PathCode`, `TreeRecord` |
/// | children by an `.indexOn` | entries | 02, index, path of the parent, 00, value, child | `IndexCode` |
/// | children that have a priority | entries | 03, path of the parent, 00, priority, child | `IndexCode` |
/// | long strings | documents | as the leaf's | UTF-8 |
/// | what a large write has put so far | as above | 04, ID, the whole key | `TreeGraft`, `TreeDelta` |
/// | last version, indexes, journal | meta | names | `TreeMeta` |
///
/// The store has to hold nothing else.
package enum HearthTreeStorage {}
