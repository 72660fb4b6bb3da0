package fault

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestParse(t *testing.T) {
	plan, err := Parse([]byte(`{"seed":7,"rules":[{"route":"job-done","probability":0.1,"times":3,"delay":"1.5s","status":503,"retryAfter":2},{"truncate":0}]}`))
	require.NoError(t, err)
	require.EqualValues(t, 7, *plan.Seed)
	zero := 0
	require.Equal(t, []Rule{
		{Route: "job-done", Probability: 0.1, Times: 3, Delay: Delay(1500 * time.Millisecond), Status: 503, RetryAfter: 2},
		{Probability: 1, Truncate: &zero},
	}, plan.Rules)
}

// A rule that makes no sense is refused in one line that names its field.
func TestParse_Refusals(t *testing.T) {
	for name, row := range map[string]struct{ rule, problem string }{
		"a misspelt field":        {`{"rout":"run","status":500}`, `rules[0].rout: there is no such field`},
		"an unknown route":        {`{"route":"jobdone","status":500}`, `rules[0].route: "jobdone" is none of run, `},
		"a number as route":       {`{"route":1}`, `rules[0].route: cannot be a JSON number`},
		"no chance":               {`{"probability":0,"status":500}`, `rules[0].probability: want more than 0`},
		"more than certain":       {`{"probability":10,"status":500}`, `rules[0].probability: `},
		"negative times":          {`{"times":-1,"status":500}`, `rules[0].times: `},
		"a delay without unit":    {`{"delay":"5"}`, `rules[0].delay: "5" is not a time`},
		"a delay as number":       {`{"delay":5}`, `rules[0].delay: cannot be a JSON number`},
		"a late duplicate":        {`{"delay":"1s","duplicate":true}`, `rules[0].delay: does not go together with duplicate`},
		"a negative delay":        {`{"delay":"-5s"}`, `rules[0].delay: want no negative time`},
		"no such status":          {`{"status":42}`, `rules[0].status: want 200 to 599, not 42`},
		"a body without status":   {`{"body":"x","delay":"1s"}`, `rules[0].body: goes with a status`},
		"retryAfter without one":  {`{"retryAfter":1,"delay":"1s"}`, `rules[0].retryAfter: goes with a status`},
		"a reset of no kind":      {`{"reset":"maybe"}`, `rules[0].reset: want before or after, not "maybe"`},
		"a negative length":       {`{"truncate":-1}`, `rules[0].truncate: `},
		"a duplicate of a result": {`{"route":"job-done","duplicate":true}`, `rules[0].duplicate: only job-take hands jobs out`},
		"two things at once":      {`{"status":500,"reset":"after"}`, `rules[0].status: does not go together with reset`},
		"nothing to do":           {`{"route":"run"}`, `rules[0].status: or one of reset,`},
		"no JSON":                 {`{`, `body: `},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse([]byte(`{"rules":[` + row.rule + `]}`))
			require.ErrorContains(t, err, row.problem)
			require.NotContains(t, err.Error(), "\n")
		})
	}
	for text, problem := range map[string]string{
		`{"rules":[]}`: "rules: there is none", `{}`: "rules: there is none", `{"rule":[]}`: "rule: there is no such field",
		`{"seed":-1,"rules":[{"status":500}]}`: "seed: cannot be a JSON number", `[]`: "cannot be a JSON array",
		`{"rules":[{"status":500}]}{}`:            "more than one JSON document",
		`{"rules":[{"status":500},{"status":1}]}`: "rules[1].status",
	} {
		_, err := Parse([]byte(text))
		require.ErrorContains(t, err, problem, text)
	}
}

// What Parse accepts, it accepts again after a round trip.
func FuzzParse(f *testing.F) {
	for _, text := range []string{`{"rules":[{"status":500}]}`, `{"seed":1,"rules":[{"delay":"1s","reset":"after","times":2}]}`, `{"rules":[null]}`, `[`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		plan, err := Parse([]byte(text))
		if err != nil {
			return
		}
		again, err := json.Marshal(map[string]any{"seed": plan.Seed, "rules": plan.Rules})
		require.NoError(t, err)
		same, err := Parse(again)
		require.NoError(t, err, string(again))
		require.Equal(t, plan, same)
	})
}

func TestParseCall(t *testing.T) {
	for path, want := range map[string]call{
		"/v2/local/run":                       {route: "run"},
		"/run":                                {route: "run"},
		"/v2/local/status/j1":                 {route: "status", job: "j1"},
		"/v2/local/job-take/w1":               {route: "job-take", worker: "w1"},
		"/v2/local/job-take-batch/w1":         {route: "job-take", worker: "w1"},
		"/job-take/$ID&job_in_progress=0":     {route: "job-take", worker: "$ID"},
		"/v2/local/job-done/w1/j1":            {route: "job-done", worker: "w1", job: "j1"},
		"/v2/local/job-stream/w1/j1":          {route: "job-stream", worker: "w1", job: "j1"},
		"/v2/local/ping/w1":                   {route: "ping", worker: "w1"},
		"/v2/local/openai/v1/chat/completion": {route: "openai"},
		"/_emulator/faults":                   {},
		"/":                                   {},
		"/v2/local":                           {route: "v2"},
	} {
		require.Equal(t, want, parseCall(path), path)
	}
}
