import HearthModel
import Testing

/// The guide and README.md contain only Swift that is compiled here; `GuideSampleTests` runs that of the guide.
@Suite struct GuidePageTests {
    @Test func everyBlockIsASample() throws {
        let samples = Set(try GuidePages.samples().map(\.code))
        let blocks = try GuidePages.blocks()
        #expect(blocks.count > 30)
        for block in blocks where !block.code.hasPrefix("// swift-tools-version") {
            // A separate value, so that a failure does not print all samples.
            let isSample = samples.contains(block.code)
            #expect(isSample, "\(block.page), line \(block.line), is no sample")
        }
    }

    @Test func everySampleIsShown() throws {
        let blocks = Set(try GuidePages.blocks().map(\.code))
        let samples = try GuidePages.samples()
        #expect(Set(samples.map(\.name)).count == samples.count)
        for sample in samples {
            let isShown = blocks.contains(sample.code)
            #expect(isShown, "the sample \(sample.name) in \(sample.file) is on no page")
        }
    }

    /// Manifests, which are not compiled here, have the names of Package.swift and the version of the program: `make
    /// check-package` builds one of them.
    @Test func manifestsNameProducts() throws {
        let manifests = try GuidePages.blocks().filter { $0.code.hasPrefix("// swift-tools-version") }
        #expect(manifests.count == 3)
        let package = try GuidePages.file("Package.swift")
        #expect(package.contains(#"name: "hearth","#))
        for manifest in manifests {
            let dependency = #".package(url: "https://github.com/OWNER/hearth", from: "\#(HearthVersion.string)")"#
            #expect(manifest.code.contains(dependency), "\(manifest.page)")
            let products = manifest.code.matches(of: /\.product\(name: "([A-Za-z]+)"/).map(\.output.1)
            #expect(!products.isEmpty)
            for product in products {
                #expect(package.contains(#".library(name: "\#(product)""#), "\(manifest.page): \(product)")
            }
        }
    }
}
