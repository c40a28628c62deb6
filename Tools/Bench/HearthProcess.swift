import HearthToolSupport

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
