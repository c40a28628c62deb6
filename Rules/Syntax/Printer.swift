/// Prints a tree as a source that parses to the same tree.
package struct Printer {
    private(set) var string = ""
    private var depth = 0

    package static func print(_ file: SourceFile) -> String {
        var printer = Printer()
        printer.file(file)
        return printer.string
    }

    static func print(_ expression: Expression) -> String {
        var printer = Printer()
        printer.expression(expression)
        return printer.string
    }

    private mutating func line(_ content: String) {
        string += String(repeating: "  ", count: depth) + content + "\n"
    }

    private mutating func block(_ head: String, _ body: (inout Printer) -> Void) {
        line(head + " {")
        depth += 1
        body(&self)
        depth -= 1
        line("}")
    }

    // MARK: Declarations

    private mutating func file(_ file: SourceFile) {
        if let version = file.version { line("rules_version = '\(version)';") }
        for declaration in file.functions { function(declaration) }
        for service in file.services {
            block("service \(service.name)") { printer in
                for declaration in service.functions { printer.function(declaration) }
                for declaration in service.matches { printer.match(declaration) }
            }
        }
    }

    private mutating func match(_ match: MatchDeclaration) {
        let path = match.path.map { segment in
            switch segment.kind {
            case .string(let string): "/" + string
            case .capture(let name): "/{\(name)}"
            case .glob(let name): "/{\(name)=**}"
            }
        }
        block("match \(path.joined())") { printer in
            for declaration in match.functions { printer.function(declaration) }
            for rule in match.rules {
                switch rule {
                case .allow(let allow): printer.allow(allow)
                case .match(let inner): printer.match(inner)
                }
            }
        }
    }

    private mutating func allow(_ allow: AllowDeclaration) {
        let methods = allow.methods.map(\.name).joined(separator: ", ")
        line("allow \(methods)\(allow.condition.map { ": if " + Self.print($0) } ?? "");")
    }

    private mutating func function(_ function: FunctionDeclaration) {
        block("function \(function.name)(\(function.parameters.map(\.name).joined(separator: ", ")))") { printer in
            for variable in function.variables {
                printer.line("let \(variable.name) = \(Self.print(variable.value));")
            }
            printer.line("return \(Self.print(function.result));")
        }
    }

    // MARK: Expressions

    private mutating func expression(_ expression: Expression) {
        switch expression.kind {
        case .null: string += "null"
        case .boolean(let value): string += value ? "true" : "false"
        case .integer(let value): string += String(value)
        case .float(let value): string += Self.float(value)
        case .string(let value): string += Self.quoted(value)
        case .bytes(let value): string += Self.quoted(value)
        case .variable(let name): string += name
        case .list(let elements):
            string += "["
            list(elements)
            string += "]"
        case .map(let entries): map(entries)
        case .path(let parts): path(parts)
        case .group(let inner): surround("(", inner, ")")
        case .unary(let symbol, let operand):
            string += symbol.rawValue
            // `--` would be a separate operator, and the least integer is written with a sign.
            if symbol == .negate, case .unary(.negate, _) = operand.kind { string += " " }
            if symbol == .negate, case .integer(.min) = operand.kind { string += " " }
            self.expression(operand)
        case .binary(let symbol, let left, let right):
            self.expression(left)
            string += " \(symbol.rawValue) "
            self.expression(right)
        case .isType(let value, let type):
            self.expression(value)
            string += " is \(type)"
        case .conditional(let condition, let first, let second):
            self.expression(condition)
            surround(" ? ", first, " : ")
            self.expression(second)
        case .member, .index, .slice, .call, .method: access(expression.kind)
        }
    }

    private mutating func access(_ kind: ExpressionKind) {
        switch kind {
        case .member(let receiver, let name):
            self.receiver(receiver)
            string += ".\(name)"
        case .index(let receiver, let index):
            expression(receiver)
            surround("[", index, "]")
        case .slice(let receiver, let from, let to):
            expression(receiver)
            string += "["
            if let from { expression(from) }
            string += ":"
            if let to { expression(to) }
            string += "]"
        case .call(let name, let arguments):
            string += name + "("
            list(arguments)
            string += ")"
        case .method(let receiver, let name, let arguments):
            self.receiver(receiver)
            string += ".\(name)("
            list(arguments)
            string += ")"
        default: break
        }
    }

    /// `1.` would be a number, and `/a.b` a path of one segment.
    private mutating func receiver(_ receiver: Expression) {
        expression(receiver)
        switch receiver.kind {
        case .integer: string += " "
        case .path(let parts): if case .string = parts.last { string += " " }
        default: break
        }
    }

    private mutating func surround(_ open: String, _ inner: Expression, _ close: String) {
        string += open
        expression(inner)
        string += close
    }

    private mutating func list(_ expressions: [Expression]) {
        for (index, element) in expressions.enumerated() {
            if index > 0 { string += ", " }
            expression(element)
        }
    }

    private mutating func map(_ entries: [MapEntry]) {
        string += "{"
        for (index, entry) in entries.enumerated() {
            if index > 0 { string += ", " }
            surround("", entry.key, ": ")
            expression(entry.value)
        }
        string += "}"
    }

    private mutating func path(_ parts: [PathPart]) {
        for part in parts {
            switch part {
            case .string(let segment): string += "/" + segment
            case .interpolation(let value): surround("/$(", value, ")")
            case .placeholder(let name, _): string += "/{\(name)}"
            }
        }
    }

    // MARK: Literals

    private static func float(_ value: Double) -> String {
        // Literals have no exponents: large and small numbers are written in full.
        if value.isInfinite { return String(repeating: "9", count: 310) + ".0" }
        return Decimal.expanded(value)
    }

    private static func quoted(_ value: String) -> String {
        var string = "'"
        for scalar in value.unicodeScalars {
            switch scalar {
            case "'": string += "\\'"
            case "\\": string += "\\\\"
            case "\n": string += "\\n"
            case "\r": string += "\\r"
            default: string.unicodeScalars.append(scalar)
            }
        }
        return string + "'"
    }

    private static func quoted(_ value: [UInt8]) -> String {
        var string = "b'"
        for byte in value {
            switch byte {
            case UInt8(ascii: "'"), UInt8(ascii: "\\"): string += "\\" + String(Unicode.Scalar(byte))
            case 0x20...0x7E: string.unicodeScalars.append(Unicode.Scalar(byte))
            default: string += "\\x" + Hexadecimal.digits(byte, uppercase: false)
            }
        }
        return string + "'"
    }
}
