package checks

import "time"

// Event is one thing that happened in a run: Started, Found, Finished, Ended.
type Event interface{ event() }

type (
	// Started says that a step runs now.
	Started struct {
		Step Step
		At   time.Time
	}
	// Found says that a step brought more steps to light, which follow it.
	Found struct {
		After string // key of the step
		Steps []Step
	}
	// Finished says that a step has its result. A step that is excluded finishes without having started.
	Finished struct{ Row Row }
	// Ended is the last event of a run.
	Ended struct{ Report Report }
)

func (Started) event()  {}
func (Found) event()    {}
func (Finished) event() {}
func (Ended) event()    {}

// Row is a step with its result.
type Row struct {
	Step   Step
	Result Result
	Took   time.Duration
}

// Fatal says whether this row makes a worker unfit.
func (r Row) Fatal() bool { return r.Step.Fatal(r.Result.Status) || r.Result.Misread }

// Report is all that came of a run, in the order of the plan.
type Report struct {
	Began time.Time
	Took  time.Duration
	Rows  []Row

	Interrupted bool // whoever ran it ended it early: nobody knows whether the box is fit
}

// OK tells whether the box is known to be fit for a worker; strict: warnings count too.
func (r Report) OK(strict bool) bool {
	return !r.Interrupted && len(r.Fatal()) == 0 && (!strict || len(r.Warnings()) == 0)
}

// Fatal lists the rows that make a worker unfit.
func (r Report) Fatal() []Row { return r.pick(Row.Fatal) }

// Warnings lists the rows that somebody should look at, though a worker may run: warnings, and checks that could not
// be run but need not be.
func (r Report) Warnings() []Row {
	return r.pick(func(row Row) bool {
		return !row.Fatal() && (row.Result.Status == Warn || row.Result.Status == Error)
	})
}

// Count is how many rows have the status.
func (r Report) Count(s Status) int {
	return len(r.pick(func(row Row) bool { return row.Result.Status == s }))
}

func (r Report) pick(want func(Row) bool) []Row {
	var rows []Row
	for _, row := range r.Rows {
		if want(row) {
			rows = append(rows, row)
		}
	}
	return rows
}
