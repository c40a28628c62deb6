// HearthWire: the messages of Firestore's API, as protobuf and as proto3 JSON.
//
// - A `WireMessage` lists its fields once, in `visit`; reading and writing, binary and JSON, are `FieldVisitor`s over
//   that list. The messages are in `Messages/`, their way into the model and back in `Conversion/`.
// - `Values/` reads and writes documents and values without a message: `EncodedDocument` is a document as it is stored
//   and sent, whose fields are projected and spliced without being decoded.
// - `Descriptors/` describes the messages to clients that ask for them.
//
// Invariants: any bytes are decoded or refused; depth and counts are bounded by `Limits+Wire.swift`.
