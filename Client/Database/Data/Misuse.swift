import HearthApp
import HearthModel

/// Ends the program when a call violates the API's rules: see HearthApp's `orTrap`.
func orTrap<Result>(
    file: StaticString = #fileID, line: UInt = #line, _ body: () throws(Status) -> Result
) -> Result { orTrap("FirebaseDatabase", file: file, line: line, body) }
