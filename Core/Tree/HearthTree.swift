/// The Realtime Database's data: one JSON tree per namespace, shared by server, rules and client.
///
/// A `Node` is empty, a leaf (`Scalar`) or has children; leaves and inner nodes may have a priority. Values are
/// immutable and share structure. `TreeData` is the interface to a tree that isn't all in memory; `TreeOverlay` shows
/// such a tree with changes that are not made yet. `TreeQuery` orders and bounds the children of a node. `TreeJSON`
/// reads and writes JSON.
///
/// Empty and absent are the same: an empty object cannot be stored, and an inner node whose last child is deleted is
/// deleted with its priority.
///
/// Source: the documentation of the Realtime Database ("Structure data", REST reference) and the behaviour of its SDKs.
package enum HearthTree {}
