import Foundation
import HearthModel
import HearthNetwork
import Synchronization
import Testing

@testable import HearthHost

@Suite struct CertificateFilesTests {
    private final class Site: Sendable {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("hearth-\(UUID().uuidString)")
        let lines = Mutex<[String]>([])
        let reloads = Mutex(0)
        let failure = Mutex<Status?>(nil)

        init() throws {
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            try write("a", to: "certificate")
            try write("a", to: "key")
        }

        deinit { try? FileManager.default.removeItem(at: folder) }

        func write(_ string: String, to file: String) throws {
            try Data(string.utf8).write(to: folder.appendingPathComponent(file), options: .atomic)
        }

        func files() -> CertificateFiles {
            let log = Log(write: { line in self.lines.withLock { $0.append(String(decoding: line, as: UTF8.self)) } })
            let configuration = TLSConfiguration(
                certificatePath: folder.appendingPathComponent("certificate").path,
                keyPath: folder.appendingPathComponent("key").path)
            return CertificateFiles(configuration, log: log) { () throws(Status) in
                self.reloads.withLock { $0 += 1 }
                if let status = self.failure.withLock({ $0 }) { throw status }
            }
        }

        func records(_ string: String) -> Int { lines.withLock { $0.count { $0.contains(string) } } }
    }

    @Test func eitherFileThatChangesIsTakenOnce() throws {
        let site = try Site()
        let files = site.files()
        files.poll()
        #expect(site.reloads.withLock { $0 } == 0)
        for file in ["certificate", "key"] {
            try site.write("new", to: file)
            for _ in 0..<3 { files.poll() }
        }
        #expect(site.reloads.withLock { $0 } == 2)
        #expect(site.records("certificate reloaded") == 2)
    }

    /// The certificate is replaced before its key: the pair fits at a later check, and nothing has to change for that.
    @Test func filesThatCannotBeUsedAreTriedAgainAndLoggedOnce() throws {
        let site = try Site()
        let files = site.files()
        site.failure.withLock { $0 = .failedPrecondition("the key does not belong to the certificate") }
        try site.write("new", to: "certificate")
        for _ in 0..<3 { files.poll() }
        #expect(site.reloads.withLock { $0 } == 3)
        #expect(site.records("reason=\"the key does not belong to the certificate\"") == 1)
        // Another state of the files is another record.
        try site.write("broken", to: "key")
        for _ in 0..<3 { files.poll() }
        #expect(site.records("the former one stays in use") == 2)
        site.failure.withLock { $0 = nil }
        for _ in 0..<3 { files.poll() }
        #expect(site.reloads.withLock { $0 } == 7)
        #expect(site.records("certificate reloaded") == 1)
    }

    @Test func aFileThatIsRemovedIsAChange() throws {
        let site = try Site()
        let files = site.files()
        site.failure.withLock { $0 = .failedPrecondition("no file") }
        try FileManager.default.removeItem(at: site.folder.appendingPathComponent("key"))
        files.poll()
        #expect(site.records("reason=\"no file\"") == 1)
    }
}
