package checks

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"runpodctl-worker/internal/config"
)

// Knob is a value that a user may set, and who set it.
type Knob[T any] struct {
	Value  T
	Origin string // "default", or the name of the variable or flag
	Err    error  // the variable makes no sense; a check that needs it answers Error with this
}

// Set tells whether a user set the knob: an explicit threshold is fatal where a default may only warn.
func (k Knob[T]) Set() bool { return k.Origin != originDefault }

const originDefault = "default"

// Unset is the value of a count that nobody set.
const Unset = -1

// Config is all that the built-in checks are told from outside. It is built once for a phase and not changed.
type Config struct {
	MinMemoryGB    Knob[float64] // decimal shares of 1024³ bytes, as the SDK counts
	MinDiskPercent Knob[float64]
	NetworkTimeout Knob[time.Duration]
	MinCUDA        Knob[Version]
	GPUTimeout     Knob[time.Duration] // all GPU work of one phase
	GPUTestPath    Knob[string]        // the user's gpu_test; empty: ours
	GPUMaxErrors   Knob[int]
	GPUCount       Knob[int] // GPUs that must be there; Unset: nobody said
	Benchmark      Knob[time.Duration]

	Switches Switches
	Lookup   config.Lookup // for what is no knob: the image's CUDA_VERSION, NVIDIA_*, proxies, URLs
}

// ConfigFrom reads the environment. What makes no sense is kept in the knob that it belongs to.
func ConfigFrom(lookup config.Lookup) Config {
	return Config{
		MinMemoryGB:    knob(lookup, config.MinMemoryGB, 4, amount),
		MinDiskPercent: knob(lookup, config.MinDiskPercent, 10, percent),
		NetworkTimeout: knob(lookup, config.NetworkTimeout, 5*time.Second, seconds),
		MinCUDA:        knob(lookup, config.MinCUDAVersion, Version{11, 8}, ParseVersion),
		GPUTimeout:     knob(lookup, config.GPUTestTimeout, 30*time.Second, seconds),
		GPUTestPath:    knob(lookup, config.GPUTestPath, "", func(s string) (string, error) { return s, nil }),
		GPUMaxErrors:   knob(lookup, config.GPUMaxErrors, 10, count),
		GPUCount:       knob(lookup, config.GPUCount, Unset, count),
		Benchmark:      knob(lookup, config.GPUBenchmarkTimeout, 2*time.Second, seconds),
		Switches:       switchesFrom(lookup),
		Lookup:         lookup,
	}
}

// Err joins what is wrong with any knob: for a worker, which must not start on a threshold that it misread.
func (c Config) Err() error {
	return errors.Join(c.MinMemoryGB.Err, c.MinDiskPercent.Err, c.NetworkTimeout.Err, c.MinCUDA.Err, c.GPUTimeout.Err,
		c.GPUTestPath.Err, c.GPUMaxErrors.Err, c.GPUCount.Err, c.Benchmark.Err)
}

// Get is the value of a variable, empty where it is not set.
func (c Config) Get(name string) string {
	v, _ := c.Lookup(name)
	return v
}

// WithGPUCount is the configuration with a number of GPUs to expect, and who asks for it: a flag beats the variable,
// also one that makes no sense.
func (c Config) WithGPUCount(n int, origin string) Config {
	c.GPUCount = Knob[int]{Value: n, Origin: origin}
	return c
}

func knob[T any](lookup config.Lookup, name string, normal T, parse func(string) (T, error)) Knob[T] {
	text, ok := lookup(name)
	text = strings.TrimSpace(text)
	if !ok || text == "" {
		return Knob[T]{Value: normal, Origin: originDefault}
	}
	value, err := parse(text)
	if err != nil {
		return Knob[T]{Value: normal, Origin: name, Err: fmt.Errorf("%s=%q: %w", name, text, err)}
	}
	return Knob[T]{Value: value, Origin: name}
}

func amount(s string) (float64, error) {
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || v < 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		return 0, errors.New("want a number of GB")
	}
	return v, nil
}

func percent(s string) (float64, error) {
	v, err := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(s, "%")), 64)
	if err != nil || !(v >= 0 && v <= 100) {
		return 0, errors.New("want a percentage from 0 to 100")
	}
	return v, nil
}

// A limit must not overflow or mean for ever, nor be so short that it rounds to none.
const (
	minSeconds = 0.001
	maxSeconds = 24 * 60 * 60
)

func seconds(s string) (time.Duration, error) {
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || !(v >= minSeconds && v <= maxSeconds) {
		return 0, fmt.Errorf("want a number of seconds from %v to %d", minSeconds, maxSeconds)
	}
	return time.Duration(v * float64(time.Second)), nil
}

func count(s string) (int, error) {
	v, err := strconv.Atoi(s)
	if err != nil || v < 0 {
		return 0, errors.New("want a whole number, 0 or more")
	}
	return v, nil
}

// truthy reads a switch as the SDK does.
func truthy(lookup config.Lookup, name string) bool {
	v, _ := lookup(name)
	return slices.Contains([]string{"1", "true", "yes", "on"}, strings.ToLower(strings.TrimSpace(v)))
}
