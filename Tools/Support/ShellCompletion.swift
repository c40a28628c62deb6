/// Scripts with which shells complete a program's commands, from the same table as its help.
package struct ShellCompletion {
    package enum Shell: String, CaseIterable, Sendable {
        case bash, zsh, fish
    }

    private let program: String
    private let commands: [ToolCommand]

    package init(program: String, commands: [ToolCommand]) {
        self.program = program
        self.commands = commands
    }

    package func script(for shell: Shell) -> String {
        switch shell {
        case .bash: bash()
        case .zsh: zsh()
        case .fish: fish()
        }
    }

    /// The words after the name of a command.
    private func verbs(_ command: ToolCommand) -> [String] {
        command.name == "help" ? commands.map(\.name) : command.verbs
    }

    // MARK: bash

    private func bash() -> String {
        """
        # Completions of \(program) for bash. Printed by `\(program) completion bash`.

        _\(program)_words() { mapfile -t COMPREPLY < <(compgen -W "$1" -- "$2"); }
        _\(program)_files() { compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -f -- "$1"); }
        _\(program)_folders() { compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -d -- "$1"); }

        _\(program)() {
            local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} options="" verbs=""
            COMPREPLY=()
            # Readline takes --option=value for three words.
            if [[ $current == "=" ]]; then
                current=""
            elif [[ $previous == "=" && COMP_CWORD -gt 2 ]]; then
                previous=${COMP_WORDS[COMP_CWORD-2]}
            fi
            if [[ COMP_CWORD -eq 1 ]]; then
                _\(program)_words "\(commands.map(\.name).joined(separator: " ")) --help --version" "$current"
                return
            fi
            case ${COMP_WORDS[1]} in
        \(commands.map(bashCase).joined(separator: "\n"))
            *) return ;;
            esac
            if [[ $current == -* ]]; then
                _\(program)_words "$options --help" "$current"
            elif [[ -n $verbs && COMP_CWORD -eq 2 ]]; then
                _\(program)_words "$verbs" "$current"
            else
                _\(program)_files "$current"
            fi
        }
        complete -F _\(program) \(program)

        """
    }

    private func bashCase(_ command: ToolCommand) -> String {
        var lines = [
            "    \(command.name))",
            "        options=\"\(command.options.map { "--" + $0.name }.joined(separator: " "))\"",
            "        verbs=\"\(verbs(command).joined(separator: " "))\"",
        ]
        let values = command.options.compactMap(bashValue)
        if !values.isEmpty { lines += ["        case $previous in"] + values + ["        esac"] }
        return (lines + ["        ;;"]).joined(separator: "\n")
    }

    /// What follows an option; nil for one without a value.
    private func bashValue(_ option: Option) -> String? {
        guard option.value != nil else { return nil }
        let names = ["--" + option.name] + option.letters.map { "-" + $0 }
        let action =
            if option.isFile {
                "_\(program)_files \"$current\"; return"
            } else if option.isFolder {
                "_\(program)_folders \"$current\"; return"
            } else if !option.choices.isEmpty {
                "_\(program)_words \"\(option.choices.joined(separator: " "))\" \"$current\"; return"
            } else {
                "return"
            }
        // A value that may be left out: another option may be next.
        let condition = option.isValueOptional ? "[[ $current == -* ]] || { \(action); }" : action
        return "        \(names.joined(separator: "|"))) \(condition) ;;"
    }

    // MARK: zsh

    private func zsh() -> String {
        """
        #compdef \(program)
        # Completions of \(program) for zsh. Printed by `\(program) completion zsh`.

        _\(program)() {
            local -a commands
            if (( CURRENT == 2 )); then
                commands=(
        \(commands.map { "            \(Self.zshQuote("\($0.name):\($0.summary)"))" }.joined(separator: "\n"))
                    '--help:List the commands.'
                    '--version:Print the version.'
                )
                _describe -t commands command commands
                return
            fi
            shift words
            (( CURRENT -= 1 ))
            case $words[1] in
        \(commands.map(zshCase).joined(separator: "\n"))
            esac
        }

        # When it is sourced instead of loaded by its name.
        if [[ $funcstack[1] == _\(program) ]]; then _\(program) "$@"; else compdef _\(program) \(program); fi

        """
    }

    private func zshCase(_ command: ToolCommand) -> String {
        let verbs = verbs(command)
        var specifications = command.options.map(zshOption) + ["'--help[Explain the command.]'"]
        if !verbs.isEmpty { specifications.append("'1:command:(\(verbs.joined(separator: " ")))'") }
        specifications.append("'*:file:_files'")
        let lines = specifications.map { "            \($0)" }.joined(separator: " \\\n")
        return "    \(command.name))\n        _arguments \\\n\(lines) ;;"
    }

    private func zshOption(_ option: Option) -> String {
        let summary = Self.zshEscape(option.summary)
        let name = (option.isRepeated ? "*" : "") + "--\(option.name)"
        guard let value = option.value else { return Self.zshQuote("\(name)[\(summary)]") }
        let action =
            if option.isFile {
                "_files"
            } else if option.isFolder {
                "_files -/"
            } else if !option.choices.isEmpty {
                "(\(option.choices.joined(separator: " ")))"
            } else {
                " "
            }
        let separator = option.isValueOptional ? "::" : ":"
        return Self.zshQuote("\(name)=[\(summary)]\(separator)\(Self.zshEscape(value)):\(action)")
    }

    private static func zshEscape(_ string: String) -> String {
        string.reduce(into: "") { result, character in
            if "[]:\\".contains(character) { result.append("\\") }
            result.append(character)
        }
    }

    private static func zshQuote(_ string: String) -> String {
        "'" + string.split(separator: "'", omittingEmptySubsequences: false).joined(separator: "'\\''") + "'"
    }

    // MARK: fish

    private func fish() -> String {
        """
        # Completions of \(program) for fish. Printed by `\(program) completion fish`.

        # Whether as many words are complete as the first argument says, and the second of them is the other one, if it is there.
        function __\(program)_at
            set -l words (commandline -opc)
            test (count $words) -eq $argv[1]; or return 1
            test (count $argv) -eq 1; or test "$words[2]" = $argv[2]
        end
        function __\(program)_is
            set -l words (commandline -opc)
            test "$words[2]" = $argv[1]
        end

        complete -c \(program) -n '__\(program)_at 1' -f -l help -d 'List the commands.'
        complete -c \(program) -n '__\(program)_at 1' -f -l version -d 'Print the version.'
        \(commands.map(fishCommand).joined(separator: "\n"))

        """
    }

    private func fishCommand(_ command: ToolCommand) -> String {
        let summary = Self.fishQuote(command.summary)
        var lines = ["complete -c \(program) -n '__\(program)_at 1' -f -a \(command.name) -d \(summary)"]
        for verb in verbs(command) {
            lines.append("complete -c \(program) -n '__\(program)_at 2 \(command.name)' -f -a \(verb)")
        }
        let condition = "complete -c \(program) -n '__\(program)_is \(command.name)'"
        for option in command.options {
            let letters = option.letters.map { " -s \($0)" }.joined()
            let value =
                if option.value == nil || option.isValueOptional {
                    ""
                } else if option.isFile {
                    " -r -F"
                } else if option.isFolder {
                    " -x -a '(__fish_complete_directories)'"
                } else {
                    " -x" + (option.choices.isEmpty ? "" : " -a '\(option.choices.joined(separator: " "))'")
                }
            lines.append("\(condition) -l \(option.name)\(letters)\(value) -d \(Self.fishQuote(option.summary))")
        }
        return lines.joined(separator: "\n")
    }

    private static func fishQuote(_ string: String) -> String {
        "'"
            + string.reduce(into: "") { result, character in
                if "'\\".contains(character) { result.append("\\") }
                result.append(character)
            } + "'"
    }
}
