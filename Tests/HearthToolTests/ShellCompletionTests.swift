import Testing

@testable import HearthToolSupport
@testable import hearth

@Suite struct ShellCompletionTests {
    private func script(_ shell: ShellCompletion.Shell) -> String {
        ShellCompletion(program: "hearth", commands: Tool.commands).script(for: shell)
    }

    /// The lines of a command in a script, by what begins them and ends them.
    private func section(_ script: String, from start: String, to end: String) throws -> String {
        let start = try #require(script.firstRange(of: start), "\(start)")
        let rest = script[start.upperBound...]
        return String(rest[..<(rest.firstRange(of: end)?.lowerBound ?? rest.endIndex)])
    }

    @Test func bashHasEachOptionAndVerbOfTheHelp() throws {
        let script = script(.bash)
        for command in Tool.commands {
            let lines = try section(script, from: "\n    \(command.name))\n", to: "\n        ;;")
            for option in command.options {
                #expect(
                    lines.contains(" --\(option.name) ") || lines.contains(" --\(option.name)\"")
                        || lines.contains("\"--\(option.name)"), "\(command.name) --\(option.name)")
                // What has a value must not be followed by options and files.
                if option.value != nil {
                    let names = (["--\(option.name)"] + option.letters.map { "-\($0)" }).joined(separator: "|")
                    #expect(lines.contains("        \(names)) "), "\(command.name) --\(option.name)")
                }
            }
            for verb in command.verbs { #expect(lines.contains(verb), "\(command.name) \(verb)") }
        }
    }

    @Test func zshHasEachOptionAndVerbOfTheHelp() throws {
        let script = script(.zsh)
        for command in Tool.commands {
            #expect(script.contains("'\(command.name):"), "\(command.name)")
            let lines = try section(script, from: "\n    \(command.name))\n", to: ";;")
            for option in command.options {
                let end = option.value == nil ? "[" : "=["
                #expect(lines.contains("--\(option.name)\(end)"), "\(command.name) --\(option.name)")
            }
            for verb in command.verbs { #expect(lines.contains(verb), "\(command.name) \(verb)") }
        }
    }

    @Test func fishHasEachOptionAndVerbOfTheHelp() {
        let lines = Set(script(.fish).split(separator: "\n").map(String.init))
        for command in Tool.commands {
            #expect(lines.contains { $0.contains("_at 1' -f -a \(command.name) -d ") }, "\(command.name)")
            for option in command.options {
                let letters = option.letters.map { "-s \($0) " }.joined()
                let start = "complete -c hearth -n '__hearth_is \(command.name)' -l \(option.name) \(letters)"
                #expect(lines.contains { $0.hasPrefix(start) }, "\(command.name) --\(option.name)")
            }
            for verb in command.verbs {
                #expect(lines.contains("complete -c hearth -n '__hearth_at 2 \(command.name)' -f -a \(verb)"))
            }
        }
    }

    @Test func aCommandWithOptionsNamesThem() {
        // A command without a table here would have neither completions nor entries in the manual page.
        for command in Tool.commands where command.help().contains("\n  --") {
            #expect(!command.options.isEmpty, "\(command.name)")
            #expect(command.help().contains(OptionHelp.string(command.options)), "\(command.name)")
        }
    }

    @Test func wordsOfOthersAreQuoted() {
        let command = ToolCommand(
            name: "odd", summary: "It's [odd]: yes.", options: [Option("x", "A:B", "Isn't [it]: \\ no. More.")],
            help: { "" }, run: { _ in })
        let completion = ShellCompletion(program: "p", commands: [command])
        #expect(completion.script(for: .zsh).contains(#"'--x=[Isn'\''t \[it\]\: \\ no.]:A\:B: '"#))
        #expect(completion.script(for: .fish).contains(#"-l x -x -d 'Isn\'t [it]: \\ no.'"#))
    }
}
