import HearthFirestore

// hearth-notes: notes in the terminal that go on working while the server is off.
//
// `NoteStore` is all that speaks with Firestore; `Shell` reads commands and prints; `Options` is the command line.

do {
    let options = try Options(Array(CommandLine.arguments.dropFirst()))
    if options.wantsHelp {
        print(Options.help)
        exit(0)
    }
    let store = try await NoteStore(options)
    let shell = Shell(store)
    let isDone: Bool
    if options.command.isEmpty {
        await shell.converse()
        isDone = true
    } else {
        isDone = await shell.run(options.command)
    }
    // Closes the cache in order. What the server hasn't got is in it, and goes there next time.
    try await store.close()
    exit(isDone ? 0 : 1)
} catch {
    FileHandle.standardError.write(Data("hearth-notes: \(error.localizedDescription)\n".utf8))
    exit(2)
}
