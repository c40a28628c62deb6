// HearthModel: Firestore's data as values, for server and client: what a document, a name, a query and a write are.
//
// - `Value` is a field's value, `MapValue` the fields of a document; `ValueOrder` is Firestore's order over all
//   values.
// - `DatabaseName`, `ResourceName` and `ResourcePath` name things; `FieldPath` names a value inside a document.
// - `Query`, `Filter` and `Aggregation` are what a client asks, `Write`, `Precondition` and `FieldTransform` what it
//   changes.
// - `Status` is the one error type of the whole program; `Limits` has the bounds, and each module adds its own.
//
// Nothing here does I/O, and nothing knows how a value is encoded: that is `HearthWire`.
