// Package versions runs two versions of the module side by side on one Redis, as in a
// rolling deployment: TestSideBySide builds the program in client in both trees and asks the
// two processes in turns.
package versions
