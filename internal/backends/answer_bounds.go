// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package backends

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync/atomic"
)

// What one answer may be. A body is bounded in bytes before it is decoded, but a few
// bytes of JSON can become many of memory: "[{},{},…" is a whole object for every three.
// So its shape is bounded too, while it streams past, with what a list of 20,000 VMs
// needs (Proxmox VE has no pages).
const (
	// MaxAnswer bounds the body of one answer in bytes.
	MaxAnswer = 16 << 20
	// maxElements bounds one array, maxMembers all members and elements of an answer
	// together, and maxNesting how deep they stand in each other.
	maxElements = 20_000
	maxMembers  = 500_000
	maxNesting  = 64
)

// MaxList bounds the answers of one list, all its pages together, in bytes.
const MaxList = 256 << 20

// answerProblem is what is wrong with an answer that was not read to its end. The text
// goes on from "the answer can't be understood".
type answerProblem struct{ text string }

func (p *answerProblem) Error() string { return p.text }

var (
	errTooLong   = &answerProblem{fmt.Sprintf("it is longer than %d MiB", MaxAnswer>>20)}
	errTooMany   = &answerProblem{"it holds more than any list of this API has"}
	errTooDeep   = &answerProblem{"it is nested too deeply"}
	errLongList  = &answerProblem{fmt.Sprintf("the list is longer than %d MiB", MaxList>>20)}
	errNoAnswer  = &answerProblem{fmt.Sprintf("no whole answer came within %s", RequestTimeout)}
	errBreaksOff = &answerProblem{"it breaks off"}
)

// AnswerProblem says, as the end of a sentence, why an answer that began well could not
// be read: ": it is longer than 16 MiB"; "" where err doesn't tell.
func AnswerProblem(err error) string {
	if p := problemOf(err); p != nil {
		return ": " + p.text
	}
	return ""
}

func problemOf(err error) *answerProblem {
	if p, ok := errors.AsType[*answerProblem](err); ok {
		return p
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		return errNoAnswer
	case errors.Is(err, io.ErrUnexpectedEOF):
		return errBreaksOff
	}
	return nil
}

// passesABound tells whether an answer was too much: the next one would be, too.
func passesABound(err error) bool {
	switch p, _ := errors.AsType[*answerProblem](err); p {
	case errTooLong, errTooMany, errTooDeep, errLongList:
		return true
	default:
		return false
	}
}

type listBytesKey struct{}

// ListContext is a context whose requests are the pages of one list: they share one
// place in a [Limiter]'s line, and their answers are bounded together, by [MaxList].
func ListContext(ctx context.Context) context.Context {
	ctx = Operation(ctx)
	if ctx.Value(listBytesKey{}) != nil {
		return ctx
	}
	return context.WithValue(ctx, listBytesKey{}, new(atomic.Int64))
}

// boundAnswer bounds an answer's body. One whose length is given, and too much, isn't
// begun.
func boundAnswer(ctx context.Context, answer *http.Response) {
	list, _ := ctx.Value(listBytesKey{}).(*atomic.Int64)
	b := &boundedAnswer{body: answer.Body, left: MaxAnswer, list: list}
	if answer.ContentLength > MaxAnswer {
		b.err = errTooLong
	}
	answer.Body = b
}

// boundedAnswer is a body that ends with an error where a bound is passed.
type boundedAnswer struct {
	body  io.ReadCloser
	left  int64
	list  *atomic.Int64 // what the list has had so far; nil: no page of a list
	shape shape
	err   error
}

// Read implements [io.Reader].
func (b *boundedAnswer) Read(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	if int64(len(p)) > b.left+1 {
		p = p[:b.left+1] // one more tells an answer that is too long from one that just fits
	}
	n, err := b.body.Read(p)
	b.left -= int64(n)
	switch problem := b.shape.take(p[:n]); {
	case b.left < 0:
		b.err = errTooLong
	case problem != nil:
		b.err = problem
	case b.list != nil && b.list.Add(int64(n)) > MaxList:
		b.err = errLongList
	default:
		b.err = err
		return n, err
	}
	return 0, b.err
}

// Close implements [io.Closer].
func (b *boundedAnswer) Close() error { return b.body.Close() }

// shape is the shape of a JSON text, as far as it was taken in: how deep it is, and how
// much it holds. It doesn't check the syntax, so it may be given anything.
type shape struct {
	quoted, escaped bool
	depth, members  int
	elements        [maxNesting + 1]int // at each depth, in the array or object that is open
}

// take goes on with the text, and says which bound it passes.
func (s *shape) take(text []byte) error {
	for _, c := range text {
		if s.quoted {
			switch {
			case s.escaped:
				s.escaped = false
			case c == '\\':
				s.escaped = true
			case c == '"':
				s.quoted = false
			}
			continue
		}
		switch c {
		case '"':
			s.quoted = true
		case '{', '[':
			if s.depth == maxNesting {
				return errTooDeep
			}
			s.depth++
			s.members++
			s.elements[s.depth] = 0
		case '}', ']':
			s.depth = max(0, s.depth-1)
		case ',':
			s.members++
			s.elements[s.depth]++
		default:
			continue
		}
		if s.members > maxMembers || s.elements[s.depth] >= maxElements {
			return errTooMany
		}
	}
	return nil
}
