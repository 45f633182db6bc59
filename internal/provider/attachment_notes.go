// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"slices"
	"sync"
)

// volumeNotes are what this process has planned for volumes and their attachments. A
// provider is asked about one resource at a time, and the cores hand it nothing of the
// others; but all of one configuration are planned by one process. So a volume's plan
// leaves a note for its attachments', and they one for it: whichever comes second sees
// that both want to say where the volume is.
//
// What another configuration says isn't known here. An attachment never takes a volume
// from another machine, and a volume's instances takes it only from where its plan has
// shown it, so that two configurations end in an error and don't move it to and fro.
type volumeNotes struct {
	mu      sync.Mutex
	volumes map[string]volumeNote        // by the volume's id
	holders map[string]map[string]string // volume's id → attachment's id → instance's id
}

// volumeNote is what is planned for one volume.
type volumeNote struct {
	name string
	// id is the cloud's of the volume as it is; "" when there is none yet.
	id string
	// made: the plan makes it, be it for the first time or anew.
	made   bool
	shared bool
	// named: its instances is set, and names the instances with these ids.
	named     bool
	instances []string
	// goes: it is to go with its instance.
	goes bool
}

// plan notes what is planned for a volume.
func (n *volumeNotes) plan(key string, note volumeNote) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.volumes == nil {
		n.volumes = map[string]volumeNote{}
	}
	n.volumes[key] = note
}

// carriedOut notes that a volume is there as planned.
func (n *volumeNotes) carriedOut(key, id string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if note, ok := n.volumes[key]; ok {
		note.id, note.made = id, false
		n.volumes[key] = note
	}
}

// planned is what is planned for a volume, if this process has met it.
func (n *volumeNotes) planned(key string) (volumeNote, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	note, ok := n.volumes[key]
	return note, ok
}

// hold notes an attachment, and returns the instance of another one of the same volume;
// "" when there is none.
func (n *volumeNotes) hold(volume, attachment, instance string) (other string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.holders == nil {
		n.holders = map[string]map[string]string{}
	}
	if n.holders[volume] == nil {
		n.holders[volume] = map[string]string{}
	}
	n.holders[volume][attachment] = instance
	for _, held := range n.holders[volume] {
		if held != instance {
			other = held
		}
	}
	return other
}

// release takes the note of an attachment away.
func (n *volumeNotes) release(volume, attachment string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.holders[volume], attachment)
}

// held tells whether an attachment holds a volume.
func (n *volumeNotes) held(volume string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.holders[volume]) > 0
}

// names tells whether a volume's instances names an instance.
func (v volumeNote) names(instance string) bool {
	return v.named && slices.Contains(v.instances, instance)
}
