import Glibc
import HearthModel
import HearthEngine

@testable import HearthSQLite

/// The engines that the contract's tests run on.
enum Engine: String, CaseIterable {
    case memory, sqlite
    /// With a checkpoint every few commits.
    case sqliteShortWAL

    func open(_ folder: TemporaryFolder) throws(Status) -> any Store {
        switch self {
        case .memory: MemoryStore()
        case .sqlite: try SQLiteStore(path: folder.path + "/store.sqlite")
        case .sqliteShortWAL: try SQLiteStore(path: folder.path + "/store.sqlite", options: .shortWAL)
        }
    }

    func provider(_ folder: TemporaryFolder) throws(Status) -> any StoreProvider {
        switch self {
        case .memory: MemoryStoreProvider()
        case .sqlite: try SQLiteStoreProvider(path: folder.path)
        case .sqliteShortWAL: try SQLiteStoreProvider(path: folder.path, options: .shortWAL)
        }
    }
}

extension SQLiteStoreOptions {
    static var shortWAL: SQLiteStoreOptions {
        var options = SQLiteStoreOptions()
        options.bounds.walPages = 40
        options.bounds.quietPages = 5
        options.bounds.lockedPages = 10
        options.bounds.patienceMillisecondsMin = 1
        options.bounds.patienceMillisecondsMax = 5
        return options
    }
}

/// A folder that is removed with all its contents when the object is freed.
final class TemporaryFolder: Sendable {
    let path: String

    init() {
        // In memory where such a file system exists: thousands of commits would wait for a disk that others use as
        // well.
        let memory = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp"
        let parent = getenv("TMPDIR").map { String(cString: $0) } ?? memory
        var template = Array("\(parent)/hearth-tests-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else { fatalError("no temporary folder: \(String(cString: strerror(errno)))") }
        path = template.withUnsafeBufferPointer { String(cString: $0.baseAddress!) }
    }

    deinit {
        Self.removeAll(path)
    }

    private static func removeAll(_ path: String) {
        if let folder = opendir(path) {
            while let entry = readdir(folder) {
                let name = withUnsafePointer(to: &entry.pointee.d_name) { pointer in
                    pointer.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
                }
                if name != ".", name != ".." { removeAll(path + "/" + name) }
            }
            closedir(folder)
        }
        remove(path)
    }

    /// The size of a file; nil when there is none.
    func size(_ name: String) -> Int? {
        var information = stat()
        return stat(path + "/" + name, &information) == 0 ? Int(information.st_size) : nil
    }

    func copy(_ name: String, to target: String) {
        let source = fopen(path + "/" + name, "r")
        guard let source, let sink = fopen(target, "w") else { fatalError("cannot copy \(name) to \(target)") }
        var buffer = [UInt8](repeating: 0, count: 1 << 16)
        while true {
            let count = fread(&buffer, 1, buffer.count, source)
            if count == 0 { break }
            precondition(fwrite(buffer, 1, count, sink) == count)
        }
        fclose(source)
        fclose(sink)
    }
}

/// Numbers that a seed determines (SplitMix64).
struct SeededGenerator: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }

    mutating func number(_ range: Range<Int>) -> Int { Int.random(in: range, using: &self) }
    mutating func chance(_ one: Int) -> Bool { number(0..<one) == 0 }
    mutating func bytes(_ count: Int) -> [UInt8] { (0..<count).map { _ in UInt8.random(in: 0...255, using: &self) } }
}

enum Seeds {
    /// A few fixed seeds and a new one each time, or the one of `HEARTH_TEST_SEED`, which a failure names.
    static let all: [UInt64] = {
        if let string = getenv("HEARTH_TEST_SEED"), let seed = UInt64(String(cString: string)) { return [seed] }
        return [1, 2, 3, UInt64.random(in: 4...UInt64.max)]
    }()
}

/// Runs a body on a thread of its own.
final class TestThread: @unchecked Sendable {
    // Set before the thread starts, and read again after it was joined.
    private var thread = pthread_t()
    private let body: @Sendable () -> Void

    init(_ body: @escaping @Sendable () -> Void) {
        self.body = body
        pthread_create(&thread, nil, testThreadMain, Unmanaged.passRetained(self).toOpaque())
    }

    func join() { pthread_join(thread, nil) }

    fileprivate func run() { body() }
}

private func testThreadMain(_ argument: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
    if let argument { Unmanaged<TestThread>.fromOpaque(argument).takeRetainedValue().run() }
    return nil
}

/// Waits for an effect of another thread; false when it doesn't happen in 60 seconds.
func eventually(_ condition: () -> Bool) -> Bool {
    var start = timespec()
    clock_gettime(CLOCK_MONOTONIC, &start)
    while !condition() {
        var now = timespec()
        clock_gettime(CLOCK_MONOTONIC, &now)
        if now.tv_sec - start.tv_sec > 60 { return false }
        sched_yield()
    }
    return true
}

/// All of a walk.
func rows(_ cursor: any KeyCursor) throws(Status) -> [Row] {
    var rows: [Row] = []
    while try cursor.next() { rows.append(Row(key: cursor.key, value: cursor.value)) }
    return rows
}

struct Row: Equatable {
    var key: [UInt8]
    var value: [UInt8]
}

extension KeyRange {
    static let all = KeyRange(lower: [], upper: nil)
}

/// A number as a key that sorts by it.
func key(_ number: Int) -> [UInt8] {
    withUnsafeBytes(of: UInt64(number).bigEndian) { Array($0) }
}

extension [UInt8] {
    /// Order by bytes, the shorter first; `lexicographicallyPrecedes` takes most of a test's time when unoptimised.
    func precedes(_ other: [UInt8]) -> Bool {
        let order = memcmp(self, other, Swift.min(count, other.count))
        return order == 0 ? count < other.count : order < 0
    }
}
