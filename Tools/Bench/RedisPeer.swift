import HearthToolSupport
import Glibc

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
        return try LoadMeasurement(settings).run(workload.name, generator, serverSeconds: { server.processorSeconds }) {
            bound throws(ToolFailure) in
            try generator.run(bound) { number, _ in messages[number % messages.count] }
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
