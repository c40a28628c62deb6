internal import HearthModel

/// Ends the program when a call breaks the API's rules: see HearthApp's `orTrap`.
func orTrap<Result>(
    file: StaticString = #fileID, line: UInt = #line, _ body: () throws(Status) -> Result
) -> Result { orTrap("FirebaseFirestore", file: file, line: line, body) }

/// The same for functions whose result may be ignored.
func orTrap(file: StaticString = #fileID, line: UInt = #line, _ body: () throws(Status) -> Void) {
    orTrap("FirebaseFirestore", file: file, line: line, body)
}
