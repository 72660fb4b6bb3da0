package program

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCommandName(t *testing.T) {
	for _, tt := range []struct {
		name string
		args []string
		want string
	}{
		{"paths", []string{"/" + strings.Repeat("deep/", 40) + "bin/python", "-u", "/app/handler.py"}, "python -u handler.py"},
		{"names", []string{"python3", "src/handler.py", "--flag=/a/b"}, "python3 src/handler.py --flag=/a/b"},
		{"script", []string{"python", "-c", "import  x\n\tx.go()"}, "python -c import x x.go()"},
		{"long", []string{"node", strings.Repeat("ü", 100)}, "node " + strings.Repeat("ü", 75)},
	} {
		t.Run(tt.name, func(t *testing.T) { require.Equal(t, tt.want, commandName(tt.args)) })
	}
}
