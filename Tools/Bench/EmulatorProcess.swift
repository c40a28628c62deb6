import HearthToolSupport

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
