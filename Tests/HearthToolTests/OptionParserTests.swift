@testable import HearthToolSupport
import Testing

@testable import hearth

@Suite struct OptionParserTests {
    private let options = [
        Option("port", "N", "Port."), Option("tls-cert", "FILE", aliases: ["certificate"], "Certificate."),
        Option("memory", nil, "Memory."),
    ]

    private func values(_ words: String...) throws(ToolFailure) -> [String: String] {
        try ParsedOptions(words, options: options).values
    }

    @Test func spellings() throws {
        #expect(try values("--port", "1") == ["port": "1"])
        #expect(try values("--port=1", "--port=2") == ["port": "2"])
        #expect(try values("--tls_cert=a=b") == ["tls-cert": "a=b"])
        #expect(try values("--certificate", "x") == ["tls-cert": "x"])
        #expect(try values("--memory") == ["memory": ""])
        #expect(try values("--no-memory") == ["memory": "false"])
        #expect(try values("--memory=false") == ["memory": "false"])
    }

    @Test func refusals() {
        let cases: [(words: [String], message: String)] = [
            (["--prot", "1"], "Unknown option --prot; did you mean --port?"),
            (["--zzzzzz"], "Unknown option --zzzzzz."),
            (["-p", "1"], "Unknown option -p."),
            (["--port"], "The option --port needs a value: --port N."),
            (["--no-port"], "Unknown option --no-port."),
            (["here"], "Unexpected argument \"here\"."),
            (["--", "--port"], "Unexpected argument \"--port\"."),
        ]
        for (words, message) in cases {
            #expect(throws: ToolFailure.usage(message), "\(words)") {
                try ParsedOptions(words, options: options)
            }
        }
    }

    @Test func argumentsThatAreNotOptions() throws {
        let parsed = try ParsedOptions(["a", "--memory", "-", "--", "--b"], options: options, argumentsMax: 3)
        #expect(parsed.arguments == ["a", "-", "--b"])
    }

    @Test func numbers() throws {
        let parsed = try ParsedOptions(["--port", "12"], options: options)
        #expect(try parsed.integer("port", 1...20, default: 3) == 12)
        #expect(try parsed.integer("other", 1...20, default: 3) == 3)
        #expect(throws: ToolFailure.self) { try parsed.integer("port", 1...10, default: 3) }
    }

    @Test func namesInOtherSources() {
        #expect(options[1].environmentName == "HEARTH_TLS_CERT")
        #expect(options[1].memberName == "tlsCert")
        #expect(options[0].memberName == "port")
    }

    @Test func commands() {
        #expect(throws: ToolFailure.usage("There is no command \"serv\"; did you mean \"serve\"? See `hearth help`.")) {
            try Tool.run(["serv"])
        }
        for command in Tool.commands {
            #expect(command.help().hasPrefix("Usage: hearth \(command.name)") || command.name == "help")
            #expect(HelpCommand.overview().contains(command.summary))
        }
        for line in ServeOptions.help().split(separator: "\n") { #expect(line.count <= 120) }
    }

    @Test func helpOfVerbs() throws {
        for command in Tool.commands {
            for verb in command.verbs { try Tool.run(["help", command.name, verb]) }
        }
        #expect(throws: ToolFailure.usage("`hearth rules` has no verb \"tst\"; did you mean \"test\"?")) {
            try Tool.run(["help", "rules", "tst"])
        }
        #expect(throws: ToolFailure.usage("`hearth check` has no verbs, found \"all\".")) {
            try Tool.run(["help", "check", "all"])
        }
    }
}
