import Glibc
import HearthHost
import HearthModel
import HearthTestSupport
import Testing

@testable import HearthTriggers

/// When `hearth.json` is read again.
struct TriggerFileTests {
    private let folder: TemporaryFolder
    private let clock = StoppedClock()
    private let service: TriggerService
    private let configuration: TriggerConfiguration

    /// Of the file: long before the clock's time.
    private static let writtenSeconds = 1_600_000_000
    private static let right = """
        {"triggers": {"t": {"event": "google.cloud.firestore.document.v1.written", "document": "c/{id}",
         "url": "http://e/", "secretFile": "secret"}}}
        """
    /// As long as the other one.
    private static let wrong = right.replacing("document.v1", with: "documents.1")

    init() throws {
        folder = TemporaryFolder()
        service = try TriggerService(TriggerService.Configuration())
        let source = TriggerFile(path: folder.path + "/hearth.json", project: "p")
        configuration = TriggerConfiguration(
            service: service, source: source, file: [], store: TriggerStore(path: nil, file: source) { _, _ in },
            stored: [], polls: true, log: Log(), clock: clock)
    }

    /// Writes it where it is, and sets its time.
    private func write(_ content: String, at seconds: Int = Self.writtenSeconds) {
        let path = folder.path + "/hearth.json"
        let descriptor = open(path, O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0o600)
        defer { close(descriptor) }
        #expect(Glibc.write(descriptor, content, content.utf8.count) == content.utf8.count)
        let times = [timespec(tv_sec: seconds, tv_nsec: 0), timespec(tv_sec: seconds, tv_nsec: 0)]
        #expect(futimens(descriptor, times) == 0)
    }

    private func poll() -> Int {
        configuration.poll()
        return service.definitions.count
    }

    /// A large one would keep a core busy.
    @Test func aRefusedFileIsReadAgainWhenItHasChanged() {
        defer { service.stop() }
        _ = folder.write("secret", "s")
        write(Self.wrong)
        #expect(poll() == 0)
        // Nobody but a test changes a file without its time: it isn't read.
        write(Self.right)
        #expect(poll() == 0)
        write(Self.right, at: Self.writtenSeconds + 1)
        #expect(poll() == 1)
    }

    /// Its time may be that of two writings.
    @Test(arguments: [true, false]) func aFileThatWasJustWrittenIsReadAgain(isWrong: Bool) {
        defer { service.stop() }
        _ = folder.write("secret", "s")
        let now = Int(clock.now().seconds)
        write(isWrong ? Self.wrong : Self.right.replacing("c/{id}", with: "d/{id}"), at: now)
        #expect(poll() == (isWrong ? 0 : 1))
        write(Self.right, at: now)
        #expect(poll() == 1 && service.definitions.map(\.pattern.string) == ["c/{id}"])
        clock.advance(seconds: 3)
        #expect(poll() == 1)
        // That was long enough.
        write(Self.right.replacing("c/{id}", with: "e/{id}"), at: now)
        #expect(poll() == 1 && service.definitions.map(\.pattern.string) == ["c/{id}"])
    }

    @Test func aRefusedFileIsReadAgainWhenItsSecretIsThere() {
        defer { service.stop() }
        write(Self.right)
        #expect(poll() == 0 && poll() == 0)
        _ = folder.write("secret", "s")
        #expect(poll() == 1)
    }

    @Test func aFileThatComesLaterIsRead() {
        defer { service.stop() }
        _ = folder.write("secret", "s")
        #expect(poll() == 0)
        write(Self.right)
        #expect(poll() == 1)
        // Without it they stay in force; it may be replaced at this moment.
        unlink(folder.path + "/hearth.json")
        #expect(poll() == 1)
        write(Self.right.replacing("c/{id}", with: "d/{id}"))
        #expect(poll() == 1 && service.definitions.map(\.pattern.string) == ["d/{id}"])
    }

    /// What is not the file's fault may be over at any time.
    @Test func triggersThatCannotBeTakenAreTriedAgain() throws {
        defer { service.stop() }
        _ = folder.write("secret", "s")
        let event = "google.cloud.firestore.document.v1.written"
        let other = #"{"event": "\#(event)", "document": "c/{id}", "url": "http://e/"}"#
        for number in 0..<TriggerService.countMax { try configuration.put("a\(number)", Array(other.utf8)) }
        write(Self.right)
        #expect(poll() == TriggerService.countMax)
        try configuration.delete("a0")
        #expect(poll() == TriggerService.countMax && service.definition("t") != nil)
    }
}
