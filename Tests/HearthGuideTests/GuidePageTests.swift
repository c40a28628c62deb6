import Testing

/// The guide shows nothing but code that is compiled here, and run by `GuideSampleTests`.
@Suite struct GuidePageTests {
    @Test func everyBlockIsASample() throws {
        let samples = Set(try GuidePages.samples().map(\.text))
        let blocks = try GuidePages.blocks()
        #expect(blocks.count > 30)
        for block in blocks where !block.text.hasPrefix("// swift-tools-version") {
            // Apart, so that a failure doesn't show all samples.
            let isSample = samples.contains(block.text)
            #expect(isSample, "docs/guide/\(block.page), line \(block.line), is no sample")
        }
    }

    @Test func everySampleIsShown() throws {
        let blocks = Set(try GuidePages.blocks().map(\.text))
        let samples = try GuidePages.samples()
        #expect(Set(samples.map(\.name)).count == samples.count)
        for sample in samples {
            let isShown = blocks.contains(sample.text)
            #expect(isShown, "the sample \(sample.name) in \(sample.file) is on no page")
        }
    }

    /// The one block that isn't compiled here names what Package.swift has.
    @Test func theManifestNamesTheProduct() throws {
        let manifests = try GuidePages.blocks().filter { $0.text.hasPrefix("// swift-tools-version") }
        #expect(manifests.count == 1)
        let package = try GuidePages.file("Package.swift")
        #expect(package.contains(#"name: "hearth","#))
        #expect(package.contains(#".library(name: "HearthFirestore""#))
        for manifest in manifests {
            #expect(manifest.text.contains(#".product(name: "HearthFirestore", package: "hearth")"#))
        }
    }
}
