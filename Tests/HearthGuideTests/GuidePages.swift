import Foundation

/// The pages of `docs/guide`, `README.md` and the DocC catalogues, and the samples in `Samples`, in `Tests/HearthShimTests`
/// and of HearthBundle.
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

    static let catalogues = [
        "Client/Firestore/HearthFirestore.docc", "Client/Database/HearthDatabase.docc", "Bundler/HearthBundle.docc",
    ]

    /// All blocks of Swift, in the order of the pages.
    static func blocks() throws -> [Block] {
        var blocks: [Block] = []
        let pages = try (["docs/guide"] + catalogues).flatMap { folder in
            try names(in: folder, ending: ".md").map { "\(folder)/\($0)" }
        }
        for page in pages + ["README.md"] {
            var open: Block?
            for (index, line) in try file(page).components(separatedBy: "\n").enumerated() {
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

    /// The lines between `// sample: NAME` and `// end`, without the indentation of the first mark. A sample that begins
    /// outside of a function continues in it after `// more: NAME`, on the page after an empty line.
    static func samples() throws -> [Sample] {
        var samples: [Sample] = []
        let folders = ["Tests/HearthGuideTests/Samples", "Tests/HearthShimTests"]
        let files = try folders.flatMap { folder in
            try names(in: folder, ending: ".swift").map { "\(folder)/\($0)" }
        }
        for file in files + ["Tests/HearthBundleTests/CatalogueTests.swift"] {
            var open: (sample: Sample, indentation: Int)?
            for line in try self.file(file).components(separatedBy: "\n") {
                let trimmed = line.drop { $0 == " " }
                if trimmed.hasPrefix("// sample: ") {
                    let name = String(trimmed.dropFirst("// sample: ".count))
                    open = (Sample(name: name, file: file, code: ""), line.count - trimmed.count)
                } else if trimmed.hasPrefix("// more: "), let begun = samples.last {
                    precondition(trimmed.hasSuffix(": \(begun.name)"), "\(file): no sample to continue")
                    samples.removeLast()
                    open = (begun, line.count - trimmed.count)
                    open?.sample.code += "\n"
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
