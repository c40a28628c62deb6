import HearthToolSupport

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
