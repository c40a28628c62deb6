internal import HearthModel

/// Ends the program when a call broke the API's rules. On Apple platforms such calls raise an exception, which Swift can't
/// catch either.
///
/// The body is the call's checked twin: tests call the twin, and see the status.
func orTrap<Result>(
    file: StaticString = #fileID, line: UInt = #line, _ body: () throws(Status) -> Result
) -> Result {
    do {
        return try body()
    } catch {
        fatalError("FirebaseFirestore: \(error.message)", file: file, line: line)
    }
}

/// The same for what gives an object that needn't be used.
func orTrap(file: StaticString = #fileID, line: UInt = #line, _ body: () throws(Status) -> Void) {
    do {
        try body()
    } catch {
        fatalError("FirebaseFirestore: \(error.message)", file: file, line: line)
    }
}
