// Command runpodctl-worker-nvml-probe asks NVIDIA's management library how the GPUs are. runpodctl-worker starts it: a
// driver that hangs or crashes takes nothing else along.
package main

import (
	"os"

	"runpodctl-worker/internal/nvmlprobe"
)

func main() { os.Exit(nvmlprobe.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }
