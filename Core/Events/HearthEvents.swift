// HearthEvents: the events that triggers get of changes, as Google's products send them.
//
// - `EventPattern` says which paths a trigger is for; `PatternIndex` finds those of many that match.
// - `DocumentEvent` and `TreeEvent` are a change with its states before and after; `EventRequest` is the HTTP request
//   for it: a CloudEvent in binary or structured mode, with protobuf or JSON, or the form of the first generation.
// - `EventID` is the same in each attempt.
//
// Nothing here does I/O or knows of delivery. Source: the CloudEvents 1.0 specification and its HTTP binding;
// google-cloudevents, proto/google/events; the SDKs `firebase-functions` for Node and Python.
