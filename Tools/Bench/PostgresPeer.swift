import HearthToolSupport
import Glibc

/// PostgreSQL, where it is installed: the same documents as jsonb, with a row of an index table for each of five fields,
/// each commit one statement sent by pgbench.
final class PostgresPeer: BenchSession {
    private let settings: BenchSettings
    private let programs: String
    private let folder: String
    private let port: Int
    private let server: ChildProcess
    /// PostgreSQL refuses to run as root, so root runs it as its own user.
    private let prefix: [String]

    private static let user = "postgres"
    private static let database = "postgres"

    init(_ settings: BenchSettings, _ housekeeping: BenchHousekeeping) throws(ToolFailure) {
        self.settings = settings
        guard let programs = Self.newestProgramFolder() else {
            throw ToolFailure(.failed, "PostgreSQL is not installed.")
        }
        self.programs = programs
        folder = housekeeping.folder("postgres")
        port = try FreePort.find()
        if getuid() == 0 {
            guard let user = getpwnam(Self.user) else { throw ToolFailure(.failed, "There is no user \(Self.user).") }
            chown(folder, user.pointee.pw_uid, user.pointee.pw_gid)
            prefix = ["runuser", "-u", Self.user, "--"]
        } else {
            prefix = []
        }
        let data = folder + "/data"
        let log = housekeeping.path + "/postgres.log"
        _ = try ChildProcess.run(
            prefix + [programs + "/initdb", "-D", data, "-U", Self.user, "--auth=trust", "-E", "UTF8", "--no-locale"],
            logPath: log)
        // Durable by default; only settings that would disturb any measurement are changed.
        let words = [
            programs + "/postgres", "-D", data, "-p", String(port), "-k", folder, "-c", "listen_addresses=",
            "-c", "synchronous_commit=on", "-c", "max_wal_size=4GB", "-c", "shared_buffers=256MB",
        ]
        // Not by runuser, which would intercept the server's signal.
        server = try ChildProcess(
            getuid() == 0 ? ["setpriv", "--reuid", Self.user, "--regid", Self.user, "--clear-groups"] + words : words,
            // A fast shutdown; the usual signal waits for clients.
            logPath: log, endSignal: SIGINT)
        do throws(ToolFailure) {
            try prepare(housekeeping)
        } catch {
            server.stop()
            throw error
        }
    }

    func stop() { server.stop() }

    private static func newestProgramFolder() -> String? {
        for version in stride(from: 20, through: 12, by: -1) {
            let folder = "/usr/lib/postgresql/\(version)/bin"
            if access(folder + "/pgbench", X_OK) == 0, access(folder + "/initdb", X_OK) == 0 { return folder }
        }
        return nil
    }

    // MARK: Data

    private func sql(_ string: String, _ log: String) throws(ToolFailure) {
        _ = try ChildProcess.run(
            [programs + "/psql", "-h", folder, "-p", String(port), "-U", Self.user, "-d", Self.database, "-q"]
                + ["-v", "ON_ERROR_STOP=1", "-c", string],
            logPath: log)
    }

    private func prepare(_ housekeeping: BenchHousekeeping) throws(ToolFailure) {
        let log = housekeeping.path + "/psql.log"
        let watch = Stopwatch()
        while true {
            do throws(ToolFailure) {
                try sql("SELECT 1", log)
                break
            } catch {
                if watch.seconds > 30 || server.hasEnded { throw ToolFailure(.failed, "PostgreSQL did not come up.") }
                usleep(50_000)
            }
        }
        let random = (0..<5).map { "'f\($0)', (random() * 1e17)::bigint" }.joined(separator: ", ")
        try sql(
            """
            CREATE TABLE documents (id int PRIMARY KEY, data jsonb NOT NULL);
            CREATE TABLE entries (id int, field smallint, value bigint NOT NULL, PRIMARY KEY (id, field));
            CREATE INDEX ON entries (field, value, id);
            INSERT INTO documents SELECT n, jsonb_build_object(\(random), 'payload', repeat('0123456789abcdef', 25))
                FROM generate_series(0, \(settings.documents - 1)) n;
            INSERT INTO entries SELECT id, f, (data->>('f' || f))::bigint FROM documents, generate_series(0, 4) f;
            """, log)
        try sql("VACUUM ANALYZE", log)
        try sql("CHECKPOINT", log)
    }

    private var script: String {
        var string = "\\set id random(0, \(settings.documents - 1))\n"
        for field in 0..<5 { string += "\\set v\(field) random(1, 100000000000000000)\n" }
        let members = (0..<5).map { "'f\($0)', :v\($0)::bigint" }.joined(separator: ", ")
        let rows = (0..<5).map { "(:id, \($0), :v\($0))" }.joined(separator: ", ")
        // One statement: one round trip over the socket and one commit.
        return string
            + "WITH document AS (INSERT INTO documents VALUES (:id, jsonb_build_object(\(members), 'payload', "
            + "repeat('0123456789abcdef', 25))) ON CONFLICT (id) DO UPDATE SET data = excluded.data) "
            + "INSERT INTO entries VALUES \(rows) ON CONFLICT (id, field) DO UPDATE SET value = excluded.value;\n"
    }

    // MARK: Load

    func run(_ workload: Workload) throws(ToolFailure) -> [Figure] {
        guard case .commit(let inFlight, _, _) = workload.kind else { return [] }
        let path = folder + "/script.sql"
        try OutputFile.write(script, to: path)
        let before = server.processorSeconds
        let ownBefore = ProcessTimes.endedChildren
        let log = try ChildProcess.run(
            [programs + "/pgbench", "-n", "-M", "prepared", "-c", String(inFlight), "-j", String(min(2, inFlight))]
                + [
                    "-T", String(Int(settings.seconds.rounded(.up))), "-f", path, "-h", folder, "-p", String(port),
                    "-U", Self.user,
                ]
                + [Self.database], logPath: folder + "/pgbench.log")
        guard let rate = Self.number(after: "tps = ", in: log),
            let latency = Self.number(after: "latency average = ", in: log)
        else { throw ToolFailure(.failed, "pgbench said nothing of a rate.") }
        var result = LoadResult()
        result.all = Int(Self.number(after: "number of transactions actually processed: ", in: log) ?? 0)
        result.generatorSeconds = ProcessTimes.endedChildren - ownBefore
        return [
            Figure(workload: workload.name, metric: "rate", unit: "/s", value: rate, direction: .higherIsBetter),
            // An average, because pgbench reports no median.
            Figure(workload: workload.name, metric: "p50", unit: "ms", value: latency, direction: .lowerIsBetter),
        ] + result.costs(workload.name, before, server.processorSeconds)
    }

    private static func number(after label: String, in string: String) -> Double? {
        for line in string.split(separator: "\n") where line.hasPrefix(label) {
            return Double(line.dropFirst(label.count).prefix { $0.isNumber || $0 == "." })
        }
        return nil
    }
}
