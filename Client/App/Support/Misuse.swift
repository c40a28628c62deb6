package import HearthModel

/// Ends the program when a call breaks the API's rules. On Apple platforms such calls raise an exception, which Swift
/// cannot catch either.
///
/// The body is the throwing form of the call, which tests use to check the status.
/// - Parameter product: the prefix of the message.
package func orTrap<Result>(
    _ product: StaticString, file: StaticString = #fileID, line: UInt = #line, _ body: () throws(Status) -> Result
) -> Result {
    do {
        return try body()
    } catch {
        error.endProgram(product, file: file, line: line)
    }
}

extension Status {
    package func endProgram(_ product: StaticString, file: StaticString, line: UInt) -> Never {
        fatalError("\(product): \(message)", file: file, line: line)
    }
}
