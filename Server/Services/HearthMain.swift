public enum HearthMain { public static func run() {} }
