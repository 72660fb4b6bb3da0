//go:build linux && embedprobes

package embedded

import "embed"

//go:embed bin/arm64
var programs embed.FS
