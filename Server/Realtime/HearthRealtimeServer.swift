// HearthRealtimeServer: the Realtime Database's protocols over the trees of `HearthTreeStorage`.
//
// Begin at `RealtimeService`, which has the namespaces, and `RealtimeNamespace`: a tree with its rules and listeners.
//
// - `FrontEnds/`: WebSocket, long polling, REST and its event streams.
// - `Sessions/`: `RealtimeSession` is one client's connection as a state machine without a socket:
//   `RealtimeClientMessage`s in, `RealtimeServerMessage`s out.
// - `Subscriptions/`: `RealtimeHub` notifies listeners; those that are alike share a query.
// - `Access/`: identities and rules.
