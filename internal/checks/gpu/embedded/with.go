//go:build embedprobes

package embedded

import "embed"

//go:embed bin/cuda-probe.gz bin/nvml-probe.gz
var programs embed.FS
