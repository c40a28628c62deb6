import Foundation
import HearthTestSupport
import Synchronization

/// A running program: what it has printed, by lines, and its input.
///
/// `@unchecked`: the process and the pipes are set up once, the output is locked.
final class Terminal: @unchecked Sendable {
    private struct Output {
        var bytes = Data()
        var isOver = false
        var lines: [String] {
            String(decoding: bytes, as: UTF8.self).split(separator: "\n").map(String.init)
        }
    }

    private let process = Process()
    /// Stays while the program runs.
    private let kept: TemporaryFolder
    private let input = Pipe()
    private let output = Mutex(Output())

    init(_ script: String, in folder: URL, keeping kept: TemporaryFolder, environment: [String: String]) throws {
        self.kept = kept
        let printed = Pipe()
        process.executableURL = URL(fileURLWithPath: "/bin/sh")
        process.arguments = ["-ec", script]
        process.currentDirectoryURL = folder
        process.environment = environment
        process.standardInput = input
        process.standardOutput = printed
        process.standardError = printed
        printed.fileHandleForReading.readabilityHandler = { [weak self] handle in
            let bytes = handle.availableData
            if bytes.isEmpty { handle.readabilityHandler = nil }
            self?.output.withLock { output in
                output.bytes.append(bytes)
                output.isOver = bytes.isEmpty
            }
        }
        try process.run()
    }

    deinit {
        if process.isRunning { kill(process.processIdentifier, SIGKILL) }
    }

    var lines: [String] { output.withLock { $0.lines } }

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
        while process.isRunning || !output.withLock({ $0.isOver }) { try await Task.sleep(for: .milliseconds(5)) }
        return (process.terminationStatus, lines)
    }
}
