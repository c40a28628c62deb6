/// A parsed source. Two trees are equal when they have the same meaning, regardless of positions.
package struct SourceFile: Sendable, Equatable {
    var version: Int?
    var functions: [FunctionDeclaration] = []
    var services: [ServiceDeclaration] = []

    /// A source without a version has version 1.
    var effectiveVersion: Int { version ?? 1 }
}

struct ServiceDeclaration: Sendable {
    var name: String
    var functions: [FunctionDeclaration] = []
    var matches: [MatchDeclaration] = []
    var range: SourceRange
}

/// `match /path { … }`
struct MatchDeclaration: Sendable {
    var path: [MatchSegment]
    var functions: [FunctionDeclaration] = []
    /// In the order of the source, which is the order of evaluation.
    var rules: [MatchItem] = []
    var range: SourceRange
}

enum MatchItem: Sendable, Equatable {
    case allow(AllowDeclaration)
    case match(MatchDeclaration)
}

/// One part of a match path.
struct MatchSegment: Sendable {
    enum Kind: Sendable, Equatable {
        case string(String)
        /// `{name}`: one segment.
        case capture(String)
        /// `{name=**}`: several.
        case glob(String)
    }

    var kind: Kind
    var range: SourceRange
}

/// `allow read, write: if condition;`
struct AllowDeclaration: Sendable {
    struct Method: Sendable {
        var name: String
        var range: SourceRange
    }

    var methods: [Method]
    /// Nil grants.
    var condition: Expression?
    var range: SourceRange
}

struct FunctionDeclaration: Sendable {
    struct Parameter: Sendable {
        var name: String
        var range: SourceRange
    }

    struct Variable: Sendable {
        var name: String
        var value: Expression
        var range: SourceRange
    }

    var name: String
    var nameRange: SourceRange
    var parameters: [Parameter]
    var variables: [Variable]
    var result: Expression
}

/// An expression and its location.
package struct Expression: Sendable {
    let kind: ExpressionKind
    /// From its first to its last character.
    let range: SourceRange
    /// The location in Google's reports: the operator, or the name of a method.
    let focus: SourceRange
    /// The levels of parentheses, operators, literals and calls.
    let level: Int
    /// The depth of its tree.
    let depth: Int
}

indirect enum ExpressionKind: Sendable, Equatable {
    case null
    case boolean(Bool)
    case integer(Int64)
    case float(Double)
    case string(String)
    case bytes([UInt8])
    case list([Expression])
    case map([MapEntry])
    case path([PathPart])
    case variable(String)
    case group(Expression)
    case unary(UnaryOperator, Expression)
    case binary(BinaryOperator, Expression, Expression)
    case isType(Expression, String)
    case conditional(Expression, Expression, Expression)
    case member(Expression, String)
    case index(Expression, Expression)
    case slice(Expression, Expression?, Expression?)
    case call(String, [Expression])
    case method(Expression, String, [Expression])
}

struct MapEntry: Sendable, Equatable {
    var key: Expression
    var value: Expression
}

/// One part of a path in an expression.
enum PathPart: Sendable, Equatable {
    case string(String)
    /// `$(expression)`
    case interpolation(Expression)
    /// `{name}`
    case placeholder(String, SourceRange)

    static func == (lhs: PathPart, rhs: PathPart) -> Bool {
        switch (lhs, rhs) {
        case (.string(let left), .string(let right)): left == right
        case (.interpolation(let left), .interpolation(let right)): left == right
        case (.placeholder(let left, _), .placeholder(let right, _)): left == right
        default: false
        }
    }
}

enum UnaryOperator: String, Sendable {
    case not = "!"
    case negate = "-"
}

enum BinaryOperator: String, Sendable {
    case or = "||"
    case and = "&&"
    case equal = "=="
    case notEqual = "!="
    case `in` = "in"
    case less = "<"
    case lessOrEqual = "<="
    case greater = ">"
    case greaterOrEqual = ">="
    case plus = "+"
    case minus = "-"
    case times = "*"
    case divide = "/"
    case modulo = "%"

    /// A higher precedence binds tighter. Source: the table of operators in the Security Rules reference.
    var precedence: Int {
        switch self {
        case .or: 1
        case .and: 2
        case .equal, .notEqual: 3
        case .in: Self.membershipPrecedence
        case .less, .lessOrEqual, .greater, .greaterOrEqual: 5
        case .plus, .minus: 6
        case .times, .divide, .modulo: 7
        }
    }

    /// The precedence of `in` and `is`. Google's emulator swaps it with that of `==`.
    static let membershipPrecedence = 4
}

// MARK: Equality, which ignores positions

extension Expression: Equatable {
    package static func == (lhs: Expression, rhs: Expression) -> Bool { lhs.kind == rhs.kind }
}

extension MatchSegment: Equatable {
    static func == (lhs: MatchSegment, rhs: MatchSegment) -> Bool { lhs.kind == rhs.kind }
}

extension ServiceDeclaration: Equatable {
    static func == (lhs: ServiceDeclaration, rhs: ServiceDeclaration) -> Bool {
        lhs.name == rhs.name && lhs.functions == rhs.functions && lhs.matches == rhs.matches
    }
}

extension MatchDeclaration: Equatable {
    static func == (lhs: MatchDeclaration, rhs: MatchDeclaration) -> Bool {
        lhs.path == rhs.path && lhs.functions == rhs.functions && lhs.rules == rhs.rules
    }
}

extension AllowDeclaration: Equatable {
    static func == (lhs: AllowDeclaration, rhs: AllowDeclaration) -> Bool {
        lhs.methods.map(\.name) == rhs.methods.map(\.name) && lhs.condition == rhs.condition
    }
}

extension FunctionDeclaration: Equatable {
    static func == (lhs: FunctionDeclaration, rhs: FunctionDeclaration) -> Bool {
        lhs.name == rhs.name && lhs.parameters.map(\.name) == rhs.parameters.map(\.name)
            && lhs.variables.map(\.name) == rhs.variables.map(\.name)
            && lhs.variables.map(\.value) == rhs.variables.map(\.value) && lhs.result == rhs.result
    }
}
