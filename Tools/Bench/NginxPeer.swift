import HearthToolSupport
import Glibc
import HearthModel

/// nginx, where it is installed: a file of the size of Hearth's REST response, for the same requests from the same
/// client.
final class NginxPeer: BenchSession {
    private let settings: BenchSettings
    private let port: Int
    private let server: RunningServer
    private let requests = BenchRequests()

    init(_ settings: BenchSettings, _ housekeeping: BenchHousekeeping) throws(ToolFailure) {
        self.settings = settings
        let folder = housekeeping.folder("nginx")
        port = try FreePort.find()
        let file = folder + "/root" + requests.path("work", 0)
        try OutputFile.makeFolders(of: file)
        try OutputFile.write(try SampleDocument(settings, housekeeping).string, to: file)
        try OutputFile.write(Self.configuration(folder, port), to: folder + "/nginx.conf")
        server = try ServerStart.start(
            [try Self.program(), "-p", folder, "-e", folder + "/error.log", "-c", folder + "/nginx.conf"], port: port,
            folder: folder)
    }

    /// A carefully tuned configuration: one worker per core, no log, cached open files, and persistent connections.
    private static func configuration(_ folder: String, _ port: Int) -> String {
        let folders = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map { "\($0)_temp_path \(folder)/\($0);" }
        return """
            daemon off;
            worker_processes auto;
            pid \(folder)/pid;
            events { worker_connections 2048; }
            http {
                access_log off;
                default_type application/json;
                sendfile on;
                tcp_nopush on;
                keepalive_requests 1000000000;
                open_file_cache max=1000 inactive=1h;
                \(folders.joined(separator: " "))
                server {
                    listen 127.0.0.1:\(port);
                    root \(folder)/root;
                }
            }

            """
    }

    /// Often not on the path of non-root users.
    private static func program() throws(ToolFailure) -> String {
        for path in ["/usr/sbin/nginx", "/usr/local/sbin/nginx", "/usr/bin/nginx"] where access(path, X_OK) == 0 {
            return path
        }
        throw ToolFailure(.failed, "nginx is not installed.")
    }

    func stop() { server.process?.stop() }

    func run(_ workload: Workload) throws(ToolFailure) -> [Figure] {
        let message = requests.restGet("work", 0)
        let generator = LoadGenerator(
            host: "127.0.0.1", port: port, wire: .plain(HTTP1Framing.self),
            connections: BenchRequests.restConnections, streams: 1, seed: settings.seed)
        return try LoadMeasurement(settings).run(workload.name, generator, process: server.process) { _, _ in message }
            .withOperationsPerCPUSecond()
    }
}

/// Redis, where it is installed: GET of a value of the size of GetDocument's response message, with one key for each
/// document.
///
/// Eight connections with sixteen requests in flight each, as for `get`: pipelining is Redis' equivalent of HTTP/2's
/// streams. The next request of a connection is sent when a response arrives, so neither side waits for whole batches.
/// Redis has one thread for all of them and Hearth one per core, so operations per second of the server's CPU time are
/// compared.
final class RedisPeer: BenchSession {
    private let settings: BenchSettings
    private let port: Int
    private let server: ChildProcess
    private let value: [UInt8]

    init(_ settings: BenchSettings, _ housekeeping: BenchHousekeeping) throws(ToolFailure) {
        self.settings = settings
        let folder = housekeeping.folder("redis")
        port = try FreePort.find()
        let value = try SampleDocument(settings, housekeeping).message
        self.value = value
        server = try ChildProcess(
            ["redis-server", "--port", String(port), "--bind", "127.0.0.1", "--dir", folder]
                + ["--save", "", "--appendonly", "no"], logPath: folder + "/log")
        do throws(ToolFailure) {
            try ServerStart.wait(for: server, "redis-server") { [port] in
                guard let descriptor = Loopback.connect(port: port) else { return false }
                close(descriptor)
                return true
            }
            _ = try generator.run(.requests(settings.documents)) { number, _ in
                Self.command([Array("SET".utf8), Self.key(number), value])
            }
        } catch {
            server.stop()
            throw error
        }
    }

    private var generator: LoadGenerator {
        LoadGenerator(
            host: "127.0.0.1", port: port, wire: .plain(RedisFraming.self), connections: 8, streams: 16,
            seed: settings.seed)
    }

    private static func key(_ number: Int) -> [UInt8] { Array("d\(number)".utf8) }

    private static func command(_ words: [[UInt8]]) -> [UInt8] {
        words.reduce(Array("*\(words.count)\r\n".utf8)) { $0 + Array("$\($1.count)\r\n".utf8) + $1 + [13, 10] }
    }

    func stop() { server.stop() }

    func run(_ workload: Workload) throws(ToolFailure) -> [Figure] {
        if case .listen(let listeners, _) = workload.kind { return try publish(workload.name, listeners) }
        var random = SeededRandom(seed: settings.seed)
        let messages = (0..<4096).map { _ in
            Self.command([Array("GET".utf8), Self.key(Int.random(in: 0..<settings.documents, using: &random))])
        }
        return try LoadMeasurement(settings).run(workload.name, generator, process: server) { number, _ in
            messages[number % messages.count]
        }.withOperationsPerCPUSecond()
    }

    private func publish(_ name: String, _ listeners: Int) throws(ToolFailure) -> [Figure] {
        let channel = Array("changes".utf8)
        let subscribe = Array("subscribe".utf8)
        let subscribers = try RedisListeners(port: port)
        defer { subscribers.close() }
        let result = try subscribers.latencies(
            listeners: listeners, subscribe: Self.command([subscribe, channel]),
            subscribedBytes: Self.command([subscribe, channel]).count + ":1\r\n".utf8.count,
            publish: Self.command([Array("PUBLISH".utf8), channel, value]),
            messageBytes: Self.command([Array("message".utf8), channel, value]).count, seconds: settings.seconds,
            warmUp: min(1, settings.seconds))
        return result.figures(name).filter { $0.metric != "rate" }
    }
}
