// HearthDatabase: the public API of FirebaseDatabase, on Linux.
//
// Code written for Apple platforms compiles with only the import changed. The public classes (`API/`) validate the
// user's arguments (`Data/`) and pass them to the engine (`Engine/`). The engine stores known data, views and pending
// writes, and does not use sockets; `Connection/` connects it to the server. The state of engine and connection belongs
// to one serial queue of the database: see `Repository`. From there events and completions are delivered to
// `Database.callbackQueue`.
//
// A call that violates the API's rules ends the program with a message, as an Objective-C exception does on Apple
// platforms. Each such call has an internal variant that throws a `Status`, which tests call.

@_exported public import Foundation
@_exported public import HearthApp
