import Foundation

/// The pages of `docs/guide`, and the samples in `Samples`.
enum GuidePages {
    struct Block: Sendable {
        var page: String
        var line: Int
        var code: String
    }

    struct Sample: Sendable {
        var name: String
        var file: String
        var code: String
    }

    static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    static func file(_ path: String) throws -> String {
        try String(contentsOf: root.appendingPathComponent(path), encoding: .utf8)
    }

    private static func names(in folder: String, ending: String) throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: root.appendingPathComponent(folder).path)
            .filter { $0.hasSuffix(ending) }.sorted()
    }

    /// All blocks of Swift, in the order of the pages.
    static func blocks() throws -> [Block] {
        var blocks: [Block] = []
        for page in try names(in: "docs/guide", ending: ".md") {
            var open: Block?
            for (index, line) in try file("docs/guide/\(page)").components(separatedBy: "\n").enumerated() {
                if line.hasPrefix("```") {
                    if let block = open {
                        blocks.append(block)
                        open = nil
                    } else if line == "```swift" {
                        open = Block(page: page, line: index + 1, code: "")
                    }
                } else {
                    open?.code += line + "\n"
                }
            }
        }
        return blocks
    }

    /// The lines between `// sample: NAME` and `// end`, without the indentation of the first mark.
    static func samples() throws -> [Sample] {
        var samples: [Sample] = []
        for file in try names(in: "Tests/HearthGuideTests/Samples", ending: ".swift") {
            var open: (sample: Sample, indentation: Int)?
            for line in try self.file("Tests/HearthGuideTests/Samples/\(file)").components(separatedBy: "\n") {
                let trimmed = line.drop { $0 == " " }
                if trimmed.hasPrefix("// sample: ") {
                    let name = String(trimmed.dropFirst("// sample: ".count))
                    open = (Sample(name: name, file: file, code: ""), line.count - trimmed.count)
                } else if trimmed == "// end" {
                    guard var sample = open?.sample else { continue }
                    while sample.code.hasSuffix("\n\n") { sample.code.removeLast() }
                    samples.append(sample)
                    open = nil
                } else if let indentation = open?.indentation {
                    open?.sample.code += line.dropFirst(indentation) + "\n"
                }
            }
        }
        return samples
    }
}
