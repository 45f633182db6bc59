// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package proxmox

import (
	"encoding/json"
	"strconv"
	"strings"
)

// scalar is a value of the API as text. What is a number in one version is a string
// in another (memory, template), and booleans are 0 and 1.
type scalar string

// UnmarshalJSON implements [json.Unmarshaler].
func (s *scalar) UnmarshalJSON(data []byte) error {
	switch text := string(data); {
	case text == "null":
		*s = ""
	case text == "true":
		*s = "1"
	case text == "false":
		*s = "0"
	case strings.HasPrefix(text, `"`):
		var value string
		if err := json.Unmarshal(data, &value); err != nil {
			return err
		}
		*s = scalar(value)
	default:
		*s = scalar(text)
	}
	return nil
}

func (s scalar) isTrue() bool { return s == "1" }

// number is the whole number that it holds; 0 when it is none.
func (s scalar) number() int64 {
	if n, err := strconv.ParseInt(string(s), 10, 64); err == nil {
		return n
	}
	f, err := strconv.ParseFloat(string(s), 64)
	if err != nil || f < 0 || f > 1<<62 {
		return 0
	}
	return int64(f)
}
