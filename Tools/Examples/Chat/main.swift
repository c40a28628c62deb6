import HearthDatabase

// hearth-chat: a chat in the terminal, with who is present, over the Realtime Database.
//
// `Channel` uses the database; `Options` is the command line; here is the terminal.

/// Not buffered, also when the output is not a terminal. (`fflush(nil)` would wait for `readLine`, which holds the input.)
func show(_ line: String) { FileHandle.standardOutput.write(Data("\(line)\n".utf8)) }

func show(_ event: Channel.Event) {
    switch event {
    case .line(let author, let body): show("\(author): \(body)")
    case .arrived(let name): show("* \(name) is here")
    case .left(let name): show("* \(name) left")
    case .connection(true): show("* online")
    case .connection(false): show("* offline: lines are kept on this device")
    case .refused(let body, let reason): show("* refused: \(body) (\(reason))")
    }
}

/// `readLine` blocks, so it has a thread of its own.
func inputLines() -> AsyncStream<String> {
    AsyncStream { continuation in
        Thread.detachNewThread {
            while let line = readLine() { continuation.yield(line) }
            continuation.finish()
        }
    }
}

do {
    let options = try Options(Array(CommandLine.arguments.dropFirst()))
    if options.wantsHelp {
        show(Options.help)
        exit(0)
    }
    let channel = Channel(options)
    let view = Task { for await event in channel.events { show(event) } }
    for await line in inputLines() where !line.isEmpty {
        if line == "/quit" { break }
        switch line {
        case "/offline": channel.goOffline()
        case "/online": channel.goOnline()
        case _ where line.hasPrefix("/"): show("* There is no command \(line): /offline, /online and /quit are all.")
        default: channel.say(line)
        }
    }
    let isDone = await channel.leave()
    await view.value
    if !isDone { show("* The server does not have all lines yet: the next run sends them.") }
} catch {
    FileHandle.standardError.write(Data("hearth-chat: \(error.localizedDescription)\n".utf8))
    exit(2)
}
