import Foundation
import HearthFirestore

/// Runs the selected measures, each with its own clients and cache folders, and prints the figures.
struct ClientBench {
    let options: BenchOptions

    init(_ options: BenchOptions) { self.options = options }

    func run() async throws {
        for measure in options.measures {
            switch measure {
            case "write": try await write()
            case "call": try await call()
            case "index": try await index()
            case "start": try await start()
            case "bundle": try await bundle()
            default: try await idle()
            }
        }
    }

    // MARK: Measures

    /// From a local write to the snapshot of a listener that contains it.
    private func write() async throws {
        try await withFolder { folder in
            let database = try await client(folder, isOnline: false)
            let document = database.collection("notes").document("n")
            let arrivals = Arrivals()
            let registration = document.addSnapshotListener { snapshot, _ in
                if let number = snapshot?.get("n") as? Int { arrivals.note(number) }
            }
            var times: [Double] = []
            for number in 0..<2000 {
                let start = now()
                document.setData(["n": number, "text": String(repeating: "x", count: 200)], completion: nil)
                await arrivals.wait(for: number)
                times.append(now() - start)
            }
            registration.remove()
            report("write: local write to local snapshot", times)
            try await database.terminate()
        }
    }

    /// The time of a write's call, which stores it in the cache's journal; with a cache in memory nothing is stored.
    private func call() async throws {
        for (isInMemory, threads) in [(true, 1), (false, 1), (true, 8), (false, 8)] {
            try await withFolder { folder in
                let database = try await client(folder, isOnline: false, isInMemory: isInMemory)
                let calls = 4000 / threads
                let measured = Locked<[Double]>([])
                let start = now()
                DispatchQueue.concurrentPerform(iterations: threads) { thread in
                    let document = database.collection("notes").document("n\(thread)")
                    var times: [Double] = []
                    for number in 0..<calls {
                        let start = now()
                        document.setData(["n": number, "text": String(repeating: "x", count: 200)], completion: nil)
                        times.append(now() - start)
                    }
                    measured.with { $0 += times }
                }
                let each = (now() - start) / Double(calls * threads) * 1e6
                report(
                    "call: of a write, \(isInMemory ? "in memory" : "on the disk"), \(threads) threads, "
                        + "\(Int(each)) µs each", measured.with { $0 })
                try await database.terminate()
            }
        }
    }

    /// A query for 100 of 100,000 documents in the cache, by an index.
    private func index() async throws {
        try await withFolder { folder in
            let database = try await client(folder, isOnline: false)
            try await load(100_000, into: database)
            try await database.setIndexConfiguration(
                """
                {"indexes": [{"collectionGroup": "items", "queryScope": "COLLECTION", "fields": [
                  {"fieldPath": "shard", "order": "ASCENDING"}]}]}
                """)
            let query = database.collection("items").whereField("shard", isEqualTo: 7)
            // The index is filled in the background, some documents at a time; meanwhile it serves a part of a query.
            var times: [Double] = []
            let began = now()
            var whole: Double?
            while times.count < 200 {
                let start = now()
                let found = try await query.getDocuments(source: .cache).count
                let time = now() - start
                guard found == 100 else { throw BenchFailure("the query found \(found) of 100 documents") }
                if whole == nil, time < 0.01 { whole = now() - began }
                if whole != nil { times.append(time) }
                if now() - began > 180 { throw BenchFailure("the index was not filled in 180 s") }
                if whole == nil { try await Task.sleep(nanoseconds: 500_000_000) }
            }
            say("index: filled within \(Int(whole ?? 0)) s of its definition")
            report("index: 100 of 100,000 cached documents", times)
            try await database.terminate()
        }
    }

    /// The first snapshot of 10,000 documents after the start of a client whose cache has them.
    private func start() async throws {
        try await withFolder { folder in
            let first = try await client(folder, isOnline: false)
            try await load(10_000, into: first)
            try await first.terminate()
            var times: [Double] = []
            for _ in 0..<options.starts {
                let start = now()
                let database = try await client(folder, isOnline: false)
                let arrivals = Arrivals()
                let registration = database.collection("items").addSnapshotListener { snapshot, error in
                    if snapshot?.count == 10_000 { arrivals.note(1) } else { complain(snapshot?.count, error) }
                }
                await arrivals.wait(for: 1)
                times.append(now() - start)
                registration.remove()
                try await database.terminate()
            }
            report("start: first snapshot of 10,000 cached documents", times)
        }
    }

    /// Loads a bundle of 10,000 documents.
    private func bundle() async throws {
        let data = BundleSample.bytes(count: 10_000)
        let before = residentMegabytes()
        try await withFolder { folder in
            let database = try await client(folder, isOnline: false)
            let start = now()
            let progress = try await database.loadBundle(data)
            let seconds = now() - start
            guard progress.documentsLoaded == 10_000 else { throw BenchFailure("the bundle was not loaded whole") }
            say(
                "bundle: 10,000 documents of \(data.count / 10_000) bytes: \(Int(10_000 / seconds))/s, "
                    + "\(Int(residentMegabytes() - before)) MB more at the peak")
            try await database.terminate()
        }
    }

    /// Resident memory of a client with ten idle listeners.
    private func idle() async throws {
        try await withFolder { folder in
            let database = try await client(folder, isOnline: true)
            let arrivals = Arrivals()
            var registrations: [any ListenerRegistration] = []
            for number in 0..<10 {
                registrations.append(
                    database.collection("idle").whereField("n", isEqualTo: number).addSnapshotListener { snapshot, _ in
                        if snapshot?.metadata.isFromCache == false { arrivals.note(number) }
                    })
            }
            for number in 0..<10 { await arrivals.wait(for: number) }
            try await Task.sleep(nanoseconds: 2_000_000_000)
            say("idle: a client with ten listeners: \(Int(residentMegabytes(isPeak: false))) MB resident")
            for registration in registrations { registration.remove() }
            try await database.terminate()
        }
    }

    // MARK: Clients

    private func client(
        _ folder: String, isOnline: Bool, isInMemory: Bool = false, cacheBytes: Int = 1_000_000_000
    ) async throws -> Firestore {
        // One app: its name is the cache's name, and a restarted client must find its cache.
        if FirebaseApp.app(name: "bench") == nil {
            FirebaseApp.configure(name: "bench", options: FirebaseOptions(projectID: "demo-bench"))
        }
        guard let app = FirebaseApp.app(name: "bench") else { throw BenchFailure("there is no app") }
        let database = Firestore.firestore(app: app)
        let settings = FirestoreSettings()
        settings.dispatchQueue = DispatchQueue(label: "callbacks")
        settings.cacheSettings =
            isInMemory
            ? MemoryCacheSettings()
            : PersistentCacheSettings(
                sizeBytes: NSNumber(value: cacheBytes), directory: URL(fileURLWithPath: folder))
        settings.host = options.server.map { "\($0.host):\($0.port)" } ?? "127.0.0.1:9"
        settings.isSSLEnabled = false
        database.settings = settings
        if !isOnline { try await database.disableNetwork() }
        return database
    }

    private func load(_ count: Int, into database: Firestore) async throws {
        let progress = try await database.loadBundle(BundleSample.bytes(count: count))
        guard progress.documentsLoaded == count else { throw BenchFailure("the bundle was not loaded whole") }
    }

    private func withFolder(_ body: (String) async throws -> Void) async throws {
        let folder = options.folder + "/client-bench-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        try await body(folder)
    }

    // MARK: Figures

    /// Figures are read immediately: the output is not buffered.
    private func say(_ string: String) { FileHandle.standardOutput.write(Data((string + "\n").utf8)) }

    private func now() -> Double { ProcessInfo.processInfo.systemUptime }

    private func report(_ title: String, _ times: [Double]) {
        let sorted = times.sorted()
        func string(_ share: Double) -> String {
            String(format: "%.2f", sorted[min(sorted.count - 1, Int(share * Double(sorted.count)))] * 1000)
        }
        say(
            "\(title): p10 \(string(0.1)) ms, p50 \(string(0.5)) ms, p99 \(string(0.99)) ms, last \(String(format: "%.2f", times.last! * 1000)) ms"
        )
    }

    private func residentMegabytes(isPeak: Bool = true) -> Double {
        let string = (try? String(contentsOfFile: "/proc/self/status", encoding: .utf8)) ?? ""
        for line in string.split(separator: "\n") where line.hasPrefix(isPeak ? "VmHWM:" : "VmRSS:") {
            return (Double(line.split(separator: " ").dropFirst().first ?? "") ?? 0) / 1000
        }
        return 0
    }
}

/// Describes an unexpected result.
private func complain(_ count: Int?, _ error: (any Error)?) {
    let string = error?.localizedDescription ?? "a snapshot of \(count ?? 0) documents"
    FileHandle.standardError.write(Data("hearth-client-bench: unexpected: \(string)\n".utf8))
}

struct BenchFailure: LocalizedError {
    let errorDescription: String?

    init(_ string: String) { errorDescription = string }
}
