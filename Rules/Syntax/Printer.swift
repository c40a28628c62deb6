/// Writes a tree as a source that parses to the same tree.
package struct Printer {
    private(set) var text = ""
    private var depth = 0

    package static func print(_ file: SourceFile) -> String {
        var printer = Printer()
        printer.file(file)
        return printer.text
    }

    static func print(_ expression: Expression) -> String {
        var printer = Printer()
        printer.expression(expression)
        return printer.text
    }

    private mutating func line(_ content: String) {
        text += String(repeating: "  ", count: depth) + content + "\n"
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
            case .text(let text): "/" + text
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
        case .null: text += "null"
        case .boolean(let value): text += value ? "true" : "false"
        case .integer(let value): text += String(value)
        case .float(let value): text += Self.float(value)
        case .string(let value): text += Self.quoted(value)
        case .bytes(let value): text += Self.quoted(value)
        case .variable(let name): text += name
        case .list(let elements):
            text += "["
            list(elements)
            text += "]"
        case .map(let entries): map(entries)
        case .path(let parts): path(parts)
        case .group(let inner): surround("(", inner, ")")
        case .unary(let symbol, let operand):
            text += symbol.rawValue
            // `--` would be an operator of its own, and the least integer is written with a sign.
            if symbol == .negate, case .unary(.negate, _) = operand.kind { text += " " }
            if symbol == .negate, case .integer(.min) = operand.kind { text += " " }
            self.expression(operand)
        case .binary(let symbol, let left, let right):
            self.expression(left)
            text += " \(symbol.rawValue) "
            self.expression(right)
        case .isType(let value, let type):
            self.expression(value)
            text += " is \(type)"
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
            text += ".\(name)"
        case .index(let receiver, let index):
            expression(receiver)
            surround("[", index, "]")
        case .slice(let receiver, let from, let to):
            expression(receiver)
            text += "["
            if let from { expression(from) }
            text += ":"
            if let to { expression(to) }
            text += "]"
        case .call(let name, let arguments):
            text += name + "("
            list(arguments)
            text += ")"
        case .method(let receiver, let name, let arguments):
            self.receiver(receiver)
            text += ".\(name)("
            list(arguments)
            text += ")"
        default: break
        }
    }

    /// `1.` would be a number, and `/a.b` a path of one segment.
    private mutating func receiver(_ receiver: Expression) {
        expression(receiver)
        switch receiver.kind {
        case .integer: text += " "
        case .path(let parts): if case .text = parts.last { text += " " }
        default: break
        }
    }

    private mutating func surround(_ open: String, _ inner: Expression, _ close: String) {
        text += open
        expression(inner)
        text += close
    }

    private mutating func list(_ expressions: [Expression]) {
        for (index, element) in expressions.enumerated() {
            if index > 0 { text += ", " }
            expression(element)
        }
    }

    private mutating func map(_ entries: [MapEntry]) {
        text += "{"
        for (index, entry) in entries.enumerated() {
            if index > 0 { text += ", " }
            surround("", entry.key, ": ")
            expression(entry.value)
        }
        text += "}"
    }

    private mutating func path(_ parts: [PathPart]) {
        for part in parts {
            switch part {
            case .text(let segment): text += "/" + segment
            case .interpolation(let value): surround("/$(", value, ")")
            case .placeholder(let name, _): text += "/{\(name)}"
            }
        }
    }

    // MARK: Literals

    private static func float(_ value: Double) -> String {
        // Literals have no exponents: large and small numbers are written out.
        if value.isInfinite { return String(repeating: "9", count: 310) + ".0" }
        return Decimal.expanded(value)
    }

    private static func quoted(_ value: String) -> String {
        var text = "'"
        for scalar in value.unicodeScalars {
            switch scalar {
            case "'": text += "\\'"
            case "\\": text += "\\\\"
            case "\n": text += "\\n"
            case "\r": text += "\\r"
            default: text.unicodeScalars.append(scalar)
            }
        }
        return text + "'"
    }

    private static func quoted(_ value: [UInt8]) -> String {
        var text = "b'"
        for byte in value {
            switch byte {
            case UInt8(ascii: "'"), UInt8(ascii: "\\"): text += "\\" + String(Unicode.Scalar(byte))
            case 0x20...0x7E: text.unicodeScalars.append(Unicode.Scalar(byte))
            default: text += "\\x" + Hexadecimal.digits(byte, uppercase: false)
            }
        }
        return text + "'"
    }
}
