// Package lazy puts work off that most calls of the program never need.
package lazy

import (
	"regexp"
	"sync"
)

// Regexp is an expression that is compiled when it is first wanted.
func Regexp(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}
