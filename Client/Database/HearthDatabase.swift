// HearthDatabase: the public API of FirebaseDatabase, on Linux.
//
// Code written for Apple platforms compiles with only the import changed. The public classes (`API/`) check what the user
// says (`Data/`) and hand it to the engine (`Engine/`), which keeps what is known, shown and not yet sent, and is free of
// sockets; `Connection/` is its way to the server. All of the engine and the connection's state belong to one serial queue
// of the database: see `Repository`. Events and completions go from there to `Database.callbackQueue`.
//
// A call that breaks the API's rules ends the program with a message, as an Objective-C exception does on Apple platforms:
// every such call has an internal twin that throws a `Status`, which tests call.

@_exported public import Foundation
@_exported public import HearthApp
