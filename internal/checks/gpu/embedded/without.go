//go:build !(embedprobes && linux && (amd64 || arm64))

package embedded

import "embed"

var programs embed.FS
