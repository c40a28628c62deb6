// HearthBundle: files of documents and named queries that a client loads into its cache.
//
//     bundle  = element*                 the first element is the metadata
//     element = length json
// length  = decimal digits: the number of bytes of the JSON in UTF-8
//     json    = {"metadata": …} | {"namedQuery": …} | {"documentMetadata": …} | {"document": …}
//
// There is nothing between the elements. A `documentMetadata` whose document exists is followed directly by its
// `document`.
//
// - Reading: `BundleFraming` splits the stream into elements. `BundleReader` decodes them, checks them (`BundleCheck`),
//   and returns complete documents and queries as values of the model. It does no I/O and holds one element at a time:
//   feed it pieces of any size.
// - Writing: `BundleBuilder` takes documents and query results, keeps the newest version of each document, and writes
//   the same bytes for the same input.
//
// Invariants: no input makes a reader hold more than the current element and the names that it has read; a false length
// costs no memory; malformed input is `DATA_LOSS`, well-formed input that contradicts itself is `INVALID_ARGUMENT`.
