package checks_test

import (
	"encoding/json"
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/checks"
)

func TestConfig_Defaults(t *testing.T) {
	for name, env := range map[string]map[string]string{
		"nothing set": nil,
		"set, but empty": {
			"RUNPOD_MIN_MEMORY_GB": "", "RUNPOD_MIN_DISK_PERCENT": " ", "RUNPOD_GPU_COUNT": "", "RUNPOD_SKIP_GPU_CHECK": "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := checks.ConfigFrom(lookup(env))
			require.NoError(t, c.Err())
			require.InDelta(t, 4, c.MinMemoryGB.Value, 0)
			require.InDelta(t, 10, c.MinDiskPercent.Value, 0)
			require.Equal(t, 5*time.Second, c.NetworkTimeout.Value)
			require.Equal(t, checks.Version{Major: 11, Minor: 8}, c.MinCUDA.Value)
			require.Equal(t, 30*time.Second, c.GPUTimeout.Value)
			require.Equal(t, 10, c.GPUMaxErrors.Value)
			require.Equal(t, checks.Unset, c.GPUCount.Value)
			require.Equal(t, 2*time.Second, c.Benchmark.Value)
			require.Empty(t, c.GPUTestPath.Value)
			require.False(t, c.MinMemoryGB.Set())
			require.Equal(t, "default", c.MinMemoryGB.Origin)
			require.Equal(t, checks.Switches{}, c.Switches)
		})
	}
}

func TestConfig_Knobs(t *testing.T) {
	memory := func(c checks.Config) (any, error) { return c.MinMemoryGB.Value, c.MinMemoryGB.Err }
	disk := func(c checks.Config) (any, error) { return c.MinDiskPercent.Value, c.MinDiskPercent.Err }
	network := func(c checks.Config) (any, error) { return c.NetworkTimeout.Value, c.NetworkTimeout.Err }
	cuda := func(c checks.Config) (any, error) { return c.MinCUDA.Value.String(), c.MinCUDA.Err }
	gpus := func(c checks.Config) (any, error) { return c.GPUCount.Value, c.GPUCount.Err }
	for _, tt := range []struct {
		name, variable, value string
		get                   func(checks.Config) (any, error)
		want                  any // nil: an error
	}{
		{"GB", "RUNPOD_MIN_MEMORY_GB", "0.5", memory, 0.5},
		{"GB with blanks", "RUNPOD_MIN_MEMORY_GB", " 8.0 ", memory, 8.0},
		{"no GB at all", "RUNPOD_MIN_MEMORY_GB", "0", memory, 0.0},
		{"negative GB", "RUNPOD_MIN_MEMORY_GB", "-1", memory, nil},
		{"GB in words", "RUNPOD_MIN_MEMORY_GB", "eight", memory, nil},
		{"GB with a unit", "RUNPOD_MIN_MEMORY_GB", "8GB", memory, nil},
		{"not a number of GB", "RUNPOD_MIN_MEMORY_GB", "NaN", memory, nil},
		{"endless GB", "RUNPOD_MIN_MEMORY_GB", "inf", memory, nil},
		{"percent", "RUNPOD_MIN_DISK_PERCENT", "15.5", disk, 15.5},
		{"percent with its sign", "RUNPOD_MIN_DISK_PERCENT", "15 %", disk, 15.0},
		{"over 100 percent", "RUNPOD_MIN_DISK_PERCENT", "101", disk, nil},
		{"not a number of percent", "RUNPOD_MIN_DISK_PERCENT", "NaN", disk, nil},
		{"seconds", "RUNPOD_NETWORK_CHECK_TIMEOUT", "10", network, 10 * time.Second},
		{"a part of a second", "RUNPOD_NETWORK_CHECK_TIMEOUT", "0.25", network, 250 * time.Millisecond},
		{"no seconds", "RUNPOD_NETWORK_CHECK_TIMEOUT", "0", network, nil},
		{"seconds that round to none", "RUNPOD_NETWORK_CHECK_TIMEOUT", "1e-12", network, nil},
		{"a time that overflows", "RUNPOD_NETWORK_CHECK_TIMEOUT", "1e300", network, nil},
		{"version", "RUNPOD_MIN_CUDA_VERSION", "12.4", cuda, "12.4"},
		{"version with a patch", "RUNPOD_MIN_CUDA_VERSION", "12.6.3", cuda, "12.6"},
		{"major version alone", "RUNPOD_MIN_CUDA_VERSION", "12", cuda, "12.0"},
		{"no version", "RUNPOD_MIN_CUDA_VERSION", "twelve", cuda, nil},
		{"negative version", "RUNPOD_MIN_CUDA_VERSION", "12.-1", cuda, nil},
		{"count", "RUNPOD_GPU_COUNT", "8", gpus, 8},
		{"no GPUs, please", "RUNPOD_GPU_COUNT", "0", gpus, 0},
		{"half a GPU", "RUNPOD_GPU_COUNT", "0.5", gpus, nil},
		{"negative count", "RUNPOD_GPU_COUNT", "-1", gpus, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := checks.ConfigFrom(lookup(map[string]string{tt.variable: tt.value}))
			got, err := tt.get(c)
			if tt.want == nil {
				require.ErrorContains(t, err, tt.variable)
				require.ErrorIs(t, c.Err(), err)
				return
			}
			require.NoError(t, err)
			require.NoError(t, c.Err())
			require.Equal(t, tt.want, got)
		})
	}
}

func TestConfig_SaysWhoSetAKnob(t *testing.T) {
	c := checks.ConfigFrom(lookup(map[string]string{"RUNPOD_MIN_MEMORY_GB": "4", "RUNPOD_GPU_COUNT": "many"}))
	require.True(t, c.MinMemoryGB.Set(), "also to the value of the default")
	require.Equal(t, "RUNPOD_MIN_MEMORY_GB", c.MinMemoryGB.Origin)
	require.ErrorContains(t, c.Err(), `RUNPOD_GPU_COUNT="many": want a whole number`)

	flagged := c.WithGPUCount(2, "--gpus")
	require.NoError(t, flagged.Err(), "a flag beats a variable that makes no sense")
	require.Equal(t, checks.Knob[int]{Value: 2, Origin: "--gpus"}, flagged.GPUCount)
	require.Error(t, c.Err(), "the other configuration is as it was")
}

func TestConfig_Switches(t *testing.T) {
	for value, want := range map[string]bool{
		"1": true, "true": true, "TRUE": true, "Yes": true, " on ": true,
		"": false, "0": false, "false": false, "no": false, "off": false, "2": false, "y": false,
	} {
		t.Run(value, func(t *testing.T) {
			env := map[string]string{
				"RUNPOD_SKIP_FITNESS_CHECKS": value, "RUNPOD_DEFER_FITNESS_CHECKS": value,
				"RUNPOD_SKIP_AUTO_SYSTEM_CHECKS": value, "RUNPOD_SKIP_GPU_CHECK": value,
			}
			require.Equal(t, checks.Switches{SkipAll: want, Defer: want, SkipSystem: want, SkipGPU: want},
				checks.ConfigFrom(lookup(env)).Switches)
		})
	}
}

func TestConfig_EarlyPass(t *testing.T) {
	for _, tt := range []struct {
		name   string
		env    map[string]string // on top of an endpoint's
		args   []string
		reason string // empty: early
	}{
		{"on an endpoint", nil, nil, ""},
		{"with a program", nil, []string{"python", "-u", "handler.py", "--port", "8000"}, ""},
		{"no endpoint", map[string]string{"RUNPOD_ENDPOINT_ID": ""}, nil, "RUNPOD_ENDPOINT_ID is not set"},
		{"no platform", map[string]string{"RUNPOD_WEBHOOK_GET_JOB": ""}, nil, "RUNPOD_WEBHOOK_GET_JOB is not set"},
		{"a test", map[string]string{"RUNPOD_TEST": "true"}, nil, "RUNPOD_TEST is set"},
		{"no test", map[string]string{"RUNPOD_TEST": "false"}, nil, ""},
		{"a realtime worker", map[string]string{"RUNPOD_REALTIME_PORT": "8080"}, nil, "RUNPOD_REALTIME_PORT is set"},
		{"a realtime port that makes no sense", map[string]string{"RUNPOD_REALTIME_PORT": "yes"}, nil, "RUNPOD_REALTIME_PORT is set"},
		{"no realtime worker", map[string]string{"RUNPOD_REALTIME_PORT": "0"}, nil, ""},
		{"done already", map[string]string{"RUNPOD_EARLY_FITNESS_CHECKS_DONE": "1"}, nil, "RUNPOD_EARLY_FITNESS_CHECKS_DONE is set"},
		{"deferred", map[string]string{"RUNPOD_DEFER_FITNESS_CHECKS": "true"}, nil, "RUNPOD_DEFER_FITNESS_CHECKS is set"},
		{"switched off", map[string]string{"RUNPOD_SKIP_FITNESS_CHECKS": "true"}, nil, "RUNPOD_SKIP_FITNESS_CHECKS is set"},
		{"some switched off", map[string]string{"RUNPOD_SKIP_AUTO_SYSTEM_CHECKS": "true", "RUNPOD_SKIP_GPU_CHECK": "true"}, nil, ""},
		{"a job by hand", nil, []string{"python", "handler.py", "--test_input", "{}"}, "--test_input is a local run"},
		{"a job by hand, in one word", nil, []string{"handler.py", `--test_input={"input": {}}`}, "is a local run"},
		{"a job by hand, with a dash", nil, []string{"handler.py", "--test-input=job.json"}, "is a local run"},
		{"a local API", nil, []string{"python", "handler.py", "--rp_serve_api"}, "--rp_serve_api is a local run"},
		{"a local API, with dashes", nil, []string{"--rp-serve-api=true"}, "is a local run"},
		{"a local API, with one dash", nil, []string{"-rp_serve_api"}, "is a local run"},
		{"a flag that begins alike", nil, []string{"--test_inputs", "--rp_serve_api_port=1"}, ""},
		{"a word that is no flag", nil, []string{"test_input", "x=--test_input"}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			env := map[string]string{"RUNPOD_ENDPOINT_ID": "ep", "RUNPOD_WEBHOOK_GET_JOB": "https://api.example/take"}
			maps.Copy(env, tt.env)
			early, reason := checks.ConfigFrom(lookup(env)).EarlyPass(tt.args)
			require.Equal(t, tt.reason == "", early, reason)
			require.Contains(t, reason, tt.reason)
			require.Equal(t, early, reason == "")
		})
	}
}

func TestVersion_Order(t *testing.T) {
	v := func(s string) checks.Version {
		v, err := checks.ParseVersion(s)
		require.NoError(t, err)
		return v
	}
	require.True(t, v("12.8").Less(v("12.10")), "by number, not by letter")
	require.True(t, v("11.8").Less(v("12.0")))
	require.False(t, v("12.4").Less(v("12.4.1")))
	require.True(t, checks.Version{}.IsZero())
}

func TestWordsInJSON(t *testing.T) {
	b, err := json.Marshal(map[string]any{"status": checks.Warn, "cuda": checks.Version{Major: 12, Minor: 4}})
	require.NoError(t, err)
	require.Equal(t, `{"cuda":"12.4","status":"warn"}`, string(b))
	require.Equal(t, "12 GB", checks.Fact{Name: "total_gb", Value: 12.0, Text: "12 GB"}.String())
	require.Equal(t, "12.5", checks.Fact{Name: "total_gb", Value: 12.5}.String())
}
