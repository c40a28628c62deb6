/// The meaning of names at a position of a source: of functions, from the inside out; of captures, those of all
/// enclosing matches.
final class Scope {
    let parent: Scope?
    private var functions: [String: FunctionEntry] = [:]
    private var captures: [String: Capture] = [:]

    struct Capture {
        var slot: Int
        var isGlob: Bool
    }

    init(parent: Scope?) {
        self.parent = parent
    }

    /// Declares a function; false when the scope already has one of this name.
    func declare(_ function: FunctionEntry) -> Bool {
        if functions[function.declaration.name] != nil { return false }
        functions[function.declaration.name] = function
        return true
    }

    func declare(_ name: String, _ capture: Capture) {
        captures[name] = capture
    }

    func function(_ name: String) -> FunctionEntry? { functions[name] ?? parent?.function(name) }

    func capture(_ name: String) -> Capture? { captures[name] ?? parent?.capture(name) }
}

/// A function of the source while it is compiled.
final class FunctionEntry {
    let declaration: FunctionDeclaration
    /// Nil after the compilation, because a scope holds its functions, too.
    private(set) var scope: Scope?
    let program: FunctionProgram
    /// The functions that its body calls, each once.
    private(set) var callees: [FunctionEntry] = []
    var isCalled = false

    init(_ declaration: FunctionDeclaration, scope: Scope) {
        self.declaration = declaration
        self.scope = scope
        program = FunctionProgram(name: declaration.name, parameterCount: declaration.parameters.count)
    }

    /// Breaks the reference cycles of the compilation.
    func dissolve() {
        scope = nil
        callees = []
    }

    func note(callee: FunctionEntry) {
        if !callees.contains(where: { $0 === callee }) { callees.append(callee) }
    }
}
