// Command emptycli is what --help costs a program that has nothing but the same flag library.
package main

import (
	"os"

	"github.com/urfave/cli/v2"
)

func main() {
	app := &cli.App{Name: "empty", Usage: "do nothing", Action: func(*cli.Context) error { return nil }}
	if err := app.Run(os.Args); err != nil {
		os.Exit(1)
	}
}
