"""What every room stands on: errors, dtypes, shapes, specs, trees and the one dispatch switch."""
