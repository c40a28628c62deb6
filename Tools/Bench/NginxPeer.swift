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
        return try LoadMeasurement(settings).run(workload.name, generator, serverSeconds: { server.processorSeconds }) {
            bound throws(ToolFailure) in
            try generator.run(bound) { _, _ in message }
        }
        .withOperationsPerCPUSecond()
    }
}
