import HearthModel

/// The operations that a rule applies to.
struct MethodSet: OptionSet, Sendable {
    let rawValue: UInt8

    static let get = MethodSet(rawValue: 1)
    static let list = MethodSet(rawValue: 2)
    static let create = MethodSet(rawValue: 4)
    static let update = MethodSet(rawValue: 8)
    static let delete = MethodSet(rawValue: 16)
    static let read: MethodSet = [get, list]
    static let write: MethodSet = [create, update, delete]

    init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    init(_ method: RulesMethod) {
        switch method {
        case .get: self = .get
        case .list: self = .list
        case .create: self = .create
        case .update: self = .update
        case .delete: self = .delete
        }
    }

    /// Nil for a name that no method has.
    init?(named name: String) {
        if let method = RulesMethod(rawValue: name) {
            self.init(method)
        } else if name == "read" {
            self = .read
        } else if name == "write" {
            self = .write
        } else {
            return nil
        }
    }
}

/// An `allow` statement, compiled.
struct AllowProgram: Sendable {
    var methods: MethodSet
    var condition: CompiledNode?
    var line: Int
    var column: Int
    /// The position of the condition.
    var conditionLine: Int
    var conditionColumn: Int
}

/// A `match` block, compiled with the paths of its enclosing blocks.
final class MatchProgram: @unchecked Sendable {
    enum Segment: Sendable {
        case string(String)
        case capture(Int)
        case glob(Int)
    }

    enum Item: Sendable {
        case allow(AllowProgram)
        case match(MatchProgram)
    }

    /// From the root.
    let pattern: [Segment]
    /// The index of the block's first own segment.
    let ownStart: Int
    /// The index of the recursive wildcard.
    let globIndex: Int?
    /// The least number of segments that it matches: 1 in version 1.
    let globMinimum: Int
    let items: [Item]
    /// The methods for which the block and its inner blocks have rules.
    let methods: MethodSet

    init(pattern: [Segment], ownStart: Int, globMinimum: Int, items: [Item]) {
        self.pattern = pattern
        self.ownStart = ownStart
        self.globMinimum = globMinimum
        self.items = items
        globIndex = pattern.firstIndex { if case .glob = $0 { true } else { false } }
        methods = items.reduce(into: []) { methods, item in
            switch item {
            case .allow(let allow): methods.formUnion(allow.methods)
            case .match(let match): methods.formUnion(match.methods)
            }
        }
    }
}

/// The rules of Cloud Firestore, compiled.
struct Program: Sendable {
    var matches: [MatchProgram]
    /// The maximum number of capture slots of one chain.
    var captureCount: Int

    static let empty = Program(matches: [], captureCount: 0)
}
