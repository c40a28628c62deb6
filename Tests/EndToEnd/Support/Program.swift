import Foundation
import HearthTestSupport
import Synchronization

/// The test program `hearth-test-client` in a process of its own.
final class Program: Sendable {
    private struct State {
        var output: [UInt8] = []
        var lineCount = 0
        var isAtEnd = false
    }

    private let process: Process
    private let state = Mutex(State())
    private let changed = DispatchSemaphore(value: 0)
    private let ended = Mutex(false)

    init(
        _ arguments: [String], environment: [String: String] = [:], standardError: FileHandle = .nullDevice
    ) throws {
        let process = Process()
        // Beside the tests.
        process.executableURL = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
            .deletingLastPathComponent().appendingPathComponent("hearth-test-client")
        process.arguments = arguments
        process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
        process.standardInput = FileHandle.nullDevice
        let output = Pipe()
        process.standardOutput = output
        process.standardError = standardError
        self.process = process
        process.terminationHandler = { [self] _ in ended.withLock { $0 = true } }
        try process.run()
        let reading = output.fileHandleForReading
        Thread.detachNewThread { [self] in
            while true {
                let piece = reading.availableData
                state.withLock { state in
                    state.output += piece
                    state.lineCount += piece.count { $0 == UInt8(ascii: "\n") }
                    state.isAtEnd = piece.isEmpty
                }
                changed.signal()
                if piece.isEmpty { return }
            }
        }
    }

    /// Waits until the program has printed so many lines, or has ended.
    func wait(lines count: Int) throws {
        while state.withLock({ !$0.isAtEnd && $0.lineCount < count }) {
            if changed.wait(timeout: .now() + .seconds(Patience.seconds)) == .timedOut {
                throw Waiting.TimedOut(description: "the program printed \(state.withLock { $0.lineCount }) lines")
            }
        }
    }

    func kill() { Foundation.kill(process.processIdentifier, SIGKILL) }

    /// Waits for the end.
    /// - Returns: `exit CODE` or `signal NUMBER`.
    func end() async throws -> String {
        try await Waiting.until("the end of the program") {
            ended.withLock { $0 } && state.withLock { $0.isAtEnd }
        }
        return process.terminationReason == .exit
            ? "exit \(process.terminationStatus)" : "signal \(process.terminationStatus)"
    }

    /// The complete lines of its output.
    var lines: [String] {
        let output = state.withLock { $0.output }
        return String(decoding: output, as: UTF8.self).split(separator: "\n", omittingEmptySubsequences: false)
            .dropLast().map(String.init)
    }
}
