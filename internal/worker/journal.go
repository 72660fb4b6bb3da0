package worker

import (
	"iter"

	"runpodctl-worker/internal/protocol"
)

// noJournal is the memory of a worker that has none.
type noJournal struct{}

func (noJournal) Owed() iter.Seq2[string, int64]                { return func(func(string, int64) bool) {} }
func (noJournal) Recall(string) (o protocol.Outcome, err error) { return o, nil }
func (noJournal) Crashes() map[string]int                       { return nil }
func (noJournal) Suspected(string) bool                         { return false }
func (noJournal) Taken(string)                                  {}
func (noJournal) Result(string, protocol.Outcome)               {}
func (noJournal) Settled(string)                                {}
func (noJournal) Released(string)                               {}
func (noJournal) Crashed(string)                                {}
