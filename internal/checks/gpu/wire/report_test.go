package wire_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/checks/gpu/wire"
)

func TestReport(t *testing.T) {
	for _, test := range []struct {
		name    string
		outcome wire.Outcome
		want    wire.Line
	}{
		{"without data", wire.Outcome{State: wire.StateOK}, wire.Line{State: wire.StateOK}},
		{
			"with data",
			wire.Outcome{State: wire.StateOK, Data: wire.NVMLCount{Count: 2}},
			wire.Line{State: wire.StateOK, Data: json.RawMessage(`{"count":2}`)},
		},
		{
			"failed",
			wire.Outcome{State: wire.StateFail, Call: "nvmlInit_v2", Code: 9, Detail: "Driver Not Loaded"},
			wire.Line{State: wire.StateFail, Call: "nvmlInit_v2", Code: 9, Detail: "Driver Not Loaded"},
		},
		{
			"data that JSON cannot say",
			wire.Outcome{State: wire.StateOK, Data: wire.Compute{GFLOPS: math.NaN()}},
			wire.Line{State: wire.StateFail, Detail: "json: unsupported value: NaN"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			var out bytes.Buffer
			report := wire.NewReport(&out)
			report.Begin(wire.NVMLHealth, 1).Done(test.outcome)
			require.NoError(t, report.End())
			lines := json.NewDecoder(&out)
			next := func() (line wire.Line) {
				require.NoError(t, lines.Decode(&line))
				return line
			}
			require.Equal(t, wire.Line{Step: wire.NVMLHealth, State: wire.StateBegin, GPU: 1}, next())
			got := next()
			require.GreaterOrEqual(t, got.MS, 0.0)
			test.want.Step, test.want.GPU, test.want.MS = wire.NVMLHealth, 1, got.MS
			require.Equal(t, test.want, got)
			require.Equal(t, wire.Line{State: wire.StateEnd, GPU: wire.NoGPU}, next())
			require.False(t, lines.More())
		})
	}
}

type broken struct{ writes int }

func (b *broken) Write([]byte) (int, error) {
	b.writes++
	return 0, errors.New("broken pipe")
}

func TestReport_ParentIsGone(t *testing.T) {
	out := &broken{}
	report := wire.NewReport(out)
	report.Begin(wire.NVMLLoad, wire.NoGPU).Done(wire.Outcome{State: wire.StateOK})
	require.EqualError(t, report.End(), "broken pipe")
	require.Equal(t, 1, out.writes, "it is not tried again")
}
