// Command runpodctl-worker-nvml-probe asks NVIDIA's management library how the GPUs are. runpodctl-worker starts it: a
// driver that hangs or crashes takes nothing else along.
package main

import (
	"os"

	"runpodctl-worker/internal/nvmlprobe"
)

// Set by the linker: -X main.version=…
var version = "0.0.0-dev"

func main() { os.Exit(nvmlprobe.Main(os.Args, version, os.Stdin, os.Stdout, os.Stderr)) }
