/// The program's version.
public enum HearthVersion {
    public static let text = "0.1.0"
}
