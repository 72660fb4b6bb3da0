//go:build linux && embedprobes

package embedded

import "embed"

//go:embed bin/amd64
var programs embed.FS
