package mistake_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/mistake"
)

func wrong() { panic(errors.New("out of order")) }

func nowhere() {
	var p *int
	*p = 1
}

func TestCatch(t *testing.T) {
	require.NoError(t, mistake.Catch(func() {}))
	for name, tt := range map[string]struct {
		f    func()
		want string
	}{
		"a panic":       {wrong, `^a mistake in this program: out of order, at mistake_test.wrong \(mistake_test.go:\d+\) < mistake.Catch \(mistake.go:\d+\) < mistake_test.TestCatch`},
		"the runtime's": {nowhere, `: runtime error: invalid memory address or nil pointer dereference, at mistake_test.nowhere \(`},
		"one in a panic": {func() {
			defer wrong()
			panic("first")
		}, `: out of order, at mistake_test.wrong \(`},
		"one after another": {func() {
			_ = mistake.Catch(wrong)
			nowhere()
		}, `dereference, at mistake_test.nowhere \(`},
	} {
		t.Run(name, func(t *testing.T) {
			err := mistake.Catch(tt.f)
			require.Error(t, err)
			require.Regexp(t, tt.want, err.Error())
			require.NotContains(t, err.Error(), "\n")
			require.ErrorAs(t, err, new(*mistake.Error))
		})
	}
}
