import Foundation
import HearthHTTPClient
import HearthModel

// hearth-change-copy: a copy of a database in a SQLite file, kept up to date through the change feed.
//
// `Copy` is the file, `Follower` reads the feed, `Options` is the command line.

func complain(_ message: String) {
    FileHandle.standardError.write(Data("hearth-change-copy: \(message)\n".utf8))
}

do {
    let options = try Options(Array(CommandLine.arguments.dropFirst()))
    if options.wantsHelp {
        print(Options.help)
        exit(0)
    }
    let transport = try Transport(name: "change-copy")
    let follower = Follower(try Copy(options.file), options, HTTPClient(transport: transport))
    var isAnew = false
    var pauseSeconds = 1
    while true {
        let begun = ContinuousClock.now
        switch try await follower.follow(anew: isAnew) {
        case .done where options.isOnce:
            transport.shutDown()
            exit(0)
        case .done: isAnew = false
        case .tooOld:
            complain("The position is too old or of another history; all documents come anew.")
            isAnew = true
            continue
        case .cut(let message):
            complain(message)
            isAnew = false
        case .failed(let message):
            complain(message)
            exit(1)
        }
        // What lasted was no failure to connect.
        if begun.duration(to: .now) > .seconds(30) { pauseSeconds = 1 }
        try await Task.sleep(for: .seconds(pauseSeconds))
        pauseSeconds = min(30, 2 * pauseSeconds)
    }
} catch let misuse as Options.Misuse {
    complain(misuse.message)
    exit(2)
} catch {
    complain((error as? Copy.Failure)?.message ?? (error as? Status)?.message ?? "\(error)")
    exit(1)
}
