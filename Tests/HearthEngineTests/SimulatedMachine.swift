import Foundation
import HearthModel
import HearthTestSupport
import Synchronization

@testable import HearthEngine

/// A machine with the disk of a log and its base: it can end at each of their operations, or fail them. What isn't
/// durable then is lost in part: sectors of writes and changes of names, each at random.
///
/// Its operations may come from an applier's thread, too; what a test asks or sets is for one thread at a time.
final class SimulatedMachine: @unchecked Sendable {
    private let lock = NSRecursiveLock()
    private var random: SeededGenerator
    /// Operations since the start or `restart`.
    private(set) var operations = 0
    /// The operation at which the machine ends.
    var lastOperation: Int?
    /// One in so many operations fails.
    var failureRate: Int?
    /// This one fails.
    var failingOperation: Int?
    /// Whether the base can't be written.
    var baseFails = false
    private(set) var isDead = false
    fileprivate var names: [String: SimulatedContents] = [:]
    private var durableNames: [String: SimulatedContents] = [:]
    private var nameChanges: [NameChange] = []
    private var base = MemoryStore()
    private(set) var failures = 0

    fileprivate enum NameChange {
        case add(String, SimulatedContents)
        case rename(String, String)
        case remove(String)
    }

    static let sectorBytes = 512

    init(_ random: SeededGenerator) { self.random = random }

    fileprivate func alone<Result>(_ body: () throws(Status) -> Result) throws(Status) -> Result {
        lock.lock()
        defer { lock.unlock() }
        return try body()
    }

    /// Throws when the operation fails; `partly` is done when it fails and may have had an effect.
    func operate(partly: (inout SeededGenerator) -> Void = { _ in }) throws(Status) {
        if isDead { throw .unavailable("The machine is off.") }
        operations += 1
        if operations == lastOperation {
            isDead = true
            partly(&random)
            throw .unavailable("The machine is off.")
        }
        if operations == failingOperation || failureRate.map({ random.isOne(in: $0) }) ?? false {
            failures += 1
            partly(&random)
            throw .unavailable("The disk fails.")
        }
    }

    /// Ends the process, and the machine when `losesPower`; then both are as new.
    func restart(losesPower: Bool) {
        if losesPower {
            for change in nameChanges where random.isOne(in: 2) { Self.apply(change, to: &durableNames) }
            for contents in durableNames.values { contents.losePower(&random) }
            // A file that is neither known by its name nor open is gone.
            names = durableNames
            nameChanges = []
        }
        base.close()
        base = base.reopened()
        isDead = false
        operations = 0
        lastOperation = nil
        failureRate = nil
        failingOperation = nil
    }

    func open(_ options: LoggedStoreOptions) throws(Status) -> LoggedStore {
        base = base.reopened()
        return try LoggedStore(
            base: SimulatedBase(base, self), disk: SimulatedDisk(self), name: "test", options: options)
    }

    private static func apply(_ change: NameChange, to names: inout [String: SimulatedContents]) {
        switch change {
        case .add(let name, let contents): names[name] = contents
        case .rename(let name, let newName):
            if let contents = names.removeValue(forKey: name) { names[newName] = contents }
        case .remove(let name): names[name] = nil
        }
    }

    /// - Parameter contents: those that the file must have.
    fileprivate func contains(_ name: String, _ contents: SimulatedContents?) -> Bool {
        lock.lock()
        defer { lock.unlock() }
        guard let found = names[name] else { return false }
        return contents.map { $0 === found } ?? true
    }

    fileprivate func change(_ change: NameChange) {
        Self.apply(change, to: &names)
        nameChanges.append(change)
    }

    fileprivate func synchronizeNames() {
        for change in nameChanges { Self.apply(change, to: &durableNames) }
        nameChanges = []
    }

    func replaceBase(_ store: MemoryStore) { base = store }
    var baseStore: MemoryStore { base }
    /// Another base with the same contents.
    func baseCopy() throws(Status) -> MemoryStore {
        let copy = MemoryStore()
        let snapshot = try base.snapshot()
        defer { snapshot.close() }
        try copy.write { transaction throws(Status) in
            for keyspace in Keyspace.allCases {
                let cursor = try snapshot.scan(keyspace, .all, reverse: false, values: true)
                while try cursor.next() { try transaction.put(keyspace, cursor.key, cursor.value) }
            }
        }
        return copy
    }

    func baseSnapshot() throws(Status) -> any Snapshot { try base.snapshot() }

    func replaceFiles(_ files: [String: [UInt8]]) {
        names = files.mapValues { SimulatedContents($0) }
        durableNames = names
    }

    /// The bytes of all files, for tests that damage them.
    var files: [String: [UInt8]] { names.mapValues { $0.bytes } }

    func flip(_ name: String, _ offset: Int, mask: UInt8) {
        names[name]?.bytes[offset] ^= mask
    }
}

/// What a file contains, and what the disk has of that.
private final class SimulatedContents: @unchecked Sendable {
    var bytes: [UInt8]
    private var durable: [UInt8]
    private var writes: [Range<Int>] = []

    init(_ bytes: [UInt8]) {
        self.bytes = bytes
        durable = bytes
    }

    func write(_ new: UnsafeRawBufferPointer, at offset: Int) {
        bytes.replaceSubrange(offset..<offset + new.count, with: new)
        writes.append(offset..<offset + new.count)
    }

    func synchronize() {
        for range in writes { durable.replaceSubrange(range, with: bytes[range]) }
        writes = []
    }

    /// Like Linux: after a failure, what wasn't written counts as written.
    func failSynchronizing(_ random: inout SeededGenerator) { keepSome(&random) }

    private func keepSome(_ random: inout SeededGenerator) {
        for range in writes {
            var start = range.lowerBound
            while start < range.upperBound {
                let next = (start / SimulatedMachine.sectorBytes + 1) * SimulatedMachine.sectorBytes
                let end = min(range.upperBound, next)
                if random.isOne(in: 2) { durable.replaceSubrange(start..<end, with: bytes[start..<end]) }
                start = end
            }
        }
        writes = []
    }

    func losePower(_ random: inout SeededGenerator) {
        keepSome(&random)
        bytes = durable
    }
}

private final class SimulatedDisk: LogDisk {
    private let machine: SimulatedMachine

    init(_ machine: SimulatedMachine) { self.machine = machine }

    func names() throws(Status) -> [String] {
        try machine.alone { () throws(Status) in
            try machine.operate()
            return Array(machine.names.keys)
        }
    }

    func open(_ name: String, isReadOnly: Bool) throws(Status) -> any LogFile {
        try machine.alone { () throws(Status) in
            try machine.operate()
            guard let contents = machine.names[name] else { throw .unavailable("There is no file \(name).") }
            return SimulatedFile(contents, machine)
        }
    }

    func make(_ name: String, sizeBytes: Int) throws(Status) {
        try machine.alone { () throws(Status) in
            if machine.names[name] != nil { throw .unavailable("There is a file \(name).") }
            let contents = SimulatedContents([UInt8](repeating: 0, count: sizeBytes))
            try machine.operate { random in if random.isOne(in: 2) { machine.change(.add(name, contents)) } }
            machine.change(.add(name, contents))
        }
    }

    func rename(_ name: String, to newName: String) throws(Status) {
        try machine.alone { () throws(Status) in
            try machine.operate { random in if random.isOne(in: 2) { machine.change(.rename(name, newName)) } }
            machine.change(.rename(name, newName))
        }
    }

    func remove(_ name: String) throws(Status) {
        try machine.alone { () throws(Status) in
            try machine.operate { random in if random.isOne(in: 2) { machine.change(.remove(name)) } }
            machine.change(.remove(name))
        }
    }

    func synchronizeNames() throws(Status) {
        try machine.alone { () throws(Status) in
            try machine.operate { random in if random.isOne(in: 2) { machine.synchronizeNames() } }
            machine.synchronizeNames()
        }
    }

    func has(_ name: String, _ file: (any LogFile)?) -> Bool {
        machine.contains(name, (file as? SimulatedFile)?.contents)
    }

    func checkBase() throws(Status) {}

    func path(_ name: String) -> String { "/disk/" + name }
}

private final class SimulatedFile: LogFile {
    fileprivate let contents: SimulatedContents
    private let machine: SimulatedMachine

    init(_ contents: SimulatedContents, _ machine: SimulatedMachine) {
        self.contents = contents
        self.machine = machine
    }

    var sizeBytes: Int { contents.bytes.count }

    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int) throws(Status) {
        try machine.alone { () throws(Status) in
            try machine.operate()
            contents.bytes.withUnsafeBytes { bytes in
                buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes[offset..<offset + buffer.count]))
            }
        }
    }

    func write(_ bytes: UnsafeRawBufferPointer, at offset: Int) throws(Status) {
        try machine.alone { () throws(Status) in
            try machine.operate { random in
                let count = random.below(bytes.count + 1)
                contents.write(UnsafeRawBufferPointer(rebasing: bytes[..<count]), at: offset)
            }
            contents.write(bytes, at: offset)
        }
    }

    func synchronize() throws(Status) {
        try machine.alone { () throws(Status) in
            try machine.operate { random in contents.failSynchronizing(&random) }
            contents.synchronize()
        }
    }

    func close() {}
}

/// Each write is durable as a whole, or not made.
private final class SimulatedBase: Store {
    private let inner: MemoryStore
    private let machine: SimulatedMachine

    init(_ inner: MemoryStore, _ machine: SimulatedMachine) {
        self.inner = inner
        self.machine = machine
    }

    func snapshot() throws(Status) -> any Snapshot { try inner.snapshot() }

    func write<Result>(_ body: (any StoreTransaction) throws(Status) -> Result) throws(Status) -> Result {
        try machine.alone { () throws(Status) in try machine.operate() }
        if machine.baseFails { throw .unavailable("The base fails.") }
        let result = try inner.write(body)
        // The process may end before it knows.
        try machine.alone { () throws(Status) in try machine.operate() }
        return result
    }

    func maintain() {}
    func close() { inner.close() }
}
