// HearthFirestoreServer: Firestore's API over the databases of `HearthDocuments`.
//
// - `FrontEnds/` and `WebChannel/`: gRPC, REST and the browsers' protocol, which all make a `ServiceCall` or a
//   `StreamCall`.
// - `Methods/`: begin at `FirestoreService`, which has what each method does.
// - `Streams/`: Listen and Write.
// - `Access/`: who may do what: `AccessControl`, and the rules of each database. `Rulesets/`: rules by API.
// - `Admin/`: databases, indexes, fields and operations; `Bundles/`: bundles that the server builds.
//
// `DatabaseRegistry` has the databases.
