/// The tokens of JSON (RFC 8259): one lexer, and one writer of strings and numbers, for everything in Hearth that reads
/// or writes JSON. What the tokens mean is for others: messages are read and written in `HearthWire`, trees in
/// `HearthTree`, and each of them decides about duplicate names, the forms of numbers, and the wording of its errors.
///
/// `JSONLexer` reads a document in memory. It is strict: what it accepts is what every JSON parser accepts. `JSONEscape`
/// has the escapes alone, for files that are not quite JSON. `JSONOutline` follows a document of any size that arrives
/// in pieces, without checking it. `JSONTokens` appends tokens to bytes.
///
/// The lexer is generic over the error that it throws, and all of it is inlinable: each module that uses it gets its own
/// specialised code.
package enum HearthJSON {}
