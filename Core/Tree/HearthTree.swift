/// The Realtime Database's data: one JSON tree a namespace, shared by server, rules and client.
///
/// A `Node` is empty, a leaf (`Scalar`) or has children; leaves and inner nodes may have a priority. Values are immutable and
/// share structure. `TreeData` is how readers see a tree that isn't all in memory; `TreeOverlay` shows such a tree with
/// changes that are not made yet. `TreeQuery` orders and bounds the children of a node. Texts are `TreeJSON`'s.
///
/// Empty and absent are one: there is no empty object to store, and an inner node whose last child goes is gone, its priority
/// with it.
///
/// Source: the documentation of the Realtime Database ("Structure data", REST reference) and the behaviour of its SDKs.
package enum HearthTree {}
