import HearthConcurrency
import HearthHost
import HearthModel
import HearthSQLite
import HearthWire

import Glibc

/// Backups on a timer, into folders that are named by their start in UTC, such as `2026-11-27T043109Z`; the oldest beyond a
/// number are removed after a success.
///
/// `@unchecked Sendable`: the monitor guards the fields below it.
package final class BackupSchedule: @unchecked Sendable {
    package struct Configuration: Sendable, Equatable {
        package var folder: String
        package var everySeconds: Int
        /// Backups that are kept, at least 1.
        package var keep: Int

        package init(folder: String, everySeconds: Int, keep: Int) {
            self.folder = folder
            self.everySeconds = everySeconds
            self.keep = keep
        }
    }

    private let configuration: Configuration
    private let service: BackupService
    private let log: Log
    private let monitor = Monitor()
    /// In seconds since 1970; nil before the folder was read.
    private var due: Int?
    private var isRunning = false
    private var lastSuccess = 0
    private var failures = 0

    /// After a failure it is tried again as soon as this.
    private static let retrySeconds = 300

    /// - Parameter dataFolder: nil for a server that keeps its data in memory.
    /// - Throws: INVALID_ARGUMENT when the folder is inside the data folder, or there is no data folder.
    package init(
        _ configuration: Configuration, dataFolder: String?, _ service: BackupService, log: Log
    ) throws(Status) {
        guard let dataFolder else {
            throw .invalidArgument("\"backups\": the server keeps its data in memory, so there is nothing to back up.")
        }
        if Self.isInside(configuration.folder, dataFolder) {
            throw .invalidArgument("\"backups\": the folder \(configuration.folder) is inside the data folder.")
        }
        self.configuration = configuration
        self.service = service
        self.log = log
    }

    /// Whether a folder is another one or inside of it. Neither needs to exist.
    package static func isInside(_ folder: String, _ other: String) -> Bool {
        components(folder).starts(with: components(other))
    }

    /// The components of an absolute path, without links, `.` and `..`.
    private static func components(_ path: String) -> [[UInt8]] {
        var existing = path
        var missing: [UInt8] = []
        while true {
            if let found = resolved(existing.isEmpty ? "." : existing) {
                return components(Array(found.utf8) + [UInt8(ascii: "/")] + missing)
            }
            let parent = BackupFolder.parent(of: existing)
            // Not even the folder in which the process runs.
            if parent == existing { return components(missing) }
            missing = [UInt8(ascii: "/")] + existing.utf8.dropFirst(parent == "." ? 0 : parent.utf8.count) + missing
            existing = parent
        }
    }

    private static func components(_ path: [UInt8]) -> [[UInt8]] {
        var found: [[UInt8]] = []
        for component in path.split(separator: UInt8(ascii: "/")) where !component.elementsEqual(".".utf8) {
            if component.elementsEqual("..".utf8) { _ = found.popLast() } else { found.append(Array(component)) }
        }
        return found
    }

    private static func resolved(_ path: String) -> String? {
        guard let found = realpath(path, nil) else { return nil }
        defer { free(found) }
        return String(cString: found)
    }

    // MARK: The timer

    /// To be called about once a second, where waiting for a disk is allowed.
    package func tick(seconds now: Int = Int(Log.wallClock().seconds)) {
        let isDue = monitor.withLock {
            if isRunning { return false }
            if due == nil { due = firstDue(now) }
            // A clock that was put back must not end the backups.
            if let time = due, time > now + configuration.everySeconds { due = now + configuration.everySeconds }
            isRunning = due.map { $0 <= now } ?? false
            return isRunning
        }
        if isDue { start(now) }
    }

    private func firstDue(_ now: Int) -> Int {
        do throws(Status) {
            guard let last = try backups().last else { return now }
            lastSuccess = last.seconds
            return last.seconds + configuration.everySeconds
        } catch {
            // The first backup fails with the reason, or makes the folder.
            return now
        }
    }

    private func start(_ now: Int) {
        let partial = "\(configuration.folder)/\(Self.name(now))\(Self.partialSuffix)"
        let target = { @Sendable [self] () throws(Status) -> any BackupTarget in
            try DataFolder.makeFolder(configuration.folder)
            try removeLeftovers()
            return ScheduledTarget(try BackupFolder(partial)) { [self] folder throws(Status) in
                try complete(folder, now)
            }
        }
        service.start(Cancellation(), target) { [self] result in
            let end = Int(Log.wallClock().seconds)
            switch result {
            case .success(let manifest):
                monitor.withLock {
                    due = now + configuration.everySeconds
                    lastSuccess = end
                    isRunning = false
                }
                log.info(
                    "backup made", ("folder", .string("\(configuration.folder)/\(Self.name(now))")),
                    ("databases", .integer(manifest.databases.count)),
                    ("bytes", .integer(manifest.allFiles.reduce(0) { $0 + $1.bytes })),
                    ("seconds", .integer(end - now)))
            case .failure(let status): failed(status, partial, at: end)
            }
        }
    }

    private func failed(_ status: Status, _ partial: String, at now: Int) {
        do throws(Status) {
            if access(partial, F_OK) == 0 { try BackupFolder.remove(partial) }
        } catch {
            // It is removed before the next one; its name says that it isn't whole.
        }
        monitor.withLock {
            due = now + min(configuration.everySeconds, Self.retrySeconds)
            failures += 1
            isRunning = false
        }
        log.error("a backup failed", ("folder", .string(configuration.folder)), ("reason", .string(status.message)))
    }

    private func complete(_ folder: BackupFolder, _ now: Int) throws(Status) {
        try folder.synchronize()
        try folder.rename(to: "\(configuration.folder)/\(Self.name(now))")
        do throws(Status) {
            // Those of the future were made while the clock was ahead, and so before this one.
            let found = try backups()
            let oldestFirst = found.filter { $0.seconds > now } + found.filter { $0.seconds <= now }
            for old in oldestFirst.dropLast(configuration.keep) {
                // What is left when the process ends meanwhile has a name that says so.
                let path = "\(configuration.folder)/\(old.name)"
                if Glibc.rename(path, path + Self.partialSuffix) != 0 { throw DataFolder.failure("rename \(path)") }
                try BackupFolder.remove(path + Self.partialSuffix)
            }
        } catch {
            log.warning("an old backup can't be removed", ("reason", .string(error.message)))
        }
    }

    // MARK: Names

    private static let partialSuffix = ".partial"

    /// `2026-11-27T043109Z`: without colons, which some programs take for the end of a machine's name.
    static func name(_ seconds: Int) -> String {
        RFC3339.format(seconds: Int64(seconds), nanoseconds: 0).filter { $0 != ":" }
    }

    /// The start of a backup by its name; nil for other names.
    static func seconds(ofName name: String) -> Int? {
        let bytes = Array(name)
        guard bytes.count == 18 else { return nil }
        let time = String(bytes[..<13]) + ":" + String(bytes[13..<15]) + ":" + String(bytes[15...])
        guard let instant = RFC3339.parse(time), self.name(Int(instant.seconds)) == name else { return nil }
        return Int(instant.seconds)
    }

    /// The complete backups in the folder, the oldest first.
    private func backups() throws(Status) -> [(name: String, seconds: Int)] {
        var found: [(name: String, seconds: Int)] = []
        for name in try DataFolder.names(configuration.folder) {
            guard let seconds = Self.seconds(ofName: name) else { continue }
            if access("\(configuration.folder)/\(name)/\(BackupManifest.fileName)", F_OK) == 0 {
                found.append((name, seconds))
            }
        }
        return found.sorted { $0.seconds < $1.seconds }
    }

    /// Of a process that ended while it made a backup, or removed one.
    private func removeLeftovers() throws(Status) {
        for name in try DataFolder.names(configuration.folder) {
            let path = "\(configuration.folder)/\(name)"
            guard name.hasSuffix(Self.partialSuffix),
                Self.seconds(ofName: String(name.dropLast(Self.partialSuffix.count))) != nil
            else { continue }
            try BackupFolder.remove(path)
        }
    }

    // MARK: Metrics

    package func write(to metrics: inout MetricsWriter) {
        let (lastSuccess, failures) = monitor.withLock { (self.lastSuccess, self.failures) }
        metrics.family(
            "hearth_backup_last_success_timestamp_seconds", .gauge,
            "The time of the last scheduled backup; 0 when there is none.")
        metrics.sample("hearth_backup_last_success_timestamp_seconds", [], lastSuccess)
        metrics.family("hearth_backup_failures_total", .counter, "Scheduled backups that failed.")
        metrics.sample("hearth_backup_failures_total", [], failures)
    }
}

/// A folder that gets its name when it is whole.
private final class ScheduledTarget: BackupTarget {
    private let folder: BackupFolder
    private let complete: (BackupFolder) throws(Status) -> Void

    init(_ folder: BackupFolder, complete: @escaping (BackupFolder) throws(Status) -> Void) {
        self.folder = folder
        self.complete = complete
    }

    func begin(_ path: String, bytes: Int) throws(Status) { try folder.begin(path, bytes: bytes) }
    func write(_ bytes: [UInt8]) throws(Status) { try folder.write(bytes) }
    func end() throws(Status) { try folder.end() }
    func finish() throws(Status) { try complete(folder) }
}
