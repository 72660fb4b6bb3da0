// Command runpodctl-worker-cuda-probe asks the CUDA driver, for runpodctl-worker, which starts it as a process of its
// own: a driver that hangs or crashes takes nothing else along.
package main

import (
	"os"

	"runpodctl-worker/internal/cudaprobe"
)

func main() { os.Exit(cudaprobe.Main(os.Args[1:], os.Stdout, os.Stderr)) }
