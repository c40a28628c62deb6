import Foundation
import HearthTestSupport
import Synchronization

/// A running program: what it has printed, by lines, and its input.
///
/// `@unchecked`: the process and the pipes are set up once, and are not changed.
final class Terminal: @unchecked Sendable {
    private final class Output: Sendable {
        private let state = Mutex((bytes: Data(), isOver: false))

        func append(_ bytes: Data) { state.withLock { $0.bytes.append(bytes) } }

        func end() { state.withLock { $0.isOver = true } }

        var isOver: Bool { state.withLock { $0.isOver } }

        var lines: [String] {
            String(decoding: state.withLock { $0.bytes }, as: UTF8.self).split(separator: "\n").map(String.init)
        }
    }

    private let temporary: TemporaryFolder
    private let process = Process()
    private let input = Pipe()
    private let output = Output()

    /// - Parameter temporary: holds `folder`, and must not end before the program.
    init(_ script: String, in folder: URL, of temporary: TemporaryFolder, environment: [String: String]) throws {
        self.temporary = temporary
        let printed = Pipe()
        process.executableURL = URL(fileURLWithPath: "/bin/sh")
        process.arguments = ["-ec", script]
        process.currentDirectoryURL = folder
        process.environment = environment
        process.standardInput = input
        process.standardOutput = printed
        process.standardError = printed
        try process.run()
        // A thread of its own reads in order, up to the end.
        let reading = printed.fileHandleForReading
        Thread.detachNewThread { [output] in
            while true {
                let bytes = reading.availableData
                if bytes.isEmpty { break }
                output.append(bytes)
            }
            output.end()
        }
    }

    deinit {
        if process.isRunning { kill(process.processIdentifier, SIGKILL) }
    }

    var lines: [String] { output.lines }

    func type(_ line: String) throws { try input.fileHandleForWriting.write(contentsOf: Data("\(line)\n".utf8)) }

    /// Waits for a line; the test's time limit applies.
    @discardableResult
    func line(_ number: Int = 1, where isWanted: (String) -> Bool) async throws -> String {
        while true {
            let found = lines.filter(isWanted)
            if found.count >= number { return found[number - 1] }
            try await Task.sleep(for: .milliseconds(5))
        }
    }

    func wait(for line: String, number: Int = 1) async throws { try await self.line(number) { $0 == line } }

    func signal(_ signal: Int32) { kill(process.processIdentifier, signal) }

    /// Waits for the end of the program and of its output.
    /// - Returns: its exit code, and all of its output.
    func end() async throws -> (code: Int32, lines: [String]) {
        while process.isRunning || !output.isOver { try await Task.sleep(for: .milliseconds(5)) }
        return (process.terminationStatus, lines)
    }
}
