import HearthFirestore
import Synchronization

/// Reads commands and prints their results.
final class Shell: Sendable {
    private static let shownIDCharacters = 5

    private let store: NoteStore
    /// The last output of the live view, so that it prints only changes.
    private let shown = Mutex<[String]>([])

    init(_ store: NoteStore) { self.store = store }

    /// - Returns: whether the command succeeded.
    func run(_ words: [String]) async -> Bool {
        do {
            return try await perform(words[0], Array(words.dropFirst()))
        } catch {
            say("error: \(error.localizedDescription)")
            return false
        }
    }

    /// Commands from the terminal, and changes as they arrive, until `quit` or the end of input.
    func converse() async {
        say("Notes. \"help\" shows the commands, \"quit\" ends.")
        let live = Task { await showChanges() }
        for await line in Self.inputLines() {
            let words = line.split(whereSeparator: \.isWhitespace).map(String.init)
            guard let command = words.first else { continue }
            if command == "quit" { break }
            _ = await run(words)
        }
        live.cancel()
    }

    private func perform(_ command: String, _ words: [String]) async throws -> Bool {
        let text = words.joined(separator: " ")
        switch (command, words.count) {
        case ("list", 0): show(try await store.list())
        case ("find", 1): show(try await store.find(tag: String(text.drop { $0 == "#" })))
        case ("add", 1...): return show(try await store.add(text))
        case ("edit", 2...):
            return show(try await store.edit(words[0], words.dropFirst().joined(separator: " ")))
        case ("delete", 1): return show(try await store.delete(words[0]))
        case ("sync", 0):
            let outcome = await store.sync()
            // It reports that all writes were answered, not the answers.
            guard case .saved = outcome else { return show(outcome) }
            say("Nothing waits for the server.")
        case ("watch", 0): await showChanges()
        case ("offline", 0): try await store.goOffline()
        case ("online", 0): try await store.goOnline()
        case ("help", _): say(Options.help)
        default:
            say("error: \(([command] + words).joined(separator: " ")) is no command. \"help\" shows all.")
            return false
        }
        return true
    }

    // MARK: Showing

    /// Not buffered, also when the output is not a terminal, because `watch` may run for days. (`fflush(nil)` would wait
    /// for `readLine`, which holds the input.)
    private func say(_ line: String) { FileHandle.standardOutput.write(Data("\(line)\n".utf8)) }

    private func show(_ notes: NoteList) {
        for line in lines(notes) { say(line) }
    }

    private func lines(_ notes: NoteList) -> [String] {
        let waiting = notes.entries.count { $0.isPending }
        let state = "\(notes.entries.count) notes\(waiting > 0 ? ", \(waiting) for the server to get" : "")"
        return notes.entries.map { note in
            "\(note.isPending ? "…" : " ") \(note.id.prefix(Self.shownIDCharacters))  \(note.text)"
        } + [notes.isOffline ? "-- \(state), offline --" : "-- \(state) --"]
    }

    private func show(_ outcome: NoteStore.Outcome) -> Bool {
        switch outcome {
        case .saved: say("The server has it.")
        case .waiting: say("Kept on this device: the server gets it later.")
        case .refused(let error):
            say("The server refused it: \(error.localizedDescription)")
            return false
        }
        return true
    }

    /// Prints the notes whenever they or their state differ from the last output.
    private func showChanges() async {
        do {
            for try await notes in store.changes() {
                let lines = lines(notes)
                let isNew = shown.withLock { shown in
                    defer { shown = lines }
                    return shown != lines
                }
                if isNew { for line in lines { say(line) } }
            }
        } catch {
            say("error: the live view ended: \(error.localizedDescription)")
        }
    }

    /// `readLine` blocks, so it has a thread of its own.
    private static func inputLines() -> AsyncStream<String> {
        AsyncStream { continuation in
            Thread.detachNewThread {
                while let line = readLine() { continuation.yield(line) }
                continuation.finish()
            }
        }
    }
}
