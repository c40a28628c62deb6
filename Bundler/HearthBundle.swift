// HearthBundle: files of documents and named queries that a client loads into its cache.
//
//     bundle  = element*                 the first element is the metadata
//     element = length json
//     length  = decimal digits: how many bytes of UTF-8 the JSON has
//     json    = {"metadata": …} | {"namedQuery": …} | {"documentMetadata": …} | {"document": …}
//
// Nothing stands between the elements. A `documentMetadata` whose document exists is followed at once by its `document`.
//
// - Reading: `BundleFraming` cuts the stream into elements, `BundleReader` decodes them and checks all that can be
//   checked (`BundleCheck`), and hands out whole documents and queries as values of the model. It does no I/O and holds
//   one element at a time: feed it pieces of any size.
// - Writing: `BundleBuilder` takes documents and query results, keeps the newest state of each document, and writes the
//   same bytes for the same input.
//
// What holds at all times: no input makes a reader hold more than the element at hand and the names that it has seen; a
// length that lies costs no memory; what cannot be read is DATA_LOSS, what can be read but contradicts itself is
// INVALID_ARGUMENT.
