import Glibc
import HearthModel
import HearthTestSupport
import Testing

@testable import hearth

@Suite struct SuiteOutputTests {
    private let folder = TemporaryFolder()

    /// In containers all programs have the same number, and so the same name for what is unfinished.
    @Test func twoWritersDoNotShareAFolder() throws {
        let path = folder.path + "/out"
        let first = try SuiteOutput(path, replaces: false)
        do throws(Status) {
            _ = try SuiteOutput(path, replaces: false)
            Issue.record("A second writer fills the same folder.")
        } catch {
            #expect(error.code == .alreadyExists)
        }
        try first.finish()
        #expect(SuiteFolder.isThere(path))
        // Nobody fills what a crash has left.
        let left = "out.partial-\(getpid())"
        #expect(mkdir("\(folder.path)/\(left)", 0o755) == 0)
        folder.write("\(left)/rest", "")
        try SuiteOutput(path, replaces: true).finish()
        #expect(access(path + "/rest", F_OK) != 0)
        #expect(SuiteFolder.isThere(path))
    }
}
