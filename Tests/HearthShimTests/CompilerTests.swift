import FirebaseCore
import Foundation
import HearthTestSupport
import Testing

/// What the compiler says about code that uses the libraries, in the language modes of Swift 5 and 6.
@Suite(
    .serialized, .enabled(if: Compiler.isPresent, "needs swiftc, and the modules beside the tests"),
    .timeLimit(.minutes(Patience.minutes)))
struct CompilerTests {
    /// The closure of a transaction runs on another thread: a class of the main actor is warned when it uses its state.
    @Test(arguments: ["5", "6"]) func transactionsOfTheMainActorAreWarnedOf(mode: String) async throws {
        let uses = [
            "db.runTransaction({ _, _ in self.count += 1; return nil }) { _, _ in }",
            "db.runTransaction(with: nil, block: { _, _ in self.count += 1; return nil }) { _, _ in }",
            "Task { _ = try await db.runTransaction { _, _ in self.count += 1; return nil } }",
            "ref.runTransactionBlock { self.count += 1; return .success(withValue: $0) }",
            "ref.runTransactionBlock({ self.count += 1; return .success(withValue: $0) }) { _, _, _ in }",
            "ref.runTransactionBlock({ _ in self.count += 1; return .abort() }, andCompletionBlock: nil, "
                + "withLocalEvents: true)",
            "Task { _ = try await ref.runTransactionBlock { self.count += 1; return .success(withValue: $0) } }",
        ]
        let answer = try await Compiler.check(Self.model(uses), mode: mode)
        #expect(answer.errors.isEmpty, "\(answer.errors)")
        let warnings = answer.warnings.filter { $0.contains("main actor-isolated property 'count'") }
        #expect(warnings.count == uses.count, "\(answer.warnings)")
    }

    /// Completion handlers and listeners run on the main queue, and may use the state of the main actor.
    @Test(arguments: ["5", "6"]) func listenersOfTheMainActorAreNot(mode: String) async throws {
        let answer = try await Compiler.check(
            Self.model([
                "db.document(\"c/a\").addSnapshotListener { _, _ in self.count += 1 }",
                "db.document(\"c/a\").setData([:]) { _ in self.count += 1 }",
                "db.runTransaction({ _, _ in 1 }) { _, _ in self.count += 1 }",
                "ref.observe(.value) { _ in self.count += 1 }",
                "ref.runTransactionBlock({ .success(withValue: $0) }) { _, _, _ in self.count += 1 }",
            ]), mode: mode)
        #expect(answer.errors.isEmpty && answer.warnings.isEmpty, "\(answer)")
    }

    private static func model(_ uses: [String]) -> String {
        """
        import FirebaseDatabase
        import FirebaseFirestore

        @MainActor final class Model {
            var count = 0
            let db = Firestore.firestore()
            let ref = Database.database().reference()

            func work() {
                \(uses.joined(separator: "\n        "))
            }
        }
        """
    }

    /// The samples of the guide, which this target compiles in Swift 6.
    @Test(arguments: ["5", "6"]) func samplesCompile(mode: String) async throws {
        let folder = URL(filePath: #filePath).deletingLastPathComponent()
        for name in ["ChannelViewModel", "CityStore", "OlderCode"] {
            let code = try String(contentsOf: folder.appending(path: "\(name).swift"), encoding: .utf8)
            let answer = try await Compiler.check(code, mode: mode)
            #expect(answer.errors.isEmpty && answer.warnings.isEmpty, "\(name): \(answer)")
        }
    }
}

/// The compiler that built the tests, with the modules that they use.
enum Compiler {
    struct Answer {
        var errors: [String] = []
        var warnings: [String] = []
    }

    private static let root = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../..").standardized

    /// The folder of the modules, beside the program of the tests.
    private static let modules = URL(filePath: CommandLine.arguments[0]).resolvingSymlinksInPath()
        .deletingLastPathComponent().appending(path: "Modules")

    private static let program = (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":")
        .map { "\($0)/swiftc" }.first { FileManager.default.isExecutableFile(atPath: $0) }

    static var isPresent: Bool {
        let module = modules.appending(path: "FirebaseFirestore.swiftmodule").path(percentEncoded: false)
        return program != nil && FileManager.default.fileExists(atPath: module)
    }

    /// Type checks a file.
    static func check(_ code: String, mode: String) async throws -> Answer {
        // Not on a thread of the tests, which all others wait for.
        try await withCheckedThrowingContinuation { continuation in
            DispatchQueue.global().async { continuation.resume(with: Result { try checkNow(code, mode: mode) }) }
        }
    }

    private static func checkNow(_ code: String, mode: String) throws -> Answer {
        let folder = FileManager.default.temporaryDirectory.appending(path: "shim-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let file = folder.appending(path: "code.swift")
        try Data(code.utf8).write(to: file)
        let platform = root.appending(path: "Core/Platform")
        let imports = try FileManager.default.contentsOfDirectory(at: platform, includingPropertiesForKeys: nil)
        let process = Process()
        process.executableURL = URL(filePath: try #require(program))
        process.arguments =
            ["-typecheck", "-parse-as-library", "-swift-version", mode]
            + ([modules] + imports).flatMap { ["-I", $0.path(percentEncoded: false)] } + [file.path()]
        let output = Pipe()
        process.standardError = output
        try process.run()
        let string = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        let lines = string.split(separator: "\n").map(String.init).filter { !$0.hasPrefix(" ") }
        return Answer(
            errors: lines.filter { $0.contains("error: ") }, warnings: lines.filter { $0.contains("warning: ") })
    }
}
