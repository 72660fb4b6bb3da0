// Program link does nothing but to have the terminal libraries linked in. It writes down what it was given: a line of
// its input, and its environment.
package main

import (
	"bufio"
	"os"
	"strings"

	_ "runpodctl-worker/internal/tui"
)

func main() {
	typed, err := bufio.NewReader(os.Stdin).ReadString('\n')
	if err != nil {
		panic(err)
	}
	seen := typed + strings.Join(os.Environ(), "\n")
	if err := os.WriteFile(os.Getenv("TUI_TEST_SEEN"), []byte(seen), 0o600); err != nil {
		panic(err)
	}
}
