package cuda

import "time"

// Stopwatch measures how long the GPU works on something.
type Stopwatch struct {
	context    *Context
	start, end uintptr
}

// NewStopwatch makes a stopwatch that lasts until the end of the scope.
func (c *Context) NewStopwatch() (*Stopwatch, error) {
	if err := c.enter(); err != nil {
		return nil, err
	}
	w := &Stopwatch{context: c}
	for _, event := range []*uintptr{&w.start, &w.end} {
		if err := c.driver.check("cuEventCreate", c.driver.calls.eventCreate(event, 0)); err != nil {
			return nil, err
		}
		c.owned = append(c.owned, func() error {
			return c.driver.check("cuEventDestroy_v2", c.driver.calls.eventDestroy(*event))
		})
	}
	return w, nil
}

// Measure gives the GPU work and waits for its end. What a kernel did wrong shows here, not at its launch.
func (w *Stopwatch) Measure(work func() error) (time.Duration, error) {
	d := w.context.driver
	if err := d.check("cuEventRecord", d.calls.eventRecord(w.start, 0)); err != nil {
		return 0, err
	}
	if err := work(); err != nil {
		return 0, err
	}
	if err := d.check("cuEventRecord", d.calls.eventRecord(w.end, 0)); err != nil {
		return 0, err
	}
	if err := d.check("cuEventSynchronize", d.calls.eventSynchronize(w.end)); err != nil {
		return 0, err
	}
	var ms float32
	if err := d.check("cuEventElapsedTime", d.calls.eventElapsed(&ms, w.start, w.end)); err != nil {
		return 0, err
	}
	return time.Duration(float64(ms) * float64(time.Millisecond)), nil
}
