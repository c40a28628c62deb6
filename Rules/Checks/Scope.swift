/// What names mean at a place of a source: of functions, inside out; of captures, all of the enclosing matches.
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

    /// Declares a function; false when the scope has one of this name.
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
    /// Nil when the compilation is over: a scope holds its functions, too.
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

    /// Ends the compilation's circles.
    func dissolve() {
        scope = nil
        callees = []
    }

    func note(callee: FunctionEntry) {
        if !callees.contains(where: { $0 === callee }) { callees.append(callee) }
    }
}
