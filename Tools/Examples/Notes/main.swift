import HearthFirestore

// hearth-notes: notes in the terminal that are available while the server is not.
//
// `NoteStore` uses Firestore; `Shell` reads commands and prints; `Options` is the command line.

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
    // Closes the cache in an orderly way. It contains the unsent writes, which the next run sends.
    try await store.close()
    exit(isDone ? 0 : 1)
} catch {
    FileHandle.standardError.write(Data("hearth-notes: \(error.localizedDescription)\n".utf8))
    exit(2)
}
