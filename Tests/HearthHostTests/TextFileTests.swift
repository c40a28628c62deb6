import Glibc
import HearthModel
import HearthTestSupport
import Testing

@testable import HearthHost

@Suite struct TextFileTests {
    @Test func filesThatPeopleWrite() throws {
        let folder = TemporaryFolder()
        let file = folder.write("a.json", "{}")
        #expect(symlink(file, folder.path + "/link") == 0)
        #expect(try TextFile.read(file) == Array("{}".utf8))
        #expect(try TextFile.read(folder.path + "/link") == Array("{}".utf8))
        #expect(try TextFile.read(folder.path + "/none") == nil)
    }

    /// Opening a pipe waits for a program that writes to it.
    @Test func whatIsNoRegularFileIsRefused() throws {
        let folder = TemporaryFolder()
        let pipe = folder.path + "/pipe"
        #expect(mkfifo(pipe, 0o600) == 0)
        for path in [pipe, folder.path, "/dev/zero"] {
            #expect(throws: Status.failedPrecondition("Cannot read \(path): it is no regular file.")) {
                try TextFile.read(path)
            }
        }
    }
}
