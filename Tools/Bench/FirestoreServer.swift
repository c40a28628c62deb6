import HearthToolSupport
import Glibc

/// A Firestore server that the bench uses.
protocol FirestoreServer {
    /// Starts an instance with no data and waits until it answers.
    func start() throws(ToolFailure) -> RunningServer
    /// Whether `start` makes a new instance each time.
    var canStart: Bool { get }
    /// The same program without a disk; nil when it has no disk or does not support this.
    var inMemory: (any FirestoreServer)? { get }
    /// Called before a load is measured.
    var warmUpSeconds: Double { get }
    /// The method of filling a collection: documents of a BatchWrite, at most 500…
    var batchDocuments: Int { get }
    /// …and an even number of concurrent batches.
    var batchesInFlight: Int { get }
}

extension FirestoreServer {
    var canStart: Bool { true }
    var inMemory: (any FirestoreServer)? { nil }
    var warmUpSeconds: Double { 1 }
    var batchDocuments: Int { 500 }
    var batchesInFlight: Int { 4 }
}

/// A running instance.
struct RunningServer {
    var host: String
    var port: Int
    /// Nil for a server that the bench did not start.
    var process: ChildProcess?
    /// From the start of the process to the first answer.
    var startMilliseconds = 0.0
}

/// A server that was started elsewhere.
struct RemoteServer: FirestoreServer {
    let host: String
    let port: Int
    let canStart = false

    func start() throws(ToolFailure) -> RunningServer { RunningServer(host: host, port: port) }
}

/// This program.
struct HearthProcess: FirestoreServer {
    let isInMemory: Bool
    let housekeeping: BenchHousekeeping

    init(isInMemory: Bool, _ housekeeping: BenchHousekeeping) {
        self.isInMemory = isInMemory
        self.housekeeping = housekeeping
    }

    var inMemory: (any FirestoreServer)? { HearthProcess(isInMemory: true, housekeeping) }

    func start() throws(ToolFailure) -> RunningServer {
        let folder = housekeeping.folder("hearth")
        let port = try FreePort.find()
        let storage = isInMemory ? ["--memory"] : ["--data", folder + "/data"]
        let words = [try Self.program(), "serve", "--port", String(port)] + storage
        return try ServerStart.start(words, port: port, folder: folder)
    }

    /// The server is a program of its own, beside this one.
    static func program() throws(ToolFailure) -> String {
        try ToolProcess.sibling("hearth", advice: "`make bench` builds both.")
    }
}

/// This program as a server of one constant answer: see `ConstantServer`.
struct ConstantProcess: FirestoreServer {
    private let message: [UInt8]
    private let housekeeping: BenchHousekeeping

    init(_ message: [UInt8], _ housekeeping: BenchHousekeeping) {
        self.message = message
        self.housekeeping = housekeeping
    }

    func start() throws(ToolFailure) -> RunningServer {
        let folder = housekeeping.folder("constant")
        let port = try FreePort.find()
        try OutputFile.write(message, to: folder + "/message")
        let words = [try ToolProcess.path(), ConstantServer.name, String(port), folder + "/message"]
        return try ServerStart.start(words, port: port, folder: folder)
    }
}

/// Google's emulator, where its Debian package and a Java are installed.
struct EmulatorProcess: FirestoreServer {
    private static let package = "google-cloud-cli-firestore-emulator"
    private static let mainClass = "com.google.cloud.datastore.emulator.firestore.CloudFirestore"

    /// A virtual machine needs time to compile the used code.
    let warmUpSeconds = 3.0

    private let jar: String
    private let heap: String
    private let housekeeping: BenchHousekeeping

    /// - Parameter heap: the size of its Java heap, in the form of `-Xmx`.
    init(heap: String, _ housekeeping: BenchHousekeeping) throws(ToolFailure) {
        let log = housekeeping.path + "/dpkg.log"
        let list = try ChildProcess.run(["dpkg", "-L", Self.package], logPath: log)
        guard let jar = list.split(separator: "\n").first(where: { $0.hasSuffix("cloud-firestore-emulator.jar") })
        else {
            throw ToolFailure(.failed, "The package \(Self.package) has no emulator in it.")
        }
        self.jar = String(jar)
        self.heap = heap
        self.housekeeping = housekeeping
    }

    func start() throws(ToolFailure) -> RunningServer {
        let port = try FreePort.find()
        return try ServerStart.start(
            ["java", "-Xmx\(heap)", "-cp", jar, Self.mainClass, "--host=127.0.0.1", "--port=\(port)"], port: port,
            folder: housekeeping.folder("emulator"))
    }
}
